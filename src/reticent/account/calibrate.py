"""The least noise that meets a target, landing on the safe side."""

import math
from collections.abc import Callable

from reticent.account.mechanisms import Mechanism
from reticent.account.targets import Target
from reticent.account.tradeoff import GRID, guarantee
from reticent.errors import InvalidInput

__all__ = ["calibrate"]

COARSE = 10 * GRID
CLOSE = 1e-3  # the answer is at most this share above the least noise
LEAST, MOST = 1e-2, 1e5  # noise multipliers that are tried


def calibrate(
    target: Target, mechanism: Callable[[float], Mechanism], *, grid: float = GRID
) -> float:
    """Return the least noise multiplier, to a tenth of a per cent, that meets a target.

    A bracket is found on a coarse grid of the privacy loss and closed on the fine one. What is
    returned was evaluated and found within the target.

    Parameters
    ----------
    target : Target
        What must hold.
    mechanism : callable
        From a noise multiplier to the mechanism; more noise must protect more.
    grid : float
        Of the privacy loss.

    Raises
    ------
    InvalidInput
        If no noise multiplier between 0.01 and 100,000 meets the target.

    Examples
    --------
    >>> from reticent.account import Gaussian, MaxAdvantage
    >>> round(calibrate(MaxAdvantage(advantage=0.382925), lambda z: Gaussian(noise_multiplier=z)), 2)
    1.0
    """

    def excess(log_noise: float, grid: float) -> float:
        made = mechanism(math.exp(log_noise))
        return target.excess(guarantee(made, grid=grid))

    low, high = math.log(0.5), math.log(2.0)
    while excess(high, COARSE) > 0:
        low, high = high, high + math.log(4)
        if high > math.log(MOST):
            raise InvalidInput(
                f"no amount of noise up to {MOST:g} times the sensitivity meets the target ({target.words}); take fewer steps, a "
                "smaller sampling rate or a milder target."
            )
    while excess(low, COARSE) <= 0:
        low, high = low - math.log(2), low
        if low < math.log(LEAST):
            return math.exp(high)
    low, high = _closed(lambda x: excess(x, COARSE), low, high, 20 * CLOSE)
    # The fine grid asks for a little less noise than the coarse one.
    step = 10 * CLOSE
    while excess(low, grid) <= 0:
        low, high, step = low - step, low, 2 * step
        if low < math.log(LEAST):
            return math.exp(high)
    if excess(high, grid) > 0:
        while excess(high, grid) > 0:
            low, high = high, high + step
    low, high = _closed(lambda x: excess(x, grid), low, high, CLOSE)
    return math.exp(high)


def _closed(
    excess: Callable[[float], float], low: float, high: float, width: float
) -> tuple[float, float]:
    """Narrow a bracket: the excess is positive at its low end and not at its high end."""
    f_low, f_high = excess(low), excess(high)
    while high - low > width:
        # False position, kept off the ends so that the bracket shrinks from both sides.
        share = f_low / (f_low - f_high) if f_low > f_high else 0.5
        middle = low + (high - low) * min(max(share, 0.1), 0.9)
        f = excess(middle)
        if f > 0:
            low, f_low = middle, f
        else:
            high, f_high = middle, f
    return low, high
