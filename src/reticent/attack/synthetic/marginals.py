"""Pairs of columns in bins: what generators that keep marginals keep of single people.

References
----------
.. [1] Golob, Pentyala, Maratkhan & De Cock, "Privacy vulnerabilities in marginals-based synthetic data", arXiv:2410.05506 (marginals as features of an
   attack).
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic._base import Comparison, Tables
from reticent.attack.synthetic._counts import excess
from reticent.attack.synthetic.exact_values import MOST_TUPLES

__all__ = ["PairMarginals", "pair_table"]

CELLS = 17  # bins of a column, the one of unknown values included


class PairMarginals(Comparison):
    """Guess that a record was used if its pairs of binned values are more frequent in the synthetic table than among other people [1]_."""

    name = "pair_marginals"
    columns = ("pair_marginals", "single_marginals")

    def compare(self, tables: Tables) -> NDArray[np.float64]:
        """Return the sums of log-ratios over all pairs of columns, and over all columns."""
        records, synthetic, auxiliary = (
            t.bins.astype(np.int64)
            for t in (tables.records, tables.synthetic, tables.auxiliary)
        )
        sizes = len(synthetic), len(auxiliary)
        d = records.shape[1]
        pairs = list(combinations(range(d), 2))
        if len(pairs) > MOST_TUPLES:
            places = np.linspace(0, len(pairs) - 1, MOST_TUPLES).astype(int)
            pairs = [pairs[k] for k in places]
        total = np.zeros((len(records), 2))
        for columns in pairs:
            total[:, 0] += _log_ratio(records, synthetic, auxiliary, columns, sizes)
        for j in range(d):
            total[:, 1] += _log_ratio(records, synthetic, auxiliary, (j, j), sizes)
        return total


def _log_ratio(
    records: NDArray[np.int64],
    synthetic: NDArray[np.int64],
    auxiliary: NDArray[np.int64],
    columns: tuple[int, int],
    sizes: tuple[int, int],
) -> NDArray[np.float64]:
    cells = excess(
        pair_table(synthetic, *columns), pair_table(auxiliary, *columns), sizes
    )
    return np.asarray(cells[records[:, columns[0]], records[:, columns[1]]])


def pair_table(bins: NDArray[np.int64], i: int, j: int) -> NDArray[np.int64]:
    """Return the contingency table of two binned columns."""
    counts = np.bincount(bins[:, i] * CELLS + bins[:, j], minlength=CELLS * CELLS)
    return counts.reshape(CELLS, CELLS)
