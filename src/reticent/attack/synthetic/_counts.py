"""Counting equal rows and equal tuples of values across tables."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.data import UNKNOWN

__all__ = [
    "excess",
    "hashed_rows",
    "log_share",
    "occurrences",
    "tuples",
    "unlike_all_others",
]

# Multipliers of a hash that is a sum of one term per cell (splitmix64, Steele, Lea & Flood, OOPSLA 2014).
_GAMMA, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


def hashed_rows(codes: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return a 64-bit hash per cell, which depends on the column; their sum over a row is a hash of the row.

    Two different rows among 100,000 have the same sum with a probability below one in a billion. A value that no reference record has
    is as unequal to every record as to itself, because records have no such value.
    """
    column = np.arange(1, codes.shape[1] + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = codes.astype(np.int64).astype(np.uint64) + column * _GAMMA * np.uint64(31)
        z = (z ^ (z >> np.uint64(30))) * _FIRST
        z = (z ^ (z >> np.uint64(27))) * _SECOND
        return np.asarray(z ^ (z >> np.uint64(31)))


def unlike_all_others(codes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which rows differ from every other in at least two columns.

    Examples
    --------
    >>> unlike_all_others(np.array([[1, 1, 1], [1, 1, 2], [3, 4, 5]])).tolist()
    [False, False, True]
    """
    cells = hashed_rows(codes)
    whole = cells.sum(axis=1, dtype=np.uint64)
    alone = np.ones(len(codes), dtype=bool)
    for j in range(codes.shape[1]):
        with np.errstate(over="ignore"):
            without = whole - cells[:, j]
        _, place, counts = np.unique(without, return_inverse=True, return_counts=True)
        alone &= counts[place] == 1
    return alone


def occurrences(
    keys: NDArray[np.uint64], among: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return how often each key occurs among others.

    Examples
    --------
    >>> occurrences(np.array([1, 2], dtype=np.uint64), np.array([2, 2, 3], dtype=np.uint64))
    array([0, 2])
    """
    values, counts = np.unique(among, return_counts=True)
    if not len(values):
        return np.zeros(len(keys), dtype=np.int64)
    at = np.minimum(np.searchsorted(values, keys), len(values) - 1)
    return np.where(values[at] == keys, counts[at], 0)


def tuples(codes: NDArray[np.int32], columns: Sequence[int]) -> NDArray[np.uint64]:
    """Return one key per record for its values in some columns."""
    chosen = codes[:, list(columns)]
    keys: NDArray[np.uint64] = hashed_rows(chosen).sum(axis=1, dtype=np.uint64)
    # An unknown value equals nothing: a key of its own that records cannot have.
    return np.where((chosen == UNKNOWN).any(axis=1), np.uint64(0), keys)


def excess(
    synthetic: NDArray[np.int64] | NDArray[np.float64],
    auxiliary: NDArray[np.int64] | NDArray[np.float64],
    sizes: tuple[int, int],
) -> NDArray[np.float64]:
    """Return the logarithm of how much more frequent something is in the synthetic than in the auxiliary table, each with half a count added.

    Examples
    --------
    >>> excess(np.array([0.0, 3.0]), np.array([0.0, 0.0]), (10, 10)).round(3)
    array([0.   , 1.946])
    """
    return log_share(synthetic, sizes[0]) - log_share(auxiliary, sizes[1])


def log_share(
    counts: NDArray[np.int64] | NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Return the logarithm of the share of a table that counts are, with half a count added so that it is finite."""
    return np.asarray(np.log((np.asarray(counts, dtype=np.float64) + 0.5) / (size + 1)))
