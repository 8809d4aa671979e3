"""The classifier behind attacks that learn: boosted, then calibrated on records it did not see."""

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from reticent._threads import one_thread

__all__ = ["boosted_log_odds"]


def boosted_log_odds(
    learn: NDArray[np.float64],
    tags: NDArray[np.bool_],
    judge: NDArray[np.float64],
    *,
    steps: int,
    rate: float,
    leaves: int,
    smallest_leaf: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Boost on one part, calibrate on the other, and score new records.

    Boosted log-odds are too sure of themselves; a logistic regression of the tags on them,
    learned on records the booster did not see, sets their scale (Platt 1999).

    Parameters
    ----------
    learn, judge : array of float
        What is known of the records to learn from and of those to score.
    tags : array of bool
        Whether each record to learn from was a member.
    steps, rate, leaves, smallest_leaf
        Size of the booster.
    rng : numpy.random.Generator
        For the part that is held back, and the booster.
    """
    held = np.zeros(len(learn), dtype=bool)
    for tag in (False, True):  # a quarter of each, so that both are always there
        its = rng.permutation(np.flatnonzero(tags == tag))
        held[its[::4]] = True
    model = HistGradientBoostingClassifier(
        max_iter=steps,
        learning_rate=rate,
        max_leaf_nodes=leaves,
        min_samples_leaf=smallest_leaf,
        early_stopping=False,
        random_state=int(rng.integers(2**31 - 1)),
    )
    with one_thread():
        model.fit(learn[~held], tags[~held])
        rehearsed = model.decision_function(learn[held])
        judged = model.decision_function(judge)
    scale = LogisticRegression().fit(rehearsed[:, None], tags[held])
    # A negative slope would turn the attack round on noise: the order is the booster's.
    slope = max(float(scale.coef_[0, 0]), 1e-3)
    return np.asarray(slope * judged + float(scale.intercept_[0]))
