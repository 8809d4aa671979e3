"""Decide: refuse, release, or say what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from reticent.evidence import Estimate, Limit, Outcome, Statement
from reticent.policy._policy import Policy

__all__ = ["Control", "Decision", "Gap", "LimitCheck", "Verdict", "decide"]


class Verdict(StrEnum):
    """The three answers."""

    RELEASE = "RELEASE"
    REFUSE = "REFUSE"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, kw_only=True)
class Control:
    """A product whose answer is known beforehand, attacked like the real one.

    Parameters
    ----------
    name : str
        ``"memorising"`` (must be caught) or ``"unrelated"`` (must not be).
    privacy : Estimate
        Privacy score against the best attack.
    behaved : bool
        Whether the attacks said what they had to say.
    text : str
        One sentence.
    misleads : bool
        Whether a broken limit means nothing if it misbehaved: the attacks see something else than membership.
    to_settle : str
        What to do if it misbehaved.
    """

    name: str
    privacy: Estimate
    behaved: bool
    text: str
    misleads: bool = False
    to_settle: str = ""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Something that was not looked at, so that silence is not safety.

    Parameters
    ----------
    reason : str
        What is missing, in a sentence.
    to_settle : str
        What would fill the gap.
    """

    reason: str
    to_settle: str


@dataclass(frozen=True, kw_only=True)
class LimitCheck:
    """One limit against the evidence.

    Parameters
    ----------
    measure, label : str
        The measure's name, and how tables call it.
    limit : Limit
        The policy's, or the product's own claim.
    estimate : Estimate or None
        What was measured; None if nothing was.
    outcome : Outcome
        How the limit fared.
    text : str
        One sentence.
    """

    measure: str
    label: str
    limit: Limit
    estimate: Estimate | None
    outcome: Outcome
    text: str


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The verdict and why.

    Parameters
    ----------
    verdict : Verdict
        The answer.
    reasons : tuple of str
        What led to it, the weightiest first.
    limits : tuple of LimitCheck
        Every limit and how it fared.
    next_steps : tuple of str
        What would settle an open question, or could help a product that was refused.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    limits: tuple[LimitCheck, ...]
    next_steps: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """0 release, 1 refuse, 3 inconclusive."""
        return {Verdict.RELEASE: 0, Verdict.REFUSE: 1, Verdict.INCONCLUSIVE: 3}[
            self.verdict
        ]


def decide(
    policy: Policy,
    statements: Sequence[Statement],
    *,
    controls: Sequence[Control],
    stops: Sequence[str] = (),
    gaps: Sequence[Gap] = (),
    remedies: Sequence[str] = (),
) -> Decision:
    """Weigh statements by a policy, whatever they measure.

    Refuse when a limit is broken with confidence: its whole interval is on the wrong side.
    Release when every limit is kept with confidence, nothing is missing and the
    controls behaved. Else inconclusive. A broken limit on something that compares members with non-members does not count
    while these differ without the product, or while an unrelated product is "caught" too.

    Parameters
    ----------
    policy : Policy
        The rules.
    statements : sequence of Statement
        What was measured.
    controls : sequence of Control
        The controls of the same audit.
    stops : sequence of str
        Findings about the data that forbid a conclusion.
    gaps : sequence of Gap
        What was not looked at although it should have been.
    remedies : sequence of str
        What could help a product that reveals too much.
    """
    checks = [
        (statement, check)
        for statement in statements
        if (check := _check(policy, statement)) is not None
    ]
    misbehaved = [control for control in controls if not control.behaved]
    # If members and non-members differ without the product, an attack that succeeds shows only that.
    misled = bool(stops) or any(control.misleads for control in misbehaved)
    broken = [
        check
        for statement, check in checks
        if check.outcome == Outcome.BROKEN and not (misled and statement.compares)
    ]
    unsettled = [
        (statement, check)
        for statement, check in checks
        if check.outcome != Outcome.KEPT and check not in broken
    ]
    # A broken limit outweighs every gap: more attacks could only break more.
    if broken:
        verdict = Verdict.REFUSE
    elif stops or misbehaved or gaps or unsettled:
        verdict = Verdict.INCONCLUSIVE
    else:
        verdict = Verdict.RELEASE
    reasons = [check.text for check in broken]
    next_steps: list[str] = []
    if verdict == Verdict.RELEASE:
        reasons = [check.text for _, check in checks]
    else:
        reasons += stops
        reasons += [control.text for control in misbehaved]
        reasons += [gap.reason for gap in gaps]
    if any(statement.compares for statement, check in checks if check in broken):
        next_steps += remedies
    next_steps += [
        statement.if_broken
        for statement, check in checks
        if check in broken and statement.if_broken
    ]
    if verdict == Verdict.INCONCLUSIVE:
        reasons += [check.text for _, check in unsettled]
        if stops:
            next_steps.append(
                "Divide the table at random into defender and reserved parts, and audit again."
            )
        next_steps += [c.to_settle for c in misbehaved if c.to_settle]
        next_steps += [gap.to_settle for gap in gaps]
        # More records would not help while the parts themselves differ.
        if not stops:
            next_steps += [
                statement.to_settle
                for statement, check in unsettled
                if check.outcome == Outcome.OPEN and statement.to_settle
            ]
    return Decision(
        verdict=verdict,
        reasons=tuple(reasons),
        limits=tuple(check for _, check in checks),
        # Several open limits often ask for the same number of records.
        next_steps=tuple(dict.fromkeys(next_steps)),
    )


def _check(policy: Policy, statement: Statement) -> LimitCheck | None:
    """Return how a statement fares by the limit on it; None if nothing limits it or its threat does not count."""
    limit, outcome = statement.own_limit, statement.own_outcome
    # A product that claims an epsilon is judged by its own claim, whatever the policy says (decision 0025).
    if limit is None or outcome is None:
        limit = policy.limit(statement.measure)
        if limit is None or not limit.judges or not policy.decides(statement.threat):
            return None
        outcome = limit.outcome(statement.estimate)
    text = statement.sentences.get(outcome) or _sentence(statement, limit, outcome)
    return LimitCheck(
        measure=statement.measure,
        label=statement.label,
        limit=limit,
        estimate=statement.estimate,
        outcome=outcome,
        text=text[:1].upper() + text[1:],
    )


def _sentence(statement: Statement, limit: Limit, outcome: Outcome) -> str:
    if statement.estimate is None:
        return f"{statement.words} must be {limit} but was not measured."
    fate = {
        Outcome.KEPT: f"keeps the limit of {limit}.",
        Outcome.BROKEN: f"breaks the limit of {limit}.",
        Outcome.OPEN: f"may lie on either side of the limit of {limit}.",
    }[outcome]
    return f"{statement.words} is {statement.estimate} and {fate}"
