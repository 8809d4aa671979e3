r"""Test a claimed trade-off curve with the scores of runs on two neighbouring tables, whatever their distribution.

The claim is a curve: no attack on the training exceeds the true-positive rate t(f) at the false-positive rate f. Take as
threshold the j-th largest of the n scores of runs on the second table. The share U of all such runs beyond it
is beta(j, n + 1 - j) distributed, whatever the scores are; and of m runs on the first table, the number beyond it is
stochastically at most binomial(m, t(U)). So the probability of y or more is at most

.. math:: p = E\left[\sum_{k \ge y} \binom{m}{k} t(U)^k (1 - t(U))^{m - k}\right], \quad U \sim \beta(j, n + 1 - j),

exactly, with no nuisance parameter. This is a precedence test with the claim as its null hypothesis. Three ranks j are fixed
beforehand, each with a third of the error. Every claim with a p-value below the error is refuted; a family of claims, such as
Gaussian differential privacy [1]_, gives a confidence bound.

Why this form: the usual one [2]_, [3]_ puts Clopper-Pearson limits on both error rates, each with half of the error, at a threshold
chosen on other runs. Here both errors share one tail, and no runs are spent on the threshold. With 500 runs on each table, a perfect
adversary and a true epsilon of 1, 3 and 8 (delta 1e-5), the median bound is 0.45, 2.31 and 7.18, where the usual form gives 0.00, 1.22 and
5.74; a test that knows that the scores are normal with deviation 1 gives 0.59, 2.46 and 7.41 (``benchmarks/tightness.py``). Other ranks gave the
same results within their scatter. The area under the curve would give up to 0.2 more with such scores, but has no exact test.

References
----------
.. [1] Dong, Roth & Su, "Gaussian differential privacy", arXiv:1905.02383, Equation 6.
.. [2] Nasr et al., "Tight auditing of differentially private machine learning", arXiv:2302.07956, section 4.
.. [3] Zanella-Béguelin et al., "Bayesian estimation of differential privacy", arXiv:2206.05199, section 2.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv, expit, ndtr, ndtri

from reticent._check import as_scores, in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate

__all__ = [
    "Curve",
    "curve_p_value",
    "mu_ceiling",
    "mu_lower_bound",
    "noise_upper_bound",
    "refutes",
]

# Maps false-positive rates to the largest true-positive rates, as `TradeOff.tprs` does.
Curve = Callable[[Sequence[float]], NDArray[np.float64]]

# Shares of the second table's scores beyond each threshold: a small leak shows best near the middle, a large one in
# the tail. Other ranks gave the same within their scatter (see above).
SHARES = (0.4, 0.15, 0.03)
# The expectation over U is an integral over the logit of its quantiles, so that tails are resolved.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(160)
_REACH = 20.0  # logits covered: a mass of 4e-9 lies beyond, and is accounted for below
_QUANTILES = expit(_REACH * _NODES)
_MASSES = _REACH * _WEIGHTS * _QUANTILES * (1 - _QUANTILES)
_LEFT_OUT = abs(1 - float(_MASSES.sum())) + 1e-12  # of the mass; added to every p-value
LARGEST_MU = 64.0  # beyond it the trade-off curve is a corner in floating point


def curve_p_value(first: ArrayLike, second: ArrayLike, *, tprs: Curve) -> float:
    """Return the p-value of a claimed curve: a bound on the probability of scores this far apart if it holds.

    Scores tied with a threshold count as not beyond it, which makes the p-value larger.

    Parameters
    ----------
    first, second : array-like of float
        One score per run, for runs on the first table and on the second; larger means more like the first. Runs must be
        independent, and the score must have been fixed before these runs were seen.
    tprs : callable
        The claim: the largest true-positive rates at false-positive rates, such as ``trade_off(mechanism).tprs``.

    Examples
    --------
    >>> from reticent.account import Gaussian, trade_off
    >>> claim = trade_off(Gaussian(noise_multiplier=1.0))
    >>> rng = np.random.default_rng(0)
    >>> as_claimed, leaky = rng.normal(1.0, 1.0, 400), rng.normal(1.5, 1.0, 400)
    >>> second = rng.normal(size=400)
    >>> curve_p_value(as_claimed, second, tprs=claim.tprs) > 0.05
    True
    >>> curve_p_value(leaky, second, tprs=claim.tprs) < 1e-4
    True
    """
    a, b = as_scores(first, "the first table"), as_scores(second, "the second table")
    ranks = _ranks(len(b))
    thresholds = np.sort(b)[::-1][ranks - 1]
    beyond = np.array([int((a > t).sum()) for t in thresholds])
    return _p_value(beyond, len(a), _rates(ranks, len(b)), tprs)


def refutes(first: ArrayLike, second: ArrayLike, *, tprs: Curve, level: float) -> bool:
    """Return whether scores refute a claimed curve with confidence ``level``.

    A true claim is refuted with a probability of at most 1 - ``level``. A claim that is not refuted is not thereby shown to be true.

    Parameters
    ----------
    first, second, tprs
        As in :func:`curve_p_value`.
    level : float
        Confidence, in (0, 1).
    """
    return curve_p_value(first, second, tprs=tprs) <= 1 - in_open_unit(level, "level")


def mu_lower_bound(first: ArrayLike, second: ArrayLike, *, level: float) -> Estimate:
    r"""Return a :math:`\mu` that the training exceeds with confidence ``level``, in Gaussian differential privacy.

    This is the largest refuted curve of the family :math:`t(f) = \Phi(\Phi^{-1}(f) + \mu)`. Its epsilon at a delta is
    :func:`reticent.account.gaussian_epsilon`; to read the bound as an epsilon is to assume that the curve of the training has this
    form. If it has another known form, such as that of sampled steps, use :func:`noise_upper_bound`; if only an epsilon
    and a delta are claimed, use :func:`refutes` with their curve.

    If scores are those of single steps, and all steps are equally private, T steps together have :math:`\sqrt T` times the bound [2]_.

    Parameters
    ----------
    first, second : array-like of float
        As in :func:`curve_p_value`.
    level : float
        Confidence, in (0, 1).

    Returns
    -------
    Estimate
        ``value`` and ``low`` are the bound (0 if the scores show nothing), ``high`` is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bound = mu_lower_bound(rng.normal(1.0, 1.0, 1000), rng.normal(size=1000), level=0.95)
    >>> 0.8 < bound.low < 1.0
    True
    """
    a, b = as_scores(first, "the first table"), as_scores(second, "the second table")
    ranks = _ranks(len(b))
    thresholds = np.sort(b)[::-1][ranks - 1]
    beyond = np.array([int((a > t).sum()) for t in thresholds])
    bound = _mu(beyond, len(a), _rates(ranks, len(b)), level)
    return Estimate(
        value=bound,
        low=bound,
        high=math.inf,
        level=level,
        method=f"Gaussian form, {len(a):,} and {len(b):,} runs, {len(ranks)} thresholds paid for",
        covers="trainer",
    )


def mu_ceiling(
    first: int, second: int, *, level: float, truth: float = math.inf
) -> float:
    r"""Return the lower bound on :math:`\mu` that this many runs can show.

    If this ceiling is below a claim, no adversary could have refuted the claim with these runs.

    Parameters
    ----------
    first, second : int
        Number of runs on each table.
    level : float
        Confidence, in (0, 1).
    truth : float
        The true :math:`\mu`: the result is then about what an optimal adversary shows in a typical audit. Infinite, the
        default, is an adversary that is never wrong.

    Examples
    --------
    >>> round(mu_ceiling(100, 100, level=0.95), 2), round(mu_ceiling(500, 500, level=0.95, truth=1.0), 2)
    (3.51, 0.86)
    """
    if first < 1 or second < 1 or not truth >= 0:
        raise InvalidInput(
            f"there must be at least 1 run on each table and truth must be at least 0, got {first} and {second} runs and {truth}."
        )
    ranks = _ranks(second)
    rates = _rates(ranks, second)
    never_wrong = _mu(np.full(len(ranks), first), first, rates, level)
    if math.isinf(truth):
        return never_wrong
    typical = first * ndtr(ndtri(ranks / (second + 1)) + truth)
    beyond = np.floor(typical + 0.5).astype(np.int64)
    # The cost of choosing among thresholds and the gain of the best one about cancel (benchmarks/tightness.py).
    return min(never_wrong, _mu(beyond, first, rates, level, paid=False))


def noise_upper_bound(
    first: ArrayLike,
    second: ArrayLike,
    *,
    tprs_of: Callable[[float], Curve],
    between: tuple[float, float],
    level: float,
    relative: float = 1e-3,
) -> Estimate:
    """Return an upper bound on the noise, with confidence ``level``: the training leaks as if it had less noise.

    This is the largest noise of a family of claims that is not refuted. The epsilon of the mechanism with this noise, at any
    delta, is a lower bound on the epsilon of the training, in the form of the claim.

    Parameters
    ----------
    first, second : array-like of float
        As in :func:`curve_p_value`.
    tprs_of : callable
        Maps a noise multiplier to the curve of the mechanism that has it; more noise must give a lower curve.
    between : pair of float
        Smallest and largest noise multiplier to try.
    level : float
        Confidence, in (0, 1).
    relative : float
        Largest relative error of the bound, which leans upwards.

    Returns
    -------
    Estimate
        ``value`` and ``high`` are the bound: infinite if not even the largest noise tried is refuted, and the smallest one
        tried if all are. ``low`` is 0.

    Examples
    --------
    >>> from reticent.account import PrivateTraining, trade_off
    >>> def steps(noise):
    ...     return trade_off(PrivateTraining(noise_multiplier=noise, sampling_rate=1.0, steps=4), grid=1e-2).tprs
    >>> rng = np.random.default_rng(0)  # the scores of four steps with noise 2
    >>> scores = rng.normal(1.0, 1.0, 2000), rng.normal(size=2000)
    >>> 2.0 < noise_upper_bound(*scores, tprs_of=steps, between=(0.5, 8.0), level=0.95, relative=0.01).high < 2.4
    True
    """
    miss = 1 - in_open_unit(level, "level")
    low, high = between
    if not 0 < low < high < math.inf:
        raise InvalidInput(
            f"between must be two positive numbers, the smaller one first, got {low} and {high}."
        )

    def not_refuted(noise: float) -> bool:
        return curve_p_value(first, second, tprs=tprs_of(noise)) > miss

    if not_refuted(high):
        bound = math.inf
    elif not not_refuted(low):
        bound = low
    else:
        while high > low * (1 + relative):
            # The geometric mean, because the error is relative.
            middle = math.sqrt(low * high)
            low, high = (middle, high) if not_refuted(middle) else (low, middle)
        bound = high  # this noise is itself refuted, so the error is on the safe side
    return Estimate(
        value=bound,
        low=0.0,
        high=bound,
        level=level,
        method=f"family of curves, {len(SHARES)} thresholds paid for",
        covers="trainer",
    )


def _ranks(runs: int) -> NDArray[np.int64]:
    """Return the ranks of the thresholds among the scores of the second table, which depend on their number alone."""
    # The j-th largest of n uniform draws has the mean j/(n + 1).
    wanted = np.floor(np.asarray(SHARES) * (runs + 1) + 0.5)
    return np.unique(np.clip(wanted, 1, runs)).astype(np.int64)


def _rates(ranks: NDArray[np.int64], runs: int) -> NDArray[np.float64]:
    """Return the false-positive rates of each threshold at the nodes of the integral, shape (ranks, nodes)."""
    j = ranks[:, None].astype(np.float64)
    return np.asarray(betaincinv(j, runs + 1 - j, _QUANTILES[None]))


def _p_value(
    beyond: NDArray[np.int64],
    runs: int,
    rates: NDArray[np.float64],
    tprs: Curve,
    *,
    paid: bool = True,
) -> float:
    claimed = np.asarray(tprs(rates.ravel().tolist()), dtype=np.float64)
    reached = claimed.clip(0.0, 1.0).reshape(rates.shape)
    y = beyond[:, None].astype(np.float64)
    # betainc(y, runs - y + 1, p) is the probability of y or more; for y = 0 it is 1.
    tail = betainc(np.maximum(y, 1e-300), runs - y + 1, reached)
    each = np.where(beyond == 0, 1.0, tail @ _MASSES + _LEFT_OUT)
    # Bonferroni over the thresholds.
    return min(1.0, float(each.min()) * (len(beyond) if paid else 1))


def _mu(
    beyond: NDArray[np.int64],
    runs: int,
    rates: NDArray[np.float64],
    level: float,
    *,
    paid: bool = True,
) -> float:
    miss = 1 - in_open_unit(level, "level")
    normal = ndtri(rates)

    def excess(mu: float) -> float:
        curve = ndtr(normal + mu).ravel()
        return _p_value(beyond, runs, rates, lambda _: curve, paid=paid) - miss

    if excess(0.0) > 0:
        return 0.0
    high = 1.0
    while excess(high) <= 0 and high < LARGEST_MU:
        high *= 2
    if excess(high) <= 0:
        return high
    return float(brentq(excess, 0.0, high, xtol=1e-9))
