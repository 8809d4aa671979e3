"""The attack that makes tables of known people with the same generator and learns from them.

References
----------
.. [1] Stadler, Oprisanu & Troncoso, "Synthetic data: anonymisation groundhog day", arXiv:2011.07018, Section 5 (shadow generators).
.. [2] Carlini et al., "Membership inference attacks from first principles", arXiv:2112.03570, Section IV (each record compared with itself).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Knowledge, Need, Scores
from reticent.attack.synthetic._base import SyntheticChallenge
from reticent.attack.synthetic.learned import MOST_DEVIATIONS
from reticent.pool import TablePool

__all__ = ["ShadowTable"]

# Weight of the mean over all records against one record's own difference, in tables: a record is in half of eight or sixteen of them, which
# tells little about it alone.
SHRINKING = 8.0


@dataclass(frozen=True, kw_only=True)
class ShadowTable:
    r"""Compare each record with itself over tables that the same generator made with and without it [1]_, [2]_.

    For every comparison :math:`f` of a record with a table there are three inputs: :math:`f`; the centred :math:`c = f - b`, where :math:`b` is the
    record's mean over the shadow tables after the mean difference between members and others was taken off the tables that it is in; and
    :math:`c g` with the record's own difference :math:`g`, shrunk towards the mean. A ridge regression learns their weights from the shadow tables,
    each of which plays the target while the others (but for its complement) are its shadows. Tags of the audited table are never used, so nothing
    has to be cross-fitted, and where nothing leaks the score is independent of membership.

    Parameters
    ----------
    penalty : float
        Ridge penalty per record, on standardised inputs.
    """

    name: str = "shadow_table"
    needs: ClassVar[frozenset[Need]] = frozenset(
        {Need.SYNTHETIC, Need.AUXILIARY, Need.POOL}
    )
    penalty: float = 5e-3

    def score(
        self,
        challenge: SyntheticChallenge,
        *,
        knowledge: Knowledge[TablePool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the weighted sum of the inputs of each record; 0 is as likely a member as not."""
        pool = knowledge.need_pool(self.name)
        scale = _Scale.of(pool)
        target = _inputs(scale.of_table(challenge.comparisons), pool, scale)
        weights, centre = self._learned(pool, scale, target.shape[1])
        return Scores(values=(target - centre) @ weights)

    def _learned(
        self, pool: TablePool, scale: "_Scale", width: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights of the inputs and their means, over all games among the shadow tables."""
        gram, product = np.zeros((width, width)), np.zeros(width)
        total, tags_total, count = np.zeros(width), 0.0, 0
        for model, shadows in pool.games():
            inputs = _inputs(scale.of_table(pool.comparisons[model]), shadows, scale)
            signs = np.where(pool.masks[model], 1.0, -1.0)
            gram += inputs.T @ inputs
            product += inputs.T @ signs
            total += inputs.sum(axis=0)
            tags_total += float(signs.sum())
            count += len(inputs)
        if not count:
            # Two tables leave no game to learn from: then every centred comparison weighs the same.
            weights = np.zeros(width)
            weights[width // 3 : 2 * width // 3] = 1.0
            return weights, np.zeros(width)
        centre, mean_tag = total / count, tags_total / count
        covariance = gram / count - np.outer(centre, centre)
        spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        spread = np.where(spread > 0, spread, 1.0)
        standard = covariance / np.outer(spread, spread)
        standard[np.diag_indices_from(standard)] += self.penalty
        right = (product / count - centre * mean_tag) / spread
        return np.linalg.solve(standard, right) / spread, centre


@dataclass(frozen=True, kw_only=True)
class _Scale:
    """Mean and spread of every comparison over all shadow tables."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, pool: TablePool) -> "_Scale":
        values = pool.comparisons
        deviation = values.std(axis=(0, 1), dtype=np.float64)
        return cls(
            mean=values.mean(axis=(0, 1), dtype=np.float64),
            deviation=np.where(deviation > 0, deviation, 1.0),
        )

    def of_table(
        self, comparisons: NDArray[np.float64] | NDArray[np.float32]
    ) -> NDArray[np.float64]:
        scaled = (comparisons - self.mean) / self.deviation
        return np.asarray(np.clip(scaled, -MOST_DEVIATIONS, MOST_DEVIATIONS))


def _inputs(
    table: NDArray[np.float64], shadows: TablePool, scale: _Scale
) -> NDArray[np.float64]:
    """Return the three inputs of every comparison with one table, shape (n, 3 k)."""
    inside = shadows.masks
    sum_in = np.zeros(table.shape)
    sum_out = np.zeros(table.shape)
    for mask, comparisons in zip(inside, shadows.comparisons, strict=True):
        values = scale.of_table(comparisons)
        sum_in[mask] += values[mask]
        sum_out[~mask] += values[~mask]
    count_in = inside.sum(axis=0)[:, None]
    count_out = len(inside) - count_in
    own = sum_in / count_in - sum_out / count_out
    shift = own.mean(axis=0)
    base = (sum_in + sum_out - count_in * shift) / len(inside)
    weight = len(inside) / (len(inside) + SHRINKING)
    gain = shift + weight * (own - shift)
    centred = table - base
    return np.hstack([table, centred, centred * gain])
