"""The quantile regression attack: ask whether an answer is better than expected for such a record.

References
----------
.. [1] Bertran, Tang, Roth, Kearns, Morgenstern & Wu, "Scalable membership inference attacks via quantile
   regression", arXiv:2307.03694, Section 3; the Gaussian form of its Section 4.1.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from reticent.attack._base import Challenge, Knowledge, Need, Scores
from reticent.data import telling_columns, without_empty_columns
from reticent.errors import InvalidInput
from reticent.pool import Pool, logit_of_truth
from reticent.run import one_thread

__all__ = ["QuantileRegression", "fitted_trees"]

LEAST_SPREAD = 0.05  # of logits; smaller residuals come from the rounding of answers
TREES = (
    60  # of each regression; on small tables they are most of the time of this attack
)


@dataclass(frozen=True, kw_only=True)
class QuantileRegression:
    """Learn from known non-members how well the product answers on similar records [1]_.

    A threshold for each record needs no shadow model: the distribution of the answer's logit given
    the record is learned by regression on records known not to be members, as a normal distribution
    whose mean and spread depend on the record. The score is the standardised residual, so that
    a threshold on it is a quantile of that distribution.

    Parameters
    ----------
    folds : int
        Number of folds; known non-members are those of other folds.
    most_rows : int
        Largest number of records to learn from.
    """

    name: str = "quantile"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.RECORDS})
    folds: int = 3
    most_rows: int = 10_000

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return by how many spreads the answer is better than expected for the record."""
        if challenge.features is None:
            raise InvalidInput(
                f"the attack {self.name!r} learns from the records, but only the answers were passed; pass the features as well."
            )
        records = np.column_stack([challenge.features, challenge.labels])
        phi = logit_of_truth(challenge.probabilities, challenge.labels)
        values = np.zeros(len(challenge))
        for learn, tags, judge in knowledge.tags.folds(self.folds, rng=rng):
            known = learn[~tags]
            if len(known) > self.most_rows:
                known = rng.choice(known, self.most_rows, replace=False)
            inputs = records[:, telling_columns(records[known], phi[known])]
            # Residuals come from records that the regression did not learn from; on the others they would be too small.
            half = rng.permutation(len(known)) % 2 == 0
            residual = np.empty(len(known))
            for here in (half, ~half):
                model = fitted_trees(inputs[known[~here]], phi[known[~here]], rng)
                residual[here] = phi[known[here]] - model.predict(inputs[known[here]])
            log_size = np.log(np.abs(residual) + LEAST_SPREAD)
            mean = fitted_trees(inputs[known], phi[known], rng)
            spread = fitted_trees(inputs[known], log_size, rng)
            values[judge] = (phi[judge] - mean.predict(inputs[judge])) / np.exp(
                spread.predict(inputs[judge])
            )
        return Scores(values=values)


def fitted_trees(
    inputs: NDArray[np.float64],
    values: NDArray[np.float64],
    rng: np.random.Generator,
    *,
    quantile: float | None = None,
) -> HistGradientBoostingRegressor:
    """Return boosted trees that predict the mean of some values, or one of their quantiles."""
    model = HistGradientBoostingRegressor(
        loss="squared_error" if quantile is None else "quantile",
        quantile=quantile,
        max_iter=TREES,
        learning_rate=0.1,
        max_leaf_nodes=15,
        min_samples_leaf=max(5, min(20, len(inputs) // 10)),
        early_stopping=False,
        random_state=int(rng.integers(2**31 - 1)),
    )
    with one_thread():
        return model.fit(without_empty_columns(inputs), values)
