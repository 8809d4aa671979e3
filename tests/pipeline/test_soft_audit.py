"""Soft labels in an audit from end to end: a network that is refused leaks less with them, on the same split and seed."""

import math

import pandas as pd
import pytest
from scipy.stats import norm

import reticent
from reticent.account import Terms
from reticent.policy import Verdict
from reticent.run import stream
from reticent.train import trainer_of
from reticent.train.private.budget import guarantee_of

FALSE_ALARM = 1e-6


@pytest.mark.slow
def test_an_audit_sees_that_soft_labels_leak_less(seed):
    """The strongest attack on each, by models that were trained in the same way.

    200 members and 200 others: the standard error of an AUC is at most 0.5 / sqrt(200). A network that knows its members by heart
    has an AUC near 1, so the difference is beyond what chance does once in a million even if all errors go one way.
    """
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    rng = stream(seed, "soft/audit")
    X = rng.normal(size=(500, 30))
    y = (X[:, 0] + X[:, 1] > 0) ^ (rng.random(500) < 0.4)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(30)])
    network = reticent.Network(
        hidden=[64], epochs=100, batch=50, optimiser=reticent.Adam(rate=0.005)
    )
    plan = {"rounds": 1, "workers": 1, "pool": 4, "minutes": 0.05, "seed": seed}
    hard, soft = (
        reticent.audit(trainer, frame, y.astype(int), **plan)
        for trainer in (network, reticent.SoftLabels(network, alpha=0.0, repeats=2))
    )
    strongest = [
        max(attack.auc.value for attack in dossier.evidence.attacks)
        for dossier in (hard, soft)
    ]
    tolerance = norm.isf(FALSE_ALARM) * 2**0.5 * 0.5 / 200**0.5
    assert strongest[0] - strongest[1] > tolerance
    assert hard.verdict == Verdict.REFUSE
    assert soft.verdict != Verdict.RELEASE  # too few records to say so
    assert soft.provenance.recipe.startswith("reticent.SoftLabels(")
    assert soft.provenance.guarantee is None


@pytest.mark.slow
def test_a_private_product_is_audited_with_the_guarantee_of_the_procedure(seed):
    """Teachers and student together; and no attack shows more than that guarantee allows.

    Under (epsilon, delta), no attack is right about one of two equally likely answers more often than
    (e^epsilon + delta) / (1 + e^epsilon). The lower end of an attack's interval at 95 % may pass that by chance once in twenty
    times, so only what lies beyond it by a margin for a false alarm in a million counts.
    """
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    rng = stream(seed, "soft/private_audit")
    X = rng.normal(size=(600, 10))
    y = (X[:, 0] + X[:, 1] > 0) ^ (rng.random(600) < 0.3)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(10)])
    private = reticent.PrivateNetwork(
        hidden=[32], epochs=5, batch=40, noise_multiplier=3.0
    )
    soft = reticent.SoftLabels(private, alpha=0.5, folds=2, repeats=2)
    plan = {"rounds": 1, "workers": 1, "pool": 4, "minutes": 0.05, "seed": seed}
    dossier = reticent.audit(soft, frame, y.astype(int), **plan)
    guarantee = dossier.provenance.guarantee
    assert guarantee is not None
    assert guarantee.holds
    # A teacher has half of the rows, so its sampling rate, the higher one, is 40 out of half of them.
    rows = round(2 * 40 / guarantee.sampling_rate)
    terms = Terms(delta=guarantee.delta)
    procedure = trainer_of(soft).guarantee_on(rows, terms)
    assert guarantee.epsilon == pytest.approx(procedure.epsilon, rel=1e-3)
    # The twin: what the student alone would have is far less, and must not be stated.
    student = guarantee_of(private, rows=rows, terms=terms)
    assert guarantee.epsilon > 1.3 * student.epsilon
    allowed = (math.exp(guarantee.epsilon) + guarantee.delta) / (
        1 + math.exp(guarantee.epsilon)
    )
    strongest = max(attack.auc.value for attack in dossier.evidence.attacks)
    assert strongest < allowed + norm.isf(FALSE_ALARM) * 0.5 / 240**0.5
