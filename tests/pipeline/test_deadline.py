"""A deadline leaves out statistics by their time alone; what a limit needs makes the audit inconclusive, the rest is named."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from reticent.attack import LikelihoodRatio, Loss, Need
from reticent.data import table_from_frame
from reticent.errors import InvalidInput
from reticent.evidence import Limit, LongStatistic
from reticent.pipeline import AuditPlan, derive_again, run_audit
from reticent.policy import Outcome, Verdict, read_policy
from reticent.report import Dossier, render_html, render_text
from reticent.run import Effort, Run, Serial
from reticent.train import EstimatorTrainer

VIEWS = {
    "worst case by 0-1 loss",
    "worst case by loss",
    "worst case by answer and class",
    "worst case by the score of the strongest attack",
}
EVERYTHING = VIEWS | {
    LongStatistic.GROUPS,
    LongStatistic.NAMED,
    LongStatistic.OTHER_MODELS,
    LongStatistic.CONVERGENCE,
    LongStatistic.INSIDER,
}
LENIENT = replace(
    read_policy("default"),
    name="lenient",
    required_attacks={"any": ("loss",)},
    limits=(Limit(measure="privacy", at_least=0.5),),
)
WITH_GROUPS = replace(
    LENIENT,
    limits=(*LENIENT.limits, Limit(measure="group_privacy", at_least=0.5)),
)


@dataclass(frozen=True, kw_only=True)
class Stopped(Effort):
    """A minute whose clock stands still until somebody moves it."""

    deadline: float | None = 1.0
    clock: list[float] = field(default_factory=lambda: [0.0])

    def _elapsed(self):
        return self.clock[0]


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(300, n_features=5, flip_y=0.2, random_state=0)
    groups = np.where(X[:, 0] > 0, "north", "south")
    return table_from_frame(pd.DataFrame(X).add_prefix("x"), target=y, group=groups)


def plan_of(policy):
    trainer = EstimatorTrainer.of(DecisionTreeClassifier(max_depth=2), preprocess=True)
    return AuditPlan(
        trainer=trainer,
        pool=4,
        rounds=1,
        policy=policy,
        attacks=(Loss(), LikelihoodRatio()),
    )


def audited(table, policy, *, left):
    """Audit with a clock that, once the attacks are through, has some seconds left of its minute."""
    effort = Stopped(workers=Serial(), minutes=10.0)

    def tell(stage, done, total):
        if stage == "attacking" and done == total:
            effort.clock[0] = 60 - left

    return run_audit(table, plan_of(policy), run=Run(effort=effort, tell=tell)).dossier


# After a deadline not even trials are made; a microsecond before it, trials show that nothing fits.
@pytest.fixture(scope="module", params=[-1.0, 1e-6], ids=["passed", "near"])
def late(request, table):
    return audited(table, LENIENT, left=request.param)


def test_what_was_left_out_is_named_in_dossier_page_and_terminal(late):
    assert {skip.name for skip in late.evidence.not_computed} == EVERYTHING
    assert all("deadline of 1 minutes" in s.why for s in late.evidence.not_computed)
    again = Dossier.from_json(late.to_json())
    assert again.evidence.not_computed == late.evidence.not_computed
    page, text = render_html(late), " ".join(render_text(late).split())
    for name in EVERYTHING:
        assert f"Left out, &#39;{name}&#39;:" in page
        assert f"Left out, '{name}':" in text
    assert "too few to tell" not in page  # there were enough people, but no time
    assert "too few to stand in" not in page


def test_what_decides_nothing_changes_no_verdict(late):
    assert [attack.name for attack in late.evidence.attacks] == ["loss", "lira"]
    assert late.verdict == Verdict.RELEASE
    assert derive_again(late).dossier.verdict == Verdict.RELEASE
    evidence = late.evidence
    assert (evidence.worst_case, evidence.groups, evidence.insider) == ((), (), None)
    assert (evidence.pool.targets, evidence.pool.convergence) == ((), ())
    assert evidence.naming.named is None


@pytest.mark.parametrize("left", [-1.0, 1e-6])
def test_what_a_limit_needs_makes_the_audit_inconclusive(table, left):
    dossier = audited(table, WITH_GROUPS, left=left)
    assert dossier.verdict == Verdict.INCONCLUSIVE
    (check,) = [c for c in dossier.decision.limits if c.measure == "group_privacy"]
    assert check.outcome == Outcome.OPEN
    assert "must be at least 0.5 but was not measured: " in check.text
    assert "deadline" in check.text
    assert any("later --deadline" in step for step in dossier.decision.next_steps)
    derived = derive_again(dossier)
    assert derived.disagreements == ()
    assert derived.dossier.verdict == Verdict.INCONCLUSIVE


def test_with_time_enough_no_digit_changes(table):
    """The twin: the same deadline, and a clock that stands still, leave nothing out."""
    ample = audited(table, WITH_GROUPS, left=60.0)
    assert ample.evidence.not_computed == ()
    run = Run(effort=Effort(minutes=10.0))
    usual = run_audit(table, plan_of(WITH_GROUPS), run=run).dossier
    assert ample.to_json() == usual.to_json()
    assert ample.verdict == Verdict.RELEASE
    assert "Left out" not in render_html(ample)


class EnoughHeard(Exception):
    """The size of the pool was told, and nothing after it matters."""


def size_of_pool(table, effort):
    """Return what an audit says of the pool before it trains one."""
    said = []

    def say(sentence):
        said.append(sentence)
        if sentence.startswith("A pool"):
            raise EnoughHeard

    plan = replace(plan_of(LENIENT), pool=None)
    with pytest.raises(EnoughHeard):
        run_audit(table, plan, run=Run(effort=effort, say=say))
    return said[-1]


@pytest.mark.parametrize(("left", "trains"), [(60.0, True), (1e-6, False)])
def test_no_pool_is_trained_for_which_the_deadline_leaves_no_time(table, left, trains):
    """Without --minutes eight models are trained however long they take, but not beyond a deadline."""
    told = size_of_pool(table, Stopped(clock=[60 - left]))
    assert ("No models are trained" not in told) == trains


@pytest.mark.parametrize(
    ("minutes", "size"), [(None, "8 models"), (1e-9, "No models"), (10.0, "64 models")]
)
def test_without_minutes_a_pool_of_eight_has_the_time_it_needs(
    table, minutes, size, monkeypatch
):
    """The usual minutes suffice for no pool here; minutes that the user states bound it."""
    monkeypatch.setattr("reticent.run._effort.USUAL_MINUTES", 1e-9)
    assert f"{size} are trained" in size_of_pool(table, Effort(minutes=minutes))


def test_a_deadline_that_leaves_no_time_for_any_attack_is_told_as_such(table):
    effort = Stopped(workers=Serial(), clock=[61.0])
    with pytest.raises(
        InvalidInput, match=r"\('loss': the deadline of 1 minutes .* later --deadline"
    ):
        run_audit(table, plan_of(LENIENT), run=Run(effort=effort))


@dataclass(frozen=True, kw_only=True)
class Broken:
    name: str = "broken"
    needs: ClassVar = frozenset({Need.ANSWERS})

    def score(self, challenge, *, knowledge, rng):
        raise ZeroDivisionError


def test_attacks_that_all_failed_are_told_with_the_first_cause(table):
    policy = replace(LENIENT, required_attacks={"any": ("broken",)})
    plan = AuditPlan(
        trainer=plan_of(LENIENT).trainer,
        pool=0,
        rounds=1,
        policy=policy,
        attacks=(Broken(),),
    )
    with pytest.raises(InvalidInput, match="'broken', failed: ZeroDivisionError"):
        run_audit(table, plan, run=Run(effort=Effort(workers=Serial(), minutes=0.05)))
