r"""How much better a product is than a constant: the share of the constant's loss that it saves.

The score is :math:`1 - \sum a / \sum b` with :math:`a` the loss of the product on a record and :math:`b` the loss of a constant. Such a ratio
is skewed if the loss has heavy tails: an interval from its linearisation then contains the truth far less often than it states, whereas one
from leaving out each unit in turn (the jackknife) does so nearly as often as it states. The interval is computed for the logarithm of the
ratio, so that it contains no score above 1.

References
----------
.. [1] Efron & Stein, "The jackknife estimate of variance", Annals of Statistics 9, 1981.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from reticent._check import as_scores, in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate

__all__ = ["share_saved"]


def _codes(units: ArrayLike, rows: int) -> NDArray[np.int64]:
    names, codes = np.unique(np.asarray(units), return_inverse=True)
    if codes.shape != (rows,):
        raise InvalidInput(
            f"units have the shape {codes.shape}, but there are {rows} records; pass one unit per record."
        )
    if len(names) < 2:
        raise InvalidInput(
            "all records belong to one unit, so nothing is known about others; pass records of at least 2 units."
        )
    return codes


def share_saved(
    lost: ArrayLike, by_constant: ArrayLike, *, units: ArrayLike, level: float
) -> Estimate:
    """Return 1 - sum(lost) / sum(by_constant), with the interval of the jackknife over units [1]_.

    Parameters
    ----------
    lost, by_constant : array-like of float, shape (n,)
        Loss of the product and of the constant on each record, at least 0.
    units : array-like of int, shape (n,)
        The unit (person) each record belongs to; units are left out as a whole.
    level : float
        Confidence, in (0, 1).

    Raises
    ------
    InvalidInput
        If shapes do not match, or the constant never loses anything.

    Examples
    --------
    >>> wrong, wrong_of_constant = [0, 1, 0, 0, 0, 0], [1, 1, 0, 1, 0, 1]
    >>> print(share_saved(wrong, wrong_of_constant, units=range(6), level=0.9))
    0.75 [0.22, 1]
    """
    in_open_unit(level, "level")
    lost = as_scores(lost, "lost")
    by_constant = as_scores(by_constant, "by_constant")
    if len(lost) != len(by_constant):
        raise InvalidInput(
            f"there are {len(lost)} losses of the product and {len(by_constant)} of the constant; pass one of each per record."
        )
    codes = _codes(units, len(lost))
    # Measured in units of the largest, so that squares of tiny or huge targets neither vanish nor overflow.
    unit = float(by_constant.max())
    if not 0 < unit < np.inf:
        raise InvalidInput(
            "no target differs from the constant by a finite amount, so there is nothing to explain; pass records whose targets vary."
        )
    above = np.bincount(codes, weights=lost / unit).astype(np.float64)
    below = np.bincount(codes, weights=by_constant / unit).astype(np.float64)
    ratio = float(above.sum() / below.sum())
    low, high, method = _ends(above, below, level=level)
    return Estimate(
        value=1 - ratio,
        low=min(1 - high, 1 - ratio),
        high=max(1 - low, 1 - ratio),
        level=level,
        method=method,
    )


def _ends(
    above: NDArray[np.float64], below: NDArray[np.float64], *, level: float
) -> tuple[float, float, str]:
    """Return the ends of the interval of sum(above) / sum(below) over units, and how they were computed."""
    count, ratio = len(above), float(above.sum() / below.sum())
    if ratio == 0:
        # No unit shows an error. At this level, a share of all units may still have one, and these are
        # assumed to lose as much as the constant does.
        unseen = 1 - (1 - level) ** (1 / count)
        return 0.0, unseen, "units without any error"
    # The rest of a sum without its largest part is nothing but rounding if it is a smaller share than this.
    rounding = 1e-12
    above_rest, below_rest = above.sum() - above, below.sum() - below
    if below_rest.min() <= rounding * below.sum():
        # Only one unit differs from the constant: without it, nothing is known.
        return 0.0, np.inf, "one unit alone varies"
    quantile = float(stdtrit(count - 1, 1 - (1 - level) / 2))
    if above_rest.min() <= rounding * above.sum():
        # One unit has all the error, and without it the logarithm is infinite.
        half = quantile * _jackknife(above_rest / below_rest)
        return max(ratio - half, 0.0), ratio + half, "jackknife over units"
    half = quantile * _jackknife(np.log(above_rest / below_rest))
    return (
        float(ratio * np.exp(-half)),
        float(ratio * np.exp(min(half, 700.0))),  # beyond, the exponential overflows
        "jackknife over units, log scale",
    )


def _jackknife(without: NDArray[np.float64]) -> float:
    """Return the standard error from the values with one unit left out each."""
    count = len(without)
    squares = ((without - without.mean()) ** 2).sum()
    return float(np.sqrt((count - 1) / count * squares))
