"""Decide: refuse, release, or say what is missing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from reticent.evidence import (
    Epsilons,
    Estimate,
    Evidence,
    records_to_resolve,
    records_to_settle,
    split_level,
    worst_privacy,
)
from reticent.policy._policy import Policy

__all__ = ["Control", "Decision", "LimitCheck", "Outcome", "Verdict", "decide"]


class Verdict(StrEnum):
    """The three answers."""

    RELEASE = "RELEASE"
    REFUSE = "REFUSE"
    INCONCLUSIVE = "INCONCLUSIVE"


class Outcome(StrEnum):
    """How a limit fared."""

    KEPT = "kept"  # the whole interval is on the right side
    BROKEN = "broken"  # the whole interval is on the wrong side
    OPEN = "open"


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
    """

    name: str
    privacy: Estimate
    behaved: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class LimitCheck:
    """One limit of the policy against the evidence."""

    name: str
    limit: float
    at_least: bool
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
        What would settle an open question.
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
    evidence: Evidence,
    *,
    controls: Sequence[Control],
    stops: Sequence[str] = (),
    claimed_epsilon: float | None = None,
    claimed_delta: float = 0.0,
    claimed_relation: str = "",
    watched: Epsilons | None = None,
    people_repeat: bool = False,
) -> Decision:
    """Weigh the evidence by the policy.

    Refuse when a limit is broken with confidence: its whole interval is on the wrong side.
    Release when every limit is kept with confidence, the required attacks were run and the
    controls behaved. Else inconclusive. A broken privacy limit does not count while members
    and non-members differ without the product, or while an unrelated product is "caught" too.

    Parameters
    ----------
    policy : Policy
        The rules.
    evidence : Evidence
        What was found.
    controls : sequence of Control
        The controls of the same audit.
    stops : sequence of str
        Findings about the data that forbid a conclusion.
    claimed_epsilon : float, optional
        What whoever trained the product claims.
    claimed_delta, claimed_relation
        At which delta and under which neighbouring relation, if that is known.
    watched : Epsilons, optional
        What an adversary that watched the training has shown about the claim.
    people_repeat : bool
        Whether people have several records each; the attacks then speak of people, and a
        claim, which is about one record, cannot be refuted by them.
    """
    claim = None
    if claimed_epsilon is not None:
        claim = _Claim(claimed_epsilon, claimed_delta, claimed_relation)
    checks = _checks(policy, evidence, claim, people_repeat)
    if watched is not None and watched.claimed is not None:
        checks.append(_training_check(watched, watched.claimed))
    missing = _missing_attacks(policy, evidence)
    misled = bool(stops) or any(
        not c.behaved for c in controls if c.name == "unrelated"
    )
    broken = [
        c
        for c in checks
        if c.outcome == Outcome.BROKEN and (not misled or c.name in _UNMISLED)
    ]
    still_open = [
        c
        for c in checks
        if c.outcome == Outcome.OPEN
        or (c.outcome == Outcome.BROKEN and c not in broken)
    ]
    misbehaved = [c for c in controls if not c.behaved]
    reasons = [c.text for c in broken]
    if broken:
        verdict = Verdict.REFUSE
    elif stops or misbehaved or missing or still_open:
        verdict = Verdict.INCONCLUSIVE
    else:
        verdict = Verdict.RELEASE
    if verdict != Verdict.RELEASE:
        reasons += list(stops)
        reasons += [c.text for c in misbehaved]
        reasons += [
            f"the policy requires the attack {name!r}, which was not run."
            for name in missing
        ]
    if verdict == Verdict.INCONCLUSIVE:
        reasons += [c.text for c in still_open]
    if verdict == Verdict.RELEASE:
        reasons += [c.text for c in checks]
    steps = []
    if verdict == Verdict.INCONCLUSIVE:
        steps = _next_steps(
            still_open, missing, bool(stops), misbehaved, evidence, policy
        )
    return Decision(
        verdict=verdict,
        reasons=tuple(reasons),
        limits=tuple(checks),
        next_steps=tuple(steps),
    )


# Limits that do not rest on comparing members with non-members.
_UNMISLED = ("utility", "claimed_epsilon", "training_refuted")


def _checks(
    policy: Policy,
    evidence: Evidence,
    claim: "_Claim | None",
    people_repeat: bool,
) -> list[LimitCheck]:
    limits = policy.limits
    made = []

    def check(
        name: str,
        words: str,
        limit: float | None,
        estimate: Estimate | None,
        *,
        at_least: bool,
    ) -> None:
        if limit is not None:
            made.append(_check(name, words, limit, estimate, at_least=at_least))

    check(
        "privacy",
        "the privacy score against the outsider's best attack",
        limits.privacy_at_least,
        evidence.privacy,
        at_least=True,
    )
    check(
        "tpr_at_fpr",
        f"the share of members pointed out at a false-positive rate of {100 * limits.tpr_at_fpr:g} %",
        limits.tpr_at_most,
        evidence.tpr_at_fpr,
        at_least=False,
    )
    check(
        "exposed",
        f"the share of members with individual privacy below {limits.exposed_below:g}",
        limits.exposed_share_at_most,
        evidence.exposed,
        at_least=False,
    )
    if limits.group_privacy_at_least is not None and evidence.groups:
        worst = min(evidence.groups, key=lambda group: group.privacy.value)
        estimate = worst_privacy(
            [g.privacy for g in evidence.groups], level=policy.confidence
        )
        check(
            "group_privacy",
            f"the privacy score of the worst group ({worst.name})",
            limits.group_privacy_at_least,
            estimate,
            at_least=True,
        )
    elif limits.group_privacy_at_least is not None:
        check(
            "group_privacy",
            "the privacy score of the worst group",
            limits.group_privacy_at_least,
            None,
            at_least=True,
        )
    if "insider" in policy.decides_on:
        insider = evidence.insider.privacy if evidence.insider else None
        check(
            "insider_privacy",
            "the privacy score against the retraining insider",
            limits.insider_privacy_at_least,
            insider,
            at_least=True,
        )
    check(
        "utility",
        "the utility score",
        limits.utility_at_least,
        evidence.utility,
        at_least=True,
    )
    made += _claim_checks(policy, evidence, claim, people_repeat)
    return made


def _check(
    name: str, words: str, limit: float, estimate: Estimate | None, *, at_least: bool
) -> LimitCheck:
    side = "at least" if at_least else "at most"
    if estimate is None:
        outcome, text = (
            Outcome.OPEN,
            f"{words} must be {side} {limit:g} but was not measured.",
        )
    else:
        if at_least:
            kept, broken = estimate.low >= limit, estimate.high < limit
        else:
            kept, broken = estimate.high <= limit, estimate.low > limit
        outcome = Outcome.KEPT if kept else Outcome.BROKEN if broken else Outcome.OPEN
        verb = {
            Outcome.KEPT: f"keeps the limit of {side} {limit:g}.",
            Outcome.BROKEN: f"breaks the limit of {side} {limit:g}.",
            Outcome.OPEN: f"may lie on either side of the limit of {side} {limit:g}.",
        }[outcome]
        text = f"{words} is {estimate} and {verb}"
    return LimitCheck(
        name=name,
        limit=limit,
        at_least=at_least,
        estimate=estimate,
        outcome=outcome,
        text=text[0].upper() + text[1:],
    )


@dataclass(frozen=True)
class _Claim:
    """An epsilon with what it is worth under."""

    epsilon: float
    delta: float
    relation: str

    def __str__(self) -> str:
        under = [f"delta {self.delta:.2g}"] if self.delta else []
        under += [self.relation] if self.relation else []
        return f"{self.epsilon:.4g}" + (f" ({', '.join(under)})" if under else "")

    def most(self, ceiling: float) -> float:
        """Return the largest epsilon that attacks may show for delta 0 while the claim is true.

        A true-positive rate is at most e^epsilon times the false-positive rate plus delta, and no false-positive rate
        below e^-ceiling can be shown.
        """
        if self.delta == 0 or self.epsilon > 500:
            return self.epsilon
        return math.log(math.exp(self.epsilon) + self.delta * math.exp(ceiling))


def _claim_checks(
    policy: Policy, evidence: Evidence, claim: _Claim | None, people_repeat: bool
) -> list[LimitCheck]:
    made = []
    limit = policy.limits.claimed_epsilon_at_most
    if limit is not None:
        if claim is None:
            outcome = Outcome.OPEN
            text = f"No epsilon is claimed, but the policy asks for one of at most {limit:g}."
        else:
            kept = claim.epsilon <= limit
            outcome = Outcome.KEPT if kept else Outcome.BROKEN
            verb = "keeps" if kept else "breaks"
            text = (
                f"The claimed epsilon of {claim} {verb} the limit of at most {limit:g}."
            )
        made.append(
            LimitCheck(
                name="claimed_epsilon",
                limit=limit,
                at_least=False,
                estimate=None,
                outcome=outcome,
                text=text,
            )
        )
    if claim is not None and not people_repeat:
        shown, ceiling = evidence.epsilon.low, evidence.epsilon_ceiling
        refuted = shown > claim.most(ceiling)
        text = (
            f"The attacks show an epsilon of at least {shown:.2f}, which refutes the claimed {claim}."
            if refuted
            else f"The claimed epsilon of {claim} is not refuted: the attacks show at least {shown:.2f} (and could have shown at most {ceiling:.2f})."
        )
        made.append(
            LimitCheck(
                name="claim_refuted",
                limit=claim.epsilon,
                at_least=False,
                estimate=evidence.epsilon,
                outcome=Outcome.BROKEN if refuted else Outcome.KEPT,
                text=text,
            )
        )
    return made


def _training_check(watched: Epsilons, claimed: float) -> LimitCheck:
    """Return how a claim fares against the adversary that watched the training."""
    under = f"delta {watched.delta:.2g}, {watched.relation}"
    shown = f"{watched.audited.low:,.4g}"
    text = (
        f"Watching every step of the training shows an epsilon of at least {shown}, which refutes the claimed {claimed:.4g} ({under})."
        if watched.refuted
        else f"Watching every step of the training does not refute the claimed epsilon of {claimed:.4g} ({under}): it shows at least {shown} (and could have "
        f"shown {watched.ceiling:,.4g})."
    )
    return LimitCheck(
        name="training_refuted",
        limit=claimed,
        at_least=False,
        estimate=watched.audited,
        outcome=Outcome.BROKEN if watched.refuted else Outcome.KEPT,
        text=text,
    )


def _more_rounds(evidence: Evidence, check: LimitCheck) -> str:
    """Say about how many retraining rounds would settle the insider's limit."""
    needed = None
    if evidence.insider and check.estimate:
        played = min(regime.rounds for regime in evidence.insider.regimes)
        needed = records_to_settle(check.estimate, check.limit, played)
    if needed is None:
        return "Play more rounds of the retraining attacker: give more --rounds and --minutes."
    return (
        f"About {needed:,} rounds of the retraining attacker per regime would settle the insider's privacy "
        f"score: audit with --rounds {needed} and more --minutes."
    )


_SETTLED = {
    "privacy": "privacy score",
    "tpr_at_fpr": "share of members pointed out",
    "exposed": "share of exposed members",
    "group_privacy": "privacy score of the worst group",
    "utility": "utility",
}


def _missing_attacks(policy: Policy, evidence: Evidence) -> list[str]:
    run = {attack.name for attack in evidence.attacks}
    if evidence.insider is not None:
        run.add("retraining")
    return [name for name in policy.required_attacks if name not in run]


def _next_steps(
    still_open: Sequence[LimitCheck],
    missing: Sequence[str],
    stopped: bool,
    misbehaved: Sequence[Control],
    evidence: Evidence,
    policy: Policy,
) -> list[str]:
    steps = []
    if stopped:
        steps.append(
            "Divide the table at random into defender and reserved parts, and audit again."
        )
    for control in misbehaved:
        steps.append(
            "Leave out identical records, or audit more of them: the attacks did not catch a product that memorises."
            if control.name == "memorising"
            else "Find out how members and non-members differ: the attacks told them apart on a product trained on neither."
        )
    for name in missing:
        steps.append(
            "Run the retraining attacker: audit with --trainer and more --minutes."
            if name == "retraining"
            else f"Run the attack {name!r}."
        )
    records = min(evidence.members, evidence.nonmembers)
    for check in still_open:
        if check.estimate is None or stopped or check.outcome == Outcome.BROKEN:
            continue
        if check.name == "insider_privacy":
            steps.append(_more_rounds(evidence, check))
            continue
        needed = records_to_settle(check.estimate, check.limit, records)
        if check.name == "tpr_at_fpr":
            # The upper end shrinks like a Poisson count, not like a square root.
            each = split_level(
                policy.confidence, policy.statements * len(evidence.attacks)
            )
            floor = records_to_resolve(
                policy.limits.tpr_at_fpr, check.limit, level=each
            )
            needed = (
                max(floor, 2 * records)
                if check.estimate.value < check.limit
                else needed
            )
        what = _SETTLED[check.name]
        if needed is None or needed <= records:
            steps.append(
                f"The {what} is too near its limit for any practical number of records to settle it."
            )
        else:
            steps.append(
                f"About {needed:,} members and as many non-members (now {records:,}) would settle the {what}."
            )
    return steps
