"""Say which of several defences to take: the one that gains most among those that keep the policy's limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reticent.evidence import (
    Comparison,
    DefenceEvidence,
    Difference,
    Estimate,
    Outcome,
)
from reticent.policy import Policy

__all__ = ["Choice", "choose", "mildest"]

KEPT, NONE_KEPT, OPEN = 0, 1, 3  # exit statuses, as those of an audit


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which defence to take, and why.

    Parameters
    ----------
    name : str
        The defence; empty if none can be recommended.
    sentence : str
        The advice.
    outcomes : mapping of str to Outcome
        How each defence fares against the limits.
    limits : tuple of str
        The limits that were looked at, in words.
    exit_status : int
        0 if a defence keeps all limits, 1 if every one breaks a limit, 3 if that cannot be told.
    """

    name: str
    sentence: str
    outcomes: Mapping[str, Outcome]
    limits: tuple[str, ...]
    exit_status: int


def choose(
    policy: Policy, comparison: Comparison, *, words: Mapping[str, str] | None = None
) -> Choice:
    """Return which defence to take.

    Of the defences whose whole intervals keep the policy's limits on privacy, true-positive rate and gain, the one with the largest gain is
    taken. The intervals hold jointly over all defences, so the choice is paid for.

    Parameters
    ----------
    policy : Policy
        The limits; those on anything that a comparison does not measure are for the audit of what is chosen.
    comparison : Comparison
        The defences.
    words : mapping of str to str, optional
        How each defence is called in the advice; by default its recipe.
    """
    given = {d.name: d.name for d in comparison.defences} | dict(words or {})
    # Names such as "private training, soft labels" are read as one only between quotes.
    called = {name: f"'{title}'" for name, title in given.items()}
    questions = _questions(policy, comparison)
    outcomes = {
        defence.name: _outcome([ask(defence) for _, ask in questions])
        for defence in comparison.defences
    }
    limits = tuple(words for words, _ in questions)
    by_outcome = {
        outcome: [d for d in comparison.defences if outcomes[d.name] == outcome]
        for outcome in Outcome
    }
    if by_outcome[Outcome.KEPT]:
        best = max(by_outcome[Outcome.KEPT], key=lambda d: d.gain.value)
        return Choice(
            name=best.name,
            sentence=f"Take {called[best.name]}: of the {len(comparison.defences)} defences it gains most among the {len(by_outcome[Outcome.KEPT])} that "
            f"keep the limits (gain {best.gain}, privacy {best.privacy}){_price(best, comparison, called)}.",
            outcomes=outcomes,
            limits=limits,
            exit_status=KEPT,
        )
    if by_outcome[Outcome.OPEN]:
        likely = mildest(policy, comparison)
        best = max(
            by_outcome[Outcome.OPEN], key=lambda d: (d.name == likely, d.privacy.value)
        )
        start = "By its values" if likely else "Most private of these is"
        end = " would keep them" if likely else ""
        return Choice(
            name="",
            sentence=f"No defence is shown to keep the limits, and for {len(by_outcome[Outcome.OPEN])} of {len(comparison.defences)} it cannot be told. "
            f"{start} {called[best.name]}{end} (gain {best.gain}, privacy {best.privacy}); more --models or more records would settle it.",
            outcomes=outcomes,
            limits=limits,
            exit_status=OPEN,
        )
    nearest = max(comparison.defences, key=lambda d: d.privacy.value)
    return Choice(
        name="",
        sentence=f"Every defence breaks a limit. The most private is {called[nearest.name]} (privacy {nearest.privacy}, gain {nearest.gain}); try stronger "
        "ones, or a private training at a smaller epsilon.",
        outcomes=outcomes,
        limits=limits,
        exit_status=NONE_KEPT,
    )


def mildest(policy: Policy, comparison: Comparison) -> str:
    """Return the defence that gains most among those whose values keep the limits; empty if there is none.

    Values and not intervals decide here, so the defence must be judged on people who took no part in the comparison.

    Parameters
    ----------
    policy : Policy
        The limits.
    comparison : Comparison
        The defences.
    """
    questions = _questions(policy, comparison)
    values = [_at_its_value(defence) for defence in comparison.defences]
    keeping = [d for d in values if _outcome([ask(d) for _, ask in questions]) == Outcome.KEPT]  # fmt: skip
    return max(keeping, key=lambda d: d.gain.value).name if keeping else ""


def _at_its_value(defence: DefenceEvidence) -> DefenceEvidence:
    """Return a defence whose intervals are single points."""

    def point(estimate: Estimate) -> Estimate:
        return replace(estimate, low=estimate.value, high=estimate.value)

    return replace(
        defence,
        gain=point(defence.gain),
        privacy=point(defence.privacy),
        tpr=tuple(point(rate) for rate in defence.tpr),
    )


_Question = tuple[str, Callable[[DefenceEvidence], Outcome]]


def _questions(policy: Policy, comparison: Comparison) -> list[_Question]:
    """Return the limits that a comparison can answer, in words, with what a defence says to each."""
    questions: list[_Question] = []
    privacy, gain, rates = (policy.limit(name) for name in ("privacy", "gain", "tpr"))
    if privacy is not None and privacy.judges:
        questions.append((f"privacy {privacy}", lambda d: privacy.outcome(d.privacy)))
    if gain is not None and gain.judges:
        questions.append((f"gain {gain}", lambda d: gain.outcome(d.gain)))
    rate = None if rates is None else rates.at.get("fpr")
    if rates is not None and rates.judges and rate in comparison.fpr:
        place = comparison.fpr.index(rate)
        questions.append(
            (
                f"true-positive rate {rates} at a false-positive rate of {rate:g}",
                lambda d: rates.outcome(d.tpr[place]),
            )
        )
    return questions


def _outcome(each: list[Outcome]) -> Outcome:
    if Outcome.BROKEN in each:
        return Outcome.BROKEN
    return Outcome.OPEN if Outcome.OPEN in each or not each else Outcome.KEPT


def _price(
    best: DefenceEvidence, comparison: Comparison, called: Mapping[str, str]
) -> str:
    """Return what the defence costs against the first, in words."""
    difference: Difference | None = next(
        (d for d in comparison.differences if d.name == best.name), None
    )
    if difference is None:
        return (
            "; it is the first that was named, so no defence is needed for these limits"
        )
    return (
        f"; against {called[comparison.defences[0].name]}, gain {difference.gain.signed} and privacy "
        f"{difference.privacy.signed}"
    )
