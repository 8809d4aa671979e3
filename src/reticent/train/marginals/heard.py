"""Tell cells that hold records from cells that hold noise alone."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["heard_cells"]

WINDOWS = (1, 2, 4, 8)  # neighbouring cells that are heard together


def heard_cells(
    noisy: NDArray[np.float64], deviation: float, *, above: float
) -> NDArray[np.int64]:
    """Return the cells that are louder than noise: by themselves, or together with their neighbours.

    Of a column that is 0 for most people, the others may be spread over so many cells that none of them is heard alone. Cells that were heard are left out
    where wider windows are looked at, or they would carry their whole neighbourhood.

    Parameters
    ----------
    noisy : array of float
        Noisy counts of neighbouring cells.
    deviation : float
        Of the noise on each of them.
    above : float
        Deviations that the sum of a window must exceed.

    Examples
    --------
    >>> heard_cells(np.array([0.0, 0.0, 3.0, 3.0, 3.0, 3.0, 0.0, 90.0]), 1.0, above=4.0)
    array([2, 3, 4, 5, 7])
    """
    left, found = noisy.copy(), np.zeros(len(noisy), dtype=np.bool_)
    for width in WINDOWS:
        if width > len(noisy):
            break
        sums = np.convolve(left, np.ones(width), mode="valid")
        for start in np.flatnonzero(sums >= above * deviation * math.sqrt(width)):
            found[start : start + width] = True
        left[found] = 0.0
    return np.flatnonzero(found)
