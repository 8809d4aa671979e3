"""The smallest leak that an audit of a given size can detect, and the size that a question needs."""

import math

from scipy.special import ndtri
from scipy.stats import binom

from reticent._check import in_open_unit
from reticent.evidence._estimate import Estimate
from reticent.evidence.proportion import upper_limit

__all__ = ["records_to_resolve", "records_to_settle", "smallest_visible_leak"]


def smallest_visible_leak(
    members: int, nonmembers: int, *, level: float, power: float = 0.8
) -> float:
    r"""Return the smallest LTU accuracy that an audit of this size distinguishes from 1/2.

    Without a leak the accuracy has the Mann-Whitney variance
    :math:`(m + n + 1)/(12 m n)`; a leak is detected with probability ``power`` if it exceeds
    1/2 by the sum of the two normal quantiles times the standard error.

    Parameters
    ----------
    members, nonmembers : int
        Number of members and of non-members.
    level : float
        Two-sided confidence, in (0, 1).
    power : float
        Probability of detecting the leak, in (0, 1).

    Examples
    --------
    >>> round(smallest_visible_leak(200, 200, level=0.95), 3)
    0.581
    """
    in_open_unit(level, "level")
    error = math.sqrt((members + nonmembers + 1) / (12 * members * nonmembers))
    reach = float(ndtri(1 - (1 - level) / 2) + ndtri(in_open_unit(power, "power")))
    return min(1.0, 0.5 + reach * error)


def records_to_settle(estimate: Estimate, limit: float, records: int) -> int | None:
    """Return about how many records would put the whole interval on one side of a limit.

    Half-widths shrink with the square root of the number of records. ``None`` when the
    value is so close to the limit that no practical number of records would suffice.

    Examples
    --------
    >>> e = Estimate(value=0.95, low=0.85, high=1.0, level=0.95, method="DeLong")
    >>> records_to_settle(e, 0.9, 400)
    1600
    """
    distance = abs(estimate.value - limit)
    half = (
        estimate.value - estimate.low
        if estimate.value > limit
        else estimate.high - estimate.value
    )
    # A ratio of 100 already asks for ten thousand times the records.
    if distance < 1e-9 or half / distance > 100:
        return None
    needed = math.ceil(records * max(1.0, half / distance) ** 2 - 1e-6)
    return _rounded_up(needed)


def records_to_resolve(fpr: float, tpr_limit: float, *, level: float) -> int:
    """Return about how many non-members are needed to show that a TPR is below its limit at a low FPR.

    A product that leaks nothing has a TPR equal to the FPR. The result is the smallest number (to
    ten per cent) at which the upper end that :func:`tpr_at_fpr` would then give, with as many
    members, falls below the limit.

    Parameters
    ----------
    fpr, tpr_limit : float
        The rate and the limit, ``fpr < tpr_limit``.
    level : float
        Confidence of the one interval, in (0, 1).

    Examples
    --------
    >>> records_to_resolve(0.001, 0.01, level=0.95)
    1400
    """
    miss = (1 - in_open_unit(level, "level")) / 4
    n = 100.0
    while n < 1e9:
        most = float(binom.isf(miss, int(n), fpr))
        if upper_limit(most + 1, int(n), miss) <= tpr_limit:
            break
        n *= 1.1
    return _rounded_up(n)


def _rounded_up(number: float) -> int:
    """Return the number rounded up to two significant digits."""
    step = int(10 ** max(0, len(str(int(number))) - 2))
    return math.ceil(number / step) * step
