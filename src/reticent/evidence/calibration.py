"""Make predicted probabilities of membership honest, and test whether they come true as often as they say.

References
----------
.. [1] Spiegelhalter, "Probabilistic prediction in patient management and clinical trials",
   Statistics in Medicine 5, 1986.
.. [2] Platt, "Probabilistic outputs for support vector machines", Advances in Large Margin Classifiers, 1999.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtr

from reticent._check import as_scores
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate, split_level
from reticent.evidence.proportion import clopper_pearson

__all__ = ["Calibration", "CalibrationBin", "calibrated_odds", "calibration"]

FOLDS = 5
# Twice the gain in log-likelihood that predictions must bring in every fold: three standard errors. Fewer than one null audit in a
# hundred passes.
LEAST_GAIN = 9.0
LEAST_PROBABILITY = 1e-6  # probabilities nearer to 0 or 1 are not told apart
# Newton's method in two unknowns takes a handful of steps; where members and others are wholly apart it does not end.
MOST_STEPS = 30
RIDGE = 1e-3  # keeps the slope finite where they are apart; nothing beside the information of a hundred people


@dataclass(frozen=True, kw_only=True)
class CalibrationBin:
    """Records with similar predictions: the mean prediction and the share that were members."""

    predicted: float
    observed: Estimate
    records: int


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A calibration curve and a test against the diagonal.

    Parameters
    ----------
    bins : tuple of CalibrationBin
        Bins of about equal size, from the lowest to the highest prediction; their
        intervals hold together.
    p_value : float
        Spiegelhalter's test [1]_ that the predictions are calibrated.
    """

    bins: tuple[CalibrationBin, ...]
    p_value: float


def calibration(
    probabilities: ArrayLike, members: ArrayLike, *, level: float, bins: int = 10
) -> Calibration:
    """Compare predicted probabilities of membership with how often they came true.

    Parameters
    ----------
    probabilities : array-like of float
        Predicted probability of being a member, per record, in [0, 1].
    members : array-like of bool
        Whether the record was a member.
    level : float
        Confidence of the intervals together, in (0, 1).
    bins : int
        Number of bins of about equal size.

    Examples
    --------
    >>> c = calibration([0.2] * 50 + [0.8] * 50, [True] * 10 + [False] * 40
    ...                 + [True] * 40 + [False] * 10, level=0.95, bins=2)
    >>> [(b.predicted, b.observed.value) for b in c.bins]
    [(0.2, 0.2), (0.8, 0.8)]
    >>> c.p_value
    1.0
    """
    p = as_scores(probabilities, "probabilities")
    y = np.asarray(members, dtype=bool)
    if p.min() < 0 or p.max() > 1:
        raise InvalidInput(
            f"predicted probabilities span [{p.min():.3g}, {p.max():.3g}] but must lie in "
            "[0, 1]; turn scores into probabilities first."
        )
    order = np.argsort(p, kind="stable")
    groups = [g for g in np.array_split(order, min(bins, len(p))) if len(g)]
    each = split_level(level, len(groups))
    observed_bins = tuple(
        CalibrationBin(
            predicted=round(float(p[g].mean()), 12),
            observed=clopper_pearson(int(y[g].sum()), len(g), level=each).stated(
                level=level, why=f"joint over {len(groups)} bins"
            ),
            records=len(g),
        )
        for g in groups
    )
    # If the predictions are calibrated, sum((y - p)(1 - 2p)) has mean 0 and variance sum((1-2p)^2 p (1-p)).
    spread = float(np.sqrt(np.sum((1 - 2 * p) ** 2 * p * (1 - p))))
    excess = float(np.sum((y - p) * (1 - 2 * p)))
    if spread == 0:
        p_value = 1.0 if abs(excess) < 1e-9 else 0.0
    else:
        p_value = float(2 * ndtr(-abs(round(excess, 9)) / spread))
    return Calibration(bins=observed_bins, p_value=min(1.0, p_value))


def calibrated_odds(
    probabilities: ArrayLike, members: ArrayLike, *, rng: np.random.Generator
) -> NDArray[np.float64] | None:
    """Return the log-odds of membership at even prior odds that predictions are worth, or None if they are worth nothing.

    A classifier's probabilities claim more than it knows: where nothing leaks they still differ from person to person. So the
    logarithm of the odds is multiplied by a slope and shifted, both learned on other people [2]_ (five folds). Where the
    predictions of any fold say no more about the people outside it than chance does, there is nothing to state.

    Parameters
    ----------
    probabilities : array-like of float
        Predicted probability of being a member, per person, in [0, 1].
    members : array-like of bool
        Whether the person was a member.
    rng : numpy.random.Generator
        For the folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000)
    >>> members = rng.random(2000) < truth
    >>> boasted = truth**3 / (truth**3 + (1 - truth) ** 3)  # three times the log-odds
    >>> odds = calibrated_odds(boasted, members, rng=rng)
    >>> bool(calibration(boasted, members, level=0.95).p_value < 0.001)
    True
    >>> bool(calibration(1 / (1 + np.exp(-odds)), members, level=0.95).p_value > 0.01)
    True
    >>> calibrated_odds(rng.random(2000), members, rng=rng) is None
    True
    """
    p = as_scores(probabilities, "probabilities")
    y = np.asarray(members, dtype=bool)
    x = logit(p.clip(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))
    # Each fold has the same share of members, so that none lacks one side.
    fold = np.empty(len(y), dtype=np.int64)
    for side in (y, ~y):
        fold[side] = rng.permutation(int(side.sum())) % FOLDS
    odds = np.empty(len(y))
    for k in range(FOLDS):
        here, others = fold == k, fold != k
        if y[others].all() or not y[others].any():
            return None
        shift, slope, gain = _platt(x[others], y[others])
        if slope <= 0 or gain < LEAST_GAIN:
            return None
        odds[here] = shift + slope * x[here] - logit(y[others].mean())
    # n people support odds of at most n to one.
    largest = float(np.log(len(y)))
    return odds.clip(-largest, largest)


def _platt(x: NDArray[np.float64], y: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return shift, slope and twice the gain in log-likelihood of a logistic regression on one number."""
    scale = float(x.std()) or 1.0
    centre = float(x.mean())
    design = np.column_stack([np.ones(len(x)), (x - centre) / scale])
    beta = np.array([logit(y.mean()), 0.0])
    for _ in range(MOST_STEPS):
        predicted = expit(design @ beta)
        weight = predicted * (1 - predicted)
        information = design.T @ (design * weight[:, None]) + RIDGE * np.eye(2)
        step = np.linalg.solve(information, design.T @ (y - predicted) - RIDGE * beta)
        # A longer step would leave the region in which the quadratic form is right.
        beta += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < LEAST_PROBABILITY:
            break

    def likelihood(odds: NDArray[np.float64]) -> float:
        return -float(np.logaddexp(0.0, np.where(y, -odds, odds)).sum())

    none = np.full(len(y), logit(y.mean()))
    gain = 2 * (likelihood(design @ beta) - likelihood(none))
    slope = float(beta[1]) / scale
    return float(beta[0]) - slope * centre, slope, gain
