"""Test whether predicted probabilities of membership come true as often as they say.

References
----------
.. [1] Spiegelhalter, "Probabilistic prediction in patient management and clinical trials",
   Statistics in Medicine 5, 1986.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from reticent._check import as_scores
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate, split_level
from reticent.evidence.proportion import clopper_pearson

__all__ = ["Calibration", "CalibrationBin", "calibration"]


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
