"""Exact intervals for proportions."""

from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from reticent._check import in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate

__all__ = ["clopper_pearson", "lower_limit", "upper_limit", "wilson"]


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
    miss = (1 - in_open_unit(level, "level")) / 2
    return Estimate(
        value=hits / trials,
        low=lower_limit(float(hits), trials, miss),
        high=upper_limit(float(hits), trials, miss),
        level=level,
        method="Clopper-Pearson",
    )


def wilson(
    hits: ArrayLike, trials: ArrayLike, *, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the limits of Wilson's score interval, from which Newcombe's interval is built.

    Examples
    --------
    >>> low, high = wilson(8, 10, level=0.95)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    n = np.asarray(trials, dtype=np.float64)
    p = np.asarray(hits, dtype=np.float64) / n
    z = ndtri(1 - (1 - in_open_unit(level, "level")) / 2)
    centre = p + z**2 / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    scale = 1 + z**2 / n
    return np.asarray((centre - half) / scale), np.asarray((centre + half) / scale)
