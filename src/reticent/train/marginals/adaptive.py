"""Pairs chosen one after another, where the current model is worst. For large tables.

The idea is that of AIM (McKenna, Mullins, Sheldon & Miklau, VLDB 2022), with pairs alone and the score of a tree.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.train.marginals.junction import (
    Factor,
    Junction,
    Measured,
    cells_of,
    fitted,
)
from reticent.train.marginals.noise import Noise
from reticent.train.marginals.pairs import Binned, Pair, pair_counts

__all__ = ["Network", "Spending", "fit_adaptive"]

Array = NDArray[np.float64]
MOST_CELLS = 200_000  # of a junction tree: some milliseconds for each step of the fit
ROUNDS, LAST_ROUNDS = 30, 300  # steps of the fit after each measurement, and at the end
MOST_SAMPLED = 50_000  # rows of the sample against which pairs are scored


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What the rounds may spend.

    Parameters
    ----------
    choices : int
        Most rounds.
    epsilon : float
        Of the choice in each round.
    mu_squared : float
        The sum of 1 / deviation^2 over all measurements, which is never exceeded.
    """

    choices: int
    epsilon: float
    mu_squared: float


@dataclass(frozen=True, kw_only=True)
class Network:
    """The distribution of greatest entropy with the measured marginals."""

    tree: Junction
    beliefs: tuple[Array, ...]

    def sample(self, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return bins of new rows, shape (rows, d)."""
        return self.tree.sample(self.beliefs, rows, rng)


def fit_adaptive(
    data: Binned,
    margins: tuple[Measured, ...],
    noise: Noise,
    spending: Spending,
    *,
    total: float,
    rng: np.random.Generator,
) -> Network:
    """Choose, measure and fit pairs until the budget is spent.

    The deviation of each measurement depends on earlier results, but the sum of 1 / deviation^2 is bounded; Gaussian mechanisms
    compose exactly, so whatever was spent by a round, what remains is that of one Gaussian mechanism with the rest of the sum.

    Parameters
    ----------
    data : Binned
        The records.
    margins : tuple of Measured
        Noisy counts of each column's bins, which have been paid for.
    noise : Noise
        The source of noise.
    spending : Spending
        The budget.
    total : float
        Estimated number of records.
    rng : numpy.random.Generator
        Randomness of samples of the model, which protects nobody.
    """
    measured: list[Measured] = list(margins)
    theta: dict[Factor, Array] = {}
    tree = Junction.of(data.sizes, [])
    theta = fitted(tree, measured, theta, total=total, rounds=ROUNDS)
    left = spending.mu_squared
    deviation = math.sqrt(spending.choices / left)
    rows = round(min(total, MOST_SAMPLED))
    for number in range(spending.choices):
        pairs = _allowed(data, measured)
        if not pairs or left <= 0:
            break
        sample = tree.sample(tree.beliefs(theta), rows, rng)
        expected = [
            np.asarray(
                pair_counts(sample, pair, data.sizes) * (total / rows), dtype=np.float64
            )
            for pair in pairs
        ]
        scores = data.scores(pairs, expected, deviation)
        pair = pairs[noise.choose(scores, spending.epsilon)]
        # The last round takes what is left, as does one after which too little for another would remain.
        if number == spending.choices - 1 or left < 2 / deviation**2:
            deviation = 1 / math.sqrt(left)
            left = 0.0
        else:
            left -= 1 / deviation**2
        noisy = noise.on_counts(data.counts(pair), deviation)
        before = expected[pairs.index(pair)]
        measured.append(Measured(pair, noisy, deviation**2))
        known = [m.factor for m in measured if len(m.factor) == 2]
        tree = Junction.of(data.sizes, known)
        theta = fitted(tree, measured, theta, total=total, rounds=ROUNDS)
        after = total * tree.marginal(tree.beliefs(theta), pair)
        silent = math.sqrt(2 / math.pi) * deviation * noisy.size
        if np.abs(after - before).sum() <= silent:
            deviation /= 2
    theta = fitted(tree, measured, theta, total=total, rounds=LAST_ROUNDS)
    return Network(tree=tree, beliefs=tuple(tree.beliefs(theta)))


def _allowed(data: Binned, measured: list[Measured]) -> list[Pair]:
    """Return the pairs that may be chosen: which they are follows from earlier choices alone."""
    known = [m.factor for m in measured if len(m.factor) == 2]
    allowed = []
    for pair in data.pairs:
        if pair in known or cells_of(data.sizes, [*known, pair]) <= MOST_CELLS:
            allowed.append(pair)
    return allowed
