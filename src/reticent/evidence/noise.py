r"""A lower bound on epsilon from the noise itself: every step of every run is a sample.

Whoever watches a training knows, at each step, how far apart the releases of the two tables lie (the distance between
the record's shares), and observes the noise along that direction. If the noise is normal with k times the stated
deviation, n such numbers determine k to about :math:`1/\sqrt{2n}`: the sum of their squares over :math:`k^2` is
:math:`\chi^2_n`. An upper limit on k is a lower limit on :math:`\mu`, the distance over the deviation, and so on
epsilon. Counting how often the adversary is right needs thousands of runs for the same bound; this needs a few dozen.

The method assumes that the noise is normal, independent between steps, the same in all directions, and that
the record takes part as stated: :func:`normality` tests the first along one direction, :func:`~reticent.evidence.check_training` all of them. Where these assumptions are in doubt, count how often the adversary is right
(:mod:`reticent.evidence.two_sided`), which needs none of them.

References
----------
.. [1] Nasr et al., "Tight auditing of differentially private machine learning", arXiv:2302.07956, for steps as
   samples and bounds in the form of a family of trade-off curves.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri
from scipy.stats import kstest

from reticent._check import in_open_unit
from reticent.account import (
    Composition,
    Gaussian,
    Mechanism,
    PrivateTraining,
    Relation,
    gaussian_epsilon,
    trade_off,
)
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence.proportion import lower_limit

__all__ = ["ceiling_of_steps", "epsilon_of_steps", "noise_level", "normality"]

# Under sampling, lengths of steps are rounded down to this many different ones, because each costs a composition.
LEVELS = 6
# Share of the error spent on the share of runs; the many numbers of the noise need less.
ERROR_FOR_RUNS = 0.75
# A scale that reveals more than this mu drowns what the sampled steps reveal, which are then left out.
LOUD_SCALE = 5.0
# A sampled step longer than this many deviations counts as this long: its loss would fill the memory.
LONGEST_STEP = 15.0
# Steps shorter than this share of the longest are left out: they add hardly anything, and leaving them out is safe.
SHORTEST_STEP = 0.1
# The accountant rounds epsilon up by less than this share, and a lower bound must not be rounded up.
ROUNDING = 1e-3


def noise_level(noise: NDArray[np.float64], *, level: float) -> Estimate:
    """Return the deviation of the noise in units of the stated one, with a two-sided interval.

    Parameters
    ----------
    noise : array of float
        The noise along the direction that distinguishes the tables, over its stated deviation: one number per step and run.
    level : float
        Confidence, in (0, 1).

    Examples
    --------
    >>> print(noise_level(np.array([1.0, -1.0] * 500), level=0.95))
    1 [0.95, 1.05]
    """
    flat = noise.ravel()
    if len(flat) < 2:
        raise InvalidInput(
            f"at least 2 numbers are needed to estimate the noise, got {len(flat)}; watch more steps or runs."
        )
    miss = (1 - in_open_unit(level, "level")) / 2
    total = float(np.square(flat).sum())
    low, high = (
        math.sqrt(total / float(chdtri(len(flat), p))) for p in (miss, 1 - miss)
    )
    return Estimate(
        value=math.sqrt(total / len(flat)),
        low=low,
        high=high,
        level=level,
        method=f"chi-square, {len(flat):,} steps",
        covers="trainer",
    )


def normality(noise: NDArray[np.float64]) -> float:
    """Return the p-value of the hypothesis that the noise is normal around 0 (Kolmogorov-Smirnov, scale fitted).

    Fitting the scale makes the test conservative: a small p-value can be trusted, a large one proves nothing.
    """
    flat = noise.ravel()
    scale = math.sqrt(float(np.square(flat).mean()))
    return float(kstest(flat / scale, "norm").pvalue)


def epsilon_of_steps(
    lengths: NDArray[np.float64],
    noise: NDArray[np.float64],
    stated: PrivateTraining,
    *,
    scales: NDArray[np.float64] | None = None,
    delta: float,
    level: float,
) -> Estimate:
    r"""Return an epsilon that the steps exceed with confidence ``level``.

    How far apart the tables lie differs from run to run. If they are at least a given distance apart in a share p of all
    runs, delta at any epsilon is at least p times the delta of that distance. The bound therefore uses the median run, at
    delta divided by a lower limit on its p. (Distance and noise are assumed to be independent; a recipe that keeps its
    bound exceeds it in no run.) With full batches the bound has the form of
    Gaussian differential privacy, :math:`\mu^2 = \sum_t (d_t / (k \sigma_t))^2`; with Poisson sampling it has that of the
    sampled mechanism, in which the length of a step is rounded down to one of a few lengths, and to at most 15 deviations.

    Parameters
    ----------
    lengths : array of float, (R, T)
        Distance between the shares of the two tables over the stated deviation of the noise.
    noise : array of float
        As in :func:`noise_level`.
    stated : PrivateTraining
        The mechanism as it is stated: the probability that the record takes part in a step, and when two tables are
        neighbours. Under ``replace-one`` with sampling, the two shares are taken to be opposite and equally long, which
        gives the smallest bound.
    scales : array of float, (R, T), optional
        What the scale of each release reveals, in the same units, whether or not the record takes part; 0 by default.
    delta : float
        The delta at which epsilon is stated.
    level : float
        Confidence, in (0, 1).

    Returns
    -------
    Estimate
        ``low`` and ``value`` are the bound; ``high`` is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> stated = PrivateTraining(noise_multiplier=5.7, sampling_rate=1.0, steps=30)
    >>> bound = epsilon_of_steps(
    ...     np.full((20, 30), 1 / 5.7), rng.standard_normal((20, 30)), stated, delta=0.01, level=0.95)
    >>> 1.8 < bound.low < 2.198
    True
    """
    miss = (1 - in_open_unit(level, "level")) * (1 - ERROR_FOR_RUNS)
    # A two-sided interval at twice the error has the error above its high end.
    most = noise_level(noise, level=1 - 2 * miss).high
    if scales is None:
        scales = np.zeros_like(lengths)
    squares = np.square(lengths) + np.square(scales)
    run, share = _median_run(squares, (1 - level) * ERROR_FOR_RUNS)
    always = math.sqrt(float(np.square(scales[run]).sum()))
    bound = _epsilon(lengths[run] / most, always, stated, delta, share)
    form = "Gaussian form" if stated.sampling_rate == 1 else "form of sampled steps"
    return Estimate(
        value=bound,
        low=bound,
        high=math.inf,
        level=level,
        method=f"noise of {noise.size:,} steps, {form}",
        covers="trainer",
    )


def ceiling_of_steps(
    stated: PrivateTraining, *, runs: int, samples: int, delta: float, level: float
) -> float:
    """Return the bound for a training in which every step is as long, and the noise exactly as large, as stated.

    Parameters
    ----------
    stated : PrivateTraining
        The mechanism as it is stated.
    runs, samples : int
        Number of trainings, and of steps in all of them together.
    delta, level : float
        As in :func:`epsilon_of_steps`.
    """
    miss = 1 - in_open_unit(level, "level")
    most = math.sqrt(samples / float(chdtri(samples, 1 - miss * (1 - ERROR_FOR_RUNS))))
    share = lower_limit(float(runs), runs, miss * ERROR_FOR_RUNS)
    lengths = np.full(stated.steps, _reach(stated.relation) / stated.noise_multiplier)
    return _epsilon(lengths / most, 0.0, stated, delta, share)


def _reach(relation: Relation) -> float:
    """Return the largest distance between the shares of two tables, in units of the bound on one share."""
    return 2.0 if relation == Relation.REPLACE else 1.0


def _median_run(squares: NDArray[np.float64], miss: float) -> tuple[int, float]:
    """Return the run of median distance, and a lower limit on the share of runs at least as far apart."""
    sums = squares.sum(axis=1)
    # The lower of two middle runs: the smaller distance gives the smaller bound.
    run = int(np.argsort(sums, kind="stable")[(len(sums) - 1) // 2])
    # Runs of equal distance differ by rounding only, and must all count.
    farther = int((sums >= sums[run] * (1 - 1e-6)).sum())
    return run, lower_limit(float(farther), len(sums), miss)


def _epsilon(
    lengths: NDArray[np.float64],
    always: float,
    stated: PrivateTraining,
    delta: float,
    share: float,
) -> float:
    """Return the epsilon of steps so far apart in a share of the runs, at a delta over all runs."""
    if delta >= share:
        return 0.0  # so much delta allows everything in so few runs
    delta /= share
    if stated.sampling_rate == 1:
        squares = float(np.square(lengths).sum()) + always**2
        return gaussian_epsilon(math.sqrt(squares), delta)
    longest = float(lengths.max(initial=0.0))
    if not longest > 0 or always > LOUD_SCALE:
        return gaussian_epsilon(always, delta)
    lengths = np.minimum(lengths, LONGEST_STEP)
    lengths = lengths[lengths >= SHORTEST_STEP * min(longest, LONGEST_STEP)]
    # Rounded down to lengths that occur, so that the bound stays a lower one.
    levels = np.unique(np.quantile(lengths, np.arange(LEVELS) / LEVELS, method="lower"))
    reach = _reach(stated.relation)
    parts: list[tuple[Mechanism, int]] = []
    for length, above in zip(levels, [*levels[1:], math.inf], strict=True):
        step = replace(
            stated,
            noise_multiplier=reach / float(length),
            steps=int(((lengths >= length) & (lengths < above)).sum()),
        )
        parts.append((step, 1))
    if always > 0:
        from_scales = Gaussian(
            noise_multiplier=reach / always, relation=stated.relation
        )
        parts.append((from_scales, 1))
    whole = parts[0][0] if len(parts) == 1 else Composition(parts=tuple(parts))
    return trade_off(whole).epsilon(delta) * (1 - ROUNDING)
