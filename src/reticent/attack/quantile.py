"""The quantile regression attack: whether an answer is better than such a record deserves.

References
----------
.. [1] Bertran, Tang, Roth, Kearns, Morgenstern & Wu, "Scalable membership inference attacks via quantile
   regression", arXiv:2307.03694, Section 3; the Gaussian form of its Section 4.1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from reticent.attack._base import Challenge, Knowledge, Scores
from reticent.errors import InvalidInput
from reticent.pool import logit_of_truth
from reticent.run import one_thread

__all__ = ["QuantileRegression"]

LEAST_SPREAD = 0.05  # of logits; what is less is rounding of the answers


@dataclass(frozen=True, kw_only=True)
class QuantileRegression:
    """Learn from known non-members how well the product answers on a record like this [1]_.

    A threshold that fits each record needs no shadow model: the distribution of the answer's logit given
    the record is learned by regression on records known not to be members, as a normal distribution
    with mean and spread that depend on the record. The score is the standardised residual: at
    every false-positive rate it is compared with the matching quantile.

    Parameters
    ----------
    folds : int
        Number of folds; known non-members are those of other folds.
    most_rows : int
        Largest number of records to learn from.
    """

    name: str = "quantile"
    folds: int = 3
    most_rows: int = 10_000

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return by how many spreads the answer is better than expected of the record."""
        if challenge.features is None:
            raise InvalidInput(
                f"the attack {self.name!r} learns from the records, but only answers are at hand; pass their features."
            )
        seen = np.column_stack([challenge.features, challenge.labels])
        phi = logit_of_truth(challenge.probabilities, challenge.labels)
        values = np.zeros(len(challenge))
        for learn, tags, judge in knowledge.tags.folds(self.folds, rng=rng):
            known = learn[~tags]
            if len(known) > self.most_rows:
                known = rng.choice(known, self.most_rows, replace=False)
            # Residuals of records the regression has not seen: its own would be too small.
            half = rng.permutation(len(known)) % 2 == 0
            residual = np.empty(len(known))
            for here in (half, ~half):
                model = _fitted(seen[known[~here]], phi[known[~here]], rng)
                residual[here] = phi[known[here]] - model.predict(seen[known[here]])
            mean = _fitted(seen[known], phi[known], rng)
            spread = _fitted(seen[known], np.log(np.abs(residual) + LEAST_SPREAD), rng)
            values[judge] = (phi[judge] - mean.predict(seen[judge])) / np.exp(
                spread.predict(seen[judge])
            )
        return Scores(values=values)


def _fitted(
    inputs: NDArray[np.float64], values: NDArray[np.float64], rng: np.random.Generator
) -> HistGradientBoostingRegressor:
    model = HistGradientBoostingRegressor(
        max_iter=60,
        learning_rate=0.1,
        max_leaf_nodes=15,
        min_samples_leaf=max(5, min(20, len(inputs) // 10)),
        early_stopping=False,
        random_state=int(rng.integers(2**31 - 1)),
    )
    with one_thread():
        return model.fit(inputs, values)
