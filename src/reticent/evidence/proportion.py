"""Exact intervals for proportions."""

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from reticent._check import in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate

__all__ = ["clopper_pearson", "lower_limit", "rate_difference", "upper_limit"]

# With a smaller count, the root of the squares misses more often than stated (with 8, up to 3.1 % in place of 2.5).
FEW = 25


@overload
def lower_limit(hits: float, trials: float, miss: float) -> float: ...
@overload
def lower_limit(
    hits: NDArray[np.float64], trials: float, miss: float
) -> NDArray[np.float64]: ...
def lower_limit(
    hits: float | NDArray[np.float64], trials: float, miss: float
) -> float | NDArray[np.float64]:
    """Return the one-sided Clopper-Pearson limit below a proportion.

    The truth is below it with probability at most ``miss``. Hits need not be integers:
    a tie may count as one half, which makes the limit lean to the safe (low) side.

    Examples
    --------
    >>> round(lower_limit(10, 10, 0.05), 4)
    0.7411
    """
    h = np.asarray(hits, dtype=np.float64)
    inside = betaincinv(np.maximum(h, 1e-300), trials - h + 1, miss)
    limit = np.where(h <= 0, 0.0, inside)
    return float(limit) if limit.ndim == 0 else limit


@overload
def upper_limit(hits: float, trials: float, miss: float) -> float: ...
@overload
def upper_limit(
    hits: NDArray[np.float64], trials: float, miss: float
) -> NDArray[np.float64]: ...
def upper_limit(
    hits: float | NDArray[np.float64], trials: float, miss: float
) -> float | NDArray[np.float64]:
    """Return the one-sided Clopper-Pearson limit above a proportion.

    Examples
    --------
    >>> round(upper_limit(0, 100, 0.05), 4)
    0.0295
    """
    h = np.asarray(hits, dtype=np.float64)
    inside = betaincinv(h + 1, np.maximum(trials - h, 1e-300), 1 - miss)
    limit = np.where(h >= trials, 1.0, inside)
    return float(limit) if limit.ndim == 0 else limit


def clopper_pearson(hits: float, trials: float, *, level: float) -> Estimate:
    """Return a proportion with its exact two-sided interval (Clopper & Pearson 1934).

    Parameters
    ----------
    hits : float
        Number of successes, 0 to ``trials``; ties may count as one half.
    trials : float
        Number of independent trials, more than 0.
    level : float
        Confidence, in (0, 1).

    Examples
    --------
    >>> print(clopper_pearson(8, 10, level=0.95))
    0.80 [0.44, 0.98]
    """
    if not 0 <= hits <= trials or trials <= 0:
        raise InvalidInput(
            f"{hits} successes in {trials} trials are not a proportion; count them again."
        )
    miss, value = (1 - in_open_unit(level, "level")) / 2, hits / trials
    return Estimate(
        value=value,
        # Rounding may put a limit beyond the value where that is nearly 0 or 1.
        low=min(value, lower_limit(float(hits), trials, miss)),
        high=max(value, upper_limit(float(hits), trials, miss)),
        level=level,
        method="Clopper-Pearson",
    )


def rate_difference(
    hits: tuple[ArrayLike, float], others: tuple[ArrayLike, float], *, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the limits of a difference of two independent proportions.

    Where each of the four counts (successes and failures of both) is at least ``FEW``, the distances of the two proportions to their Clopper-Pearson limits are combined by the
    root of their squares, as Newcombe [1]_ does with Wilson's limits, which miss up to 12 % of the time at a nominal 2.5. Where a count is smaller, distributions are lopsided and squares do not add up: there
    the distances themselves are added. By exact enumeration over sizes of 5 to 1,000 and rates of 0.001 to 0.999 no end misses more than it states.

    Parameters
    ----------
    hits, others : tuple of array of int and int
        Successes and trials of each; arrays give arrays.
    level : float
        Confidence, in (0, 1).

    References
    ----------
    .. [1] Newcombe, "Interval estimation for the difference between independent proportions: comparison of eleven methods",
       Statistics in Medicine 17, 1998.

    Examples
    --------
    >>> low, high = rate_difference((8, 10), (3, 10), level=0.95)
    >>> round(float(low), 2), round(float(high), 2)
    (-0.21, 0.91)
    """
    miss = (1 - in_open_unit(level, "level")) / 2
    (k, n), (j, m) = (
        (np.asarray(count, dtype=np.float64), trials)
        for count, trials in (hits, others)
    )
    few = np.minimum(np.minimum(k, n - k), np.minimum(j, m - j)) < FEW

    def together(one: NDArray[np.float64], other: NDArray[np.float64]) -> Any:
        return np.where(few, one + other, np.hypot(one, other))

    down = together(k / n - lower_limit(k, n, miss), upper_limit(j, m, miss) - j / m)
    up = together(upper_limit(k, n, miss) - k / n, j / m - lower_limit(j, m, miss))
    low, high = k / n - j / m - down, k / n - j / m + up
    return np.maximum(low, -1.0), np.minimum(high, 1.0)
