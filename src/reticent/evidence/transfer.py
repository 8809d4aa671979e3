r"""Train on synthetic, test on real: what a model loses if it learns from a synthetic table.

Models are trained elsewhere; here are their scores of real test records. The area under the ROC curve (AUC) and under the precision-recall curve (AUPRC,
average precision) are compared record by record, so that what makes a record hard for both models cancels.

References
----------
.. [1] Esteban, Hyland and Rätsch, "Real-valued (medical) time series generation with recurrent conditional GANs", arXiv:1706.02633.
.. [2] Davis and Goadrich, "The relationship between precision-recall and ROC curves", ICML 2006.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent._check import in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence._resampling import around
from reticent.evidence.proportion import clopper_pearson
from reticent.evidence.vulnerability import vulnerability

__all__ = [
    "PositiveRates",
    "Transfer",
    "areas",
    "compare_positive_rates",
    "compare_transfer",
]

BLOCK = 2**18  # weights that are ranked at once: arrays of two megabytes
RESAMPLES = 200  # of the test people; their standard deviation is then known to 5 %
METHOD = "bootstrap over people"


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """What one kind of model reaches on real test records, trained on real and trained on synthetic records.

    Parameters
    ----------
    auc_real, auc_synthetic : Estimate
        Area under the ROC curve; for several classes, the mean of each class against the others.
    auc_loss : Estimate
        The first minus the second, paired by record.
    ap_real, ap_synthetic, ap_loss : Estimate
        The same for average precision. Without skill it is the share of the class.
    tables : int
        Generated tables over which the values are means. With several, the intervals cover generating again.
    """

    auc_real: Estimate
    auc_synthetic: Estimate
    auc_loss: Estimate
    ap_real: Estimate
    ap_synthetic: Estimate
    ap_loss: Estimate
    tables: int


@dataclass(frozen=True, kw_only=True)
class PositiveRates:
    """Share of one class in the real and in the synthetic table.

    Parameters
    ----------
    real, synthetic : Estimate
        The shares.
    difference : Estimate
        Synthetic minus real. A model may rank well after training on a table with hardly any positive rows, and yet be useless.
    """

    real: Estimate
    synthetic: Estimate
    difference: Estimate


def compare_positive_rates(
    real: ArrayLike, synthetic: ArrayLike, *, level: float
) -> PositiveRates:
    """Return the share of one class in two tables.

    Parameters
    ----------
    real, synthetic : array-like of bool
        Whether each row, or each person, has the class.
    level : float
        Confidence of each interval, in (0, 1).

    Examples
    --------
    >>> found = compare_positive_rates([True] * 20 + [False] * 80, [True] * 4 + [False] * 96, level=0.95)
    >>> print(found.difference)
    -0.16 [-0.29, -0.02]
    """
    ours, theirs = np.asarray(real, dtype=bool), np.asarray(synthetic, dtype=bool)
    difference = vulnerability(theirs, ours, level=level)
    return PositiveRates(
        real=clopper_pearson(float(ours.sum()), len(ours), level=level),
        synthetic=clopper_pearson(float(theirs.sum()), len(theirs), level=level),
        difference=difference,
    )


def compare_transfer(
    truth: ArrayLike,
    real: ArrayLike,
    synthetic: Sequence[ArrayLike],
    *,
    units: ArrayLike,
    level: float,
    rng: np.random.Generator,
) -> Transfer:
    """Return AUC and AUPRC of a model trained on real and of models trained on synthetic records.

    Parameters
    ----------
    truth : array-like of int, shape (n,)
        Class of each real test record, from 0.
    real : array-like of float, shape (n, classes)
        Scores or probabilities by the model that was trained on real records.
    synthetic : sequence of array-like of float, shape (n, classes)
        The same by models trained on each generated table.
    units : array-like of int, shape (n,)
        The person of each record; people are resampled as a whole.
    level : float
        Confidence of each interval, in (0, 1).
    rng : numpy.random.Generator
        Resamples people.

    Raises
    ------
    InvalidInput
        If shapes do not match, or fewer than two classes are among the test records.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> good, poor = (np.column_stack([-s, s]) for s in (y + rng.normal(size=500), y + rng.normal(0, 4, 500)))
    >>> found = compare_transfer(y, good, [poor], units=range(500), level=0.95, rng=rng)
    >>> found.auc_real.value > 0.7, found.auc_loss.low > 0
    (True, True)
    """
    in_open_unit(level, "level")
    y, people = np.asarray(truth), np.asarray(units)
    scores = [np.asarray(s, dtype=np.float64) for s in (real, *synthetic)]
    if not synthetic:
        raise InvalidInput("there is no generated table; pass at least one.")
    for one in scores:
        if one.ndim != 2 or one.shape != scores[0].shape or len(one) != len(y):
            raise InvalidInput(
                f"scores of shape {one.shape} do not fit {len(y)} test records and {scores[0].shape[-1]} classes; pass one row per record and one "
                "column per class."
            )
        if not np.isfinite(one).all():
            raise InvalidInput(
                "a score is infinite or NaN, so records cannot be ranked; repair the model."
            )
    if len(people) != len(y):
        raise InvalidInput(
            f"there are {len(people)} units for {len(y)} records; pass one unit per record."
        )
    weights = _resampled(people, rng)
    found = np.array([areas(y, one, weights) for one in scores])
    ours, theirs = found[0], found[1:]
    count = len(theirs)

    def estimate(values: NDArray[np.float64], *, loss: bool) -> Estimate:
        """Values of each table: the first column as observed, the others resampled."""
        between = (
            float(values[:, 0].std(ddof=1)) / math.sqrt(len(values))
            if len(values) > 1
            else 0.0
        )
        return around(
            float(values[:, 0].mean()),
            float(values[:, 1:].mean(axis=0).std(ddof=1)),
            (between, len(values)),
            level,
            ends=(-1.0, 1.0) if loss else (0.0, 1.0),
            method=METHOD
            if len(values) == 1
            else f"{METHOD}, Student's t over {len(values)} tables",
        )

    auc, ap = (
        (
            estimate(ours[None, j], loss=False),
            estimate(theirs[:, j], loss=False),
            estimate(ours[None, j] - theirs[:, j], loss=True),
        )
        for j in range(2)
    )
    return Transfer(
        auc_real=auc[0],
        auc_synthetic=auc[1],
        auc_loss=auc[2],
        ap_real=ap[0],
        ap_synthetic=ap[1],
        ap_loss=ap[2],
        tables=count,
    )


def areas(
    truth: NDArray[np.int64],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return AUC and average precision, shape (2, weightings), as means over the classes that occur.

    With two classes the second one is judged alone; its AUC is that of the first as well. Ties count as one half in the AUC and as one step of the curve in the average precision.

    Parameters
    ----------
    truth : array of int, shape (n,)
        Class of each record.
    scores : array of float, shape (n, classes)
        Score of each class.
    weights : array of float, shape (weightings, n)
        How often each record counts.

    Examples
    --------
    >>> areas(np.array([0, 1, 1]), np.array([[0, 0.1], [0, 0.1], [0, 0.9]]), np.ones((1, 3))).round(3).tolist()
    [[0.75], [0.833]]
    """
    classes = scores.shape[1]
    judged = [1] if classes == 2 else [c for c in range(classes) if (truth == c).any()]
    if len(np.unique(truth)) < 2:
        raise InvalidInput(
            "all test records have the same class, so nothing can be ranked; test on records of at least two classes."
        )
    each = [_area(truth == c, scores[:, c], weights) for c in judged]
    return np.asarray(np.mean(each, axis=0))


def _area(
    positive: NDArray[np.bool_],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    hit = positive[order]
    found = np.empty((2, len(weights)))
    step = max(1, BLOCK // len(order))
    for first in range(0, len(weights), step):
        part = slice(first, first + step)
        w = weights[part].take(order, axis=1)
        hits, misses = w * hit, w * ~hit
        if len(starts) < len(order):
            hits, misses = (np.add.reduceat(x, starts, axis=1) for x in (hits, misses))
        all_hits, all_misses = hits.sum(axis=1), misses.sum(axis=1)
        above = np.cumsum(hits, axis=1)
        taken = above + np.cumsum(misses, axis=1)
        precision = above / np.maximum(taken, 1e-300)
        pairs = all_hits * all_misses
        auc = (misses * (above - hits / 2)).sum(axis=1) / np.where(
            pairs > 0, pairs, 1.0
        )
        ap = (hits * precision).sum(axis=1) / np.where(all_hits > 0, all_hits, 1.0)
        # A resample without one of the classes ranks nothing.
        found[0, part] = np.where(pairs > 0, auc, 0.5)
        found[1, part] = np.where(pairs > 0, ap, all_hits > 0)
    return found


def _resampled(
    people: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return weights of the records: all 1 first, then for each resample of the people."""
    _, person = np.unique(people, return_inverse=True)
    count = int(person.max()) + 1
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    return np.vstack(
        [np.ones(len(people)), drawn[:, person.ravel()].astype(np.float64)]
    )
