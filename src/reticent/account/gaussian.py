r"""The exact relation between epsilon, delta and the noise of the Gaussian mechanism.

A shift by :math:`\mu` standard deviations is :math:`(\varepsilon, \delta)`-private if and only if
:math:`\delta \ge \Phi(\mu/2 - \varepsilon/\mu) - e^\varepsilon \Phi(-\mu/2 - \varepsilon/\mu)` (Theorem 8 of [1]_).
The classical noise is sufficient for an epsilon below 1, but it is never necessary.

References
----------
.. [1] Balle & Wang, "Improving the Gaussian mechanism for differential privacy: analytical calibration and optimal
   denoising", arXiv:1805.06530.
"""

import math

from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from reticent._check import in_open_unit
from reticent.errors import InvalidInput

__all__ = ["analytic_noise", "gaussian_delta", "gaussian_epsilon"]

MARGIN = 1e-9  # share added to the root: more than rounding can be, less than matters
MOST = 1e6  # largest noise multiplier; above it the closed form loses its digits


def gaussian_delta(mu: float, epsilon: float) -> float:
    r"""Return the smallest delta of the Gaussian mechanism at an epsilon.

    Since :math:`e^\varepsilon \varphi(b) = \varphi(a)` for the two arguments a and b of the closed form, both terms
    are :math:`e^{-a^2/2}/2` times a scaled error function: nothing overflows, and the difference keeps its digits where
    the terms nearly cancel.

    Parameters
    ----------
    mu : float
        Sensitivity over the standard deviation of the noise, above 0.
    epsilon : float
        At least 0.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 0.0), 6), f"{gaussian_delta(1.0, 4.37718):.3g}"
    (0.382925, '1e-05')
    """
    a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    scale = math.exp(-(a**2) / 2) / 2
    first = ndtr(a) if a > 0 else scale * erfcx(-a / math.sqrt(2))
    return max(0.0, float(first - scale * erfcx(-b / math.sqrt(2))))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon of the Gaussian mechanism at a delta.

    Parameters
    ----------
    mu : float
        Sensitivity over the standard deviation of the noise, at least 0.
    delta : float
        In (0, 1).

    Examples
    --------
    >>> round(gaussian_epsilon(1.0, 1e-5), 5), gaussian_epsilon(0.0, 1e-5)
    (4.37718, 0.0)
    """
    in_open_unit(delta, "delta")
    if mu <= 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = mu**2 / 2 + mu
    while gaussian_delta(mu, high) > delta:
        high *= 2
    return float(brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, high))


def analytic_noise(epsilon: float, delta: float) -> float:
    """Return the least noise multiplier with which the Gaussian mechanism has an epsilon and a delta.

    The root of the closed form is found by Brent's method and raised by a billionth, so that rounding errs on the safe
    side.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In (0, 1).

    Raises
    ------
    InvalidInput
        If no amount of Gaussian noise gives this guarantee.

    Examples
    --------
    >>> round(analytic_noise(4.37718, 1e-5), 5), round(analytic_noise(0.5, 1e-5), 3)
    (1.0, 7.032)
    """
    check_budget(epsilon, delta)
    low = high = 0.0  # logarithms of mu
    while gaussian_delta(math.exp(low), epsilon) > delta:
        low -= 1
        if low < -math.log(MOST):
            raise InvalidInput(
                f"epsilon {epsilon:g} with delta {delta:g} asks for noise of more than {MOST:,.0f} times the sensitivity, which drowns "
                "every answer; allow a larger epsilon or a larger delta."
            )
    while gaussian_delta(math.exp(high), epsilon) <= delta:
        high += 1

    def excess(log_mu: float) -> float:
        # The logarithm of delta is nearly linear; a delta that underflows to 0 counts as the smallest number.
        reached = gaussian_delta(math.exp(log_mu), epsilon)
        return math.log(max(reached, 1e-320)) - math.log(delta)

    root = float(brentq(excess, low, high, xtol=1e-13, rtol=1e-14))
    return math.exp(-root) * (1 + MARGIN)


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse an epsilon and a delta that no Gaussian noise can give."""
    if not 0 <= epsilon < math.inf:
        raise InvalidInput(
            f"epsilon must be at least 0 and finite, got {epsilon}; ask for a small one, such as 1."
        )
    if delta == 0:
        raise InvalidInput(
            "delta must be above 0, got 0: Gaussian noise has no pure epsilon, since rare outputs reveal more; allow a small "
            "delta such as 1e-5, or add Laplace noise."
        )
    in_open_unit(delta, "delta")
