"""From what was watched or trained to the numbers that the page needs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import expit, ndtr
from scipy.stats import kstest
from scipy.stats import t as student
from settings import BELIEF, DELTA, RECORDS, Cell, Training, recipe_of

from reticent.account import Relation, trade_off
from reticent.attack import log_odds
from reticent.evidence import Estimate, PathPoint
from reticent.pipeline import watched_evidence
from reticent.pool import Trace, Truth

__all__ = [
    "BELIEFS",
    "cell_summary",
    "mean_interval",
    "pooled_summary",
    "training_summary",
]

LEVEL = 0.95
BELIEFS = [
    round(0.5 + 0.01 * k, 2) for k in range(50)
]  # of which shares above are kept
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def cell_summary(cell: Cell, trace: Trace, truth: Truth) -> dict:
    """Return what is said about a cell; every estimate is value, low and high at 95 %."""
    recipe = recipe_of(RECORDS, cell.multiplier, plain=cell.plain)
    stated = recipe.steps(RECORDS, cell.relation)
    if cell.local:  # noise of so many times the distance itself, whatever the relation
        stated = replace(stated, relation=Relation.ADD_REMOVE)
    claimed = trade_off(stated)
    found = watched_evidence(
        trace,
        truth,
        stated=stated,
        delta=DELTA,
        belief=BELIEF,
        level=LEVEL,
    )
    final = log_odds(trace)[:, -1] * np.where(truth.first, 1.0, -1.0)
    believed = expit(final)
    mu = np.sqrt(np.square(trace.lengths).sum(axis=1))
    return {
        "runs": trace.runs,
        "multiplier": cell.multiplier,
        "epsilon_stated": claimed.epsilon(DELTA),
        "advantage": _three(found.advantage),
        "advantage_bound": found.advantage_bound,
        # Given the distances, log-odds are normal: what they imply varies far less than what was counted.
        "advantage_of_distances": mean_interval(2 * ndtr(mu / 2) - 1),
        "mu": mean_interval(mu),
        "exceeded": _three(found.exceeded),
        "exceeded_bound": found.exceeded_bound,
        "exceeded_of_distances": mean_interval(
            ndtr(-(np.log(BELIEF / (1 - BELIEF)) - mu**2 / 2) / mu)
        ),
        "above": [float((believed > b).mean()) for b in BELIEFS],
        "quantiles": np.quantile(believed, QUANTILES).tolist(),
        "belief_path": _path(found.belief_path),
        "distance_path": _path(found.sensitivity_path),
        "distance": np.quantile(trace.distance, QUANTILES).tolist(),
        "distance_mean": float(trace.distance.mean()),
        "epsilon": found.epsilon.low,
        "ceiling": found.ceiling,
        "noise": _three(found.noise),
        "normality": found.normality,
        "calibration": found.calibration.p_value,
        "final": [round(float(value), 6) for value in final[:100]],
    }


def pooled_summary(watched: Sequence[tuple[Trace, Truth]]) -> dict:
    """Return whether all final log-odds are what their distances imply: normal around mu^2 / 2, with deviation mu."""
    made = []
    for trace, truth in watched:
        final = log_odds(trace)[:, -1] * np.where(truth.first, 1.0, -1.0)
        mu = np.sqrt(np.square(trace.lengths).sum(axis=1))
        made.append((final - mu**2 / 2) / mu)
    whole = np.concatenate(made)
    return {
        "runs": len(whole),
        "mean": float(whole.mean() * np.sqrt(len(whole))),  # in standard errors
        "deviation": float(whole.std()),
        "p": float(kstest(whole, "norm").pvalue),
    }


def training_summary(training: Training, correct: dict[int, int]) -> dict:
    """Return the right answers by seed, and the mean accuracy."""
    return {
        "rows": training.rows,
        "noise": training.noise,
        "reach": training.reach,
        "plain": training.plain,
        "correct": {str(seed): correct[seed] for seed in sorted(correct)},
    }


def mean_interval(values: np.ndarray) -> list[float]:
    """Return a mean with its 95 % interval by Student's t; one value has none and counts as its own ends."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return [mean, mean, mean]
    half = student.ppf((1 + LEVEL) / 2, len(values) - 1) * np.std(values, ddof=1)
    half = float(half / np.sqrt(len(values)))
    return [mean, mean - half, mean + half]


def _three(estimate: Estimate) -> list[float]:
    return [estimate.value, estimate.low, estimate.high]


def _path(points: tuple[PathPoint, ...]) -> list[list[float]]:
    return [[p.step, p.low, p.middle, p.high] for p in points]
