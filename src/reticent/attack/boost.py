"""The classifiers of attacks that learn: boosted, then calibrated on records that they did not see."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from reticent.errors import InvalidInput
from reticent.run import one_thread

__all__ = [
    "Boosting",
    "LogOdds",
    "XGBoosting",
    "calibrated_log_odds",
    "learn_calibrated",
]

LogOdds = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# One record in four is held back for calibration: two parameters need few, and the booster needs the rest.
HELD_BACK = 4
# A slope of zero or less would reverse the order of the booster, or lose it, because of noise.
SMALLEST_SLOPE = 1e-3


@dataclass(frozen=True, kw_only=True)
class Boosting:
    """Gradient boosting of scikit-learn.

    Parameters
    ----------
    steps, leaves : int
        Number of trees, and largest number of leaves of each.
    rate : float
        Learning rate.
    leaf_share : float
        Smallest share of the records in a leaf.
    leaf_rows : int
        Smallest number of records in a leaf.
    """

    steps: int = 150
    rate: float = 0.06
    leaves: int = 31
    leaf_share: float = 0.002
    leaf_rows: int = 20

    def learn(
        self,
        inputs: NDArray[np.float64],
        tags: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> LogOdds:
        """Return a function from inputs to the log-odds of a tag."""
        model = HistGradientBoostingClassifier(
            max_iter=self.steps,
            learning_rate=self.rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=max(self.leaf_rows, int(self.leaf_share * len(inputs))),
            # It would hold back records at random, and the number of trees would depend on them.
            early_stopping=False,
            random_state=int(rng.integers(2**31 - 1)),
        )
        with one_thread():
            model.fit(inputs, tags)

        def odds(asked: NDArray[np.float64]) -> NDArray[np.float64]:
            with one_thread():
                return np.asarray(model.decision_function(asked), dtype=np.float64)

        return odds


@dataclass(frozen=True, kw_only=True)
class XGBoosting:
    """XGBoost with its default parameters (100 trees); needs the extra ``xgboost``.

    Parameters
    ----------
    trees : int
        Number of trees.
    """

    trees: int = 100

    def learn(
        self,
        inputs: NDArray[np.float64],
        tags: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> LogOdds:
        """Return a function from inputs to the log-odds of a tag."""
        try:
            from xgboost import XGBClassifier
        except ImportError as error:
            raise InvalidInput(
                "the attack classifier is XGBoost, which is not installed; install reticent[xgboost]."
            ) from error
        model = XGBClassifier(
            n_estimators=self.trees,
            # The last digits depend on the number of threads.
            n_jobs=1,
            random_state=int(rng.integers(2**31 - 1)),
        ).fit(inputs, tags)

        def odds(asked: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(
                model.predict(asked, output_margin=True), dtype=np.float64
            )

        return odds


def calibrated_log_odds(
    booster: Boosting | XGBoosting,
    learn: NDArray[np.float64],
    tags: NDArray[np.bool_],
    judge: NDArray[np.float64],
    *,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the calibrated log-odds of new records; see :func:`learn_calibrated`."""
    return learn_calibrated(booster, learn, tags, rng=rng)(judge)


def learn_calibrated(
    booster: Boosting | XGBoosting,
    learn: NDArray[np.float64],
    tags: NDArray[np.bool_],
    *,
    rng: np.random.Generator,
) -> LogOdds:
    """Boost on one part, calibrate on the other, and return a function that scores new records.

    Boosted log-odds are overconfident; a logistic regression of the tags on them, learned from
    records that the booster did not see, sets their scale (Platt 1999).

    Parameters
    ----------
    booster : Boosting or XGBoosting
        The classifier.
    learn : array of float
        The inputs of the records to learn from.
    tags : array of bool
        Whether each record to learn from was a member.
    rng : numpy.random.Generator
        For the part that is held back, and the booster.
    """
    held = np.zeros(len(learn), dtype=bool)
    for tag in (False, True):  # the same share of each, so that both are always there
        shuffled = rng.permutation(np.flatnonzero(tags == tag))
        held[shuffled[::HELD_BACK]] = True
    odds = booster.learn(learn[~held], tags[~held], rng)
    scale = LogisticRegression().fit(odds(learn[held])[:, None], tags[held])
    slope = max(float(scale.coef_[0, 0]), SMALLEST_SLOPE)
    intercept = float(scale.intercept_[0])
    return lambda asked: np.asarray(slope * odds(asked) + intercept)
