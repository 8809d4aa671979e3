"""Everything a pool tells about a record, and what the product does to similar records, in one attack.

The ingredients are those of the likelihood ratio [1]_ and of the relative ratio [2]_; that they are weighed by a
classifier which learned from games between the pool's own models, and compared with the answers on
neighbours, is ours (docs/decisions/0015).

References
----------
.. [1] Carlini et al., "Membership inference attacks from first principles", arXiv:2112.03570.
.. [2] Zarifzadeh, Liu & Shokri, "Low-cost high-power membership inference attacks", arXiv:2312.03262.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from reticent.attack._base import Challenge, Knowledge, Scores
from reticent.attack._boost import Boosting
from reticent.pool import FLOOR, Pool, logit_of_probability
from reticent.run import one_thread

__all__ = ["CombinedPool"]

STEPS = Boosting(steps=100, rate=0.06, leaves=8, leaf_share=0.002, leaf_rows=20)
Odds = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class CombinedPool:
    """Learn to combine everything a pool, and the answers on similar records, tell about a record.

    Models of the pool play the target, the others are their shadows; a classifier learns from those
    games, whose answers are known, how a record's answer, its distance from the models with and
    without the record, and the same distance at its neighbours add up to membership. What the
    product does to similar records is not this record's doing: it is the part of the distance that
    other training records and chance explain. It never sees a tag of the product's records.

    Parameters
    ----------
    most_rows : int
        Largest number of (model, record) pairs to learn from.
    most_games : int
        Largest number of models that play the target.
    neighbours : tuple of int
        Sizes of the neighbourhoods; without features there are none.
    most_anchors : int
        Largest number of records among which neighbours are sought.
    """

    name: str = "combined_pool"
    most_rows: int = 60_000
    most_games: int = 16
    neighbours: tuple[int, ...] = (3, 10, 30)
    most_anchors: int = 8_000

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the log-odds of membership."""
        pool = knowledge.need_pool(self.name)
        n = len(challenge)
        near = None
        if challenge.features is not None and self.neighbours:
            near = _neighbours(
                challenge.features, max(self.neighbours), self.most_anchors, rng
            )
        each = min(n, self.most_rows // min(len(pool), self.most_games))
        inputs, tags = [], []
        for model, shadows in pool.games(most=self.most_games):
            its = rng.choice(n, each, replace=False)
            answers = pool.probabilities[model].astype(np.float64)
            inputs.append(_evidence(answers, shadows, near, self.neighbours, its))
            tags.append(pool.masks[model, its])
        odds_of = _learn(np.concatenate(inputs), np.concatenate(tags), rng)
        # The product is judged by as many shadows as the games have, once for each pair left out.
        judged, odds = set(), np.zeros(n)
        for model, shadows in pool.games(most=self.most_games):
            if pool.pairs[model] not in judged:
                judged.add(pool.pairs[model])
                odds += odds_of(
                    _evidence(
                        challenge.probabilities,
                        shadows,
                        near,
                        self.neighbours,
                        np.arange(n),
                    )
                )
        odds /= len(judged)
        # So many games can bear out odds of so many to one; what lies beyond orders, and claims no more.
        borne_out = np.log(sum(map(len, tags)))
        return Scores(
            values=odds, probabilities=expit(odds.clip(-borne_out, borne_out))
        )


def _neighbours(
    features: NDArray[np.float64], count: int, most: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the records most like each, itself left out; columns on one scale."""
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
        found = anchors[
            search.kneighbors(scaled.astype(np.float32), return_distance=False)
        ]
    # Leave the record itself out wherever it stands; else the farthest.
    own = found == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(found[~own].reshape(n, count))


def _evidence(
    answers: NDArray[np.float64],
    pool: Pool,
    near: NDArray[np.int64] | None,
    sizes: tuple[int, ...],
    rows: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return what is known of some records when a model with these answers is the target.

    Means only, and no counts: they say the same whatever the size of the pool.
    """
    centre = _centre(pool)
    labels = pool.labels[rows]
    own, expected = answers[rows, labels], centre[rows, labels]
    inside = pool.mean(pool.logits, inside=True)[rows]
    outside = pool.mean(pool.logits, inside=False)[rows]
    others = centre[rows].copy()
    others[np.arange(len(rows)), labels] = -1
    rival = others.argmax(axis=1)
    columns = [
        np.log(own.clip(FLOOR) / expected.clip(FLOOR)),
        logit_of_probability(own) - (inside + outside) / 2,
        inside - outside,
        expected,
        own - expected,
        np.log(answers[rows, rival].clip(FLOOR) / centre[rows, rival].clip(FLOOR)),
        centre[rows, rival],
    ]
    if near is not None:
        at = near[rows]
        shift = answers[at, labels[:, None]] - centre[at, labels[:, None]]
        columns += [shift[:, :size].mean(axis=1) for size in sizes]
    return np.column_stack(columns)


def _centre(pool: Pool) -> NDArray[np.float64]:
    """Return the mean answer of models with and without each record, both sides weighing the same."""
    inside = pool.masks / pool.masks.sum(axis=0)
    outside = ~pool.masks / (~pool.masks).sum(axis=0)
    weights = ((inside + outside) / 2).astype(np.float32)
    mean = np.einsum("mn,mnc->nc", weights, pool.probabilities)
    return np.asarray(mean, dtype=np.float64)


def _learn(
    inputs: NDArray[np.float64], tags: NDArray[np.bool_], rng: np.random.Generator
) -> Odds:
    """Return the mean log-odds of a smooth and a stepwise classifier.

    The smooth one orders the extremes, where low false-positive rates are decided; the steps find what
    no curve does.
    """
    smooth = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        LogisticRegression(max_iter=300),
    )
    with one_thread():
        smooth.fit(inputs, tags)
    steps = STEPS.learn(inputs, tags, rng)

    def odds(asked: NDArray[np.float64]) -> NDArray[np.float64]:
        curve = np.asarray(smooth.decision_function(asked), dtype=np.float64)
        return (curve + steps(asked)) / 2

    return odds
