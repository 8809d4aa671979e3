"""The gap attacker on regression models: a record that is predicted well was trained on.

References
----------
.. [1] Yeom, Giacomelli, Fredrikson & Jha, "Privacy risk in machine learning: analyzing the
   connection to overfitting", arXiv:1709.01604, Section 3.2.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent.attack._base import Need, Scores
from reticent.attack.regression._base import RegressionChallenge, RegressionKnowledge

__all__ = ["Residual"]


@dataclass(frozen=True, kw_only=True)
class Residual:
    """Guess that a record was trained on if the product predicts it well [1]_.

    The score is minus the absolute error. Dividing it by a spread learned from the record's neighbourhood
    gained nothing on 62 models of 8 tables, so it is left as it is.
    """

    name: str = "residual"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})

    def score(
        self,
        challenge: RegressionChallenge,
        *,
        knowledge: RegressionKnowledge,
        rng: np.random.Generator,
    ) -> Scores:
        """Return minus the absolute error of each record."""
        return Scores(values=-np.abs(challenge.residuals))
