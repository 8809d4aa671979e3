"""Shadow models: learn from models whose members are known what membership looks like.

References
----------
.. [1] Shokri, Stronati, Song & Shmatikov, "Membership inference attacks against machine
   learning models", arXiv:1610.05820.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Challenge, Knowledge, Scores
from reticent.attack._boost import boosted_log_odds
from reticent.attack._pool import Pool, logit_of_probability
from reticent.attack.learned import outputs_seen
from reticent.attack.rmia import relative_ratio

__all__ = ["CombinedPool", "ShadowModels"]


@dataclass(frozen=True, kw_only=True)
class ShadowModels:
    """Learn membership from the answers of shadow models, record by record [1]_.

    One classifier for all classes; the class is one of its inputs.

    Parameters
    ----------
    most_rows : int
        Largest number of answers to learn from, drawn over models and records.
    """

    name: str = "shadow"
    most_rows: int = 60_000

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the log-odds of membership."""
        pool = knowledge.need_pool(self.name)
        models, rows = _draw(pool, self.most_rows, rng)
        asked = Challenge(
            probabilities=_rows_of(pool, models, rows), labels=pool.labels[rows]
        )
        odds = _learn(
            outputs_seen(asked), pool.masks[models, rows], outputs_seen(challenge), rng
        )
        return Scores(values=odds, probabilities=1 / (1 + np.exp(-odds)))


@dataclass(frozen=True, kw_only=True)
class CombinedPool:
    """Learn to combine everything a pool tells about a record.

    Every model of the pool plays the target once, the others are its shadows; a classifier
    learns from those games, whose answers are known, how the answer, its distance from the models
    with and without the record, and their spread add up to membership. It never sees a tag of
    the product's records.

    Parameters
    ----------
    most_rows : int
        Largest number of (model, record) pairs to learn from.
    """

    name: str = "combined_pool"
    most_rows: int = 60_000

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the log-odds of membership."""
        pool = knowledge.need_pool(self.name)
        models, rows = _draw(pool, self.most_rows, rng)
        inputs, tags = [], []
        for model, shadows in pool.games():
            its = rows[models == model]
            seen = _evidence(pool.truth[model], shadows)
            inputs.append(seen[its])
            tags.append(pool.masks[model, its])
        target = _evidence(challenge.true_class_probability(), pool)
        odds = _learn(np.concatenate(inputs), np.concatenate(tags), target, rng)
        return Scores(values=odds, probabilities=1 / (1 + np.exp(-odds)))


def _evidence(observed: NDArray[np.float64], pool: Pool) -> NDArray[np.float64]:
    """Return what is known of each record when a model with these answers is the target.

    Means only, and spreads common to all records: they mean the same for a pool of any size.
    """
    phi = logit_of_probability(observed)
    inside = pool.mean(pool.logits, inside=True)
    outside = pool.mean(pool.logits, inside=False)
    gap = inside - outside
    return np.column_stack(
        [
            np.log(relative_ratio(observed, pool)),
            (phi - (inside + outside) / 2) * gap,
            phi,
            phi - outside,
            phi - inside,
            gap,
            outside,
            pool.mean(pool.truth, inside=False),
        ]
    )


def _draw(
    pool: Pool, most: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return models and records of a random set of (model, record) pairs, evenly drawn."""
    m, n = pool.masks.shape
    count = min(most, m * n)
    flat = np.sort(rng.choice(m * n, count, replace=False))
    return flat // n, flat % n


def _rows_of(
    pool: Pool, models: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    return pool.probabilities[models, rows].astype(np.float64)


def _learn(
    inputs: NDArray[np.float64],
    tags: NDArray[np.bool_],
    asked: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Learn from known games and return calibrated log-odds of the target's records."""
    odds = boosted_log_odds(
        inputs,
        tags,
        asked,
        steps=150,
        rate=0.06,
        leaves=31,
        smallest_leaf=max(20, len(inputs) // 500),
        rng=rng,
    )
    # Boosting ends in steps: the first input, a likelihood ratio or logit, orders within them.
    fine = inputs[:, 0]
    return np.asarray(odds + 1e-6 * (asked[:, 0] - fine.mean()) / (fine.std() + 1e-12))
