"""Pairs of columns: counts, and how far they are from what is expected of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.train.marginals.noise import STEPS

__all__ = ["Binned", "Pair", "score"]

Array = NDArray[np.float64]
Pair = tuple[int, int]
# Weight of a pair without the target. The lever at few rows: the budget goes to what a model would learn.
ASIDE = 0.25
COARSE = 1_024  # expected counts are multiples of 1 / COARSE, so that sums with integers are exact


@dataclass(frozen=True, kw_only=True)
class Binned:
    """The records as bins: the only form in which they are looked at after the first stage.

    Parameters
    ----------
    bins : array of int, shape (n, d)
        Bin of each record and column.
    sizes : tuple of int
        Number of bins of each column.
    target : int or None
        The column whose pairs matter most.
    """

    bins: NDArray[np.integer]
    sizes: tuple[int, ...]
    target: int | None = None
    _counted: dict[Pair, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def counts(self, pair: Pair) -> NDArray[np.int64]:
        """Return how many records are in each pair of bins; each pair is counted once."""
        if pair not in self._counted:
            self._counted[pair] = pair_counts(self.bins, pair, self.sizes)
        return self._counted[pair]

    @property
    def pairs(self) -> list[Pair]:
        """All pairs of columns."""
        d = len(self.sizes)
        return [(i, j) for i in range(d) for j in range(i + 1, d)]

    def weight(self, pair: Pair) -> float:
        """Return the weight of a pair's score, at most 1."""
        return 1.0 if self.target is None or self.target in pair else ASIDE

    def scores(
        self, pairs: Sequence[Pair], expected: Sequence[Array], deviation: float
    ) -> Array:
        """Return the scores of pairs; adding a record moves each by at most 1, replacing one by at most 2."""
        return np.array(
            [
                score(self.counts(pair), table, deviation, self.weight(pair))
                for pair, table in zip(pairs, expected, strict=True)
            ]
        )


def pair_counts(
    bins: NDArray[np.integer], pair: Pair, sizes: Sequence[int]
) -> NDArray[np.int64]:
    """Return how many rows are in each pair of bins."""
    i, j = pair
    # As numpy counts them, because the bins of records have two bytes.
    flat = bins[:, i].astype(np.intp)
    flat *= sizes[j]
    flat += bins[:, j]
    counts = np.bincount(flat, minlength=sizes[i] * sizes[j])
    return np.asarray(counts.reshape(sizes[i], sizes[j]), dtype=np.int64)


def score(
    counts: NDArray[np.int64], expected: Array, deviation: float, weight: float
) -> float:
    r"""Return how much is learned by measuring a pair, less the noise of that measurement.

    :math:`w (\|n - m\|_1 - \sqrt{2/\pi}\,\sigma k)`, where m is known already. A record moves one of the integers n by 1, all numbers are multiples
    of a power of two, and so the score moves by at most w without any rounding.

    Examples
    --------
    >>> score(np.array([[3, 0]]), np.array([[1.0, 2.0]]), 0.0, 1.0)
    4.0
    """
    public = np.rint(expected * COARSE) / COARSE
    noise = math.sqrt(2 / math.pi) * deviation * counts.size
    found = float(np.abs(counts - public).sum()) - round(noise * COARSE) / COARSE
    # A multiple of 1/STEPS because weights are 1 or 1/4.
    assert STEPS >= COARSE / ASIDE
    return weight * found
