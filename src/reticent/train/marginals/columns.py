"""Columns as public cells: every value has a cell, and every cell gives a value back."""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import OTHER

__all__ = ["OTHER", "Categories", "Column", "Numbers"]

Cells = NDArray[np.int64]
DIGITS = 2  # decimal digits by which values inside one cell are told apart


class Column(Protocol):
    """A column of a table, of whatever kind; the last cell is that of missing values."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def cells(self) -> int:
        """Number of cells, missing included."""
        ...

    @property
    def ordered(self) -> bool:
        """Whether neighbouring cells hold similar values."""
        ...

    @property
    def doubtful(self) -> tuple[int, ...]:
        """Cells that may well be empty, and then should not be made up: missing values, unlisted categories."""
        ...

    def code(self, values: "pd.Series[Any]") -> Cells:
        """Return the cell of each value."""
        ...

    def decode(self, cells: Cells, rng: np.random.Generator) -> "pd.Series[Any]":
        """Return a value for each cell."""
        ...


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A column of numbers, cut into intervals; a spike is an interval of one value.

    Parameters
    ----------
    name : str
        The column.
    low, high : tuple of float
        The ends of the intervals, in ascending order; numbers outside count for the first or the last one.
    whole : bool
        Whether only whole numbers occur; then low is inside an interval and high is not, unless they are equal.
    """

    name: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    whole: bool

    @property
    def cells(self) -> int:
        """Number of cells, missing included."""
        return len(self.low) + 1

    @property
    def ordered(self) -> bool:
        """Whether neighbouring cells hold similar values: yes."""
        return True

    @property
    def doubtful(self) -> tuple[int, ...]:
        """The cell of missing values."""
        return (len(self.low),)

    def code(self, values: "pd.Series[Any]") -> Cells:
        """Return the cell of each number."""
        numbers = values.to_numpy(dtype=np.float64)
        starts = np.array(self.low)
        # Right of a spike the next interval begins with the next number that there is.
        after = np.flatnonzero(starts[1:] == np.array(self.high)[:-1])
        spike = after[starts[after] == starts[after + 1]]
        starts[spike + 1] = np.nextafter(starts[spike + 1], np.inf)
        places = np.searchsorted(starts, numbers, side="right") - 1
        inside = np.clip(places, 0, len(starts) - 1)
        return np.where(np.isnan(numbers), len(starts), inside).astype(np.int64)

    def decode(self, cells: Cells, rng: np.random.Generator) -> "pd.Series[Any]":
        """Return a number inside each cell, uniformly drawn."""
        low = np.append(np.array(self.low), np.nan)
        width = np.append(np.array(self.high) - np.array(self.low), np.nan)
        values = low[cells] + rng.random(len(cells)) * width[cells]
        if self.whole:
            return pd.Series(np.floor(values), dtype=np.float64)
        least = min((w for w in width[:-1] if w > 0), default=1.0)
        digits = DIGITS - math.floor(math.log10(least))
        return pd.Series(np.round(values, min(max(digits, 0), 15)), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Categories:
    """A column of categories.

    Parameters
    ----------
    name : str
        The column.
    values : tuple of str
        The listed categories; all others share one cell.
    """

    name: str
    values: tuple[str, ...]

    @property
    def cells(self) -> int:
        """Number of cells: the listed categories, all others, and missing."""
        return len(self.values) + 2

    @property
    def ordered(self) -> bool:
        """Whether neighbouring cells hold similar values: no."""
        return False

    @property
    def doubtful(self) -> tuple[int, ...]:
        """The cells of other categories and of missing values."""
        return (len(self.values), len(self.values) + 1)

    def code(self, values: "pd.Series[Any]") -> Cells:
        """Return the cell of each category."""
        texts = values.astype(object)
        found = pd.Index(self.values, dtype=object).get_indexer(pd.Index(texts))
        listed = np.where(found < 0, len(self.values), found)
        missing = texts.isna().to_numpy()
        return np.where(missing, len(self.values) + 1, listed).astype(np.int64)

    def decode(self, cells: Cells, rng: np.random.Generator) -> "pd.Series[Any]":
        """Return the category of each cell."""
        names = np.array([*self.values, OTHER, np.nan], dtype=object)
        return pd.Series(names[cells], dtype=object)
