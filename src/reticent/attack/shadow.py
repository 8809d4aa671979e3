"""Shadow models: learn from models whose members are known what membership looks like.

References
----------
.. [1] Shokri, Stronati, Song & Shmatikov, "Membership inference attacks against machine
   learning models", arXiv:1610.05820.
.. [2] O'Dell, "Estimating privacy leakage of machine learning models", thesis, 2023, Section 7.3.2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Challenge, Knowledge, Scores
from reticent.attack._boost import Boosting, XGBoosting, calibrated_log_odds
from reticent.attack.learned import outputs_seen
from reticent.pool import Pool

__all__ = ["ShadowModels"]

BOOSTING = Boosting()
LEAST_PER_CLASS = 40  # members and non-members a classifier of one class needs


@dataclass(frozen=True, kw_only=True)
class ShadowModels:
    """Learn membership from the answers of shadow models, record by record [1]_.

    Parameters
    ----------
    booster : Boosting or XGBoosting
        The attack classifier: gradient boosting of scikit-learn, or XGBoost with 100 trees as in [2]_.
    per_class : bool
        One classifier for each class, as in [1]_, or one for all to which the class is an input.
    most_rows : int
        Largest number of answers to learn from, drawn over models and records.
    """

    name: str = "shadow"
    booster: Boosting | XGBoosting = BOOSTING
    per_class: bool = False
    most_rows: int = 60_000

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the log-odds of membership."""
        pool = knowledge.need_pool(self.name)
        models, rows = _draw(pool, self.most_rows, rng)
        asked = Challenge(
            probabilities=pool.probabilities[models, rows].astype(np.float64),
            labels=pool.labels[rows],
        )
        tags = pool.masks[models, rows]
        seen, target = outputs_seen(asked), outputs_seen(challenge)
        if not self.per_class:
            odds = _learn(self.booster, seen, tags, target, rng)
        else:
            odds = np.empty(len(challenge))
            for label in np.unique(challenge.labels):
                its, own = asked.labels == label, challenge.labels == label
                if min(tags[its].sum(), (~tags[its]).sum()) < LEAST_PER_CLASS:
                    its = np.ones_like(its)  # a class too rare to learn from alone
                odds[own] = _learn(self.booster, seen[its], tags[its], target[own], rng)
        return Scores(values=odds, probabilities=1 / (1 + np.exp(-odds)))


def _draw(
    pool: Pool, most: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return models and records of a random set of (model, record) pairs, evenly drawn."""
    m, n = pool.masks.shape
    count = min(most, m * n)
    flat = np.sort(rng.choice(m * n, count, replace=False))
    return flat // n, flat % n


def _learn(
    booster: Boosting | XGBoosting,
    inputs: NDArray[np.float64],
    tags: NDArray[np.bool_],
    asked: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Learn from known games and return calibrated log-odds of the target's records."""
    odds = calibrated_log_odds(booster, inputs, tags, asked, rng=rng)
    # Boosting ends in steps: the first input, a likelihood ratio or logit, orders within them.
    fine = inputs[:, 0]
    return np.asarray(odds + 1e-6 * (asked[:, 0] - fine.mean()) / (fine.std() + 1e-12))
