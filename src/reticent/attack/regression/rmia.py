r"""The relative membership inference attack on regression models.

A regression model gives no probability of the truth, so a normal density of the error stands in for it:
:math:`p = \exp(-(r / s)^2 / 2)`, with :math:`s` 1.48 times the median error of models without the record, which is the standard
deviation if errors are normal. The scale hardly matters.

References
----------
.. [1] Zarifzadeh, Liu & Shokri, "Low-cost high-power membership inference attacks",
   arXiv:2312.03262, Eq. 3 to 10.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Need, Scores
from reticent.attack.regression._base import RegressionChallenge, RegressionKnowledge
from reticent.pool import PredictionPool

__all__ = ["RelativeResidual", "log_relative_ratio"]

# The median absolute value of a normal variable is its standard deviation divided by 1.4826.
DEVIATIONS_PER_MEDIAN = 1.4826


@dataclass(frozen=True, kw_only=True)
class RelativeResidual:
    """RMIA: ask whether a prediction is more telling than those of other models (Eq. 3 and 5 of [1]_).

    The published attack counts the population records whose ratio is smaller by some factor. Every record is compared
    with the same ones, so the count orders records as the ratio does. The score is therefore the ratio, which has no ties.
    """

    name: str = "rmia_residual"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.POOL})

    def score(
        self,
        challenge: RegressionChallenge,
        *,
        knowledge: RegressionKnowledge,
        rng: np.random.Generator,
    ) -> Scores:
        """Return the logarithm of each record's ratio."""
        pool = knowledge.need_pool(self.name)
        return Scores(values=log_relative_ratio(challenge.residuals, pool))


def log_relative_ratio(
    residuals: NDArray[np.float64], pool: PredictionPool
) -> NDArray[np.float64]:
    """Return log p(x | product) - log p(x), where p(x) is the mean with and without the record (Eq. 5 of [1]_).

    Everything is in logarithms, because an error of sixty medians has a density of 0 in double precision.
    """
    scale = DEVIATIONS_PER_MEDIAN * pool.typical_error
    shadows = -0.5 * (pool.residuals / scale) ** 2
    inside = pool.masks.sum(axis=0)
    weights = np.where(pool.masks, 0.5 / inside, 0.5 / (len(pool) - inside))
    largest = shadows.max(axis=0)
    mean = np.log((weights * np.exp(shadows - largest)).sum(axis=0)) + largest
    return np.asarray(-0.5 * (residuals / scale) ** 2 - mean)
