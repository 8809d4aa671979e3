"""Pairs chosen one after another, where the current model is worst. Where the noise leaves room for more than a tree.

The idea is that of AIM (McKenna, Mullins, Sheldon & Miklau, VLDB 2022), with pairs alone and the score of a tree.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.train.marginals.graphs import affordable
from reticent.train.marginals.junction import Junction
from reticent.train.marginals.noise import Noise
from reticent.train.marginals.pairs import Binned, Pair, counts_of_pairs
from reticent.train.marginals.plausible import Measured, fitted

__all__ = ["Network", "Spending", "fit_adaptive"]

Array = NDArray[np.float64]
MOST_CELLS = (
    100_000  # of a junction tree: a millisecond or two for each step of the fit
)
# Parts of the noise to which a fit is exact: while pairs are chosen, where 0.3 gave no better tables of Adult and Framingham, and at the end, where 0.1 takes longer and hardly changes tables of Adult,
# Diabetes and Framingham (decision 0046).
ROUGHLY, FINELY = 0.5, 0.2
# Pairs that are chosen before the model is fitted again: two take three quarters of the time of one, three another sixth less from 8,000 rows on, and models learn as much from the table (decision 0046).
CHOSEN_AT_ONCE = 3
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
    """The distribution that the measured marginals make most plausible."""

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
    purse = _Purse(spending)
    measured: list[Measured] = list(margins)
    known: list[Pair] = []
    tree = Junction.of(data.sizes, [])
    theta = {
        m.factor: _start(m, np.full(m.counts.shape, total / m.counts.size))
        for m in margins
    }
    theta, beliefs = fitted(tree, measured, theta, total=total, precision=ROUGHLY)
    rows = round(min(total, MOST_SAMPLED))
    while purse.has_more:
        # Which pairs may be chosen follows from earlier choices alone.
        pairs = affordable(data.sizes, known, data.pairs, most=MOST_CELLS)
        sample = tree.sample(beliefs, rows, rng)
        counts = counts_of_pairs(sample, pairs, data.sizes)
        expected: dict[Pair, Array] = {
            pair: np.float64(total / rows) * counts[pair] for pair in pairs
        }
        # All choices before the next fit are made by the same scores: what they expect is the same, and so is the noise.
        each = data.scores(pairs, [expected[pair] for pair in pairs], purse.deviation)
        scores = dict(zip(pairs, each.tolist(), strict=True))
        heard: dict[Pair, Measured] = {}
        while purse.has_more and len(heard) < CHOSEN_AT_ONCE:
            if heard:
                others = [pair for pair in pairs if pair not in heard]
                pairs = affordable(data.sizes, known, others, most=MOST_CELLS)
            if not pairs:
                break
            asked = np.array([scores[pair] for pair in pairs])
            pair = pairs[noise.choose(asked, spending.epsilon)]
            deviation = purse.spend()
            noisy = noise.on_counts(data.counts(pair), deviation)
            heard[pair] = Measured(pair, noisy, deviation**2)
            if pair not in known:
                theta[pair] = _start(heard[pair], expected[pair])
            known.append(pair)
        if not heard:
            break
        measured += heard.values()
        tree = Junction.of(data.sizes, known)
        precision = ROUGHLY if purse.has_more else FINELY
        theta, beliefs = fitted(tree, measured, theta, total=total, precision=precision)
        if all(
            _is_noise(total * tree.marginal(beliefs, pair) - expected[pair], deviation)
            for pair in heard
        ):
            purse.deviation /= 2
    if purse.has_more:  # but no pair could be afforded
        _, beliefs = fitted(tree, measured, theta, total=total, precision=FINELY)
    return Network(tree=tree, beliefs=tuple(beliefs))


def _start(measured: Measured, expected: Array) -> Array:
    """Return the potentials that lead from expected to measured counts if no other factor has a say: a fit that begins there has fewer steps."""
    # Less than the noise is not told from nothing.
    least = np.sqrt(np.maximum(measured.variances, 1.0))
    ratio = np.maximum(measured.counts, least) / np.maximum(expected, least)
    return np.asarray(np.log(ratio))


class _Purse:
    """What is left of the budget while pairs are chosen.

    Parameters
    ----------
    spending : Spending
        The budget.
    """

    def __init__(self, spending: Spending) -> None:
        self.choices, self.mu_squared = spending.choices, spending.mu_squared
        self.deviation = math.sqrt(self.choices / self.mu_squared)

    @property
    def has_more(self) -> bool:
        """Whether another pair can be chosen and measured."""
        return self.choices > 0 and self.mu_squared > 0

    def spend(self) -> float:
        """Pay for one pair, and return the deviation of its measurement.

        The last one takes what is left, as does one after which too little for another would remain.
        """
        self.choices -= 1
        if self.choices == 0 or self.mu_squared < 2 / self.deviation**2:
            self.deviation = 1 / math.sqrt(self.mu_squared)
            self.mu_squared = 0.0
        else:
            self.mu_squared -= 1 / self.deviation**2
        return self.deviation


def _is_noise(change: Array, deviation: float) -> bool:
    """Whether a measurement has changed the model by no more than its noise alone would."""
    expected = math.sqrt(2 / math.pi) * deviation * change.size
    return float(np.abs(change).sum()) <= expected
