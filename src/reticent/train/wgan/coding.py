r"""Columns as coordinates of a critic and back, by their noisy histograms alone.

A column of numbers is one coordinate, the rank of its cell under the noisy histogram, so that every column is about uniform. Categories are one coordinate each with the sum 1, or one coordinate
if there are two of them; missing values have a coordinate of their own. Cells and histograms are those of the marginal generators; nothing else is read off the records.

On the way back every column can be matched to its histogram, which is paid for already: ranks among the generated rows are mapped to the histogram's quantiles, and the odds of
categories are shifted until their mean is the histogram's share. The generator then only has to learn what goes with what, and a mode that it lost comes back. The source has no such step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.train.marginals.columns import Column
from reticent.train.marginals.histograms import Histograms
from reticent.train.wgan.regions import Region

__all__ = ["Coding", "Levels", "Piece", "Ranks", "coding_of", "interval_coding_of"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
SURE = 3.0  # a level whose noisy count is below so many deviations shares a coordinate with others
MOST_LEVELS = (
    16  # coordinates of one column: more widen the region and drown in the noise
)
ROUNDS = 200  # of shifting odds; they converge in tens
CLOSE = 1e-6  # distance of a mean from its share at which shifting ends
LEAST = 1e-12  # smallest probability of a level, so that odds are finite


class Piece(Protocol):
    """One column's coordinates."""

    @property
    def width(self) -> int:
        """Number of coordinates."""
        ...

    @property
    def groups(self) -> tuple[int, ...]:
        """Sizes of the groups of coordinates that sum to one; 1 for a coordinate by itself."""
        ...

    def code(self, cells: Whole) -> Array:
        """Return the coordinates of cells."""
        ...

    def decode(self, values: Array, matched: bool, rng: np.random.Generator) -> Whole:
        """Return a cell for each row of a generator's output."""
        ...

    def distance(self, values: Array) -> float:
        """Return how far a generator's rows are from the histogram, as a total variation, before any matching."""
        ...


@dataclass(frozen=True)
class Levels:
    """Cells as levels: one coordinate each, or one for two levels.

    Parameters
    ----------
    level : array of int
        Level of each cell.
    counts : array of float
        Noisy count of each cell.
    """

    level: Whole
    counts: Array

    @property
    def levels(self) -> int:
        """Number of levels."""
        return int(self.level.max()) + 1

    @property
    def width(self) -> int:
        """Number of coordinates: none for a constant."""
        return {1: 0, 2: 1}.get(self.levels, self.levels)

    @property
    def groups(self) -> tuple[int, ...]:
        """One group of all coordinates."""
        return (self.width,) if self.width else ()

    @property
    def shares(self) -> Array:
        """Share of each level in the histogram."""
        sums = np.bincount(self.level, weights=self.counts, minlength=self.levels)
        return np.asarray(sums / sums.sum())

    def code(self, cells: Whole) -> Array:
        """Return one 1 per row, or the second of two levels as 1."""
        levels = self.level[cells]
        if self.levels <= 2:
            return np.asarray(levels[:, None][:, : self.width], dtype=np.float64)
        return np.asarray(np.eye(self.levels)[levels])

    def probabilities(self, values: Array) -> Array:
        """Return the probability of each level."""
        if self.levels == 1:
            return np.ones((len(values), 1))
        if self.levels == 2:
            return np.concatenate([1 - values, values], axis=1)
        return values

    def decode(self, values: Array, matched: bool, rng: np.random.Generator) -> Whole:
        """Return a cell of a level that is drawn by its probability."""
        p = np.maximum(self.probabilities(values), LEAST)
        if matched:
            p = _shifted(p, self.shares)
        bounds = np.cumsum(p, axis=1)
        draws = rng.random(len(p)) * bounds[:, -1]
        levels = np.minimum((bounds <= draws[:, None]).sum(axis=1), self.levels - 1)
        cells = np.empty(len(p), dtype=np.int64)
        for level in range(self.levels):
            rows, members = levels == level, np.flatnonzero(self.level == level)
            weights = self.counts[members]
            weights = weights if weights.sum() > 0 else np.ones(len(members))
            cells[rows] = rng.choice(
                members, int(rows.sum()), p=weights / weights.sum()
            )
        return cells

    def distance(self, values: Array) -> float:
        """Return the total variation between the mean probabilities and the shares."""
        mean = self.probabilities(values).mean(axis=0)
        return float(np.abs(mean - self.shares).sum() / 2)


@dataclass(frozen=True)
class Ranks:
    """Cells in their order, as one coordinate.

    Parameters
    ----------
    ends : array of float
        Cumulative shares of the cells; those without any share have the end of their neighbour.
    missing : Levels or None
        Whether there is a value, as a further coordinate; None if every cell is in the order.
    """

    ends: Array
    missing: Levels | None

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return 1 + (0 if self.missing is None else self.missing.width)

    @property
    def groups(self) -> tuple[int, ...]:
        """Each coordinate by itself."""
        return (1,) * self.width

    def code(self, cells: Whole) -> Array:
        """Return the middle of each cell's interval; the middle of all for missing values."""
        starts = np.append(0.0, self.ends[:-1])
        middles = (starts + self.ends) / 2
        if self.missing is None:
            return np.asarray(middles[cells][:, None])
        known = np.append(middles, 0.5)
        return np.concatenate([known[cells][:, None], self.missing.code(cells)], axis=1)

    def decode(self, values: Array, matched: bool, rng: np.random.Generator) -> Whole:
        """Return the cell at each rank."""
        place = values[:, 0]
        absent = np.zeros(len(place), dtype=bool)
        if self.missing is not None:
            gaps = self.missing.decode(values[:, 1:], matched, rng)
            absent = gaps == len(self.ends)
        if matched:
            here = ~absent
            order = np.lexsort((rng.random(int(here.sum())), place[here]))
            ranks = np.empty(len(order))
            ranks[order] = (np.arange(len(order)) + 0.5) / max(len(order), 1)
            place = place.copy()
            place[here] = ranks
        cells = np.searchsorted(self.ends, place, side="left")
        # The last cell with any share, because of rounding and for outputs of exactly one.
        last = int(np.searchsorted(self.ends, self.ends[-1], side="left"))
        return np.where(absent, len(self.ends), np.minimum(cells, last))

    def distance(self, values: Array) -> float:
        """Return the total variation between the tenths of the ranks and a uniform distribution."""
        counts = np.histogram(values[:, 0], bins=10, range=(0.0, 1.0))[0]
        return float(np.abs(counts / max(len(values), 1) - 0.1).sum() / 2)


@dataclass(frozen=True)
class Coding:
    """All columns as coordinates.

    Parameters
    ----------
    pieces : tuple of Piece
        One per column.
    """

    pieces: tuple[Piece, ...]

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Sizes of the groups of coordinates, of all columns."""
        return tuple(size for piece in self.pieces for size in piece.groups)

    @cached_property
    def middle(self) -> Array:
        """What is subtracted from coordinates so that the region lies around 0."""
        return np.concatenate(
            [np.full(size, 0.5 if size == 1 else 1 / size) for size in self.groups]
        )

    @property
    def region(self) -> Region:
        """Where coded records lie: one of k categories has distance sqrt(1 - 1/k) from the middle, whichever it is."""
        middle = self.middle
        squares = sum(0.25 if size == 1 else 1 - 1 / size for size in self.groups)
        return Region(
            low=-middle,
            high=1 - middle,
            centre=np.zeros(len(middle)),
            radius=float(np.sqrt(squares)),
        )

    def code(self, cells: Whole) -> Array:
        """Return coordinates around 0, shape (n, d)."""
        parts = [piece.code(cells[:, j]) for j, piece in enumerate(self.pieces)]
        coordinates = np.concatenate(parts, axis=1)
        coordinates -= self.middle
        return coordinates

    def decode(self, values: Array, matched: bool, rng: np.random.Generator) -> Whole:
        """Return the cells of a generator's rows."""
        cells, at = [], 0
        for piece in self.pieces:
            part = values[:, at : at + piece.width]
            at += piece.width
            cells.append(piece.decode(part, matched, rng))
        return np.stack(cells, axis=1)

    def distances(self, values: Array) -> list[float]:
        """Return for each column how far a generator's rows are from its histogram, before any matching."""
        found, at = [], 0
        for piece in self.pieces:
            found.append(piece.distance(values[:, at : at + piece.width]))
            at += piece.width
        return found


def coding_of(columns: Sequence[Column], single: Histograms) -> Coding:
    """Return the coding of columns by their noisy histograms.

    Raises
    ------
    InvalidInput
        If every column is constant.
    """
    pieces: list[Piece] = []
    for column, counts in zip(columns, single.counts, strict=True):
        present = int(np.count_nonzero(counts[:-1]))
        if column.ordered and present > 2:
            pieces.append(_ranks(counts))
        else:
            pieces.append(_levels(counts, single.deviation))
    return _checked(Coding(tuple(pieces)))


def interval_coding_of(columns: Sequence[Column], single: Histograms) -> Coding:
    """Return the coding of the source: every column is one coordinate, on which each category has an interval as long as its share [1]_.

    References
    ----------
    .. [1] Patki, Wedge & Veeramachaneni, "The synthetic data vault", DSAA 2016.
    """
    pieces = []
    for counts in single.counts:
        ends = np.cumsum(counts) / counts.sum()
        pieces.append(Ranks(np.minimum(ends / ends[-1], 1.0), None))
    return _checked(Coding(tuple(pieces)))


def _checked(coding: Coding) -> Coding:
    if not coding.groups:
        raise InvalidInput(
            "every column is constant as far as the noise lets it be seen, so there is nothing to learn; allow a larger epsilon, or bring more rows."
        )
    return coding


def _ranks(counts: Array) -> Piece:
    there = counts[:-1]
    ends = np.minimum(np.cumsum(there) / there.sum(), 1.0)
    gap = np.zeros(len(counts), dtype=np.int64)
    gap[-1] = 1
    return Ranks(ends, Levels(gap, counts) if counts[-1] > 0 else _never(counts))


def _never(counts: Array) -> Levels:
    """Return that there are no missing values: one level, which takes no coordinate."""
    shares = counts.copy()
    shares[-1] = 0.0
    return Levels(np.zeros(len(counts), dtype=np.int64), shares)


def _levels(counts: Array, deviation: float) -> Levels:
    """Return levels of the frequent cells, and one for all others that occur."""
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(counts), dtype=np.int64)
    rank[order] = np.arange(len(counts))
    own = (counts >= SURE * deviation) & (rank < MOST_LEVELS - 1) & (counts > 0)
    own[order[0]] = True
    rest = (counts > 0) & ~own
    level = np.where(own, np.cumsum(own) - 1, own.sum())
    if not rest.any():
        # Cells that nobody is heard in: a record there is coded as the most frequent level.
        level = np.where(own, level, level[order[0]])
    return Levels(level.astype(np.int64), counts)


def _shifted(probabilities: Array, shares: Array) -> Array:
    """Return probabilities whose odds were shifted, the same for all rows, until their mean is a given share."""
    p = probabilities
    for _ in range(ROUNDS):
        mean = p.mean(axis=0)
        if np.abs(mean - shares).max() < CLOSE:
            break
        p = p * (np.maximum(shares, LEAST) / np.maximum(mean, LEAST))
        p = p / p.sum(axis=1, keepdims=True)
    return np.asarray(p)
