"""Pairs of columns: counts, and how far they are from what is expected of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.train.marginals.noise import STEPS

__all__ = ["Binned", "Pair", "counts_of_pairs", "pair_counts"]

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
        r"""Return how much is learned by measuring each pair, less the noise of that measurement.

        :math:`w (\|n - m\|_1 - \sqrt{2/\pi}\,\sigma k)`, where m is known already. A record moves one of the integers n by 1, all numbers are multiples
        of a power of two, and so a score moves by at most w without any rounding: adding a record moves each by at most 1, replacing one by at most 2.

        Parameters
        ----------
        pairs : sequence of tuple of int
            The pairs.
        expected : sequence of array
            What is known of the counts of each.
        deviation : float
            Of the noise of a measurement.

        Examples
        --------
        >>> data = Binned(bins=np.zeros((3, 2), dtype=np.int16), sizes=(1, 2))
        >>> data.scores([(0, 1)], [np.array([[1.0, 2.0]])], 0.0).tolist()
        [4.0]
        """
        if not pairs:
            return np.empty(0)
        cells = np.array([table.size for table in expected])
        starts = np.cumsum(cells) - cells
        public = np.concatenate([table.ravel() for table in expected])
        public = np.rint(public * COARSE) / COARSE
        counts = np.concatenate([self.counts(pair).ravel() for pair in pairs])
        distances = np.add.reduceat(np.abs(counts - public), starts)
        noise = np.rint(math.sqrt(2 / math.pi) * deviation * cells * COARSE) / COARSE
        # Multiples of 1/STEPS because weights are 1 or 1/4.
        assert STEPS >= COARSE / ASIDE
        weights = np.array([self.weight(pair) for pair in pairs])
        return np.asarray(weights * (distances - noise))


def pair_counts(
    bins: NDArray[np.integer], pair: Pair, sizes: Sequence[int]
) -> NDArray[np.int64]:
    """Return how many rows are in each pair of bins."""
    return _counted(bins, pair, sizes)


def counts_of_pairs(
    bins: NDArray[np.integer], pairs: Sequence[Pair], sizes: Sequence[int]
) -> dict[Pair, NDArray[np.int64]]:
    """Return how many rows are in each pair of bins, for several pairs.

    Three columns are counted together where that tells three of the pairs and has fewer cells than there are rows: it takes half of the time.

    Examples
    --------
    >>> rows = np.array([[0, 1, 1], [0, 1, 0]])
    >>> counts_of_pairs(rows, [(0, 1), (1, 2)], (1, 2, 2))[1, 2].tolist()
    [[0, 0], [1, 1]]
    """
    found: dict[Pair, NDArray[np.int64]] = {}
    left = dict.fromkeys(pairs)
    while left:
        i, j = next(iter(left))
        room = len(bins) // (sizes[i] * sizes[j])
        thirds = (
            k
            for k in range(j + 1, len(sizes))
            if sizes[k] <= room and (i, k) in left and (j, k) in left
        )
        k = next(thirds, None)
        if k is None:
            found[i, j] = pair_counts(bins, (i, j), sizes)
        else:
            counts = _counted(bins, (i, j, k), sizes)
            found[i, j], found[i, k], found[j, k] = (counts.sum(axis=a) for a in (2, 1, 0))  # fmt: skip
            del left[i, k], left[j, k]
        del left[i, j]
    return found


def _counted(
    bins: NDArray[np.integer], columns: tuple[int, ...], sizes: Sequence[int]
) -> NDArray[np.int64]:
    # As numpy counts them, because the bins of records have two bytes.
    flat = bins[:, columns[0]].astype(np.intp)
    for c in columns[1:]:
        flat *= sizes[c]
        flat += bins[:, c]
    shape = [sizes[c] for c in columns]
    counts = np.bincount(flat, minlength=math.prod(shape))
    return np.asarray(counts.reshape(shape), dtype=np.int64)
