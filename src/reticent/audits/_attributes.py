"""Attribute inference against classifiers: guess a hidden value of a person from the answers to records with every value in its place.

References
----------
.. [1] Fredrikson et al., "Privacy in pharmacogenetics", USENIX Security 2014, Section 3.
.. [2] Yeom et al., "Privacy risk in machine learning: analyzing the connection to overfitting", arXiv:1709.01604, Section 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.audits._sides import Sides
from reticent.data import ColumnKind, Table
from reticent.evidence import (
    GuessedAttribute,
    Success,
    compare_success,
    guess_attribute,
)

__all__ = ["guessed_attributes"]

# Every person is asked about once for every value of every column. With so many people an excess of about a tenth is seen, and the questions are
# fewer than the records of a table of usual size.
MOST_PEOPLE = 250  # of each side
MOST_COLUMNS = 3
MOST_VALUES = 4
FEWEST_PEOPLE = 20  # of each side, as everywhere


@dataclass(frozen=True)
class _Secret:
    """A column that is guessed: the values that are tried, and which of them each record has."""

    column: str
    values: tuple[object, ...]
    truth: NDArray[np.int64]

    @property
    def prior(self) -> NDArray[np.float64]:
        """Share of each value, among members and others together: no tag takes part."""
        counts = np.bincount(self.truth[self.truth >= 0], minlength=len(self.values))
        return np.asarray(counts / max(counts.sum(), 1))


def guessed_attributes(
    product: Any, table: Table, sides: Sides, *, level: float, rng: np.random.Generator
) -> tuple[GuessedAttribute, ...]:
    """Return how well a few columns are guessed from a classifier's answers, for members and for non-members.

    The attacker knows all other columns and the class. The guess is the value that makes the known class most likely, weighed by how frequent it is
    [1]_. What non-members share is knowledge about everybody; only the difference is due to having been in the table [2]_.

    Parameters
    ----------
    product : Predictor
        The classifier.
    table : Table
        Members and non-members.
    sides : Sides
        Who is a member.
    level : float
        Confidence of each interval by itself: none of them decides.
    rng : numpy.random.Generator
        Chooses people, and decides ties.
    """
    people = _people(sides, rng)
    if people is None:
        return ()
    asked, is_member = people
    part = table.take(asked)
    found = []
    for secret in _secrets(part):
        likelihood = _likelihood(product, part, secret)
        guess = guess_attribute(likelihood, secret.prior, rng=rng)
        right = (guess == secret.truth).astype(np.float64)
        usual = int(secret.prior.argmax())
        baseline = (secret.truth == usual).astype(np.float64)

        def success(
            who: NDArray[np.bool_],
            right: NDArray[np.float64] = right,
            baseline: NDArray[np.float64] = baseline,
        ) -> Success:
            return Success(attack=right[who], baseline=baseline[who])

        # The control: one half of the non-members against the other, who differ in nothing.
        others = np.flatnonzero(~is_member)
        half = np.zeros(len(asked), dtype=bool)
        half[rng.permutation(others)[: len(others) // 2]] = True
        found.append(
            GuessedAttribute(
                column=secret.column,
                success=compare_success(
                    success(is_member), success(~is_member), level=level, rng=rng
                ),
                control=compare_success(
                    success(half), success(~is_member & ~half), level=level, rng=rng
                ),
            )
        )
    return tuple(found)


def _people(
    sides: Sides, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
    """Return a record of each of some people of either side, and who is a member; None if there are too few."""
    first, tags = sides.first, sides.unit_tags
    chosen = [
        np.sort(rng.permutation(np.flatnonzero(tags == side))[:MOST_PEOPLE])
        for side in (True, False)
    ]
    if min(map(len, chosen)) < FEWEST_PEOPLE:
        return None
    is_member = np.repeat([True, False], [len(c) for c in chosen])
    return first[np.concatenate(chosen)], is_member


def _secrets(table: Table) -> Sequence[_Secret]:
    """Return the first columns of few values, or else of numbers, which are guessed to be above the median or not."""
    few, numbers = [], []
    for name, kind in table.schema.columns.items():
        column = table.features[name]
        values = column.dropna()
        if values.nunique() < 2:
            continue
        if kind != ColumnKind.NUMERIC or values.nunique() <= MOST_VALUES:
            tried = tuple(values.value_counts().index[:MOST_VALUES])
            few.append(_Secret(name, tried, _places(column, tried)))
        else:
            numbers.append(_above_median(name, column))
    return [*few, *numbers][:MOST_COLUMNS]


def _places(column: "pd.Series[Any]", tried: tuple[object, ...]) -> NDArray[np.int64]:
    """Return which of the values each record has; -1 for another one."""
    places = np.full(len(column), -1, dtype=np.int64)
    for place, value in enumerate(tried):
        places[(column == value).to_numpy()] = place
    return places


def _above_median(name: str, column: "pd.Series[Any]") -> _Secret:
    numbers = column.to_numpy(dtype=np.float64)
    low, middle, high = np.nanquantile(numbers, (0.25, 0.5, 0.75), method="nearest")
    truth = np.where(np.isnan(numbers), -1, numbers > middle).astype(np.int64)
    return _Secret(name, (float(low), float(high)), truth)


def _likelihood(product: Any, table: Table, secret: _Secret) -> NDArray[np.float64]:
    """Return the probability of each record's class with every value in the place of its own, shape (n, values)."""
    frames = []
    for value in secret.values:
        frame = table.features.copy()
        frame[secret.column] = pd.Series(
            [value] * len(frame), dtype=frame[secret.column].dtype
        )
        frames.append(frame)
    answers = product.predict_proba(pd.concat(frames, ignore_index=True))
    rows = np.tile(np.arange(len(table)), len(frames))
    of_class = answers[np.arange(len(rows)), table.target[rows]]
    return np.asarray(of_class).reshape(len(frames), len(table)).T
