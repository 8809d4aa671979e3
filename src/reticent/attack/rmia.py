"""The relative membership inference attack on a pool.

References
----------
.. [1] Zarifzadeh, Liu & Shokri, "Low-cost high-power membership inference attacks",
   arXiv:2312.03262, Eq. 3 to 10.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Challenge, Knowledge, Scores
from reticent.pool import FLOOR, Pool

__all__ = ["RelativeRatio", "relative_ratio"]


@dataclass(frozen=True, kw_only=True)
class RelativeRatio:
    """RMIA: ask whether the answer is more telling than that on other records (Eq. 3 of [1]_).

    The ratio of a record is p(x | product) / p(x), where p(x) is the mean over models with and
    without x (Eq. 5). The attack counts the share of population records z whose ratio is
    smaller by a factor gamma. Counting makes ties; since every x is compared with the same
    z, the count never decreases with the ratio, so the ratio itself breaks them and low
    false-positive rates can be reached.

    Parameters
    ----------
    gamma : float
        Factor by which x must exceed z.
    """

    name: str = "rmia"
    gamma: float = 2.0

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the share of records that are exceeded, the ratio breaking ties."""
        ratio = relative_ratio(
            challenge.true_class_probability(), knowledge.need_pool(self.name)
        )
        beaten = np.searchsorted(np.sort(ratio), ratio / self.gamma, side="right")
        return Scores(values=beaten / len(ratio) + 1e-9 * np.log(ratio))


def relative_ratio(observed: NDArray[np.float64], pool: Pool) -> NDArray[np.float64]:
    """Return p(x | product) / p(x) per record, p(x) the mean with and without it (Eq. 5 of [1]_)."""
    inside, outside = (pool.mean(pool.truth, inside=side) for side in (True, False))
    return np.asarray(observed.clip(FLOOR) / ((inside + outside) / 2).clip(FLOOR))
