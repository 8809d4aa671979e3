"""The neighbours and the classifier of attacks that learn from games between the models of a pool."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from reticent.attack._base import Scores
from reticent.attack.boost import Boosting, LogOdds
from reticent.errors import InvalidInput
from reticent.pool import ModelPool, record_blocks
from reticent.run import one_thread

__all__ = [
    "Games",
    "Neighbours",
    "learn_from_games",
    "mean_log_odds",
    "nearest_records",
]

# What is known about some records if a model is the target and the chosen models are its shadows.
EvidenceOf = Callable[[int, NDArray[np.bool_], NDArray[np.int64]], NDArray[np.float64]]

# Small trees, because the smooth classifier beside them already follows what is common to all records.
STEPS = Boosting(steps=100, rate=0.06, leaves=8, leaf_share=0.002, leaf_rows=20)
# scikit-learn's default of 100 can end before L-BFGS has converged on inputs and all their products.
MOST_ITERATIONS = 300


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The records that are most like each of n records.

    Parameters
    ----------
    anchors : array of int
        Records among which neighbours were sought.
    places : array of int, shape (n, k)
        Places of the k nearest among the anchors, the nearest first.
    distance : array of float, shape (n,)
        Mean distance of these k.
    """

    anchors: NDArray[np.int64]
    places: NDArray[np.int32]
    distance: NDArray[np.float64]


def nearest_records(
    features: NDArray[np.float64], count: int, most: int, rng: np.random.Generator
) -> Neighbours:
    """Return the records that are most like each record, and their mean distance from it.

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
    nearest = np.empty((n, count), dtype=np.int32)
    distance = np.empty(n)
    with one_thread():
        search = NearestNeighbors(n_neighbors=count + 1, algorithm="brute")
        search.fit(scaled[anchors].astype(np.float32))
        for its in record_blocks(n):
            apart, places = search.kneighbors(scaled[its].astype(np.float32))
            # The record itself is left out, wherever it stands; if it is not among them, the farthest is.
            others = anchors[places] != np.arange(its.start, its.stop)[:, None]
            others[others.all(axis=1), -1] = False
            nearest[its] = places[others].reshape(-1, count)
            apart = apart[others].reshape(-1, count).astype(np.float64)
            distance[its] = apart.mean(axis=1)
    return Neighbours(anchors=anchors, places=nearest, distance=distance)


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
        mean = np.empty(len(asked))
        for its in record_blocks(len(asked)):
            mean[its] = (smooth.decision_function(asked[its]) + steps(asked[its])) / 2
        return mean

    return odds


@dataclass(frozen=True, kw_only=True)
class Games:
    """What was learned from games between the models of a pool; it can be asked about any product.

    Parameters
    ----------
    odds_of : callable
        From what is known about records to the log-odds of their membership.
    shadows : tuple of array of bool
        The models that are left when a pair of them is left out, once for each pair that played.
    rows : int
        Number of (model, record) pairs that were learned from.
    """

    odds_of: LogOdds
    shadows: tuple[NDArray[np.bool_], ...]
    rows: int

    def judge(
        self, evidence: Callable[[NDArray[np.bool_]], NDArray[np.float64]]
    ) -> Scores:
        """Return the log-odds of membership of all records of a product.

        Parameters
        ----------
        evidence : callable
            Returns what is known about each record if the product is the target and the chosen models are its shadows.
        """
        # The product is judged by as many shadows as in the games, once for each pair that is left out.
        odds = sum(self.odds_of(evidence(shadows)) for shadows in self.shadows)
        odds = np.asarray(odds / len(self.shadows))
        # Games on k records support odds of at most k to one. Larger odds still order the records, but the
        # probabilities claim no more.
        largest = np.log(self.rows)
        return Scores(values=odds, probabilities=expit(odds.clip(-largest, largest)))


def learn_from_games(
    pool: ModelPool,
    evidence: EvidenceOf,
    *,
    most_rows: int,
    most_games: int,
    rng: np.random.Generator,
) -> Games:
    """Let a classifier learn membership from games between the models of a pool, whose members are known.

    Parameters
    ----------
    pool : ModelPool
        The models, which play the target in turn.
    evidence : callable
        Returns what is known about some rows if a model is the target and the chosen models are its shadows.
    most_rows : int
        Largest number of (model, record) pairs to learn from.
    most_games : int
        Largest number of models that play the target.
    rng : numpy.random.Generator
        For the rows, and the classifier.
    """
    n = pool.masks.shape[1]
    each = min(n, most_rows // min(len(pool), most_games))
    inputs, tags = [], []
    games = list(pool.shadows(most=most_games))
    for model, shadows in games:
        rows = rng.choice(n, each, replace=False)
        inputs.append(evidence(model, shadows, rows))
        tags.append(pool.masks[model, rows])
    if not inputs:
        raise InvalidInput(
            f"the attack learns from games between models, but a pool of {len(pool)} leaves no shadows for a target; train at "
            "least 4 models."
        )
    by_pair = {int(pool.pairs[model]): shadows for model, shadows in games}
    return Games(
        odds_of=mean_log_odds(np.concatenate(inputs), np.concatenate(tags), rng),
        shadows=tuple(by_pair.values()),
        rows=sum(map(len, tags)),
    )
