"""Spectral norms from above, and the nearest matrix whose norm is at most one."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["projected", "projected_vector", "spectral_norm"]

Array = NDArray[np.float64]
# Added to what the decomposition returns. Its error is some units in the last place, below 1e-12, so the result is an upper bound; power
# iteration, which libraries use, approaches the norm from below and is no bound.
SAFETY = 1e-6


def spectral_norm(matrix: Array) -> float:
    """Return an upper bound on the largest singular value, a millionth above it.

    Examples
    --------
    >>> round(spectral_norm(np.diag([3.0, 4.0])), 4)
    4.0
    """
    if min(matrix.shape) == 1:
        return float(np.linalg.norm(matrix)) * (1 + SAFETY)
    return float(np.linalg.norm(matrix, 2)) * (1 + SAFETY)


def projected(matrix: Array) -> Array:
    """Return the nearest matrix with no singular value above one.

    Examples
    --------
    >>> projected(np.diag([3.0, 0.5])).round(6).tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    if values[0] <= 1:
        return matrix
    return np.asarray((left * np.minimum(values, 1.0)) @ right)


def projected_vector(vector: Array) -> Array:
    """Return the nearest vector of norm at most one."""
    return vector / max(1.0, float(np.linalg.norm(vector)))
