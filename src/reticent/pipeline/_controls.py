"""The two controls of every audit: a product that memorises and one that never saw anybody."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.attack import Attack, Challenge
from reticent.evidence import (
    Estimate,
    best_of,
    ltu_accuracy,
    privacy_from_accuracy,
    split_level,
)
from reticent.policy import Control
from reticent.product import Internals

__all__ = [
    "NULL_LEVEL",
    "Scorer",
    "memorised_answers",
    "memorised_internals",
    "memorising",
    "unrelated",
]

# An honest unrelated product is called caught at most once in two thousand audits.
NULL_LEVEL = 0.999

# Scores of members and non-members, per unit, by attack.
Scorer = Callable[
    [Challenge, Sequence[Attack], str],
    Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]],
]


def memorised_answers(
    labels: NDArray[np.int64],
    known: NDArray[np.bool_],
    classes: int,
) -> NDArray[np.float64]:
    """Return the answers of a product that looks records up.

    It is certain of the class of every record it knows, and answers all others with the
    frequencies of the classes.
    """
    frequencies = np.bincount(labels, minlength=classes) / len(labels)
    answers = np.tile(frequencies, (len(labels), 1))
    answers[known] = np.eye(classes)[labels[known]]
    return answers


def memorised_internals(
    answers: NDArray[np.float64], labels: NDArray[np.int64], *, layers: tuple[str, ...]
) -> Internals:
    """Return what is seen inside a product that looks records up.

    Each of its layers is a table with a row of logits for each record, and their sum is answered by: the gradient of a
    record's loss is p - e_y in each.

    Parameters
    ----------
    answers : array of float, shape (n, c)
        Its answers.
    labels : array of int
        True classes.
    layers : tuple of str
        Names of the layers: those of the product, so that whoever attacks one of them finds it.
    """
    rows = np.arange(len(labels))
    delta = answers.copy()
    delta[rows, labels] -= 1.0
    return Internals(
        losses=-np.log(answers[rows, labels]),
        gradient_norms=np.tile(np.linalg.norm(delta, axis=1)[:, None], len(layers)),
        layers=layers,
        activations=np.ones((len(labels), 1), dtype=np.float32),
    )


def memorising(
    challenge: Challenge,
    attacks: Sequence[Attack],
    scorer: Scorer,
    *,
    limit: float,
    level: float,
) -> Control:
    """Attack a product that memorised its records; it must break the privacy limit."""
    accuracies = _accuracies(scorer(challenge, attacks, "memorising"), level=level)
    privacy = privacy_from_accuracy(best_of(list(accuracies.values()), level=level))
    caught = sum(privacy_from_accuracy(a).high < limit for a in accuracies.values())
    behaved = privacy.high < limit
    return Control(
        name="memorising",
        privacy=privacy,
        behaved=behaved,
        text=(
            f"A product that memorises its records was caught by {caught} of {len(accuracies)} attacks."
            if behaved
            else "A product that memorises its records was not caught, so silence of the attacks means nothing here."
        ),
    )


def unrelated(
    challenge: Challenge,
    attacks: Sequence[Attack],
    scorer: Scorer,
    *,
    what: str,
) -> Control:
    """Attack answers that cannot depend on membership; no attack may see any."""
    accuracies = _accuracies(scorer(challenge, attacks, "unrelated"), level=NULL_LEVEL)
    best = best_of(list(accuracies.values()), level=NULL_LEVEL)
    behaved = best.low <= 0.5
    return Control(
        name="unrelated",
        privacy=privacy_from_accuracy(best),
        behaved=behaved,
        text=(
            f"{what} was not caught, as it should be."
            if behaved
            else f"{what} was caught although it cannot know who is a member, so the attacks see something else than membership."
        ),
    )


def _accuracies(
    scores: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]],
    *,
    level: float,
) -> dict[str, Estimate]:
    each = split_level(level, len(scores))
    return {
        name: ltu_accuracy(members, nonmembers, level=each)
        for name, (members, nonmembers) in scores.items()
    }
