"""A product is all of its bytes: what its file contains is part of the evidence."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from reticent.attack import Need, Scores
from reticent.data import table_from_frame
from reticent.evidence import FoundInFile, found_beyond_chance
from reticent.pipeline import AuditPlan, run_audit
from reticent.pipeline._score import Arena
from reticent.policy import Outcome, Verdict, read_policy
from reticent.report import render_html, render_text
from reticent.run import Effort, Run, Store, stream
from reticent.train import EstimatorTrainer, parse_trainer

# What is asked here does not depend on how strong the learned attacks are.

FALSE_ALARM = 1e-6
NEIGHBOURS = "sklearn.neighbors.KNeighborsClassifier(n_neighbors=400)"
QUERIES = replace(read_policy("default"), release="queries")


def people(n=2_600, seed=0):
    """Return people whose outcome depends on two measurements, so that a smooth classifier is useful."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    ill = x[:, 0] + x[:, 1] + rng.normal(size=n) > 0
    return table_from_frame(
        pd.DataFrame(x, columns=list("abcd")), target=ill.astype(int)
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """What audits of this module keep: those that differ in their policy alone are attacked once."""
    return Store(folder=tmp_path_factory.mktemp("audits") / "kept")


def audit(trainer, kept, *, policy=None):
    plan = AuditPlan(
        trainer=trainer if not isinstance(trainer, str) else parse_trainer(trainer),
        policy=policy or read_policy("default"),
        pool=4,
        rounds=1,
    )
    run = Run(effort=Effort(minutes=0.1), store=kept)
    return run_audit(people(), plan, run=run).dossier


@pytest.fixture(scope="module")
def neighbours(kept):
    return audit(NEIGHBOURS, kept)


def test_a_product_that_stores_its_records_is_refused_whatever_its_answers_hide(
    neighbours,
):
    dossier = neighbours
    assert dossier.verdict == Verdict.REFUSE
    by_queries = [a.auc.low for a in dossier.evidence.attacks if a.name != "reader"]
    assert max(by_queries) < 0.55  # no query shows it
    file = dossier.evidence.file
    assert file.rows.members == file.members
    assert file.rows.nonmembers == 0
    assert file.long_axes
    check = next(c for c in dossier.decision.limits if c.measure == "file_records")
    assert check.outcome == Outcome.BROKEN
    assert any("whoever holds it can read" in r for r in dossier.reasons)
    assert "stores no records" in dossier.decision.next_steps[0]


def test_the_section_says_what_the_file_holds_and_shows_no_record(neighbours):
    html, text = render_html(neighbours), render_text(neighbours)
    table = people()
    for words in ("What the file holds", "whole records", "_fit_X"):
        assert words in html
    assert "whole records" in text
    values = [repr(float(v)) for v in table.features.to_numpy()[:50].ravel()]
    assert not any(value in html or value in text for value in values)


def test_for_queries_only_the_finding_is_a_warning(kept):
    dossier = audit(NEIGHBOURS, kept, policy=QUERIES)
    assert all(a.family != "reads the file" for a in dossier.evidence.attacks)
    assert [a.name for a in dossier.evidence.aside] == ["reader"]
    assert any("does not speak for whoever holds the file" in w for w in dossier.warnings)  # fmt: skip
    check = next(c for c in dossier.decision.limits if c.measure == "file_records")
    assert check.outcome == Outcome.KEPT
    assert not any("file contains the whole" in r for r in dossier.reasons)


def test_a_file_that_tells_nothing_is_no_reason_to_refuse(kept):
    dossier = audit("sklearn.linear_model.LogisticRegression()", kept)
    file = dossier.evidence.file
    assert file.rows is None
    reader = next(a for a in dossier.evidence.attacks if a.name == "reader")
    assert reader.auc.low < 0.5 < reader.auc.high
    check = next(c for c in dossier.decision.limits if c.measure == "file_records")
    assert check.outcome == Outcome.KEPT
    assert dossier.verdict != Verdict.REFUSE


class Unstorable(ClassifierMixin, BaseEstimator):
    """A classifier that skops does not store, because it holds a generator."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_
        self.rows_ = (row for row in ())
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)


def test_a_file_that_could_not_be_read_leaves_the_audit_open(kept):
    trainer = EstimatorTrainer.of(Unstorable(), preprocess=False)
    dossier = audit(trainer, kept)
    assert dossier.verdict == Verdict.INCONCLUSIVE
    assert dossier.evidence.file is None
    assert any("'reader'" in reason for reason in dossier.reasons)
    assert any('release = "queries"' in step for step in dossier.decision.next_steps)
    assert any(f.name == "file_not_read" for f in dossier.findings)
    queries = audit(trainer, kept, policy=QUERIES)
    assert not any("'reader'" in reason for reason in queries.reasons)


def test_coincidence_is_not_called_a_find(seed):
    """Members and non-members found at the same rate; the twin counts members alone and is wrong every time."""
    rng = stream(seed, "coincidence")
    alarms = careless = 0
    for _ in range(2_000):
        inside, outside = rng.binomial(300, 0.2, size=2)
        at = FoundInFile(
            place="x", stage="", members=int(inside), nonmembers=int(outside)
        )
        found = found_beyond_chance(at, members=300, nonmembers=300, level=0.95)
        alarms += found.low > 0
        careless += inside > 0
    # At most 5 % by the joint level, of which the conservative interval uses little.
    assert alarms <= 2_000 * 0.05
    assert careless == 2_000


def test_a_share_of_the_members_is_found_with_power(seed):
    rng = stream(seed, "power")
    hits = 0
    for _ in range(200):
        at = FoundInFile(
            place="x",
            stage="",
            members=int(rng.binomial(600, 0.2)),
            nonmembers=int(rng.binomial(600, 0.02)),
        )
        hits += (
            found_beyond_chance(at, members=600, nonmembers=600, level=1 - 1e-6).low > 0
        )
    assert hits >= 195


@dataclass(frozen=True, kw_only=True)
class Bytes:
    """An attack of one's own that reads the file itself: it scores nobody, and fails without the file."""

    name: str = "bytes"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.FILE})

    def score(self, challenge, *, knowledge, rng):
        return Scores(values=np.full(len(challenge), float(challenge.file.contents.size)))  # fmt: skip


def test_the_file_travels_only_to_attacks_of_the_users_own(kept, monkeypatch):
    """What was found in the file is enough for the reader, whose scores are those of a reader with the file; an attack that the user named is given the file."""
    sent = []
    honest = Arena.sent

    def watched(self, plan):
        sent.append(honest(self, plan))
        return sent[-1]

    monkeypatch.setattr(Arena, "sent", watched)
    plan = AuditPlan(trainer=parse_trainer(NEIGHBOURS), pool=4, rounds=1)
    run = Run(effort=Effort(minutes=0.1))
    usual = run_audit(people(), plan, run=run).dossier.evidence
    for trials in sent:
        has_file = {name: t.challenge.file is not None for name, t in trials.items()}
        # The control that memorises was not searched before.
        assert has_file == {"product": False, "memorising": True, "unrelated": False}
        assert trials["product"].challenge.searched is not None
    sent.clear()
    named = run_audit(people(), replace(plan, own_attacks=(Bytes(),)), run=run).dossier
    assert all(t.challenge.file is not None for trials in sent for t in trials.values())
    assert named.evidence.failed == ()
    assert "bytes" in [attack.name for attack in named.evidence.attacks]
    reader = [
        next(a for a in evidence.attacks if a.name == "reader")
        for evidence in (usual, named.evidence)
    ]
    # The joint confidence is divided among one attack more, so only the estimates are equal.
    assert reader[0].auc.value == reader[1].auc.value > 0.99


def test_large_files_of_short_trainings_are_not_kept(tmp_path, monkeypatch):
    """To train for a second again after an interruption takes less than to keep hundreds of megabytes in every audit; small files are kept, and those of long trainings."""
    names = []
    honest = Store.save

    def noted(self, name, value, *, depends):
        names.append(name)
        honest(self, name, value, depends=depends)

    monkeypatch.setattr(Store, "save", noted)
    plan = AuditPlan(trainer=EstimatorTrainer.of(LogisticRegression(), preprocess=True), pool=0, rounds=1)  # fmt: skip

    def audit_in(folder):
        names.clear()
        store = Store(folder=tmp_path / folder)
        dossier = run_audit(people(), plan, run=Run(effort=Effort(minutes=0.1), store=store)).dossier  # fmt: skip
        return dossier.evidence.file, {"file", "control-file"} & {*names}

    both = {"file", "control-file"}
    small, kept_of_small = audit_in("small")
    monkeypatch.setattr("reticent.pipeline._begin.BYTES_TO_KEEP", 0)
    short, kept_of_short = audit_in("short")
    monkeypatch.setattr("reticent.pipeline._begin.SECONDS_TO_KEEP", 0.0)
    long, kept_of_long = audit_in("long")
    assert (kept_of_small, kept_of_short, kept_of_long) == (both, set(), both)
    assert small == short == long is not None
    # An audit that goes on where the file was not kept opens that of the product trained again.
    monkeypatch.undo()
    store = Store(folder=tmp_path / "short")
    again = run_audit(people(), plan, run=Run(effort=Effort(minutes=0.1), store=store)).dossier  # fmt: skip
    assert again.evidence.file == short
