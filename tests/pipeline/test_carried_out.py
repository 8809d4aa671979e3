"""How an audit is carried out changes the time, never a digit; and nothing is kept that is stale."""

import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import reticent
from made_tables import people
from reticent.attack import Loss, Need, Scores
from reticent.audits import SyntheticTableKind
from reticent.data import table_from_frame
from reticent.pipeline import AuditPlan, run_audit
from reticent.pipeline._case import Case
from reticent.pipeline._pool import PoolSize, train_pool
from reticent.policy import Verdict, read_policy
from reticent.product import SyntheticTable
from reticent.run import Cluster, Effort, Processes, Run, Serial, Store
from reticent.train import (
    EstimatorTrainer,
    MarginalGenerator,
    parse_generator,
    parse_trainer,
)

sys.path.insert(0, str(Path(__file__).parent))
from mortal import Mortal

ALL_TREES = True  # other processes have them, whose digits are compared


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(300, n_features=5, flip_y=0.2, random_state=0)
    frame = pd.DataFrame(X).add_prefix("x")
    groups = np.where(X[:, 0] > 0, "a", "b")
    frame["city"] = np.where(X[:, 1] > 0, "Oslo", "Bergen")
    return table_from_frame(frame, target=y, group=groups)


def plan_of(estimator, **changed):
    trainer = EstimatorTrainer.of(estimator, preprocess=True)
    return AuditPlan(trainer=trainer, **({"pool": 4, "rounds": 1} | changed))


def carried_out_by(workers, **changed):
    return Run(effort=Effort(workers=workers, minutes=10.0, **changed))


@pytest.fixture(scope="module")
def alone(table):
    return run_audit(
        table, plan_of(DecisionTreeClassifier()), run=carried_out_by(Serial())
    )


@pytest.fixture(scope="module")
def processes():
    """Two processes that take seconds to start, for all tests that do not kill one."""
    workers = Processes(2)
    yield workers
    workers.close()


@pytest.fixture(scope="module")
def cluster():
    workers = Cluster("local", 2)
    yield workers
    workers.close()


@pytest.mark.parametrize("kind", ["processes", "cluster"])
def test_the_same_digits_whoever_does_the_work(table, alone, kind, request):
    workers = request.getfixturevalue(kind)
    plan = plan_of(DecisionTreeClassifier())
    result = run_audit(table, plan, run=carried_out_by(workers))
    assert result.dossier.to_json() == alone.dossier.to_json()
    assert np.array_equal(result.per_record.score, alone.per_record.score)


@pytest.mark.parametrize("kind", ["processes", "cluster"])
def test_shadow_generators_are_made_by_any_workers(kind, request, tmp_path):
    """Tables of a recipe are a pool like any other: the same digits by all workers, and a resumed run makes none again."""
    rng = np.random.default_rng(0)
    frame = people(600, rng).assign(part=np.repeat(["defender", "reserved", "auxiliary"], 200))  # fmt: skip
    table = table_from_frame(frame, target=None, part="part")
    members = table.take(np.arange(200))
    plan = AuditPlan(
        trainer=parse_generator("MarginalGenerator(noise_multiplier=0.5)", rows_per_record=1.0, members=members),
        product=SyntheticTable(people(200, rng)),
        of_kind=SyntheticTableKind("ill"),
        pool=4,
    )  # fmt: skip
    case = Case.of(table, plan, None, Run())
    size = PoolSize(models=4, chosen="asked for")

    def made_by(workers, store):
        run = Run(effort=Effort(workers=workers), store=store)
        return train_pool(case, size, 12, run).comparisons

    alone = made_by(Serial(), Store(folder=tmp_path / "kept"))
    workers = request.getfixturevalue(kind)
    assert np.array_equal(made_by(workers, Store(folder=tmp_path / "other")), alone)
    with pytest.MonkeyPatch.context() as patch:
        # Whoever is asked to make a table now is not needed: all of them were kept.
        patch.setattr(MarginalGenerator, "train", None)
        assert np.array_equal(made_by(Serial(), Store(folder=tmp_path / "kept")), alone)


def test_a_killed_worker_does_not_end_an_audit(table, tmp_path):
    workers, flag = Processes(2), tmp_path / "died"
    try:
        # The trainings are what dies; one attack is enough to see that all of them are there.
        lenient = replace(
            read_policy("default"), required_attacks={"classifier": ("loss",)}
        )
        mortal = plan_of(
            Mortal(flag=str(flag)), attacks=(Loss(),), policy=lenient, pool=4
        )
        result = run_audit(table, mortal, run=carried_out_by(workers))
    finally:
        workers.close()
    assert flag.exists()  # it was killed
    calm = run_audit(table, mortal)
    assert result.dossier.privacy == calm.dossier.privacy


class Locked(LogisticRegression):
    """A classifier that no process can send to another."""

    def fit(self, X, y):
        self.lock_ = threading.Lock()
        return super().fit(X, y)


def test_a_product_that_cannot_be_sent_is_made_in_this_process(table, processes):
    """The product, its control and the baseline are made side by side; a product that cannot leave its process is made here, to the same digit."""
    plan = plan_of(Locked(), pool=0)
    results = [
        run_audit(table, plan, run=carried_out_by(workers))
        for workers in (Serial(), processes)
    ]
    evidence = [result.dossier.evidence for result in results]
    assert evidence[0] == evidence[1]
    assert results[1].product.estimator[-1].lock_ is not None


def test_another_number_of_workers_finds_every_model_of_the_pool_again(
    table, processes, tmp_path
):
    """Killed after the pool: what was trained alone is found by two, and by a larger pool."""
    kept = Store(folder=tmp_path / "kept")
    told = []

    def stop(stage, done, total):
        told.append(stage)
        if stage == "attacking":
            raise KeyboardInterrupt

    plan = plan_of(DecisionTreeClassifier(), pool=4)
    run = replace(carried_out_by(Serial()), store=kept, tell=stop)
    with pytest.raises(KeyboardInterrupt):
        run_audit(table, plan, run=run)
    chunks = sorted(kept.folder.glob("training_the_pool*"))
    assert len(chunks) == 4
    before = [chunk.stat().st_mtime_ns for chunk in chunks]
    again = replace(carried_out_by(processes), store=kept)
    run_audit(table, plan_of(DecisionTreeClassifier(), pool=6), run=again)
    assert [chunk.stat().st_mtime_ns for chunk in chunks] == before
    assert len(list(kept.folder.glob("training_the_pool*"))) == 6


@pytest.mark.usefixtures("few_trees")
def test_what_cannot_be_hashed_is_not_kept_and_the_audit_says_so(table, tmp_path):
    trainer = EstimatorTrainer(
        make=lambda: LogisticRegression(C=0.5), recipe="a lambda", preprocess=True
    )
    kept = Store(folder=tmp_path / "kept")
    run = replace(carried_out_by(Serial()), store=kept)
    plan = AuditPlan(trainer=trainer, pool=0, rounds=1)
    dossier = run_audit(table, plan, run=run).dossier
    (finding,) = [f for f in dossier.findings if f.name == "not_kept"]
    assert "lambda" in finding.text
    assert "computed again" in finding.text
    assert {p.name.split("-")[0] for p in kept.folder.glob("*.stage")} == {"blind"}


SLEPT = [0.0]  # seconds, on the clock of the test


@dataclass(frozen=True, kw_only=True)
class Sleeper:
    """An attack that takes five minutes, by a clock that it moves on."""

    name: str = "sleeper"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})

    def score(self, challenge, *, knowledge, rng):
        SLEPT[0] += 300.0
        return Scores(values=np.zeros(len(challenge)))


def test_an_attack_that_would_end_too_late_is_skipped_and_counts(table, monkeypatch):
    """Five minutes on each of three products do not fit into ten, which are ample for all the rest, on busy machines too."""
    moved_on = SimpleNamespace(perf_counter=lambda: time.perf_counter() + SLEPT[0])
    monkeypatch.setattr("reticent.run._timetable.time", moved_on)
    policy = replace(read_policy("default"), required_attacks={"any": ("loss",)})
    plan = plan_of(
        DecisionTreeClassifier(max_depth=1),
        pool=0,
        rounds=1,
        policy=policy,
        attacks=(Loss(), Sleeper()),
    )
    late = run_audit(table, plan, run=carried_out_by(Serial(), deadline=10.0)).dossier
    assert [attack.name for attack in late.evidence.attacks] == ["loss"]
    (skipped,) = late.evidence.skipped
    assert skipped.name == "sleeper"
    assert "deadline" in skipped.why
    assert late.verdict != Verdict.RELEASE
    assert any("'sleeper' was not run" in reason for reason in late.reasons)
    ample = run_audit(table, plan, run=carried_out_by(Serial(), deadline=60.0)).dossier
    assert ample.evidence.skipped == ()


def test_little_memory_changes_no_digit(table, alone, processes):
    """Copies for two processes would not fit: one process does the attacks."""
    run = carried_out_by(processes, memory=1.5e-4)
    result = run_audit(table, plan_of(DecisionTreeClassifier()), run=run)
    assert result.dossier.to_json() == alone.dossier.to_json()


@pytest.mark.usefixtures("few_trees")
def test_time_tells_what_pools_would_take_before_it_trains_one(table):
    said = []
    run = replace(carried_out_by(Serial()), say=said.append)
    plan = replace(plan_of(DecisionTreeClassifier(), pool=None, rounds=1))
    dossier = run_audit(table, plan, run=run).dossier
    (sentence,) = [words for words in said if words.startswith("A pool")]
    for size in ("4 models", "16 models", "64 models", "GB"):
        assert size in sentence
    assert [f.models for f in dossier.evidence.pool.forecasts] == [4, 8, 16, 64]


@pytest.mark.usefixtures("few_trees")
def test_a_recipe_of_ours_is_audited_as_it_is():
    pytest.importorskip("torch")
    X, y = make_classification(300, n_features=5, random_state=0)
    network = reticent.Network(hidden=[4], epochs=2)
    dossier = reticent.audit(network, X, y, pool=4, rounds=1, workers=1)
    assert dossier.provenance.recipe == "reticent.Network(hidden=(4,), epochs=2)"
    assert parse_trainer(dossier.provenance.recipe).network == network
