"""The two controls of every audit: a product that memorises and one that never saw anybody."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reticent.audits import Kind
from reticent.evidence import (
    Estimate,
    UnitScores,
    best_of,
    privacy_from_accuracy,
    split_level,
    widened_accuracy,
)
from reticent.pipeline._score import Scored
from reticent.policy import Control, Gap, Policy

__all__ = ["judge_again", "judge_controls"]

# An unrelated product is called caught, by chance alone, at most once in two thousand audits.
NULL_LEVEL = 0.999
# What a memorising product must break where the policy sets no limit of its own.
USUAL_LIMIT = 0.9
MEMORISING, UNRELATED = "memorising", "unrelated"


def judge_controls(
    scored: Scored, policy: Policy, kind: Kind, *, what: str
) -> tuple[Control, ...]:
    """Return whether the attacks caught what they must catch and spared what they must spare.

    Parameters
    ----------
    scored : Scored
        Scores on the controls.
    policy : Policy
        For its confidence and the privacy that a memorising product must fall below.
    kind : Kind
        What was audited.
    what : str
        What stood for the unrelated product.
    """
    return (
        _memorising(
            scored.memorising,
            kind,
            limit=_least(policy, kind),
            level=policy.confidence,
        ),
        _unrelated(scored.unrelated, what=what),
    )


def judge_again(
    controls: Sequence[Control], policy: Policy, kind: Kind
) -> tuple[tuple[Control, ...], tuple[Gap, ...]]:
    """Return controls of a file, judged by what was measured of them, and a gap for each that is missing.

    Parameters
    ----------
    controls : sequence of Control
        As the file has them.
    policy : Policy
        For the privacy that a memorising product must fall below.
    kind : Kind
        What was audited.
    """
    judged = []
    for control in controls:
        # The accuracy's lower end is at most 1/2 just if the score's upper end is 1.
        caught = control.privacy.high < (
            _least(policy, kind) if control.name == MEMORISING else 1.0
        )
        behaved = caught == (control.name == MEMORISING)
        if behaved != control.behaved:
            control = replace(  # noqa: PLW2901
                control,
                behaved=behaved,
                misleads=control.name == UNRELATED,
                text=f"The control '{control.name}' {'behaved' if behaved else 'misbehaved'}, by its privacy score of {control.privacy}.",
            )
        judged.append(control)
    names = {control.name for control in controls}
    gaps = tuple(
        Gap(
            reason=f"The control '{name}' is not in the file, so nobody knows whether the attacks can be believed.",
            to_settle="Audit again.",
        )
        for name in (MEMORISING, UNRELATED)
        if name not in names
    )
    return tuple(judged), gaps


def _least(policy: Policy, kind: Kind) -> float:
    """Return the privacy score below which a product that memorises must fall."""
    if kind.caught_below is not None:
        return kind.caught_below
    limit = policy.limit("privacy")
    return limit.value if limit is not None and limit.judges else USUAL_LIMIT


def _memorising(
    scores: Mapping[str, UnitScores], kind: Kind, *, limit: float, level: float
) -> Control:
    """Judge a product that memorised its records; it must break the privacy limit."""
    accuracies = _accuracies(scores, level=level)
    privacy = privacy_from_accuracy(best_of(list(accuracies.values()), level=level))
    # Caught means that even the upper end of the interval breaks the limit.
    caught = sum(privacy_from_accuracy(a).high < limit for a in accuracies.values())
    behaved = privacy.high < limit
    return Control(
        name=MEMORISING,
        privacy=privacy,
        behaved=behaved,
        text=(
            f"{kind.memorising} was caught by {caught} of {len(accuracies)} attacks."
            if behaved
            else f"{kind.memorising} was not caught, so silence of the attacks means nothing here."
        ),
        to_settle=f"Leave out identical records, or audit more of them: the attacks did not catch {kind.memorising[0].lower()}{kind.memorising[1:]}.",
    )


def _unrelated(scores: Mapping[str, UnitScores], *, what: str) -> Control:
    """Judge answers that cannot depend on membership; no attack may see any."""
    accuracies = _accuracies(scores, level=NULL_LEVEL)
    best = best_of(list(accuracies.values()), level=NULL_LEVEL)
    # An accuracy of one half is a coin; only a lower end above it is evidence of something else.
    behaved = best.low <= 0.5
    return Control(
        name=UNRELATED,
        privacy=privacy_from_accuracy(best),
        behaved=behaved,
        text=(
            f"{what} was not caught, as it should be."
            if behaved
            else f"{what} was caught although it cannot know who is a member, so the attacks see something else than membership."
        ),
        misleads=True,
        to_settle="Find out how members and non-members differ: the attacks told them apart on a product trained on neither.",
    )


def _accuracies(
    scores: Mapping[str, UnitScores], *, level: float
) -> dict[str, Estimate]:
    # The best of several attacks is judged, so the error is divided among them.
    each = split_level(level, len(scores))
    return {name: widened_accuracy(sides, level=each) for name, sides in scores.items()}
