"""Shadow models: learn what membership looks like from models whose members are known.

References
----------
.. [1] Shokri, Stronati, Song & Shmatikov, "Membership inference attacks against machine
   learning models", arXiv:1610.05820.
.. [2] O'Dell, "Estimating privacy leakage of machine learning models", thesis, 2023, Section 7.3.2.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Challenge, Knowledge, Need, Scores
from reticent.attack.boost import Boosting, LogOdds, XGBoosting, learn_calibrated
from reticent.attack.learned import outputs_seen
from reticent.pool import Pool

__all__ = ["ShadowModels"]

BOOSTING = Boosting()
LEAST_PER_CLASS = 40  # fewest members, and non-members, to learn one class from: twice the smallest leaf
# Small enough to order records within one step of the boosted trees, and hardly ever across two steps.
TIE_BREAK = 1e-6


@dataclass(frozen=True, kw_only=True)
class ShadowModels:
    """Learn membership from the answers of shadow models, record by record [1]_.

    Parameters
    ----------
    booster : Boosting or XGBoosting
        The attack classifier: gradient boosting of scikit-learn, or XGBoost with 100 trees as in [2]_.
    per_class : bool
        Whether to learn one classifier per class, as in [1]_, or one for all classes, with the class as an input.
    most_rows : int
        Largest number of answers to learn from, drawn at random over models and records.
    """

    name: str = "shadow"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.POOL})
    booster: Boosting | XGBoosting = BOOSTING
    per_class: bool = False
    most_rows: int = 60_000

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the log-odds of membership."""
        pool = knowledge.need_pool(self.name)
        of_class = knowledge.lesson(self.name, lambda: self._learn(pool, rng))
        target = outputs_seen(challenge)
        odds = np.empty(len(challenge))
        for label, odds_of in of_class.items():
            judge = slice(None) if label is None else challenge.labels == label
            odds[judge] = odds_of(target[judge])
        return Scores(values=odds, probabilities=1 / (1 + np.exp(-odds)))

    def _learn(
        self, pool: Pool, rng: np.random.Generator
    ) -> dict[np.int64 | None, LogOdds]:
        """Return what tells members from non-members, by class; the class is None for all together."""
        models, rows = _draw(pool, self.most_rows, rng)
        asked = Challenge(
            probabilities=pool.probabilities[models, rows].astype(np.float64),
            labels=pool.labels[rows],
        )
        tags = pool.masks[models, rows]
        inputs = outputs_seen(asked)
        if not self.per_class:
            return {None: _learn(self.booster, inputs, tags, rng)}
        of_class: dict[np.int64 | None, LogOdds] = {}
        for label in np.unique(pool.labels):
            learn = asked.labels == label
            if min(tags[learn].sum(), (~tags[learn]).sum()) < LEAST_PER_CLASS:
                # The class is too rare to learn from alone, so all classes are used.
                learn = np.ones_like(learn)
            of_class[label] = _learn(self.booster, inputs[learn], tags[learn], rng)
        return of_class


def _draw(
    pool: Pool, most: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the models and the records of (model, record) pairs, drawn uniformly without replacement."""
    m, n = pool.masks.shape
    count = min(most, m * n)
    flat = np.sort(rng.choice(m * n, count, replace=False))
    return flat // n, flat % n


def _learn(
    booster: Boosting | XGBoosting,
    inputs: NDArray[np.float64],
    tags: NDArray[np.bool_],
    rng: np.random.Generator,
) -> LogOdds:
    """Learn from games with known answers, and return what gives the calibrated log-odds of a target's records."""
    odds_of = learn_calibrated(booster, inputs, tags, rng=rng)
    # Boosted trees give steps; within a step the first input, the logit of the true class, orders.
    middle, spread = inputs[:, 0].mean(), inputs[:, 0].std() + 1e-12

    def odds(asked: NDArray[np.float64]) -> NDArray[np.float64]:
        within = TIE_BREAK * (asked[:, 0] - middle) / spread
        return np.asarray(odds_of(asked) + within)

    return odds
