"""The relative membership inference attack on a pool.

References
----------
.. [1] Zarifzadeh, Liu & Shokri, "Low-cost high-power membership inference attacks",
   arXiv:2312.03262, Eq. 3 to 10.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Challenge, Knowledge, Need, Scores
from reticent.pool import FLOOR, Pool

__all__ = ["RelativeRatio", "relative_ratio"]

TIE_BREAK = 1e-9  # times a logarithm below 20: less than one step of the share in tables of millions


@dataclass(frozen=True, kw_only=True)
class RelativeRatio:
    """RMIA: ask whether the answer is more telling than that on other records (Eq. 3 of [1]_).

    The ratio of a record is p(x | product) / p(x), where p(x) is the mean over models with and
    without x (Eq. 5). The attack counts the share of population records z whose ratio is
    smaller by a factor gamma. Counting makes ties. Every x is compared with the same z, so
    the count never decreases with the ratio; the ratio itself therefore breaks the ties, and low
    false-positive rates can be reached.

    Parameters
    ----------
    gamma : float
        Factor by which the ratio of x must exceed that of z.
    """

    name: str = "rmia"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.POOL})
    gamma: float = 2.0

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the share of records that each record exceeds, with ties broken by the ratio."""
        ratio = relative_ratio(
            challenge.true_class_probability(), knowledge.need_pool(self.name)
        )
        exceeded = np.searchsorted(np.sort(ratio), ratio / self.gamma, side="right")
        return Scores(values=exceeded / len(ratio) + TIE_BREAK * np.log(ratio))


def relative_ratio(observed: NDArray[np.float64], pool: Pool) -> NDArray[np.float64]:
    """Return p(x | product) / p(x) per record, where p(x) is the mean with and without it (Eq. 5 of [1]_)."""
    inside, outside = (pool.mean(pool.truth, inside=side) for side in (True, False))
    return np.asarray(observed.clip(FLOOR) / ((inside + outside) / 2).clip(FLOOR))
