"""What an adversary that watched every step came to believe, against what it may come to believe at most."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence.calibration import Calibration, calibration
from reticent.evidence.histogram import Histogram, belief_histogram
from reticent.evidence.proportion import clopper_pearson

__all__ = ["Beliefs", "PathPoint", "WatchedEvidence", "measure_beliefs", "path_of"]

POINTS = 60  # of a path that are kept


@dataclass(frozen=True, kw_only=True)
class PathPoint:
    """A quantity over runs after some steps: its 5th, 50th and 95th percentile."""

    step: int
    low: float
    middle: float
    high: float


@dataclass(frozen=True, kw_only=True)
class WatchedEvidence:
    """Beliefs of the adversary that watches, over runs.

    Parameters
    ----------
    runs, steps, size : int
        Trainings that were watched, steps of each, and numbers in a release.
    rate : float
        Probability that the record takes part in a step.
    prior : float
        Belief in the first table before.
    advantage : Estimate
        True minus false positive rate of its final guesses (the more probable table).
    advantage_bound : float
        The most that the stated mechanism allows any adversary.
    belief : float
        A belief in the truth to be exceeded seldom.
    exceeded : Estimate
        Share of runs in which the final belief in the truth exceeds it.
    exceeded_bound : float
        The most that the stated mechanism allows.
    beliefs : Histogram
        Final beliefs in the first table, of runs that used it ("members") and that did not.
    calibration : Calibration
        Whether beliefs come true as often as they say.
    belief_path : tuple of PathPoint
        Belief in the truth over steps.
    sensitivity_path : tuple of PathPoint
        Distance of the two tables' shares over steps, in units of the bound on a share.
    noise : Estimate
        Deviation of the noise over the stated one.
    normality : float
        P-value of the hypothesis that the noise is normal.
    epsilon : Estimate
        Lower bound on epsilon.
    ceiling : float
        About what the bound comes to if all is as stated and every step uses up its bound.
    delta : float
        At which both are stated.
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
    """Return how often the adversary was right, how sure it was, and whether it was sure rightly.

    Parameters
    ----------
    log_odds : array of float, (R, T)
        Of the first table, after every step, at even prior odds.
    first : array of bool, (R,)
        Whether the run used the first table; a fair coin each.
    belief : float
        The belief in the truth of which is counted how often it is exceeded.
    level : float
        Confidence of each interval, in (0, 1).

    Examples
    --------
    >>> odds = np.array([[2.0], [-2.0]] * 50)
    >>> made = measure_beliefs(odds, np.array([True, False] * 50), belief=0.9, level=0.95)
    >>> made.advantage.value, made.exceeded.value
    (1.0, 0.0)
    """
    if log_odds.ndim != 2 or first.shape != (len(log_odds),):
        raise InvalidInput(
            f"log-odds of shape {log_odds.shape} do not fit {first.shape} answers; pass one row a run."
        )
    sign = np.where(first, 1.0, -1.0)
    final = log_odds[:, -1]
    right = (final * sign > 0).sum() + 0.5 * (final == 0).sum()
    share = clopper_pearson(float(right), len(final), level=level)
    # A fair coin chose the table, so the advantage is twice the success less one.
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
        calibration=calibration(
            believed, first, level=level, bins=int(np.clip(len(final) // 40, 2, 10))
        ),
        path=path_of(expit(log_odds * sign[:, None])),
    )


def path_of(values: NDArray[np.float64]) -> tuple[PathPoint, ...]:
    """Return percentiles over runs after steps, at up to 60 steps.

    Parameters
    ----------
    values : array of float, (R, T)
        A quantity after every step of every run.
    """
    steps = values.shape[1]
    some = np.unique(np.linspace(0, steps - 1, min(steps, POINTS)).round().astype(int))
    low, middle, high = np.quantile(values[:, some], [0.05, 0.5, 0.95], axis=0)
    return tuple(
        PathPoint(
            step=int(step) + 1,
            low=round(float(a), 9),
            middle=round(float(b), 9),
            high=round(float(c), 9),
        )
        for step, a, b, c in zip(some, low, middle, high, strict=True)
    )
