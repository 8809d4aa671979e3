"""What an attack achieves on average over the products of one trainer, with every model of a pool as the target.

An interval for one product covers the draw of records. Here the models are random too: the interval is for
other runs of the same trainer on other records of the same kind. Models and records
are crossed (every model answers on every record), so both are resampled.

References
----------
.. [1] Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1, 2007: rows and columns are resampled
   independently, and the variance is never too small by more than a vanishing term.
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

REPLICATES = 100  # give the spread to about 7 %, 1/sqrt(2 * 100); more cost time
# Of more records, this many are drawn at random: the rest add time and little else.
MOST_RECORDS = 20_000


@dataclass(frozen=True, kw_only=True)
class TargetsEvidence:
    """What one attack showed over all models of a pool; the intervals cover the trainer.

    Parameters
    ----------
    name : str
        Name of the attack.
    targets : int
        Number of models that were targets.
    auc : Estimate
        Mean LTU accuracy over the targets.
    tpr : tuple of Estimate
        Mean true-positive rates over the targets, at the rates ``fpr``.
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
    r"""Return means over targets, with intervals by the pigeonhole bootstrap [1]_.

    Each replicate draws models and, independently, records with replacement. Models trained on
    complementary halves are drawn together, as one cluster. With g clusters the interval is
    :math:`\bar x \pm t_{g-1}\, s \sqrt{g/(g-1)}`, where s is the standard deviation of the replicates.

    Parameters
    ----------
    name : str
        Name of the attack.
    scores : array of float, shape (targets, records)
        Scores for each target, larger meaning more like a member of it.
    masks : array of bool, shape (targets, records)
        Members of each target.
    clusters : array of int, shape (targets,)
        Models that depend on each other have the same number.
    fpr : sequence of float
        False-positive rates at which the true-positive rate is computed.
    level : float
        Confidence, in (0, 1).
    rng : numpy.random.Generator
        For the resampling, and to break ties.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> masks = np.tile(np.arange(400) < 200, (6, 1))
    >>> result = measure_targets("x", rng.normal(masks, 1.0), masks, clusters=np.arange(6),
    ...                          fpr=[0.1], level=0.95, rng=rng)
    >>> result.auc.low < 0.76 < result.auc.high, result.auc.covers  # Phi(1 / sqrt(2))
    (True, 'trainer')
    """
    names, cluster = np.unique(clusters, return_inverse=True)
    g = len(names)
    if scores.shape != masks.shape or len(cluster) != len(scores) or g < 2:
        raise InvalidInput(
            f"scores {scores.shape} and masks {masks.shape} of {g} independent targets cannot be averaged; pass one row per "
            "target, and at least two targets that do not depend on each other."
        )
    if np.isnan(scores).any() or masks.all(axis=1).any() or not masks.any(axis=1).all():
        raise InvalidInput(
            "a score is NaN, or a target has no members or no non-members, so its rates are undefined; pass scores of both "
            "for every target."
        )
    for rate in fpr:
        in_open_unit(rate, "fpr")
    if scores.shape[1] > MOST_RECORDS:
        drawn_records = rng.choice(scores.shape[1], MOST_RECORDS, replace=False)
        scores, masks = scores[:, drawn_records], masks[:, drawn_records]
    n = scores.shape[1]
    # Each replicate gives a record the same weight for all targets; the first row is the data itself.
    weights = np.vstack(
        [np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=REPLICATES)]
    )
    values = np.empty((len(scores), len(weights), 1 + len(fpr)))
    for k, (row, mask) in enumerate(zip(scores, masks, strict=True)):
        order = np.lexsort((rng.random(n), -row))  # ties in random order
        values[k] = rates_of_draws(weights[:, order], mask[order], fpr)
    chosen = rng.multinomial(g, np.full(g, 1 / g), size=REPLICATES)[:, cluster]
    drawn = np.einsum("bk,kbs->bs", chosen, values[:, 1:])
    drawn /= chosen.sum(axis=1)[:, None]
    mean, spread = values[:, 0].mean(axis=0), drawn.std(axis=0, ddof=1)
    reach = float(stdtrit(g - 1, 1 - (1 - in_open_unit(level, "level")) / 2))
    # Drawing g clusters with replacement understates their variance by this factor.
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


def rates_of_draws(
    weights: NDArray[np.float64], mask: NDArray[np.bool_], fpr: Sequence[float]
) -> NDArray[np.float64]:
    """Return the AUC and the TPR at each FPR for each row of weights, with records in descending order of score.

    Parameters
    ----------
    weights : array of float, shape (draws, records)
        How often each record is drawn.
    mask : array of bool, shape (records,)
        Members.
    fpr : sequence of float
        False-positive rates.

    Returns
    -------
    array of float, shape (draws, 1 + rates)
        The AUC, then the true-positive rates.
    """
    steps = np.where(mask, 0.0, weights)
    outside = np.cumsum(steps, axis=1)
    inside = np.cumsum(weights - steps, axis=1)
    # A replicate may draw no member at all; its rate is then 0 and not undefined.
    total_in = np.maximum(inside[:, -1:], 1e-12)
    total_out = np.maximum(outside[:, -1:], 1e-12)
    auc = np.einsum("dr,dr->d", steps, inside)[:, None] / (total_in * total_out)
    columns = [auc]
    for rate in fpr:
        # The last place at which the false positives do not exceed the rate, up to rounding.
        place = (outside <= rate * total_out + 1e-9).sum(axis=1) - 1
        hits = np.take_along_axis(inside, np.maximum(place, 0)[:, None], 1)
        columns.append(np.where(place[:, None] >= 0, hits, 0.0) / total_in)
    return np.concatenate(columns, axis=1)
