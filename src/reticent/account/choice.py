r"""The privacy loss of a choice by the exponential mechanism, which is smaller than its epsilon alone says.

Between two neighbouring tables, the log-probabilities of all outcomes of the exponential mechanism move by amounts that differ by at
most :math:`\varepsilon`: its loss lies in some interval :math:`[t - \varepsilon, t]`, where a mechanism about which only epsilon is known may
have losses from :math:`-\varepsilon` to :math:`\varepsilon` [1]_. For a given t, the worst pair has the two losses at the ends,
and with :math:`E = e^\varepsilon`, :math:`A = e^a`

.. math:: \delta_t(a) = \frac{(E - e^t)(1 - A e^{-t})}{E - 1}.

t depends on the tables. The largest value over t, at :math:`t = (\varepsilon + a)/2`, is

.. math:: \delta(a) = \frac{(\sqrt E - \sqrt A)^2}{E - 1}, \qquad -\varepsilon \le a \le \varepsilon.

A supremum of such curves is convex and thus the curve of a pair of distributions, which dominates every exponential mechanism with this
epsilon; and dominating pairs may be composed, also if later choices depend on earlier results (Theorem 10 of [2]_). For small
epsilon its loss is about uniform on :math:`[-\varepsilon, \varepsilon]`, which costs a third of what a mechanism costs about which
only epsilon is known.

References
----------
.. [1] Dong, Durfee & Rogers, "Optimal differential privacy composition for exponential mechanisms", ICML 2020, arXiv:1909.13830.
.. [2] Zhu, Dong & Wang, "Optimal accounting of differential privacy via characteristic function", arXiv:2106.08567.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from reticent.account._library import DP
from reticent.account.mechanisms import Loss, Relation
from reticent.errors import InvalidInput

__all__ = ["Choice"]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Choose an outcome by the exponential mechanism, accounted by the range of its losses.

    Parameters
    ----------
    epsilon : float
        The factor in the exponent is epsilon / (2 sensitivity), where the sensitivity is that of a quality to adding or removing a record.
        Under ``replace-one`` a quality moves by twice as much, and the guarantee is weaker.

    Examples
    --------
    >>> from reticent.account import Exponential, trade_off
    >>> round(trade_off(Choice(epsilon=1.0)).advantage, 4)
    0.2449
    >>> round(trade_off(Exponential(epsilon=1.0)).advantage, 4)
    0.4621
    """

    epsilon: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise InvalidInput(
                f"epsilon of a choice must be positive and finite, got {self.epsilon}."
            )

    @property
    def largest_loss(self) -> float:
        """The largest privacy loss."""
        return self.epsilon * (2 if self.relation == Relation.REPLACE else 1)

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution of the dominating pair; each cell's mass is moved to its ends, which is never more private."""
        epsilon = self.largest_loss
        cells = math.ceil(epsilon / grid)
        ends = np.arange(-cells, cells + 1, dtype=np.float64) * grid
        inside = np.clip(ends, -epsilon, epsilon)
        # Probabilities of a cell under the two tables: P(L > a) = (E - sqrt(E A))/(E - 1) and Q(L > a) = (sqrt(E/A) - 1)/(E - 1).
        scale = math.exp(-epsilon / 2) / -math.expm1(-epsilon)
        wide = np.expm1(np.diff(inside) / 2) * scale
        p, q = wide * np.exp(inside[:-1] / 2), wide * np.exp(-inside[1:] / 2)
        up = np.clip((p - np.exp(ends[:-1]) * q) / -math.expm1(-grid), 0.0, p)
        probabilities = np.zeros(len(ends))
        probabilities[1:] += up
        probabilities[:-1] += p - up
        return DP.pld.PrivacyLossDistribution(
            DP.pmf.DensePLDPmf(grid, -cells, probabilities, 0.0, True)
        )

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution for a group of records: qualities move that much further."""
        return replace(self, epsilon=size * self.epsilon).loss(grid)
