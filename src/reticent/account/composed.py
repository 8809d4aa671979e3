"""The privacy loss of many equal steps, as ``dp_accounting`` computes it, in a fraction of the time.

The library convolves the distribution of one step with itself by a Fourier transform (Koskela, Jälkö & Honkela,
arXiv:1906.03049), and finds by Chernoff's bound at 40 orders how much of the result must be kept. It takes the moments
for this bound in a form that is safe for orders of any size, which was most of the time of a calibration. The
orders it uses are so small that no exponential exceeds ``exp(20)``, so that they can be summed as they are.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from reticent.account._library import DP

__all__ = ["composed", "kept_cells"]

# Mass that may be cut off both ends together; it is counted as an infinite loss. The default of the library.
CUT_OFF = 1e-15
# The largest order of Chernoff's bound, in units of one over the number of cells; the orders of the library.
MOST_ORDERS = 20


def composed(loss: Any, times: int) -> Any:
    """Return the privacy loss distribution of so many uses of a mechanism.

    Parameters
    ----------
    loss : PrivacyLossDistribution
        Of one use.
    times : int
        How many uses there are.

    Examples
    --------
    >>> once = DP.pld.from_laplace_mechanism(4.0)
    >>> round(float(composed(once, 2).get_epsilon_for_delta(1e-9)), 3)
    0.5
    """
    if times == 1:
        return loss
    removed = _pmf_of_many(loss._pmf_remove, times)
    if loss._symmetric:
        return DP.pld.PrivacyLossDistribution(removed)
    return DP.pld.PrivacyLossDistribution(removed, _pmf_of_many(loss._pmf_add, times))


def _pmf_of_many(pmf: Any, times: int) -> Any:
    # Few losses: the library multiplies them out.
    if not isinstance(pmf, DP.pmf.DensePLDPmf):
        return pmf.self_compose(times, CUT_OFF)
    once = np.asarray(pmf._probs, dtype=np.float64)
    low, high = kept_cells(once, times)
    length = fft.next_fast_len(max(high - low + 1, len(once)))
    # The transform goes round in circles of this length; what is kept begins at `low`.
    circle = np.real(fft.ifft(fft.fft(once, length) ** times))
    kept = np.roll(circle, -low)[: high - low + 1]
    infinite = CUT_OFF - math.expm1(times * math.log1p(-pmf._infinity_mass))
    return DP.pmf.DensePLDPmf(
        pmf._discretization,
        pmf._lower_loss * times + low,
        kept,
        infinite,
        pmf._pessimistic_estimate,
    )


def kept_cells(once: NDArray[np.float64], times: int) -> tuple[int, int]:
    """Return the first and the last cell outside of which no more than ``CUT_OFF`` of the sum of many losses lies.

    Examples
    --------
    >>> kept_cells(np.full(100, 0.01), 400)
    (14809, 24791)
    """
    cells = len(once)
    lowest, highest = 0, (cells - 1) * times
    tail = math.log(2 / CUT_OFF)
    step = np.exp(np.arange(cells) / cells)
    rising = falling = once
    for number in range(1, MOST_ORDERS + 1):
        rising, falling = rising * step, falling / step
        order = number / cells
        above, below = (_log(times, side) + tail for side in (rising, falling))
        if math.isfinite(above):
            highest = min(highest, math.ceil(above / order))
        if math.isfinite(below):
            lowest = max(lowest, math.floor(-below / order))
    return lowest, highest


def _log(times: int, terms: NDArray[np.float64]) -> float:
    """Return the logarithm of the moment of many losses; not finite if there is none."""
    moment = float(terms.sum())
    return times * math.log(moment) if moment > 0 else math.inf
