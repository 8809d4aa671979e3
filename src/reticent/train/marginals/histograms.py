"""The first stage: a noisy histogram of every column, from which bins, the total and the distribution inside bins follow."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.train.marginals.columns import Column
from reticent.train.marginals.domain import Cells
from reticent.train.marginals.heard import heard_cells
from reticent.train.marginals.noise import Noise

__all__ = [
    "Histograms",
    "binned",
    "nearest_counts",
    "noisy_histograms",
    "number_of_bins",
]

Array = NDArray[np.float64]
SURE = 3.0  # a level whose count is below so many deviations is pooled with others
TAIL = 3.5  # deviations that the outermost cells must exceed, alone or together, or they are taken to be empty
FEWEST_BINS, MOST_BINS = 4, 32  # of a column in a pair
MOST_LEVELS = 32  # categories with a bin of their own
FEWEST_ROWS = 20  # that a noisy total must show, or there is nothing to imitate


@dataclass(frozen=True, kw_only=True)
class Histograms:
    """What was learned of every column by itself.

    Parameters
    ----------
    total : float
        Estimate of the number of records.
    counts : tuple of array
        Noisy counts of each column, made non-negative and with the sum ``total``.
    raw : tuple of array
        The noisy counts themselves.
    deviation : float
        Standard deviation of the noise on each of them.
    """

    total: float
    counts: tuple[Array, ...]
    raw: tuple[Array, ...]
    deviation: float


def noisy_histograms(
    codes: NDArray[np.integer],
    cells: Cells,
    deviation: float,
    noise: Noise,
    *,
    lenient: bool = False,
) -> Histograms:
    """Count every column with noise; all histograms together move by the root of their number when a record is added.

    Columns that were counted while their categories were listed are not counted again. If that is ``lenient``, a table that the noise hides counts as a
    small one, in place of being refused.

    Raises
    ------
    InvalidInput
        If the noise leaves nothing of the table.
    """
    columns = cells.columns
    raw = []
    for j, column in enumerate(columns):
        if column.name in cells.counted:
            raw.append(cells.counted[column.name].copy())
            continue
        counts = np.bincount(codes[:, j], minlength=column.cells).astype(np.int64)
        raw.append(noise.on_counts(counts, deviation))
    # Each column's sum estimates the number of records; its variance grows with the number of cells.
    public = [column.name not in cells.counted for column in columns]
    weights = np.array([p / c.cells for p, c in zip(public, columns, strict=True)])
    if cells.total is None:
        sums = [noisy.sum() if p else 0.0 for p, noisy in zip(public, raw, strict=True)]
        total = float(np.sum(sums * weights) / weights.sum())
    else:
        total, weights = cells.total, np.ones(1)
    if lenient:
        total = max(total, float(FEWEST_ROWS))
    for is_public, noisy in zip(public, raw, strict=True):
        if not is_public:
            # Unlisted categories have what is left.
            noisy[-2] = max(total - float(np.nansum(noisy)), 0.0)
    spread = deviation / math.sqrt(weights.sum())
    if not lenient and total < max(FEWEST_ROWS, SURE * spread):
        raise InvalidInput(
            "the noise of this budget hides the whole table, so that nothing could be imitated; allow a larger epsilon, bring more rows, or leave "
            "columns out with --drop."
        )
    counts_of = []
    for column, noisy in zip(columns, raw, strict=True):
        heard = noisy.copy()
        for cell in column.doubtful:
            if heard[cell] < SURE * deviation:
                heard[cell] = -np.inf
        if column.ordered:
            # Cells before the first and behind the last one that is heard are taken to be empty.
            silent = _silent(noisy[:-1], deviation)
            heard[:-1][silent | _silent(noisy[-2::-1], deviation)[::-1]] = -np.inf
        counts_of.append(nearest_counts(heard, total))
    return Histograms(
        total=total, counts=tuple(counts_of), raw=tuple(raw), deviation=deviation
    )


def _silent(noisy: Array, deviation: float) -> NDArray[np.bool_]:
    """Return which cells lie before the first one in which more than noise was counted."""
    heard = heard_cells(noisy, deviation, above=TAIL)
    first = heard[0] if len(heard) else 0
    return np.asarray(np.arange(len(noisy)) < first)


def nearest_counts(noisy: Array, total: float) -> Array:
    """Return the non-negative numbers with a given sum that are nearest to noisy ones.

    Examples
    --------
    >>> nearest_counts(np.array([5.0, -2.0, 3.0]), 6.0).tolist()
    [4.0, 0.0, 2.0]
    """
    flat = np.sort(noisy.ravel())[::-1]
    flat = flat[np.isfinite(flat)]
    excess = (np.cumsum(flat) - total) / np.arange(1, len(flat) + 1)
    last = int(np.flatnonzero(flat > excess)[-1])
    return np.asarray(np.maximum(noisy - excess[last], 0.0))


def binned(
    column: Column,
    counts: Array,
    deviation: float,
    bins: int,
    *,
    fewest: float = 0.0,
) -> NDArray[np.int64]:
    """Return the bin of each cell of a column, from noisy counts alone.

    Parameters
    ----------
    column : Column
        The column.
    counts : array of float
        Its counts in :class:`Histograms`.
    deviation : float
        Of the noise on them.
    bins : int
        Number of bins of an ordered column.
    fewest : float
        Records that a bin of an ordered column should have, or its pairs drown in the noise.
    """
    assert counts.sum() > 0, "there are records"
    if column.ordered:
        places = np.zeros(len(counts), dtype=np.int64)
        places[:-1] = _cut(counts[:-1], bins, fewest)
        if counts[-1] > 0:
            places[-1] = places[:-1].max() + 1
        return places
    sure = counts >= SURE * deviation
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(counts), dtype=np.int64)
    rank[order] = np.arange(len(counts))
    own = sure & (rank < MOST_LEVELS)
    # All others share the bin behind the last one of their own.
    places = np.where(own, np.cumsum(own) - 1, own.sum())
    return np.asarray(places, dtype=np.int64)


def _cut(counts: Array, bins: int, fewest: float) -> NDArray[np.int64]:
    """Return bins of about equal counts; a cell with more than a bin's share has one to itself, and the others share what is left.

    Without the second half, a column that is 0 for nine of ten people would have one bin for everybody else.
    """
    spike = counts > counts.sum() / bins
    rest = np.where(spike, 0.0, counts)
    left = max(float(rest.sum()), 1e-9)
    most = max(bins - int(spike.sum()), 1)
    number = int(np.clip(left / max(fewest, 1e-9), 1, most))
    ahead = np.cumsum(rest) - rest / 2
    turn = np.minimum(number * ahead / left, number - 1).astype(np.int64)
    begins = (np.diff(turn) != 0) | spike[1:] | spike[:-1]
    return np.concatenate([[0], np.cumsum(begins)]).astype(np.int64)


def number_of_bins(total: float, deviation: float, scarcity: float) -> int:
    """Return how many bins a column may have so that the cells of a pair still exceed the noise."""
    bins = math.sqrt(total / (scarcity * deviation))
    return int(min(max(bins, FEWEST_BINS), MOST_BINS))
