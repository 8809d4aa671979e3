r"""Statements about regression models: how useful they are, and what a bounded loss reveals.

Both scores of utility are shares of a constant's loss that the product saves (:mod:`reticent.evidence.skill`). If the target has no
fourth moment, no interval for :math:`R^2` is valid; the skill of the absolute error, which is reported with it, needs only the second.

References
----------
.. [1] Pedersen et al., "LTU attacker for membership inference", arXiv:2202.02278, Theorem 2.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent._check import as_scores
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence.skill import share_saved

__all__ = ["absolute_skill", "clipped_loss", "r_squared"]


def r_squared(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    mean: float,
    units: ArrayLike,
    level: float,
) -> Estimate:
    r"""Return the share of the squared error of a constant that the product saves.

    :math:`R^2 = 1 - \sum (y - f)^2 / \sum (y - \bar y)^2`, where :math:`\bar y` is the mean of the *training* targets: what
    somebody without the product, but with its training records, would predict. A value of 1 is never wrong, 0 is no better
    than that constant, and there is no smallest value.

    Parameters
    ----------
    predictions, targets : array-like of float, shape (n,)
        What the product predicts of records that it was not trained on, and the truth.
    mean : float
        Mean of the training targets.
    units : array-like of int, shape (n,)
        The unit (person) each record belongs to; units are left out as a whole.
    level : float
        Confidence, in (0, 1).

    Raises
    ------
    InvalidInput
        If shapes do not match, numbers are not finite, or no target differs from the mean.

    Examples
    --------
    >>> y = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    >>> print(r_squared([1.5, 2.0, 2.5, 4.0, 5.5, 5.5], y, mean=3.5, units=range(6), level=0.95))
    0.94 [0.85, 0.98]
    """
    f, y = _pairs(predictions, targets, constant=mean, name="mean")
    return share_saved((y - f) ** 2, (y - mean) ** 2, units=units, level=level)


def absolute_skill(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    median: float,
    units: ArrayLike,
    level: float,
) -> Estimate:
    r"""Return the share of the absolute error of a constant that the product saves.

    :math:`1 - \sum |y - f| / \sum |y - \tilde y|`, where :math:`\tilde y` is the median of the *training* targets, the constant
    with the least absolute error. Its interval is valid for heavier tails than that of :func:`r_squared`.

    Parameters
    ----------
    predictions, targets, units, level
        As in :func:`r_squared`.
    median : float
        Median of the training targets.

    Raises
    ------
    InvalidInput
        If shapes do not match, numbers are not finite, or no target differs from the median.

    Examples
    --------
    >>> y = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    >>> print(absolute_skill([1.5, 2.0, 2.5, 4.0, 5.5, 5.5], y, median=3.5, units=range(6), level=0.95))
    0.78 [0.52, 0.90]
    """
    f, y = _pairs(predictions, targets, constant=median, name="median")
    return share_saved(np.abs(y - f), np.abs(y - median), units=units, level=level)


def clipped_loss(residuals: ArrayLike, *, typical_error: float) -> NDArray[np.float64]:
    r"""Return losses in [0, 1] for Theorem 2: :math:`\min(|r| / (2m), 1)` with m a typical error.

    Theorem 2 of the LTU paper [1]_ needs a bounded loss. Dividing by the range of the residuals would bound it too, but then a
    single outlier decides the scale and leaves nothing of the gap. The scale must be fixed before
    the residuals are seen: use the median absolute error of other models on records that they were not trained on,
    or that of the product on records that are not judged.

    Parameters
    ----------
    residuals : array-like of float
        Truth minus prediction.
    typical_error : float
        The scale m, above 0.

    Examples
    --------
    >>> clipped_loss([0.0, -1.0, 3.0, 100.0], typical_error=2.0)
    array([0.  , 0.25, 0.75, 1.  ])
    """
    if not (np.isfinite(typical_error) and typical_error > 0):
        raise InvalidInput(
            f"typical_error must be finite and above 0, got {typical_error!r}; pass the median absolute error of records "
            "that are not judged."
        )
    return np.minimum(
        np.abs(as_scores(residuals, "residuals")) / (2 * typical_error), 1.0
    )


def _pairs(
    predictions: ArrayLike, targets: ArrayLike, *, constant: float, name: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    f, y = as_scores(predictions, "predictions"), as_scores(targets, "targets")
    if len(f) != len(y):
        raise InvalidInput(
            f"there are {len(f)} predictions for {len(y)} targets; pass one of each per record."
        )
    if not (np.isfinite(f).all() and np.isfinite(y).all() and np.isfinite(constant)):
        raise InvalidInput(
            f"predictions, targets or the {name} ({constant!r}) are infinite or NaN, so no error can be formed; repair the product."
        )
    return f, y
