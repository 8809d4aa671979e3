"""The ratio of densities around a record.

References
----------
.. [1] van Breugel, Sun, Qian & van der Schaar, "Membership inference attacks against synthetic data through overfitting detection", arXiv:2302.12580
   (DOMIAS), Eq. 2.
"""

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic._base import Comparison, Tables, record_blocks
from reticent.attack.synthetic._nearest import count_unequal, narrow_codes
from reticent.data import Coded

__all__ = ["DensityRatio"]

# Rows that a density is estimated from: it is smooth, and more rows change it little.
MOST_ROWS = 2_000
# Width of the kernel as a mean difference over the columns by ranks: about the distance of a record from its nearest among some thousand others.
WIDTH = 0.05


class DensityRatio(Comparison):
    r"""Guess that a record was used if the synthetic table is denser around it than the population is [1]_.

    The densities are sums of :math:`e^{-\delta / h}` over rows, with the mean difference by ranks :math:`\delta` and :math:`h = 0.05`. It was best
    against none of the generators that were measured, and is run because it is well known.
    """

    name = "density_ratio"
    columns = ("density_ratio",)

    def compare(self, tables: Tables) -> NDArray[np.float64]:
        """Return the logarithm of the ratio of densities."""
        known = tables.to_auxiliary
        if "density" not in known:
            known["density"] = _log_density(tables.records, tables.auxiliary)
        density = _log_density(tables.records, tables.synthetic)
        return (density - known["density"])[:, None]


def _log_density(records: Coded, others: Coded) -> NDArray[np.float64]:
    if len(others) > MOST_ROWS:
        chosen = np.linspace(0, len(others) - 1, MOST_ROWS).astype(np.int64)
        others = others.take(chosen)
    n, d = records.codes.shape
    result = np.empty(n)
    mine, theirs = records.ranks.T.copy(), others.ranks.T.copy()
    my_codes, their_codes = narrow_codes(records.categories, others.categories)
    categories = np.arange(len(my_codes))
    for block in record_blocks(n, len(others)):
        unequal = np.zeros(
            (block.stop - block.start, len(others)), dtype=np.min_scalar_type(d)
        )
        count_unequal(unequal, my_codes, their_codes, categories, block)
        total = unequal.astype(np.float32)
        for j in range(len(mine)):
            apart = np.abs(mine[j, block, None] - theirs[j])
            total += np.minimum(apart, 1, out=apart)
        total /= -(d * WIDTH)
        result[block] = np.log(np.exp(total).mean(axis=1, dtype=np.float64) + 1e-300)
    return result
