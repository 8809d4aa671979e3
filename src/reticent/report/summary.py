"""What a verdict means for the people in the table, in sentences that stand first in every report."""

from collections.abc import Sequence
from math import ceil, floor

from reticent.evidence import (
    Estimate,
    Evidence,
    InsiderEvidence,
    LoneRow,
    Statement,
    Threat,
)
from reticent.policy import Decision, Outcome, Policy, Verdict

__all__ = [
    "aside_warning",
    "insider_warning",
    "lone_row_sentence",
    "noun_of",
    "outsider_does",
    "summarise",
]

TABLE = "synthetic_table"  # the kind of product, as dossiers name it
ROWS = "compares rows"  # the family of attacks on one

# Family of attacks -> what the outsider does beside querying.
_ALSO = {
    "looks inside": "looks inside it",
    "reads the file": "reads its file",
    "trains others": "trains others like it",
}


def summarise(
    decision: Decision,
    evidence: Evidence,
    policy: Policy,
    statements: Sequence[Statement] = (),
    *,
    people: str = "people",
    kind: str = "",
) -> tuple[str, str]:
    """Return two sentences on what the verdict means for the people in the table.

    Parameters
    ----------
    decision : Decision
        The verdict and how the limits fared.
    evidence : Evidence
        What the attacks have shown.
    policy : Policy
        The rules.
    statements : sequence of Statement
        What was measured: they say whose attack a broken limit is about.
    people : str
        Whom the records are about.
    kind : str
        What was audited.
    """
    noun = noun_of(kind)
    shown = _of_table(evidence) if kind == TABLE else _of_model(evidence)
    # A release is never called safe: attacks can only speak of themselves.
    if decision.verdict == Verdict.RELEASE:
        return shown, (
            f"No attack that was run tells strangers more about the {people} in the table than the policy "
            f"'{policy.name}' allows; attacks that were not run might, and only a mechanism's guarantee speaks of all."
        )
    if decision.verdict == Verdict.INCONCLUSIVE:
        return shown, (
            f"That is not enough to decide by the policy '{policy.name}': nobody can yet say that the {people} in the "
            "table are safe, nor that they are not."
        )
    threats = _broken_threats(decision, statements)
    # The outsider first: whoever a stranger can recognise, an insider can as well.
    if Threat.OUTSIDER in threats:
        return shown, (
            f"That is more than the policy '{policy.name}' allows: releasing this {noun} would tell strangers "
            f"which {people} were in the {'real ' if kind == TABLE else ''}table, so it should stay where it is."
        )
    if Threat.INSIDER in threats:
        return shown, (
            "But an insider who knows the recipe and all other records can tell by training again who "
            f"was in the table, and the policy '{policy.name}' protects the {people} in it against such insiders too."
        )
    return shown, (
        f"The policy '{policy.name}' refuses it for another reason: {_uncapital(decision.reasons[0])}"
    )


def noun_of(kind: str) -> str:
    """Return what sentences call a product of some kind."""
    return "synthetic table" if kind == TABLE else "model"


def _of_model(evidence: Evidence) -> str:
    return (
        "Shown one person whose record trained this model and one whose record did not, a stranger who "
        f"{outsider_does(evidence)} picks the right one in {_cases(evidence)}, where a coin gives 50."
    )


def _of_table(evidence: Evidence) -> str:
    """Return how many of a thousand people a stranger could name, and how well pairs are told apart."""
    rate = evidence.tpr_at_fpr
    fpr = evidence.attacks[0].fpr
    low, high = floor(1000 * rate.low), ceil(1000 * rate.high)
    return (
        f"Of 1,000 people in your table, a stranger who {outsider_does(evidence)} points out {1000 * rate.value:.0f} ({low} to {high}) while wronging at most "
        f"{1000 * fpr:g} of 1,000 others; shown one of yours and one other, the stranger picks the right one in {_cases(evidence)}, where a coin gives 50."
    )


def _cases(evidence: Evidence) -> str:
    accuracy = _accuracy(evidence)
    return f"{100 * accuracy.value:.0f} of 100 cases ({floor(100 * accuracy.low)} to {ceil(100 * accuracy.high)})"


def outsider_does(evidence: Evidence) -> str:
    """Return what the outsider of this audit did, in words."""
    families = {attack.family for attack in evidence.attacks}
    if ROWS in families:
        trains = " and trains generators like its own" if "trains others" in families else ""  # fmt: skip
        return f"holds the synthetic table{trains}"
    also = [words for family, words in _ALSO.items() if family in families]
    if not also:
        return "only queries the model"
    return " and ".join([", ".join(["queries the model", *also[:-1]]), also[-1]])


def aside_warning(evidence: Evidence) -> str:
    """Return what somebody could do who got more than the policy releases, in words."""
    best = max(evidence.aside, key=lambda attack: attack.auc.value)
    return (
        f"The policy releases answers to queries only, so the verdict does not speak for whoever holds the file: with it, the attack "
        f"'{best.name.replace('_', ' ')}' reaches an LTU accuracy of {best.auc}."
    )


def insider_warning(insider: InsiderEvidence | None) -> str:
    """Return what an insider could do, in words."""
    if insider is None:
        return (
            "The retraining insider was not played: nothing is known about somebody who has the recipe and all "
            "other records."
        )
    worst = min(insider.regimes, key=lambda regime: regime.privacy.value)
    right = f"{worst.wins:g} of {worst.rounds} rounds ({worst.name})"
    # So few rounds that the interval reaches 1 show nothing, however they ended.
    if worst.wins == worst.rounds and worst.privacy.high < 1:
        return (
            f"An insider who knows the recipe and every record's tag but two found the member in {right}: retraining "
            "gives the product away, as it does for every deterministic trainer (Theorem 3 of the LTU paper); only "
            "randomness that nobody knows, such as privacy noise, protects against such an insider."
        )
    return (
        f"An insider who knows the recipe and every record's tag but two found the member in {right}: privacy score "
        f"{insider.privacy}."
    )


def lone_row_sentence(lone: LoneRow) -> str:
    """Return where the whole record of a member stands whom nobody resembles, and what coincidence has to do with it."""
    return (
        f"The whole record of a member whom nobody else resembles stands in what would be released ({lone.place}). Of {lone.others:,} other people whom "
        f"nobody resembles none does, so that coincidence puts at most {lone.chance:.2%} of such people there (at 95 % confidence)."
    )


def _broken_threats(decision: Decision, statements: Sequence[Statement]) -> set[str]:
    """Return whose attacks broken limits are about."""
    broken = {c.measure for c in decision.limits if c.outcome == Outcome.BROKEN}
    return {s.threat for s in statements if s.measure in broken}


def _accuracy(evidence: Evidence) -> Estimate:
    """Return the accuracy of the best attack; never worse than a coin, as privacy is capped."""
    privacy = evidence.privacy
    return Estimate(
        value=1 - privacy.value / 2,
        low=1 - privacy.high / 2,
        high=1 - privacy.low / 2,
        level=privacy.level,
        method=privacy.method,
    )


def _uncapital(text: str) -> str:
    return text[:1].lower() + text[1:]
