"""The first stage: a noisy histogram of every column, from which bins, the total and the distribution inside bins follow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.train.marginals.columns import Column
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
TAIL = 2.0  # deviations that the sum of the outermost cells must exceed, or they are taken to be empty
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
    columns: Sequence[Column],
    deviation: float,
    noise: Noise,
    *,
    lenient: bool = False,
) -> Histograms:
    """Count every column with noise; all histograms together move by the root of their number when a record is added.

    If that is ``lenient``, a table that the noise hides counts as a small one, in place of being refused; see :class:`Look`.

    Raises
    ------
    InvalidInput
        If the noise leaves nothing of the table.
    """
    raw = []
    for j, column in enumerate(columns):
        counts = np.bincount(codes[:, j], minlength=column.cells).astype(np.int64)
        raw.append(noise.on_counts(counts, deviation))
    # Each column's sum estimates the number of records; its variance grows with the number of cells.
    weights = np.array([1 / column.cells for column in columns])
    total = float(np.sum([c.sum() for c in raw] * weights) / weights.sum())
    spread = deviation / math.sqrt(weights.sum())
    if lenient:
        total = max(total, float(FEWEST_ROWS))
    elif total < max(FEWEST_ROWS, SURE * spread):
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
        if not np.isfinite(heard).any():
            # The noise hides the whole column; what was counted is then all that is known of it.
            heard = noisy
        counts_of.append(nearest_counts(heard, total))
    return Histograms(
        total=total, counts=tuple(counts_of), raw=tuple(raw), deviation=deviation
    )


def _silent(noisy: Array, deviation: float) -> NDArray[np.bool_]:
    """Return which cells lie before the first one up to which more than noise was counted."""
    sums = np.cumsum(noisy)
    loud = sums > TAIL * deviation * np.sqrt(np.arange(1, len(sums) + 1))
    return np.asarray(np.cumsum(loud) == 0) if loud.any() else np.zeros(len(sums), bool)


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
    column: Column, counts: Array, deviation: float, bins: int
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
    """
    total = counts.sum()
    sure = counts >= SURE * deviation
    if column.ordered:
        places = np.zeros(len(counts), dtype=np.int64)
        ahead = np.cumsum(counts[:-1]) - counts[:-1] / 2
        present = max(counts[:-1].sum(), 1e-9)
        places[:-1] = np.minimum(bins * ahead / present, bins - 1).astype(np.int64)
        places[:-1] = np.unique(places[:-1], return_inverse=True)[1]
        if counts[-1] > 0:
            places[-1] = places[:-1].max() + 1
        return places
    assert total > 0, "there are records"
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(counts), dtype=np.int64)
    rank[order] = np.arange(len(counts))
    own = sure & (rank < MOST_LEVELS)
    # All others share the bin behind the last one of their own.
    places = np.where(own, np.cumsum(own) - 1, own.sum())
    return np.asarray(places, dtype=np.int64)


def number_of_bins(total: float, deviation: float, scarcity: float) -> int:
    """Return how many bins a column may have so that the cells of a pair still exceed the noise."""
    bins = math.sqrt(total / (scarcity * deviation))
    return int(min(max(bins, FEWEST_BINS), MOST_BINS))
