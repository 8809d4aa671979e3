"""Audits with a pool: its size, what it says of the trainer, of people and of groups."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import reticent
from reticent.data import table_from_frame
from reticent.errors import InvalidInput
from reticent.pipeline import AuditPlan, run_audit
from reticent.run import Effort, Run, Store
from reticent.train import EstimatorTrainer

ONE = {"rounds": 1, "workers": 1}


def made(n, flip=0.2):
    return make_classification(
        n, n_features=6, n_informative=4, n_redundant=0, flip_y=flip, random_state=0
    )


@pytest.fixture(scope="module")
def pooled():
    X, y = made(1600)
    table = table_from_frame(
        pd.DataFrame(X).add_prefix("x"),
        target=y,
        group=np.where(np.arange(1600) % 4 == 0, "few", "many"),
    )
    trainer = EstimatorTrainer.of(RandomForestClassifier(30), preprocess=False)
    return run_audit(table, AuditPlan(trainer=trainer, pool=12, rounds=1))


def test_every_model_is_a_target_and_the_interval_covers_the_trainer(pooled):
    pool = pooled.dossier.evidence.pool
    assert pool.models == 12
    assert pool.chosen == "asked for"
    by_name = {t.name: t for t in pool.targets}
    assert set(by_name) == {"rmia", "lira"}
    for found in by_name.values():
        assert found.targets == 12
        assert found.auc.covers == "trainer"
        assert found.lowest <= found.auc.value <= found.highest
    # The product is one more run of the same trainer.
    product = {a.name: a for a in pooled.dossier.evidence.attacks}["rmia"]
    assert abs(product.auc.value - by_name["rmia"].auc.value) < 0.06


def test_more_models_do_not_make_the_attack_weaker(pooled):
    points = [c for c in pooled.dossier.evidence.pool.convergence if c.attack == "rmia"]
    assert [c.models for c in points] == [4, 8, 12]
    assert points[-1].auc.high > points[0].auc.value


def test_losses_grow_and_posteriors_are_probabilities_of_people(pooled):
    evidence = pooled.dossier.evidence
    losses = [q.loss.value for q in evidence.pool.losses]
    assert losses == sorted(losses)
    assert losses[-1] > 1  # some are told with more than e to 1
    risk = pooled.per_record
    assert ((risk.posterior >= 0) & (risk.posterior <= 1)).all()
    inside = risk.posterior[risk.member].mean()
    assert inside > 0.6
    assert risk.posterior[~risk.member].mean() < 0.4
    assert sum(evidence.pool.posterior.members) > 0.95


def test_predicted_memberships_come_true(pooled):
    """The diagonal lies inside the joint band of the calibration of every bin."""
    bins = pooled.dossier.evidence.calibration.bins
    outside = [b for b in bins if not b.observed.low <= b.predicted <= b.observed.high]
    assert len(outside) <= 1, outside


def test_groups_are_compared_over_models(pooled):
    evidence = pooled.dossier.evidence
    found = evidence.pool.disparity
    assert [g.name for g in found.groups] == ["few", "many"]
    assert len(found.pairs) == 1
    assert 0 <= found.p_value <= 1
    for group in evidence.groups:
        assert group.vulnerability.low > 0
        assert group.worst_case.high > group.vulnerability.value
    assert evidence.subgroup_aware.value > 0


def test_the_worst_case_is_no_less_than_what_the_attack_reached(pooled):
    evidence = pooled.dossier.evidence
    worst = {w.feature: w for w in evidence.worst_case}
    assert set(worst) >= {"0-1 loss", "loss", "answer and class"}
    best = max(a.vulnerability.value for a in evidence.attacks)
    by_score = next(w for name, w in worst.items() if name.startswith("score of"))
    assert by_score.estimate.high > best - 0.05
    assert by_score.p_value < 0.01
    gap = evidence.theorems["error_reserved"] - evidence.theorems["error_defender"]
    assert worst["0-1 loss"].plug_in == pytest.approx(abs(gap))


def test_an_innocent_product_has_no_worst_case():
    X, y = made(1200)
    dossier = reticent.audit(LogisticRegression(C=1e-5), X, y, pool=8, **ONE)
    worst = {w.feature: w for w in dossier.evidence.worst_case}
    assert worst["loss"].estimate.low == 0
    assert worst["loss"].p_value > 0.001
    assert dossier.evidence.pool.targets[0].auc.low < 0.55


def test_time_chooses_the_pool_and_the_repeat_line_names_it(tmp_path):
    X, y = made(300)
    dossier = reticent.audit(LogisticRegression(), X, y, **ONE)
    pool = dossier.evidence.pool
    assert pool.chosen == "by time"
    assert pool.models in (4, 8, 16, 32, 64)
    assert f"pool={pool.models})" in dossier.repeat
    none = reticent.audit(LogisticRegression(), X, y, minutes=1e-4, **ONE)
    assert none.evidence.pool is None
    assert "pool=0)" in none.repeat


def test_a_resumed_audit_keeps_the_size_it_chose(tmp_path):
    X, y = made(300)
    table = table_from_frame(pd.DataFrame(X).add_prefix("x"), target=y)
    trainer = EstimatorTrainer.of(LogisticRegression(), preprocess=False)
    plan = AuditPlan(trainer=trainer, rounds=1)
    run = Run(store=Store(folder=tmp_path / "kept"), effort=Effort(minutes=2.0))
    first = run_audit(table, plan, run=run).dossier
    # Another budget of time would choose no pool; what was chosen first stays.
    short = replace(run, effort=Effort(minutes=1e-4))
    second = run_audit(table, plan, run=short).dossier
    assert first.evidence.pool == second.evidence.pool
    assert first.evidence.pool.models == 64


def test_a_pool_that_does_not_fit_the_memory_is_refused():
    X, y = made(400)
    with pytest.raises(InvalidInput, match=r"more than the 0.0001 GB allowed"):
        reticent.audit(LogisticRegression(), X, y, pool=64, memory=1e-4, **ONE)


def test_a_claim_puts_its_bound_beside_the_vulnerability():
    X, y = made(300)
    dossier = reticent.audit(
        LogisticRegression(), X, y, claimed_epsilon=1.0, pool=0, **ONE
    )
    assert dossier.evidence.vulnerability_bound == pytest.approx(np.tanh(0.5))
