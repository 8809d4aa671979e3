"""Let every model of a pool be the target and the others its shadows: many games with known answers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Attack, Challenge, Knowledge, SealedTags
from reticent.pool import Pool

__all__ = ["score_targets"]


def score_targets(
    attack: Attack,
    pool: Pool,
    *,
    challenge_of: Callable[[int], Any] | None = None,
    units: NDArray[np.int64] | None = None,
    most: int = 64,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return which models were targets, and the attack's scores on each in the shape (targets, n).

    Parameters
    ----------
    attack : Attack
        An attack that needs a pool.
    pool : Pool
        At least four models.
    challenge_of : callable, optional
        Returns what attackers are shown of a model, given its place in the pool; by default the answers of a classifier.
    units : array of int, shape (n,), optional
        Unit of each record; by default each record is a unit.
    most : int
        Largest number of targets: the first models of the pool, which come in complementary pairs.
    rng : numpy.random.Generator
        Stream of the attack.

    Examples
    --------
    >>> from reticent.attack import RelativeRatio
    >>> from reticent.pool import balanced_masks
    >>> rng = np.random.default_rng(0)
    >>> masks = balanced_masks(6, np.arange(50), rng=rng)
    >>> p = rng.dirichlet([1, 1], size=masks.shape).astype(np.float32)
    >>> pool = Pool(masks=masks, probabilities=p, labels=np.zeros(50, dtype=int))
    >>> targets, scores = score_targets(RelativeRatio(), pool, rng=rng)
    >>> targets, scores.shape
    (array([0, 1, 2, 3, 4, 5]), (6, 50))
    """
    if units is None:
        units = np.arange(pool.masks.shape[1])
    targets, scores = [], []
    for model, shadows in pool.games(most=most):
        if challenge_of is not None:
            challenge = challenge_of(model)
        else:
            challenge = Challenge(
                probabilities=pool.probabilities[model].astype(np.float64),
                labels=pool.labels,
            )
        knowledge = Knowledge(tags=SealedTags(pool.masks[model], units), pool=shadows)
        scores.append(attack.score(challenge, knowledge=knowledge, rng=rng).values)
        targets.append(model)
    return np.array(targets, dtype=np.int64), np.array(scores)
