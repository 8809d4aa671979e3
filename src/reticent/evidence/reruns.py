r"""What runs on two neighbouring tables show about epsilon, for a training that can be run again.

Runs on each of the two tables give one score each, fixed before any run is seen. The claims of a family of trade-off curves that such scores refute
(:mod:`reticent.evidence.two_sided`) give a lower bound: the family of Gaussian differential privacy for a training that is known to add Gaussian noise,
else the curves of :math:`(\varepsilon, \delta)` themselves, :math:`t(f) = \min\{e^\varepsilon f + \delta,\; 1 - e^{-\varepsilon}(1 - f - \delta)\}`
[1]_, which assume nothing and show less.

References
----------
.. [1] Kairouz, Oh & Viswanath, "The composition theorem for differential privacy", arXiv:1311.0776, Section 2.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent._check import in_open_unit
from reticent.account import gaussian_epsilon
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence.two_sided import (
    Curve,
    curve_p_value,
    mu_ceiling,
    mu_lower_bound,
)

__all__ = ["rerun_ceiling", "rerun_lower_bound"]

LARGEST = 50.0  # epsilon beyond which nothing is told apart: it would take e^50 runs
PRECISION = 1e-3  # of a bound on epsilon, which leans downwards


def rerun_lower_bound(
    first: ArrayLike,
    second: ArrayLike,
    *,
    delta: float,
    level: float,
    gaussian: bool = False,
) -> Estimate:
    """Return an epsilon that a training exceeds with confidence ``level``, by scores of runs on two neighbouring tables.

    Parameters
    ----------
    first, second : array-like of float
        One score per run, on the table with the person and on the one without; larger means more like the first.
    delta : float
        The delta at which epsilon is stated, in [0, 1); above 0 for the Gaussian form.
    level : float
        Confidence, in (0, 1).
    gaussian : bool
        Whether to read the bound in the form of Gaussian differential privacy, which assumes that noise is Gaussian.

    Returns
    -------
    Estimate
        ``value`` and ``low`` are the bound (0 if the scores show nothing), ``high`` is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.laplace(1.0, 0.5, 400), rng.laplace(0.0, 0.5, 400)  # epsilon 2
    >>> 1.0 < rerun_lower_bound(*scores, delta=0.0, level=0.95).low < 2.0
    True
    """
    miss = 1 - in_open_unit(level, "level")
    _must_be_delta(delta, gaussian=gaussian)
    runs = f"{len(np.asarray(first)):,} and {len(np.asarray(second)):,} runs"
    if gaussian:
        mu = mu_lower_bound(first, second, level=level).low
        bound, form = gaussian_epsilon(mu, delta) if mu > 0 else 0.0, "Gaussian form"
    else:
        bound = _largest_refuted(
            lambda epsilon: (
                curve_p_value(first, second, tprs=_curve(epsilon, delta)) <= miss
            )
        )
        form = "any form"
    return Estimate(
        value=bound,
        low=bound,
        high=math.inf,
        level=level,
        method=f"{form}, {runs} on neighbouring tables",
        covers="trainer",
    )


def rerun_ceiling(
    first: int, second: int, *, delta: float, level: float, gaussian: bool = False
) -> float:
    """Return the bound if every run of the first table has a larger score than all of the second.

    Examples
    --------
    >>> round(rerun_ceiling(100, 100, delta=0.0, level=0.95), 2)
    3.41
    """
    _must_be_delta(delta, gaussian=gaussian)
    if gaussian:
        return gaussian_epsilon(mu_ceiling(first, second, level=level), delta)
    apart = np.arange(first) + second, np.arange(second)
    return rerun_lower_bound(*apart, delta=delta, level=level).low


def _must_be_delta(delta: float, *, gaussian: bool) -> None:
    if not 0 <= delta < 1 or (gaussian and delta == 0):
        raise InvalidInput(
            f"delta must lie in [0, 1), and above 0 for Gaussian noise, which has no pure epsilon; got {delta!r}."
        )


def _curve(epsilon: float, delta: float) -> Curve:
    def tprs(fprs: Sequence[float]) -> NDArray[np.float64]:
        f = np.asarray(fprs, dtype=np.float64)
        steep = math.exp(epsilon) * f + delta
        flat = 1 - math.exp(-epsilon) * (1 - f - delta)
        return np.asarray(np.minimum(steep, flat).clip(0.0, 1.0))

    return tprs


def _largest_refuted(is_refuted: Callable[[float], bool]) -> float:
    if not is_refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < LARGEST and is_refuted(high):
        low, high = high, 2 * high
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low  # this epsilon is itself refuted, so the error is on the safe side
