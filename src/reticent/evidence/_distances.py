"""Lists of nearest neighbours among distinct rows, in blocks of bounded memory.

Candidates come from one matrix product per block; their distances are then computed again from differences, so that equal distances are
equal numbers and a copied row is at distance 0. Every list states up to which distance it is complete.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from reticent.errors import InvalidInput
from reticent.evidence.columns import Columns

__all__ = [
    "Distance",
    "Distinct",
    "Lists",
    "Search",
    "nearest_rows",
    "neighbour_lists",
    "search_for",
]

Distance = Literal["euclid", "hamming", "mixed"]
BLOCK_BYTES = (
    2**26
)  # of one block of distances: small beside any table, and large enough for the matrix product to be efficient
# Categories of a column up to which it enters the matrix product as indicators. Wider columns are compared directly, which costs the
# same for any number of categories.
MOST_INDICATORS = 32
CHUNK = 16  # columns of a block whose minimum is taken first; a full partition costs several times more
# Distances in different orders of summation differ by rounding alone: 1e-16 times the number of columns. Decimal grids tie to 1e-9
# in float64 without exception, and so no pair that differs by a digit of the data is taken for a tie.
TIE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Distinct:
    """The distinct rows of several sets, and which of them each row is.

    Parameters
    ----------
    numbers : array of float, shape (u, p)
        Numbers in units of their ranges.
    codes : array of int, shape (u, q)
        Categories.
    places : tuple of array of int
        For each set, the distinct row that each of its rows is.
    """

    numbers: NDArray[np.float64]
    codes: NDArray[np.int64]
    places: tuple[NDArray[np.int64], ...]

    def __len__(self) -> int:
        return len(self.numbers)

    @staticmethod
    def of(sets: tuple[Columns, ...]) -> "Distinct":
        """Return the distinct rows of sets of rows."""
        rows = Columns.stack(sets)
        numbers = rows.scaled + 0.0  # minus zero becomes zero
        codes = rows.categories
        bits = np.hstack([numbers.view(np.int64), codes])
        # One opaque value per row: sorting these is many times faster than sorting rows column by column.
        keys = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.shape[1] * 8)))
        _, first, inverse = np.unique(
            keys.ravel(), return_index=True, return_inverse=True
        )
        ends = np.cumsum([len(s) for s in sets])[:-1]
        return Distinct(
            numbers=numbers[first],
            codes=codes[first],
            places=tuple(np.split(inverse.ravel(), ends)),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Lists:
    """Nearest distinct rows of some rows, ties grouped.

    Parameters
    ----------
    rows : array of int, shape (r,)
        The distinct rows whose neighbours these are.
    neighbours : array of int, shape (r, k)
        Their neighbours, nearest first, themselves left out. What is not known completely is filled with the number of distinct rows, a row
        that does not exist.
    ends : array of int, shape (r, k)
        The last position of the group of ties that each position belongs to.
    nobody : int
        The number of distinct rows.
    """

    rows: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    ends: NDArray[np.int32]
    nobody: int

    def narrow(self, width: int) -> "Lists":
        """Return the first neighbours alone, without a group of ties that is cut."""
        first, ends = self.neighbours[:, :width], self.ends[:, :width]
        cut = ends >= width
        return replace(
            self,
            neighbours=np.where(cut, self.nobody, first).astype(np.int32),
            ends=np.where(cut, first.shape[1] - 1, ends).astype(np.int32),
        )

    def take(self, chosen: NDArray[np.intp]) -> "Lists":
        """Return the lists of some of the rows, by their positions."""
        return replace(
            self,
            rows=self.rows[chosen],
            neighbours=self.neighbours[chosen],
            ends=self.ends[chosen],
        )


def search_for(table: Distinct, distance: Distance) -> "Search":
    """Return what finds neighbours among distinct rows by one of the distances.

    Raises
    ------
    InvalidInput
        If there is no such distance.
    """
    if distance not in _SEARCHES:
        raise InvalidInput(
            f"distance must be one of {', '.join(sorted(_SEARCHES))}, got {distance!r}."
        )
    return _SEARCHES[distance](table)


def neighbour_lists(search: "Search", rows: NDArray[np.int64], count: int) -> Lists:
    """Return the ``count`` nearest distinct rows of each row, as far as they are complete.

    A group of ties is in the list as a whole or not at all.
    """
    u = search.total
    count = min(count, u - 1)
    neighbours = np.full((len(rows), count), u, dtype=np.int32)
    ends = np.zeros((len(rows), count), dtype=np.int32)
    if count == 0:
        return Lists(rows=rows, neighbours=neighbours, ends=ends, nobody=u)
    step = max(1, BLOCK_BYTES // (8 * u))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        neighbours[part], ends[part] = _grouped(
            *_exact(search, rows[part], count), nobody=u
        )
    return Lists(rows=rows, neighbours=neighbours, ends=ends, nobody=u)


def nearest_rows(
    queries: Columns,
    table: Columns,
    count: int,
    *,
    distance: Distance,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the rows of a table that are nearest to each query, nearest first; chance decides ties.

    Shape (queries, count), or fewer columns if the table has fewer rows.
    """
    rows = Distinct.of((queries, table))
    # In random order, so that equal distances come in random order.
    order = rng.permutation(len(table))
    search = search_for(rows, distance)
    among = rows.places[1][order]
    count = min(count, len(table))
    near = np.empty((len(queries), count), dtype=np.int64)
    step = max(1, BLOCK_BYTES // (8 * len(table)))
    for start in range(0, len(queries), step):
        asked = rows.places[0][start : start + step]
        block = search.approximate(asked, among)
        if count < len(table):
            # A few more than asked for: rounding may have put some in the wrong order.
            places = _smallest(block, min(count + 8, len(table) - 1))[0]
        else:
            places = np.tile(np.arange(len(table)), (len(asked), 1))
        places = np.sort(places, axis=1)
        exact = search.exact(asked, among[places])
        ranked = np.argsort((exact / TIE).round() * TIE, axis=1, kind="stable")
        near[start : start + step] = np.take_along_axis(places, ranked, axis=1)[
            :, :count
        ]
    return order[near]


def _exact(
    search: "Search", rows: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the neighbours, their exact distances, and the distance below which none is missing."""
    u = search.total
    block = search.approximate(rows)
    block[np.arange(len(rows)), rows] = np.inf
    if count == u - 1:
        near = np.broadcast_to(np.arange(u), block.shape)
        near = near[near != rows[:, None]].reshape(len(rows), u - 1)
        reach = np.full(len(rows), np.inf)
    else:
        near, reach = _smallest(block, count)
        reach = search.reach(reach, rows)
    exact = search.exact(rows, near)
    order = np.argsort(exact, axis=1, kind="stable")
    return (
        np.take_along_axis(near, order, axis=1),
        np.take_along_axis(exact, order, axis=1),
        reach,
    )


def _smallest(
    block: NDArray[np.float64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the places of the smallest values of each row, and the smallest value that is left out."""
    u = block.shape[1]
    chunks = u // CHUNK
    rows = np.arange(len(block))[:, None]
    if chunks <= 4 * count:
        places = np.argpartition(block, count, axis=1)[:, : count + 1]
        values = block[rows, places]
    else:
        # The smallest values lie in the chunks with the smallest minima, and in the rest that fills no chunk.
        whole = block[:, : chunks * CHUNK].reshape(len(block), chunks, CHUNK)
        best = np.argpartition(whole.min(axis=2), count, axis=1)[:, : count + 1]
        inside = (best[:, :, None] * CHUNK + np.arange(CHUNK)).reshape(len(block), -1)
        rest = np.broadcast_to(
            np.arange(chunks * CHUNK, u), (len(block), u - chunks * CHUNK)
        )
        inside = np.hstack([inside, rest])
        values = block[rows, inside]
        kept = np.argpartition(values, count, axis=1)[:, : count + 1]
        places = np.take_along_axis(inside, kept, axis=1)
        values = np.take_along_axis(values, kept, axis=1)
    order = np.argsort(values, axis=1)
    places = np.take_along_axis(places, order, axis=1)
    return places[:, :count], np.take_along_axis(values, order[:, count:], axis=1)[:, 0]


def _grouped(
    near: NDArray[np.int64],
    exact: NDArray[np.float64],
    reach: NDArray[np.float64],
    *,
    nobody: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return neighbours without groups that may be incomplete, and the end of each position's group."""
    width = exact.shape[1]
    last = np.ones(exact.shape, dtype=bool)
    last[:, :-1] = exact[:, 1:] > exact[:, :-1] + TIE * (1 + exact[:, :-1])
    # From the right, the nearest last position of a group.
    places = np.where(last, np.arange(width), width)
    ends = np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]
    furthest = np.take_along_axis(exact, ends, axis=1)
    complete = furthest + TIE * (1 + furthest) < reach[:, None]
    return (
        np.where(complete, near, nobody).astype(np.int32),
        ends.astype(np.int32),
    )


class Search(ABC):
    """Distances from some distinct rows to all: first fast, then exact."""

    def __init__(self, table: Distinct) -> None:
        self.numbers, self.codes = table.numbers, table.codes
        self.total = len(table)

    @abstractmethod
    def approximate(
        self, rows: NDArray[np.int64], among: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return values that order all distinct rows, or those among which to search, by their distance, up to rounding."""

    @abstractmethod
    def reach(
        self, values: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return a distance that is not larger than the exact one behind any approximate value from these on."""

    @abstractmethod
    def exact(
        self, rows: NDArray[np.int64], near: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the distances from each row to its neighbours."""

    def _differ(
        self, rows: NDArray[np.int64], near: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        differ = np.zeros(near.shape)
        for column in self.codes.T:
            differ += column[rows][:, None] != column[near]
        return differ


class _Euclid(Search):
    """The root of squared differences of scaled numbers, plus 1 for each category that differs."""

    def __init__(self, table: Distinct) -> None:
        super().__init__(table)
        levels = [len(np.unique(column)) for column in self.codes.T]
        narrow = [
            self.codes[:, j] for j, n in enumerate(levels) if n <= MOST_INDICATORS
        ]
        self.wide = [
            _ranks(self.codes[:, j])
            for j, n in enumerate(levels)
            if n > MOST_INDICATORS
        ]
        # Two indicators of sqrt(1/2) differ by 1 in squared distance. Centring keeps the sums small, and so the rounding.
        parts = [self.numbers - self.numbers.mean(axis=0)] + [
            (column[:, None] == np.unique(column)) * np.sqrt(0.5) for column in narrow
        ]
        self.points = np.ascontiguousarray(np.hstack(parts))
        self.squares = (self.points**2).sum(axis=1)
        self.right = np.vstack([self.points.T, self.squares])
        self.rounding = 1e-12 * (1 + float(self.squares.max(initial=0.0)))

    def approximate(
        self, rows: NDArray[np.int64], among: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        those = slice(None) if among is None else among
        left = np.hstack([-2 * self.points[rows], np.ones((len(rows), 1))])
        values = left @ (self.right if among is None else self.right[:, among])
        for column in self.wide:
            values += column[rows][:, None] != column[those]
        return np.asarray(values)

    def reach(
        self, values: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        squared = values + self.squares[rows] - self.rounding
        return np.asarray(np.sqrt(np.maximum(squared, 0.0)))

    def exact(
        self, rows: NDArray[np.int64], near: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        squared = self._differ(rows, near)
        for column in self.numbers.T:
            squared += (column[rows][:, None] - column[near]) ** 2
        return np.asarray(np.sqrt(squared))


class _Mixed(Search):
    """The sum of absolute differences of scaled numbers, plus 1 for each category that differs (Gower's distance times the columns)."""

    def __init__(self, table: Distinct) -> None:
        super().__init__(table)
        self.ranks = [_ranks(column) for column in self.codes.T]

    def approximate(
        self, rows: NDArray[np.int64], among: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        those = slice(None) if among is None else among
        if self.numbers.shape[1]:
            values = cdist(self.numbers[rows], self.numbers[those], "cityblock")
        else:
            values = np.zeros((len(rows), len(self.numbers[those])))
        for column in self.ranks:
            values += column[rows][:, None] != column[those]
        return np.asarray(values)

    def reach(
        self,
        values: NDArray[np.float64],
        rows: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        return values * (1 - 1e-12)

    def exact(
        self, rows: NDArray[np.int64], near: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        total = self._differ(rows, near)
        for column in self.numbers.T:
            total += np.abs(column[rows][:, None] - column[near])
        return total


class _Hamming(Search):
    """The number of columns in which two rows differ."""

    def __init__(self, table: Distinct) -> None:
        super().__init__(table)
        self.codes = np.hstack(
            [table.codes, *[_ranks(column)[:, None] for column in table.numbers.T]]
        )
        self.ranks = [_ranks(column) for column in self.codes.T]

    def approximate(
        self, rows: NDArray[np.int64], among: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        those = slice(None) if among is None else among
        kind = np.uint8 if len(self.ranks) < 256 else np.uint16
        counts = np.zeros((len(rows), len(self.codes[those])), dtype=kind)
        for column in self.ranks:
            counts += column[rows][:, None] != column[those]
        return counts.astype(np.float64)

    def reach(
        self,
        values: NDArray[np.float64],
        rows: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        return values

    def exact(
        self, rows: NDArray[np.int64], near: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return self._differ(rows, near)


_SEARCHES: dict[str, type[Search]] = {
    "euclid": _Euclid,
    "hamming": _Hamming,
    "mixed": _Mixed,
}


def _ranks(column: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.int32]:
    """Return small codes that are equal where the values are."""
    return np.unique(column, return_inverse=True)[1].ravel().astype(np.int32)
