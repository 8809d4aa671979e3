"""Exact nearest neighbours among mixed columns: whole numbers rule most pairs out, and the others are computed exactly.

A first pass adds up the differences of all pairs in whole numbers, which are short and therefore fast, and never more than the exact ones
by a known rounding. The row with the smallest sum gives a distance that the nearest row cannot exceed, and only rows whose sums do not rule that
out are computed. The results are those of computing all pairs, to the last digit.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic._base import record_blocks
from reticent.data import Coded

__all__ = ["MOST_ROWS", "count_unequal", "narrow_codes", "nearest", "rows_searched"]

# Rows of a table that records are compared with: the time grows with records times rows. Of a longer table, evenly spaced rows are taken; copies
# are found by hashing among all rows.
MOST_ROWS = 20_000
# A missing number lies at 3 on the scale, so that differences above 1 mean one of the two is missing.
MOST_APART = np.float32(1.0)
# Steps of a scale from 0 to 1 in whole numbers: finer ones rule out hardly any more pairs. A missing number, at 3, still fits into 16 bits.
MOST_STEPS = 4_000
# Columns up to which the sums fit into 16 bits with at least 30 steps each.
MOST_SHORT = 1_000
# Share of pairs up to which categories alone rule out enough, so that the sums in whole numbers are not needed.
MOST_BY_CATEGORIES = 1 / 50
# Share of pairs from which computing all of them is faster than picking some: a picked pair takes about eight times as long.
MOST_PICKED = 1 / 8


def nearest(records: Coded, others: Coded) -> dict[str, NDArray[np.float64]]:
    """Return the distance of each record to its nearest row of another table, by ranks, by range and by number of cells.

    Distances are mean differences over the columns, 0 exactly for equal rows; ``hamming`` is a number of cells.

    Parameters
    ----------
    records : Coded
        The records.
    others : Coded
        The rows among which the nearest is looked for; of more than 20,000, evenly spaced ones.
    """
    if len(others) > MOST_ROWS:
        chosen = np.linspace(0, len(others) - 1, MOST_ROWS).astype(np.int64)
        others = others.take(chosen)
    # Equal rows have equal distances, so that each is looked at once.
    others, _ = _distinct(others)
    records, which = _distinct(records)
    n, d = records.codes.shape
    result = {name: np.empty(n) for name in ("ranks", "gower", "hamming")}
    scales = {
        "ranks": _Scale.of(records.ranks, others.ranks, d),
        "gower": _Scale.of(records.scaled, others.scaled, d),
    }
    mine, theirs = narrow_codes(records.codes, others.codes)
    number, category = (
        np.flatnonzero(records.numeric),
        np.flatnonzero(~records.numeric),
    )
    for block in record_blocks(n, len(others)):
        unequal = np.zeros(
            (block.stop - block.start, len(others)), dtype=np.min_scalar_type(d)
        )
        count_unequal(unequal, mine, theirs, category, block)
        cells = unequal.copy()
        count_unequal(cells, mine, theirs, number, block)
        first = cells.argmin(axis=1)
        result["hamming"][block] = cells[np.arange(len(cells)), first]
        for name, scale in scales.items():
            result[name][block] = scale.smallest(unequal, first, block) / d
    return {name: values[which] for name, values in result.items()}


def rows_searched(*tables: Coded) -> int | None:
    """Return among how many rows of each longer table the nearest is looked for; None if no table is longer."""
    longest = max(len(table) for table in tables)
    return MOST_ROWS if longest > MOST_ROWS else None


@dataclass(frozen=True)
class _Scale:
    r"""The numbers of records and rows on one scale, column by column: exact, and in whole steps.

    With :math:`x` in steps :math:`q(x) = \lfloor Q (x + 1/2) \rfloor`, held within 16 bits, :math:`|q(x) - q(y)| \le Q |x - y| + 1`. So the sum over
    :math:`p` columns is at most :math:`Q` times the exact one plus :math:`p`, and a pair whose sum in steps exceeds :math:`Q b + p` is further apart than :math:`b`.
    """

    mine: NDArray[np.float32]
    theirs: NDArray[np.float32]
    cut: NDArray[np.bool_]
    my_steps: NDArray[np.signedinteger]
    their_steps: NDArray[np.signedinteger]
    steps: int

    @classmethod
    def of(
        cls, mine: NDArray[np.float32], theirs: NDArray[np.float32], columns: int
    ) -> "_Scale":
        # Column by column, contiguous.
        a, b = mine.T.copy(), theirs.T.copy()
        kind = np.int16 if columns <= MOST_SHORT else np.int32
        largest = int(np.iinfo(kind).max)
        # A column adds one more than the steps at most, by rounding.
        steps = min(MOST_STEPS, largest // columns - 1)
        return cls(
            mine=a,
            theirs=b,
            # Only where a number is missing, or lies outside of the range, can a difference exceed 1.
            cut=(a.max(axis=1, initial=0) > 1)
            | (b.max(axis=1, initial=0) > 1)
            | (a.min(axis=1, initial=0) < 0)
            | (b.min(axis=1, initial=0) < 0),
            my_steps=_in_steps(a, steps).astype(kind),
            their_steps=_in_steps(b, steps).astype(kind),
            steps=steps,
        )

    def smallest(
        self,
        unequal: NDArray[np.unsignedinteger],
        first: NDArray[np.intp],
        block: slice,
    ) -> NDArray[np.float32]:
        """Return the smallest distance of each record of a block.

        Parameters
        ----------
        unequal : array of int, shape (b, m)
            How many categories differ.
        first : array of int, shape (b,)
            A row for each record that is probably near.
        block : slice
            The records.
        """
        rows = np.arange(len(unequal))
        best = self._exact(unequal, block, rows, first)
        # No sum is smaller than its first term, in whatever precision: what differs in so many categories is no nearer.
        limit = np.ceil(best).astype(unequal.dtype)
        near = unequal < limit[:, None]
        if np.count_nonzero(near) > MOST_BY_CATEGORIES * near.size:
            coarse = self._coarse(unequal, block)
            best = self._exact(unequal, block, rows, coarse.argmin(axis=1))
            # Single precision errs by far less than a hundredth of a step per column, and by less than one step altogether.
            slack = 1.01 * len(self.mine) + 1
            most = np.floor(best.astype(np.float64) * self.steps + slack)
            most = np.minimum(most, np.iinfo(coarse.dtype).max)
            near = coarse <= most.astype(coarse.dtype)[:, None]
        if np.count_nonzero(near) > MOST_PICKED * near.size:
            return self._all(unequal, block)
        of_row, of_other = np.divmod(np.flatnonzero(near), near.shape[1])
        np.minimum.at(best, of_row, self._exact(unequal, block, of_row, of_other))
        return best

    def _coarse(
        self, unequal: NDArray[np.unsignedinteger], block: slice
    ) -> NDArray[np.signedinteger]:
        """Return the sums of differences of all pairs in steps."""
        total = unequal.astype(self.my_steps.dtype)
        total *= total.dtype.type(self.steps)
        apart = np.empty_like(total)
        for j in range(len(self.my_steps)):
            np.subtract(self.my_steps[j, block, None], self.their_steps[j], out=apart)
            np.abs(apart, out=apart)
            if self.cut[j]:
                np.minimum(apart, apart.dtype.type(self.steps), out=apart)
            total += apart
        return total

    def _exact(
        self,
        unequal: NDArray[np.unsignedinteger],
        block: slice,
        rows: NDArray[np.intp],
        others: NDArray[np.intp],
    ) -> NDArray[np.float32]:
        """Return the distances of some pairs, added up in the order of :meth:`_all`."""
        total = unequal[rows, others].astype(np.float32)
        for j in range(len(self.mine)):
            apart = np.abs(self.mine[j, block][rows] - self.theirs[j][others])
            if self.cut[j]:
                np.minimum(apart, MOST_APART, out=apart)
            total += apart
        return total

    def _all(
        self, unequal: NDArray[np.unsignedinteger], block: slice
    ) -> NDArray[np.float32]:
        """Return the smallest distances, all pairs computed."""
        total = unequal.astype(np.float32)
        for j in range(len(self.mine)):
            apart = np.abs(self.mine[j, block, None] - self.theirs[j])
            if self.cut[j]:
                np.minimum(apart, MOST_APART, out=apart)
            total += apart
        return np.asarray(total.min(axis=1))


def narrow_codes(
    *tables: NDArray[np.int32],
) -> Iterator[list[NDArray[np.integer]]]:
    """Yield the columns of each table in as few bytes as hold the codes of all: shorter numbers are compared faster.

    Parameters
    ----------
    *tables : array of int, shape (n, d)
        Codes, at least -1 each.
    """
    # One is added, so that the code of an unknown value is not negative.
    kinds = [
        np.min_scalar_type(max(int(t[:, j].max(initial=-1)) for t in tables) + 1)
        for j in range(tables[0].shape[1])
    ]
    for table in tables:
        yield [(table[:, j] + 1).astype(kind) for j, kind in enumerate(kinds)]


def count_unequal(
    unequal: NDArray[np.unsignedinteger],
    mine: list[NDArray[np.integer]],
    theirs: list[NDArray[np.integer]],
    columns: NDArray[np.intp],
    block: slice,
) -> None:
    """Add the number of columns in which records of a block differ from rows, shape (records, rows), to an array.

    Parameters
    ----------
    unequal : array of int, shape (b, m)
        What is added to.
    mine, theirs : list of array of int
        What :func:`narrow_codes` made of both tables.
    columns : array of int
        The columns that are compared.
    block : slice
        The records.
    """
    differs = np.empty(unequal.shape, dtype=bool)
    for j in columns:
        np.not_equal(mine[j][block, None], theirs[j], out=differs)
        # As bytes, which need no conversion.
        unequal += differs.view(np.uint8)


def _in_steps(values: NDArray[np.float32], steps: int) -> NDArray[np.float64]:
    """Return numbers in whole steps of their scale, within 16 bits: to be held there brings numbers together and never apart."""
    places = np.floor((values.astype(np.float64) + 0.5) * steps)
    return np.asarray(places.clip(0, np.iinfo(np.int16).max))


def _distinct(coded: Coded) -> tuple[Coded, NDArray[np.intp]]:
    """Return the distinct rows of a table, and which of them each row is."""
    # An unknown value has a code without a number, so that numbers are compared as well.
    cells = np.ascontiguousarray(
        np.hstack(
            [coded.codes, coded.ranks.view(np.int32), coded.scaled.view(np.int32)]
        )
    )
    keys = cells.view(np.dtype((np.void, cells.shape[1] * cells.itemsize))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return coded.take(first), which.ravel()
