"""Coded columns: what the statistics of tables see of a table, as plain arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.errors import InvalidInput

__all__ = ["Columns", "one_row_per_unit"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    r"""The rows of one table, coded: numbers, category codes and the ranges that scale the numbers.

    All sets that are compared need the same ranges. Ranges that every set takes from its own rows put the distances between two sets and
    those inside one set on different scales, and then a copy is not recognised as one.

    Parameters
    ----------
    numbers : array of float, shape (n, p)
        The numeric columns in their own units; NaN where a value is missing.
    codes : array of int, shape (n, q)
        The categorical columns; the same category has the same code in every set. A missing value is a category like any other.
    ranges : array of float, shape (p, 2)
        Smallest and largest value of each numeric column, declared or publicly known, and the same for all sets.
        A column whose range has no width is not scaled.

    Examples
    --------
    >>> rows = Columns(numbers=[[20.0], [60.0]], codes=[[0], [1]], ranges=[[0.0, 100.0]])
    >>> len(rows), rows.scaled.ravel().tolist()
    (2, [0.2, 0.6])
    """

    numbers: NDArray[np.float64]
    codes: NDArray[np.int64]
    ranges: NDArray[np.float64]

    def __post_init__(self) -> None:
        numbers = _block(self.numbers, np.float64, "numbers")
        codes = _block(self.codes, np.int64, "codes")
        ranges = np.asarray(self.ranges, dtype=np.float64).reshape(-1, 2)
        if len(numbers) != len(codes):
            raise InvalidInput(
                f"there are {len(numbers)} rows of numbers and {len(codes)} rows of codes; pass both for the same rows, with no columns "
                "if there are none of a kind."
            )
        if numbers.shape[1] + codes.shape[1] == 0:
            raise InvalidInput(
                "there are no columns, so no two rows can be told apart; pass at least one."
            )
        if len(ranges) != numbers.shape[1] or not np.isfinite(ranges).all():
            raise InvalidInput(
                f"{numbers.shape[1]} numeric columns have {len(ranges)} ranges, and all must be finite; declare the smallest and the largest value of each."
            )
        if (ranges[:, 1] < ranges[:, 0]).any() or np.isinf(numbers).any():
            raise InvalidInput(
                "a range ends before it begins or a number is infinite, so no distance can be formed; correct the ranges and the table."
            )
        for name, value in (("numbers", numbers), ("codes", codes), ("ranges", ranges)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.numbers.shape[1] + self.codes.shape[1])

    @property
    def scaled(self) -> NDArray[np.float64]:
        """The numbers in units of their ranges: 0 is the smallest value and 1 the largest; a missing number stands in the middle."""
        low, high = self.ranges[:, 0], self.ranges[:, 1]
        wide = high > low
        scaled = (self.numbers - low) / np.where(wide, high - low, 1.0)
        return np.where(np.isnan(scaled), np.where(wide, 0.5, 0.0), scaled)

    @property
    def categories(self) -> NDArray[np.int64]:
        """The codes, and for each numeric column with missing numbers a column that says where they are missing."""
        missing = np.isnan(self.numbers)
        return np.hstack([self.codes, missing[:, missing.any(axis=0)].astype(np.int64)])

    def take(self, rows: ArrayLike) -> "Columns":
        """Return some of the rows, by number or mask."""
        chosen = np.asarray(rows)
        return Columns(
            numbers=self.numbers[chosen], codes=self.codes[chosen], ranges=self.ranges
        )

    def keep(self, columns: ArrayLike) -> "Columns":
        """Return some of the columns, by a mask over the numeric and then the categorical ones."""
        chosen = np.asarray(columns, dtype=bool)
        numeric = chosen[: self.numbers.shape[1]]
        return Columns(
            numbers=self.numbers[:, numeric],
            codes=self.codes[:, chosen[self.numbers.shape[1] :]],
            ranges=self.ranges[numeric],
        )

    @staticmethod
    def stack(sets: Sequence["Columns"]) -> "Columns":
        """Return the rows of several sets, one after the other.

        Raises
        ------
        InvalidInput
            If the sets have different columns or different ranges.
        """
        first = sets[0]
        for other in sets[1:]:
            if (other.numbers.shape[1], other.codes.shape[1]) != (
                first.numbers.shape[1],
                first.codes.shape[1],
            ) or not np.array_equal(other.ranges, first.ranges):
                raise InvalidInput(
                    "the sets have different columns or different ranges, so their distances cannot be compared; code all sets "
                    "with the same columns and the same declared ranges."
                )
        return Columns(
            numbers=np.vstack([s.numbers for s in sets]),
            codes=np.vstack([s.codes for s in sets]),
            ranges=first.ranges,
        )


def one_row_per_unit(
    columns: Columns, units: ArrayLike, *, rng: np.random.Generator
) -> Columns:
    """Return one row of each unit (person), picked at random.

    The nearest neighbour of a row is often another row of the same person, which says nothing about copying. One row each makes
    the rows of a set independent, and the expectations of the adversarial accuracy exact.

    Examples
    --------
    >>> rows = Columns(numbers=[[1.0], [2.0], [3.0]], codes=np.empty((3, 0)), ranges=[[0, 10]])
    >>> len(one_row_per_unit(rows, [7, 7, 8], rng=np.random.default_rng(0)))
    2
    """
    people = np.asarray(units)
    if people.shape != (len(columns),):
        raise InvalidInput(
            f"there are {people.size} units for {len(columns)} rows; pass one unit per row."
        )
    order = rng.permutation(len(people))
    _, first = np.unique(people[order], return_index=True)
    return columns.take(np.sort(order[first]))


def _block(values: ArrayLike, kind: Any, name: str) -> NDArray[Any]:
    block = np.asarray(values)
    if block.ndim != 2:
        raise InvalidInput(
            f"{name} must have one row per record and one column per column of the table, got shape {block.shape}."
        )
    return np.ascontiguousarray(block, dtype=kind)
