"""Records as numbers that can be compared across tables: equal values have equal codes, and all tables share one scale."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data._table import ColumnKind, Schema
from reticent.errors import InvalidTable

__all__ = ["UNKNOWN", "Coded", "Coder"]

UNKNOWN = -1  # code of a value that no reference record has
# Bins of a column for marginals and trees: with 16 x 16 cells a pair of columns still has several records per cell from some thousand records on.
MOST_BINS = 16
# Where a missing number stands on a scale from 0 to 1: at least 1 away from every number, which is as far as two categories are apart.
MISSING_PLACE = 3.0
# Numbers outside of the references' range lie at most this far outside of the scale, so that they stay nearer than a missing one.
OUTSIDE = 0.5


@dataclass(frozen=True, kw_only=True)
class Coded:
    """Records of one table in the form that a :class:`Coder` gives them.

    Parameters
    ----------
    codes : array of int, shape (n, d)
        The exact value of each cell as a number; equal numbers mean equal values, in whatever table. ``UNKNOWN`` for values that no
        reference record has. Missing is a value.
    bins : array of int, shape (n, d)
        The same cells in at most 17 bins per column.
    ranks, scaled : array of float, shape (n, q)
        The numeric columns on a scale from 0 to 1, by rank among the references and by their range; 3 where a number is missing.
    numeric : array of bool, shape (d,)
        Which columns are numbers.
    """

    codes: NDArray[np.int32]
    bins: NDArray[np.int16]
    ranks: NDArray[np.float32]
    scaled: NDArray[np.float32]
    numeric: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        parts = (self.codes, self.bins, self.ranks, self.scaled)
        return sum(part.nbytes for part in parts)

    @cached_property
    def categories(self) -> NDArray[np.int32]:
        """The codes of the columns that are no numbers, shape (n, d - q)."""
        return np.ascontiguousarray(self.codes[:, ~self.numeric])

    def take(self, rows: NDArray[np.int64]) -> "Coded":
        """Return some of the records."""
        return Coded(
            codes=self.codes[rows],
            bins=self.bins[rows],
            ranks=self.ranks[rows],
            scaled=self.scaled[rows],
            numeric=self.numeric,
        )

    def join(self, other: "Coded") -> "Coded":
        """Return these records and then those of another table."""
        return Coded(
            codes=np.concatenate([self.codes, other.codes]),
            bins=np.concatenate([self.bins, other.bins]),
            ranks=np.concatenate([self.ranks, other.ranks]),
            scaled=np.concatenate([self.scaled, other.scaled]),
            numeric=self.numeric,
        )


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    """The values of a numeric column among the references, and how often each occurs."""

    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    edges: NDArray[np.float64]

    @classmethod
    def of(cls, column: NDArray[np.float64]) -> "_Numbers":
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        edges = np.empty(0)
        if len(values):
            shares = np.arange(1, MOST_BINS) / MOST_BINS
            edges = np.unique(
                np.quantile(np.repeat(values, counts), shares, method="inverted_cdf")
            )
        return cls(values=values, counts=counts, edges=edges)


@dataclass(frozen=True, kw_only=True)
class _Categories:
    """The values of another column among the references, the most frequent first."""

    index: pd.Index


class Coder:
    """Codes records by the values, ranks and ranges of reference records.

    References are all records whose membership is in question, and the auxiliary records: never a synthetic table, and no tag. So the codes of a
    record depend on nobody's membership, and every synthetic table is coded alike.

    Parameters
    ----------
    references : pandas.DataFrame
        Feature columns of the reference records, as in a :class:`reticent.data.Table`.
    schema : Schema
        What the columns hold.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30.0, 40.0, np.nan], "sex": ["f", "m", "f"]})
    >>> kinds = {"age": ColumnKind.NUMERIC, "sex": ColumnKind.CATEGORICAL}
    >>> coder = Coder(frame, Schema(columns=kinds))
    >>> coder.code(frame).codes.tolist()
    [[1, 0], [2, 1], [0, 0]]
    >>> coder.code(pd.DataFrame({"age": [35.0], "sex": ["x"]})).codes.tolist()
    [[-1, -1]]
    """

    def __init__(self, references: pd.DataFrame, schema: Schema) -> None:
        self.names = tuple(references.columns)
        self.numeric = np.array(
            [schema.columns[name] == ColumnKind.NUMERIC for name in self.names],
            dtype=bool,
        )
        self._columns: list[_Numbers | _Categories] = [
            _Numbers.of(references[name].to_numpy(np.float64))
            if is_number
            else _Categories(index=_by_frequency(references[name]))
            for name, is_number in zip(self.names, self.numeric, strict=True)
        ]

    def code(self, frame: pd.DataFrame) -> Coded:
        """Return the records of a frame that has the references' columns.

        Raises
        ------
        InvalidTable
            If it lacks one of them.
        """
        absent = [name for name in self.names if name not in frame.columns]
        if absent:
            raise InvalidTable(
                f"the column {absent[0]!r} is missing, so records cannot be compared; pass a table with the columns of the real one."
            )
        n, d, q = len(frame), len(self.names), int(self.numeric.sum())
        codes = np.empty((n, d), dtype=np.int32)
        bins = np.empty((n, d), dtype=np.int16)
        ranks = np.empty((n, q), dtype=np.float32)
        scaled = np.empty((n, q), dtype=np.float32)
        number = 0
        for j, (name, column) in enumerate(zip(self.names, self._columns, strict=True)):
            if isinstance(column, _Numbers):
                values = frame[name].to_numpy(np.float64)
                codes[:, j], bins[:, j] = _number_codes(values, column)
                ranks[:, number], scaled[:, number] = _places(values, column)
                number += 1
            else:
                found = column.index.get_indexer(pd.Index(_as_text(frame[name])))
                codes[:, j] = found
                bins[:, j] = np.where(
                    found < 0, MOST_BINS, np.minimum(found, MOST_BINS)
                )
        return Coded(
            codes=codes, bins=bins, ranks=ranks, scaled=scaled, numeric=self.numeric
        )


def _by_frequency(column: pd.Series) -> pd.Index:
    counts = _as_text(column).value_counts()
    # Equal counts in the order of the texts, so that the codes do not depend on the order of the records.
    order = sorted(counts.index, key=lambda text: (-counts[text], text))
    index: pd.Index = pd.Index(order, dtype=object)
    return index


def _as_text(column: pd.Series) -> pd.Series:
    """Return categories as texts; a missing one is the empty text with a NUL, which no cell can hold."""
    texts = column.astype(object).where(column.notna(), "\0")
    return texts.map(str)


def _number_codes(
    values: NDArray[np.float64], column: _Numbers
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    missing = np.isnan(values)
    at = np.searchsorted(column.values, values)
    inside = np.minimum(at, max(len(column.values) - 1, 0))
    known = np.zeros(len(values), dtype=bool)
    if len(column.values):
        known = column.values[inside] == values
    codes = np.where(known, inside + 1, UNKNOWN)  # 0 is missing
    bins = 1 + np.searchsorted(column.edges, values, side="left")
    return np.where(missing, 0, codes), np.where(missing, 0, bins)


def _places(
    values: NDArray[np.float64], column: _Numbers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mid-rank of each number among the references, from 0 to 1, and its place in their range."""
    missing = np.isnan(values)
    before = np.concatenate([[0], np.cumsum(column.counts)])
    total = max(int(before[-1]), 1)
    left = np.searchsorted(column.values, values, side="left")
    right = np.searchsorted(column.values, values, side="right")
    ranks = (before[left] + before[right]) / (2 * total)
    low, high = (column.values[0], column.values[-1]) if len(column.values) else (0, 0)
    width = float(high - low) or 1.0
    scaled = ((values - low) / width).clip(-OUTSIDE, 1 + OUTSIDE)
    return np.where(missing, MISSING_PLACE, ranks), np.where(
        missing, MISSING_PLACE, scaled
    )
