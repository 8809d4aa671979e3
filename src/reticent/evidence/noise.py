r"""A lower bound on epsilon from the noise itself: every step of every run is a sample.

Whoever watches a training knows, at each step, how far apart the two tables' releases lie (the distance of the
shares), and sees the noise along that direction. If the noise is normal with k times the stated deviation, n such
numbers say what k is to about :math:`1/\sqrt{2n}`: the sum of their squares over :math:`k^2` is
:math:`\chi^2_n`. An upper limit on k is a lower limit on :math:`\mu`, the distance over the deviation, and so on
epsilon. Counting how often the adversary is right needs thousands of runs for the same; this needs some dozens.

It assumes that the noise is normal and independent between steps, which :func:`normality` puts to the test, and that the
record takes part as stated. Where these are in doubt, what counts is how often the adversary is right
(:mod:`reticent.evidence.two_sided`), which assumes nothing of the kind.

References
----------
.. [1] Nasr et al., "Tight auditing of differentially private machine learning", arXiv:2302.07956: steps as
   samples, and bounds in the form of a family of trade-off curves.
"""

import math
from collections.abc import Sequence

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

LEVELS = 6  # different lengths of steps told apart under sampling; shorter ones count as the next below
OF_RUNS = (
    0.75  # part of the error that is spent on the share of runs; the noise needs less
)
LOUD = 5.0  # a scale that tells so much drowns what sampled steps tell
CLEAR = 15.0  # a sampled step that tells more counts as this: its loss would fill the memory
HEARD = 0.1  # steps shorter than this share of the longest count as nothing
ROUNDING = 1e-3  # the accountant rounds up by less; a lower bound must not


def noise_level(noise: NDArray[np.float64], *, level: float) -> Estimate:
    """Return the deviation of the noise in units of the stated one, with a two-sided interval.

    Parameters
    ----------
    noise : array of float
        The noise along the direction that tells the tables apart, over its stated deviation: one number a step and run.
    level : float
        Confidence, in (0, 1).

    Examples
    --------
    >>> found = noise_level(np.array([1.0, -1.0] * 500), level=0.95)
    >>> print(found)
    1 [0.96, 1.05]
    """
    flat = noise.ravel()
    if len(flat) < 2:
        raise InvalidInput(
            f"{len(flat)} numbers are too few to say how much noise there is; watch more steps or runs."
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

    Fitting the scale makes the test lean to silence: a small p-value is to be believed, a large one proves nothing.
    """
    flat = noise.ravel()
    scale = math.sqrt(float(np.square(flat).mean()))
    return float(kstest(flat / scale, "norm").pvalue)


def epsilon_of_steps(
    lengths: NDArray[np.float64],
    noise: NDArray[np.float64],
    *,
    scales: NDArray[np.float64] | None = None,
    rate: float,
    relation: Relation,
    delta: float,
    level: float,
) -> Estimate:
    r"""Return an epsilon that the steps exceed with confidence ``level``.

    How far apart the tables lie differs from run to run. If they lie at least so far apart in a share p of all runs, delta at
    any epsilon is at least p times that of the distance: the run in the middle counts, at delta over a lower limit on
    its p. (That distance and noise are independent is taken for granted; the distances of a recipe that keeps its
    bound exceed it in no run.) With full batches the bound has the form of
    Gaussian differential privacy, :math:`\mu^2 = \sum_t (d_t / (k \sigma_t))^2`; with Poisson sampling that of the
    sampled mechanism, in which shorter steps count as the next of a few lengths below, and those beyond 15 deviations as 15.

    Parameters
    ----------
    lengths : array of float, (R, T)
        Distance of the two tables' shares over the stated deviation of the noise.
    noise : array of float
        As in :func:`noise_level`.
    scales : array of float, (R, T), optional
        What the scale of each release tells, in the same units, whether or not the record takes part; 0 by default.
    rate : float
        Probability that the record takes part in a step.
    relation : Relation
        When tables are neighbours. Under ``replace-one`` with sampling the two shares count as opposite and
        equally long, which claims least.
    delta : float
        At which epsilon is stated.
    level : float
        Confidence, in (0, 1).

    Returns
    -------
    Estimate
        ``low`` and ``value`` are the bound; ``high`` is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = epsilon_of_steps(
    ...     np.full((20, 30), 1 / 5.7), rng.standard_normal((20, 30)), rate=1.0,
    ...     relation=Relation.ADD_REMOVE, delta=0.01, level=0.95)
    >>> 1.8 < found.low < 2.198
    True
    """
    miss = (1 - in_open_unit(level, "level")) * (1 - OF_RUNS)
    # Two-sided at twice the error leaves the error above the interval.
    most = noise_level(noise, level=1 - 2 * miss).high
    if scales is None:
        scales = np.zeros_like(lengths)
    squares = np.square(lengths) + np.square(scales)
    run, share = _middle(squares, (1 - level) * OF_RUNS)
    always = math.sqrt(float(np.square(scales[run]).sum()))
    found = _epsilon(
        lengths[run] / most, always, rate, relation, min(delta / share, 0.5)
    )
    return Estimate(
        value=found,
        low=found,
        high=math.inf,
        level=level,
        method=f"noise of {noise.size:,} steps, {'Gaussian form' if rate == 1 else 'form of sampled steps'}",
        covers="trainer",
    )


def ceiling_of_steps(
    lengths: Sequence[float],
    *,
    runs: int,
    samples: int,
    rate: float,
    relation: Relation,
    delta: float,
    level: float,
) -> float:
    """Return what the bound comes to if every step is as long as stated and the noise exactly as stated.

    Parameters
    ----------
    lengths : sequence of float
        The largest distance over deviation that the claim allows, per step.
    runs, samples : int
        Trainings, and steps of all of them.
    rate, relation, delta, level
        As in :func:`epsilon_of_steps`.
    """
    miss = 1 - in_open_unit(level, "level")
    most = math.sqrt(samples / float(chdtri(samples, 1 - miss * (1 - OF_RUNS))))
    share = lower_limit(float(runs), runs, miss * OF_RUNS)
    return _epsilon(
        np.asarray(lengths) / most, 0.0, rate, relation, min(delta / share, 0.5)
    )


def _middle(squares: NDArray[np.float64], miss: float) -> tuple[int, float]:
    """Return the run in the middle, and a lower limit on the share of runs that are as far or farther."""
    sums = squares.sum(axis=1)
    run = int(np.argsort(sums, kind="stable")[(len(sums) - 1) // 2])
    farther = int((sums >= sums[run] * (1 - 1e-6)).sum())
    return run, lower_limit(float(farther), len(sums), miss)


def _epsilon(
    lengths: NDArray[np.float64],
    always: float,
    rate: float,
    relation: Relation,
    delta: float,
) -> float:
    if rate == 1:
        squares = float(np.square(lengths).sum()) + always**2
        return gaussian_epsilon(math.sqrt(squares), delta)
    longest = float(lengths.max(initial=0.0))
    if not longest > 0 or always > LOUD:
        return gaussian_epsilon(always, delta)
    lengths = np.minimum(lengths, CLEAR)
    lengths = lengths[lengths >= HEARD * min(longest, CLEAR)]
    levels = np.unique(np.quantile(lengths, np.arange(LEVELS) / LEVELS, method="lower"))
    reach = 2.0 if relation == Relation.REPLACE else 1.0
    parts: list[tuple[Mechanism, int]] = []
    for own, above in zip(levels, [*levels[1:], math.inf], strict=True):
        step = PrivateTraining(
            noise_multiplier=reach / float(own),
            sampling_rate=rate,
            steps=int(((lengths >= own) & (lengths < above)).sum()),
            relation=relation,
        )
        parts.append((step, 1))
    if always > 0:
        told = Gaussian(noise_multiplier=reach / always, relation=relation)
        parts.append((told, 1))
    whole = parts[0][0] if len(parts) == 1 else Composition(parts=tuple(parts))
    return trade_off(whole).epsilon(delta) * (1 - ROUNDING)
