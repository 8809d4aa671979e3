"""The neighbours and the classifier of attacks that learn from games between the models of a pool."""

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from reticent.attack.boost import Boosting, LogOdds
from reticent.run import one_thread

__all__ = ["mean_log_odds", "nearest_records"]

# Small trees, because the smooth classifier beside them already follows what is common to all records.
STEPS = Boosting(steps=100, rate=0.06, leaves=8, leaf_share=0.002, leaf_rows=20)
# scikit-learn's default of 100 can end before L-BFGS has converged on inputs and all their products.
MOST_ITERATIONS = 300


def nearest_records(
    features: NDArray[np.float64], count: int, most: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the records that are most like each record, and their distances from it.

    Columns are standardised, and the record itself is left out. Of more than ``most`` records, neighbours are
    sought among a random sample, so that the time grows in proportion to the number of records.
    """
    known = np.isfinite(features)
    total = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, features, 0.0).sum(axis=0) / total
    squares = np.where(known, (features - centre) ** 2, 0.0).sum(axis=0) / total
    spread = np.sqrt(squares)
    scaled = np.where(known, features - centre, 0.0) / np.where(spread > 0, spread, 1)
    n = len(scaled)
    anchors = np.arange(n)
    if n > most:
        anchors = np.sort(rng.choice(n, most, replace=False))
    count = min(count, len(anchors) - 1)
    with one_thread():
        search = NearestNeighbors(n_neighbors=count + 1, algorithm="brute")
        search.fit(scaled[anchors].astype(np.float32))
        apart, places = search.kneighbors(scaled.astype(np.float32))
        near = anchors[places]
    # The record itself is left out, wherever it stands; if it is not among them, the farthest is.
    self_or_last = near == np.arange(n)[:, None]
    self_or_last[~self_or_last.any(axis=1), -1] = True
    return (
        np.asarray(near[~self_or_last].reshape(n, count)),
        np.asarray(apart[~self_or_last].reshape(n, count), dtype=np.float64),
    )


def mean_log_odds(
    inputs: NDArray[np.float64], tags: NDArray[np.bool_], rng: np.random.Generator
) -> LogOdds:
    """Return the mean log-odds of a smooth and a stepwise classifier.

    The smooth classifier orders the extremes, where low false-positive rates are decided; the stepwise one finds
    what no curve follows.
    """
    smooth = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        LogisticRegression(max_iter=MOST_ITERATIONS),
    )
    with one_thread():
        smooth.fit(inputs, tags)
    steps = STEPS.learn(inputs, tags, rng)

    def odds(asked: NDArray[np.float64]) -> NDArray[np.float64]:
        curve = np.asarray(smooth.decision_function(asked), dtype=np.float64)
        return (curve + steps(asked)) / 2

    return odds
