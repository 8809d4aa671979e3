r"""How much better a product is than a constant: the share of the constant's loss that it saves.

The score is :math:`1 - \sum a / \sum b` with :math:`a` the loss of the product on a record and :math:`b` the loss of a constant. Such a ratio
is skewed if the loss has heavy tails: an interval from its linearisation then contains the truth far less often than it states, whereas one
from leaving out each unit in turn (the jackknife) does so nearly as often as it states. The interval is computed for the logarithm of the
ratio, so that it contains no score above 1.

If only a few units lose anything, as with classes that are rare or a product that is hardly ever wrong, the jackknife sees too little to know
its error: with 1 error expected among 100 people, it misses in one case of three. The interval then also contains the one that follows from exact
limits on the two shares of units that lose anything [2]_.

References
----------
.. [1] Efron & Stein, "The jackknife estimate of variance", Annals of Statistics 9, 1981.
.. [2] Donner & Zou, "Closed-form confidence intervals for functions of the normal mean and standard deviation", Statistical Methods in
   Medical Research 21, 2012, section 2: limits of a ratio from the limits of its two parts (MOVER).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from reticent._check import as_scores, in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence.proportion import lower_limit, upper_limit

__all__ = ["mean_share_saved", "share_saved"]

# Units with a loss, of the product or of the constant, from which the jackknife alone is used. In simulations of rare errors it missed up to
# twice as often as stated with 16 of the product among 30 of the constant, and far more often with fewer.
FEW = 30


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
    0.75 [-0.36, 1]
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


def mean_share_saved(
    lost: ArrayLike, by_constant: ArrayLike, *, units: ArrayLike, level: float
) -> Estimate:
    """Return the mean share that products of one recipe save, with an interval over units and over products.

    The share is linear in the losses of the product, so that the mean of the shares is the share of the mean losses, whose interval over units is that
    of :func:`share_saved`. The shares of single products vary around their mean, which Student's interval covers; both are put together by the
    squares of their lengths [2]_. What units and products have in common counts in both, so that the interval is a little too long.

    Parameters
    ----------
    lost : array-like of float, shape (products, n)
        Loss of each product on each record, at least 0; at least two products.
    by_constant : array-like of float, shape (n,)
        Loss of the constant on each record.
    units, level
        As in :func:`share_saved`.

    Raises
    ------
    InvalidInput
        If shapes do not match, there are fewer than two products, or the constant never loses anything.

    Examples
    --------
    >>> lost = [[0, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]]
    >>> mean = mean_share_saved(lost, [1, 1, 0, 1, 0, 1], units=range(6), level=0.9)
    >>> mean.value, mean.covers
    (0.625, 'trainer')
    """
    each = np.atleast_2d(np.asarray(lost, dtype=np.float64))
    count = len(each)
    if count < 2:
        raise InvalidInput(
            f"there must be at least two products of the recipe, got {count}: one says nothing about how they vary."
        )
    over_units = share_saved(each.mean(axis=0), by_constant, units=units, level=level)
    total = np.asarray(by_constant, dtype=np.float64).sum()
    between = float((each.sum(axis=1) / total).std(ddof=1)) / np.sqrt(count)
    reach = float(stdtrit(count - 1, 1 - (1 - level) / 2)) * between
    value = over_units.value
    return Estimate(
        value=value,
        low=float(value - np.hypot(value - over_units.low, reach)),
        high=float(min(1.0, value + np.hypot(over_units.high - value, reach))),
        level=level,
        method=f"{over_units.method}; Student's t over {count} products",
        covers="trainer",
    )


def _ends(
    above: NDArray[np.float64], below: NDArray[np.float64], *, level: float
) -> tuple[float, float, str]:
    """Return the ends of the interval of sum(above) / sum(below) over units, and how they were computed."""
    count, ratio = len(above), float(above.sum() / below.sum())
    # The rest of a sum without its largest part is nothing but rounding if it is a smaller share than this.
    rounding = 1e-12
    above_rest, below_rest = above.sum() - above, below.sum() - below
    if below_rest.min() <= rounding * below.sum():
        # Only one unit differs from the constant: without it, nothing is known.
        return 0.0, np.inf, "one unit alone varies"
    miss = (1 - level) / 2
    quantile = float(stdtrit(count - 1, 1 - miss))
    if ratio == 0:
        low, high, method = 0.0, 0.0, "units without any error"
    elif above_rest.min() <= rounding * above.sum():
        # One unit has all the error, and without it the logarithm is infinite.
        half = quantile * _jackknife(above_rest / below_rest)
        low, high, method = max(ratio - half, 0.0), ratio + half, "jackknife over units"
    else:
        half = quantile * _jackknife(np.log(above_rest / below_rest))
        low = float(ratio * np.exp(-half))
        # Beyond 700 the exponential overflows.
        high = float(ratio * np.exp(min(half, 700.0)))
        method = "jackknife over units, log scale"
    fewest = min(np.count_nonzero(above), np.count_nonzero(below))
    # Of a quantity nearly everybody loses something, and how much tells more than how many.
    if fewest < FEW and fewest <= count / 2:
        by_counts = _ends_by_counts(above, below, miss)
        low, high = min(low, by_counts[0]), max(high, by_counts[1])
        method += "; exact counts, because few units lose anything"
    differ = np.count_nonzero(above != below)
    if differ < FEW and differ <= count / 2:
        by_counts = _ends_by_differences(above, below, miss)
        low, high = min(low, by_counts[0]), max(high, by_counts[1])
        method += "; exact counts, because few units differ"
    return low, high, method


def _ends_by_differences(
    above: NDArray[np.float64], below: NDArray[np.float64], miss: float
) -> tuple[float, float]:
    """Return the ends of a ratio from exact limits on the shares of units for which the product is better, and worse, than the constant.

    The ratio is one less (what is saved - what is lost beyond) over the loss of the constant. The distances of the two shares to their limits are added up, because so few units are
    lopsided; the loss of the constant, which many units have, is taken as it was seen.
    """
    usual = float(below.sum() / np.count_nonzero(below))
    saved, lost = np.maximum(below - above, 0), np.maximum(above - below, 0)
    s, s_low, s_high = _mean_with_limits(saved, usual, miss)
    w, w_low, w_high = _mean_with_limits(lost, usual, miss)
    mean = float(below.mean())
    low = 1 - (s - w + (s_high - s) + (w - w_low)) / mean
    high = 1 - (s - w - (s - s_low) - (w_high - w)) / mean
    return max(low, 0.0), high


def _ends_by_counts(
    above: NDArray[np.float64], below: NDArray[np.float64], miss: float
) -> tuple[float, float]:
    r"""Return the ends of a ratio from exact limits on the share of units that lose anything, above and below [2]_.

    With the limits l and u of both parts, :math:`p - \theta q` has the upper limit
    :math:`p - \theta q + \sqrt{(u_p - p)^2 + \theta^2 (q - l_q)^2}`, and the high end is the theta at which that is 0; the low end
    follows in the same way. That the two parts depend on each other is left out of account: mostly they err together, and the interval is then
    wider than needed.
    """
    # If the product has no error, one that was not seen is taken to be as large as those of the constant are.
    usual = float(below.sum() / np.count_nonzero(below))
    p, p_low, p_high = _mean_with_limits(above, usual, miss)
    q, q_low, q_high = _mean_with_limits(below, usual, miss)

    def end(p_end: float, q_end: float, sign: int) -> float:
        scale = q_end * (2 * q - q_end)
        root = (p * q) ** 2 - p_end * (2 * p - p_end) * scale
        return (p * q + sign * float(np.sqrt(max(root, 0.0)))) / scale

    # A share that may be more than twice as large as it was seen leaves the low end open.
    low = end(p_low, q_high, -1) if q_high < 2 * q else 0.0
    return max(low, 0.0), end(p_high, q_low, 1)


def _mean_with_limits(
    losses: NDArray[np.float64], usual: float, miss: float
) -> tuple[float, float, float]:
    """Return the mean loss of a unit, with limits that follow from the number of units that lose anything."""
    count, units = int(np.count_nonzero(losses)), len(losses)
    size = float(losses.sum()) / count if count else usual
    low = lower_limit(float(count), units, miss) * size
    high = upper_limit(float(count), units, miss) * size
    return float(losses.mean()), low, high


def _jackknife(without: NDArray[np.float64]) -> float:
    """Return the standard error from the values with one unit left out each."""
    count = len(without)
    squares = ((without - without.mean()) ** 2).sum()
    return float(np.sqrt((count - 1) / count * squares))
