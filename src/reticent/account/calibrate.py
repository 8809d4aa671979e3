"""The least noise that meets a target, landing on the safe side."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from reticent.account.mechanisms import Mechanism
from reticent.account.targets import Target
from reticent.account.tradeoff import TradeOff, fitting, trade_off
from reticent.errors import InvalidInput

__all__ = ["calibrate"]

COARSER = 10  # times the fine grid: the first search handles a tenth of the cells
CLOSE = 1e-3  # the answer is at most this share above the least noise
LEAST = 1e-2  # smallest noise multiplier tried: hardly any protection is left there
MOST = 1e5  # largest noise multiplier tried: it drowns every gradient
# Shares of the wanted width by which an evaluation misses the estimated root on purpose, on either side. Their sum is
# below 1, so one evaluation on each side closes the bracket; the noisier side, which is returned, has the smaller one.
BEYOND = 0.2
BEFORE = 0.6


def calibrate(
    target: Target,
    mechanism: Callable[[float], Mechanism],
    *,
    grid: float | None = None,
) -> float:
    """Return the least noise multiplier, to a tenth of a per cent, that meets a target.

    The least noise is bracketed on a coarse grid of the privacy loss, and the bracket is closed on the fine grid. The
    returned value was itself evaluated and meets the target.

    Parameters
    ----------
    target : Target
        The limit to meet.
    mechanism : callable
        Maps a noise multiplier to the mechanism; more noise must protect more.
    grid : float, optional
        Width of a cell of the privacy loss; as fine as the mechanism needs if not given.

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
    return least_noise(target, mechanism, grid=grid)[0]


def least_noise(
    target: Target,
    mechanism: Callable[[float], Mechanism],
    *,
    grid: float | None = None,
) -> tuple[float, TradeOff]:
    """Return the noise multiplier of :func:`calibrate` and the guarantee computed for it."""
    # Only the guarantee of the current upper end of the bracket is needed: the curves are large.
    guarantees: dict[float, TradeOff] = {}

    def excess(log_noise: float, coarser: int) -> float:
        candidate = mechanism(math.exp(log_noise))
        guarantee = trade_off(candidate, grid=coarser * (grid or fitting(candidate)))
        # The logarithm of value over limit is nearly linear in the logarithm of the noise.
        value = math.log1p(max(target.excess(guarantee), -1 + 1e-12))
        if coarser == 1 and value <= 0:
            guarantees.clear()
            guarantees[log_noise] = guarantee
        return value

    rough = _bracket(lambda x: excess(x, COARSER), target)
    rough = _closed(lambda x: excess(x, COARSER), rough, 20 * CLOSE)
    # The fine grid asks for a little less noise than the coarse one; the slope says how much.
    fine = _rebracket(lambda x: excess(x, 1), rough)
    fine = _closed(lambda x: excess(x, 1), fine, CLOSE)
    return math.exp(fine.high), guarantees[fine.high]


@dataclass(frozen=True)
class _Bracket:
    """Two logarithms of the noise with their excess: positive at the low end, not positive at the high end."""

    low: float
    f_low: float
    high: float
    f_high: float

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def slope(self) -> float:
        """Change of the excess per unit of the logarithm of the noise; -1 where it cannot be computed."""
        slope = (self.f_high - self.f_low) / self.width if self.width > 0 else -1.0
        return slope if math.isfinite(slope) and slope < 0 else -1.0


def _bracket(excess: Callable[[float], float], target: Target) -> _Bracket:
    # The noise multipliers of DP-SGD are usually near 1.
    low, high = math.log(0.5), math.log(2.0)
    f_low, f_high = excess(low), excess(high)
    while f_high > 0:
        low, f_low, high = high, f_high, high + math.log(4)
        if high > math.log(MOST):
            raise InvalidInput(
                f"no amount of noise up to {MOST:g} times the sensitivity meets the target ({target.words}); use fewer steps, a "
                "smaller sampling rate or a milder target."
            )
        f_high = excess(high)
    while f_low <= 0 and low > math.log(LEAST):
        high, f_high, low = low, f_low, low - math.log(2)
        f_low = excess(low)
    return _Bracket(low, f_low, high, f_high)


def _rebracket(excess: Callable[[float], float], rough: _Bracket) -> _Bracket:
    high, f_high, step = rough.high, excess(rough.high), 10 * CLOSE
    while f_high > 0:
        high, step = high + step, 2 * step
        f_high = excess(high)
    low, step = high - f_high / rough.slope - BEFORE * CLOSE, CLOSE
    f_low = excess(low)
    while f_low <= 0 and low > math.log(LEAST):
        high, f_high, low, step = low, f_low, low - step, 4 * step
        f_low = excess(low)
    return _Bracket(low, f_low, high, f_high)


def _closed(
    excess: Callable[[float], float], bracket: _Bracket, width: float
) -> _Bracket:
    """Narrow a bracket to a width by false position, and by bisection where that is slow."""
    while bracket.width > width and bracket.f_low > 0:
        root = bracket.low - bracket.f_low / bracket.slope
        # Step just past the estimated root, away from the nearer end: two such steps close the bracket.
        nearer_low = root - bracket.low < bracket.high - root
        middle = root + BEYOND * width if nearer_low else root - BEFORE * width
        edge = 0.02 * bracket.width  # keeps a bad estimate of the root off the ends
        middle = min(max(middle, bracket.low + edge), bracket.high - edge)
        before, bracket = bracket.width, _parted(excess, bracket, middle)
        if bracket.width > max(width, before / 2):
            middle = (bracket.low + bracket.high) / 2
            bracket = _parted(excess, bracket, middle)
    return bracket


def _parted(
    excess: Callable[[float], float], bracket: _Bracket, middle: float
) -> _Bracket:
    value = excess(middle)
    if value > 0:
        return _Bracket(middle, value, bracket.high, bracket.f_high)
    return _Bracket(bracket.low, bracket.f_low, middle, value)
