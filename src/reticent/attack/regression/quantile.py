"""The quantile regression attack on regression models: ask whether an error is smaller than expected for such a record.

References
----------
.. [1] Bertran, Tang, Roth, Kearns, Morgenstern & Wu, "Scalable membership inference attacks via quantile
   regression", arXiv:2307.03694, Section 3.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Need, Scores
from reticent.attack.quantile import fitted_trees
from reticent.attack.regression._base import RegressionChallenge, RegressionKnowledge
from reticent.data import telling_columns
from reticent.run import one_thread

__all__ = ["QuantileResidual"]

# Members have small errors, so the levels are denser there; below 0.02 there are too few known non-members.
LEVELS = (0.02, 0.1, 0.25, 0.5, 0.75)
# In units of the median error of known non-members: quantiles that are closer to each other count as one.
LEAST_STEP = 1e-6


@dataclass(frozen=True, kw_only=True)
class QuantileResidual:
    """Learn from known non-members how well the product predicts similar records [1]_.

    Quantiles of the absolute error given the record and its true quantity are learned by regression. The score is minus
    the share of similar non-members that would have a smaller error. It needs no other model; where there is a
    pool, the attacks that use it see more.

    Parameters
    ----------
    folds : int
        Number of folds; known non-members are those of other folds.
    most_rows : int
        Largest number of records to learn from.
    """

    name: str = "quantile_residual"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.RECORDS})
    folds: int = 3
    most_rows: int = 10_000

    def score(
        self,
        challenge: RegressionChallenge,
        *,
        knowledge: RegressionKnowledge,
        rng: np.random.Generator,
    ) -> Scores:
        """Return minus the share of similar non-members that would have a smaller error, per record."""
        features = challenge.need_features(self.name)
        # The prediction must not be an input: together with the truth it would give the error away.
        records = np.column_stack([features, challenge.targets])
        errors = np.abs(challenge.residuals)
        values = np.zeros(len(challenge))
        for learn, tags, judge in knowledge.tags.folds(self.folds, rng=rng):
            known = learn[~tags]
            if len(known) > self.most_rows:
                known = rng.choice(known, self.most_rows, replace=False)
            inputs = records[:, telling_columns(records[known], errors[known])]
            unit = float(np.median(errors[known])) or float(errors[known].mean()) or 1.0
            with one_thread():
                quantiles = [
                    fitted_trees(
                        inputs[known], errors[known] / unit, rng, quantile=level
                    ).predict(inputs[judge])
                    for level in LEVELS
                ]
            values[judge] = -_rank(errors[judge] / unit, np.stack(quantiles))
        return Scores(values=values)


def _rank(
    errors: NDArray[np.float64], quantiles: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the share of errors below each error, given quantiles of shape (levels, n).

    It is linear between two quantiles, and approaches 1 behind the last one.
    """
    # The regressions of neighbouring levels may cross, so the quantiles are sorted.
    ends = np.sort(quantiles.clip(0.0), axis=0)
    rank, lower, share = np.zeros(len(errors)), np.zeros(len(errors)), 0.0
    for level, end in zip(LEVELS, ends, strict=True):
        step = np.maximum(end - lower, LEAST_STEP)
        rank += (level - share) * ((errors - lower) / step).clip(0.0, 1.0)
        lower, share = end, level
    beyond = (errors - lower).clip(0.0) / np.maximum(lower, LEAST_STEP)
    return np.asarray(rank + (1 - share) * beyond / (1 + beyond))
