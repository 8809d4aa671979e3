"""The beliefs of an adversary that watched every step, compared with what the guarantee allows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence.calibration import Calibration, calibration
from reticent.evidence.checks import Check
from reticent.evidence.histogram import Histogram, belief_histogram
from reticent.evidence.proportion import clopper_pearson

__all__ = ["Beliefs", "PathPoint", "WatchedEvidence", "measure_beliefs", "path_of"]

POINTS = 60  # steps of a path that are stored: a smooth curve in a small dossier


@dataclass(frozen=True, kw_only=True)
class PathPoint:
    """The 5th, 50th and 95th percentile over runs of a quantity after some step."""

    step: int
    low: float
    middle: float
    high: float


@dataclass(frozen=True, kw_only=True)
class WatchedEvidence:
    """What the adversary that watches came to believe, over runs.

    Parameters
    ----------
    runs, steps, size : int
        Number of watched trainings, of steps in each, and of numbers in a release.
    rate : float
        Probability that the record takes part in a step.
    prior : float
        Belief in the first table before the training.
    advantage : Estimate
        True-positive minus false-positive rate of the final guesses (the more probable table).
    advantage_bound : float
        The largest advantage that the stated mechanism allows any adversary.
    belief : float
        A belief in the truth that should rarely be exceeded.
    exceeded : Estimate
        Share of runs in which the final belief in the truth exceeds it.
    exceeded_bound : float
        The largest such share that the stated mechanism allows.
    beliefs : Histogram
        Final beliefs in the first table, of runs that used it ("members") and of runs that did not.
    calibration : Calibration
        Whether beliefs come true as often as they say.
    belief_path : tuple of PathPoint
        Belief in the truth over steps.
    sensitivity_path : tuple of PathPoint
        Distance between the shares of the two tables over steps, in units of the bound on a share.
    noise : Estimate
        Deviation of the noise over the stated one.
    normality : float
        P-value of the hypothesis that the noise is normal.
    epsilon : Estimate
        Lower bound on epsilon.
    ceiling : float
        About the lower bound if everything is as stated and every step uses its whole sensitivity bound.
    delta : float
        The delta at which ``epsilon`` and ``ceiling`` are stated.
    checks : tuple of Check
        What is stated of the training, put to the test: the record's share, the noise, who takes part.
    trusted : tuple of str
        What no check can see, and is taken on trust.
    """

    runs: int
    steps: int
    size: int
    rate: float
    prior: float
    advantage: Estimate
    advantage_bound: float
    belief: float
    exceeded: Estimate
    exceeded_bound: float
    beliefs: Histogram
    calibration: Calibration
    belief_path: tuple[PathPoint, ...]
    sensitivity_path: tuple[PathPoint, ...]
    noise: Estimate
    normality: float
    epsilon: Estimate
    ceiling: float
    delta: float
    checks: tuple[Check, ...] = ()
    trusted: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Beliefs:
    """The part of the evidence that follows from beliefs alone."""

    advantage: Estimate
    exceeded: Estimate
    beliefs: Histogram
    calibration: Calibration
    path: tuple[PathPoint, ...]


def measure_beliefs(
    log_odds: NDArray[np.float64],
    first: NDArray[np.bool_],
    *,
    belief: float,
    level: float,
) -> Beliefs:
    """Return how often the adversary was right, how sure it was, and whether its beliefs are calibrated.

    Parameters
    ----------
    log_odds : array of float, (R, T)
        Log-odds of the first table after every step, at even prior odds.
    first : array of bool, (R,)
        Whether each run used the first table, decided by a fair coin.
    belief : float
        The function counts how often the belief in the truth exceeds this value.
    level : float
        Confidence of each interval, in (0, 1).

    Examples
    --------
    >>> odds = np.array([[2.0], [-2.0]] * 50)
    >>> beliefs = measure_beliefs(odds, np.array([True, False] * 50), belief=0.9, level=0.95)
    >>> beliefs.advantage.value, beliefs.exceeded.value
    (1.0, 0.0)
    """
    if log_odds.ndim != 2 or first.shape != (len(log_odds),):
        raise InvalidInput(
            f"log-odds of shape {log_odds.shape} do not fit answers of shape {first.shape}; pass one row and one answer per run."
        )
    sign = np.where(first, 1.0, -1.0)
    final = log_odds[:, -1]
    right = (final * sign > 0).sum() + 0.5 * (final == 0).sum()
    share = clopper_pearson(float(right), len(final), level=level)
    # A fair coin chose the table, so the advantage is twice the success rate minus one.
    advantage = Estimate(
        value=2 * share.value - 1,
        low=2 * share.low - 1,
        high=2 * share.high - 1,
        level=level,
        method=f"Clopper-Pearson, {len(final):,} runs",
        covers="trainer",
    )
    in_truth = expit(final * sign)
    exceeded = clopper_pearson(int((in_truth > belief).sum()), len(final), level=level)
    believed = expit(final)
    return Beliefs(
        advantage=advantage,
        exceeded=exceeded,
        beliefs=belief_histogram(believed[first], believed[~first]),
        # About forty runs per bin, so that the interval of a bin is narrow enough to show a bad calibration.
        calibration=calibration(
            believed, first, level=level, bins=int(np.clip(len(final) // 40, 2, 10))
        ),
        path=path_of(expit(log_odds * sign[:, None])),
    )


def path_of(values: NDArray[np.float64]) -> tuple[PathPoint, ...]:
    """Return percentiles over runs, at up to 60 steps.

    Parameters
    ----------
    values : array of float, (R, T)
        A quantity after every step of every run.
    """
    steps = values.shape[1]
    places = np.linspace(0, steps - 1, min(steps, POINTS)).round().astype(int)
    shown = np.unique(places)
    low, middle, high = np.quantile(values[:, shown], [0.05, 0.5, 0.95], axis=0)
    return tuple(
        PathPoint(
            step=int(step) + 1,
            low=round(float(a), 9),
            middle=round(float(b), 9),
            high=round(float(c), 9),
        )
        for step, a, b, c in zip(shown, low, middle, high, strict=True)
    )
