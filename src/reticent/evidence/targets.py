"""What an attack achieves on average over products of one trainer: every model of a pool as target.

An interval for one product covers the draw of records. Here the models are drawn, too: another run of
the same trainer on other records of the same kind should fall where the interval says. Models and records
are crossed (every model answers on every record), so both are resampled.

References
----------
.. [1] Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1, 2007: rows and columns resampled
   independently; its variance is never too small by more than a vanishing term.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from reticent._check import in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate

__all__ = ["TargetsEvidence", "measure_targets"]

REPLICATES = 100
MOST_RECORDS = 20_000  # records beyond these, drawn at random, add time and little else


@dataclass(frozen=True, kw_only=True)
class TargetsEvidence:
    """What one attack showed over all models of a pool; its intervals cover the trainer.

    Parameters
    ----------
    name : str
        The attack.
    targets : int
        Models that were targets.
    auc : Estimate
        LTU accuracy, mean over targets.
    tpr : tuple of Estimate
        True-positive rates at the rates ``fpr``, mean over targets.
    fpr : tuple of float
        False-positive rates.
    lowest, highest : float
        The smallest and the largest LTU accuracy of any target.
    """

    name: str
    targets: int
    auc: Estimate
    tpr: tuple[Estimate, ...]
    fpr: tuple[float, ...]
    lowest: float
    highest: float


def measure_targets(
    name: str,
    scores: NDArray[np.float64],
    masks: NDArray[np.bool_],
    *,
    clusters: NDArray[np.int64],
    fpr: Sequence[float],
    level: float,
    rng: np.random.Generator,
) -> TargetsEvidence:
    r"""Return means over targets with intervals by the pigeonhole bootstrap [1]_.

    Each replicate draws models and, independently, records with replacement. Models trained on
    complementary halves go together: they are one cluster. With g clusters the interval is
    :math:`\bar x \pm t_{g-1}\, s \sqrt{g/(g-1)}`, s being the spread of the replicates.

    Parameters
    ----------
    name : str
        The attack.
    scores : array of float, shape (targets, records)
        Scores on each target, larger meaning more like a member of it.
    masks : array of bool, shape (targets, records)
        Members of each target.
    clusters : array of int, shape (targets,)
        Models that depend on each other have the same number.
    fpr : sequence of float
        False-positive rates at which the true-positive rate is wanted.
    level : float
        Confidence, in (0, 1).
    rng : numpy.random.Generator
        For the resampling, and to break ties.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> masks = np.tile(np.arange(400) < 200, (6, 1))
    >>> found = measure_targets("x", rng.normal(masks, 1.0), masks, clusters=np.arange(6),
    ...                         fpr=[0.1], level=0.95, rng=rng)
    >>> found.auc.low < 0.76 < found.auc.high, found.auc.covers  # Phi(1 / sqrt(2))
    (True, 'trainer')
    """
    names, cluster = np.unique(clusters, return_inverse=True)
    g = len(names)
    if scores.shape != masks.shape or len(cluster) != len(scores) or g < 2:
        raise InvalidInput(
            f"scores {scores.shape} and masks {masks.shape} of {g} independent targets cannot be averaged; pass one row a "
            "target and at least two targets that do not depend on each other."
        )
    if np.isnan(scores).any() or masks.all(axis=1).any() or not masks.any(axis=1).all():
        raise InvalidInput(
            "some score is NaN or some target lacks members or non-members, so it has no rate; pass scores of both "
            "for every target."
        )
    for rate in fpr:
        in_open_unit(rate, "fpr")
    if scores.shape[1] > MOST_RECORDS:
        some = rng.choice(scores.shape[1], MOST_RECORDS, replace=False)
        scores, masks = scores[:, some], masks[:, some]
    n = scores.shape[1]
    # Each replicate weighs the records alike for all targets; the first weighs them all by 1.
    weights = np.vstack(
        [np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=REPLICATES)]
    )
    values = np.empty((len(scores), len(weights), 1 + len(fpr)))
    for k, (row, mask) in enumerate(zip(scores, masks, strict=True)):
        order = np.lexsort((rng.random(n), -row))  # ties in random order
        values[k] = _rates(weights[:, order], mask[order], fpr)
    chosen = rng.multinomial(g, np.full(g, 1 / g), size=REPLICATES)[:, cluster]
    drawn = np.einsum("bk,kbs->bs", chosen, values[:, 1:])
    drawn /= chosen.sum(axis=1)[:, None]
    mean, spread = values[:, 0].mean(axis=0), drawn.std(axis=0, ddof=1)
    reach = float(stdtrit(g - 1, 1 - (1 - in_open_unit(level, "level")) / 2))
    half = reach * spread * np.sqrt(g / (g - 1))

    def estimate(k: int) -> Estimate:
        return Estimate(
            value=float(mean[k]),
            low=float(max(0.0, mean[k] - half[k])),
            high=float(min(1.0, mean[k] + half[k])),
            level=level,
            method=f"pigeonhole bootstrap over {g} independent targets and {n} records",
            covers="trainer",
        )

    return TargetsEvidence(
        name=name,
        targets=len(scores),
        auc=estimate(0),
        tpr=tuple(estimate(k + 1) for k in range(len(fpr))),
        fpr=tuple(fpr),
        lowest=float(values[:, 0, 0].min()),
        highest=float(values[:, 0, 0].max()),
    )


def _rates(
    weights: NDArray[np.float64], mask: NDArray[np.bool_], fpr: Sequence[float]
) -> NDArray[np.float64]:
    """Return AUC and TPR at each FPR per row of weights; records from the highest score down."""
    inside = np.cumsum(np.where(mask, weights, 0.0), axis=1)
    outside = np.cumsum(np.where(mask, 0.0, weights), axis=1)
    total_in = np.maximum(inside[:, -1:], 1e-12)
    total_out = np.maximum(outside[:, -1:], 1e-12)
    steps = np.diff(outside, axis=1, prepend=0.0)
    auc = (steps * inside).sum(axis=1, keepdims=True) / (total_in * total_out)
    columns = [auc]
    for rate in fpr:
        # The last place at which the false positives do not exceed the rate.
        place = (outside <= rate * total_out + 1e-9).sum(axis=1) - 1
        found = np.take_along_axis(inside, np.maximum(place, 0)[:, None], 1)
        columns.append(np.where(place[:, None] >= 0, found, 0.0) / total_in)
    return np.concatenate(columns, axis=1)
