r"""Activations of a critic, with what bounds need to know of them: images of intervals and of gradients.

Both are 1-Lipschitz, keep the origin where it is, and have Jacobians of spectral norm at most 1. MaxMin [1]_ sorts pairs of numbers, so that
its Jacobian is a permutation and gradients keep their norm; LeakyReLU shrinks what is negative.

References
----------
.. [1] Anil, Lucas & Grosse, "Sorting out Lipschitz function approximation", ICML 2019, arXiv:1811.05381.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput

__all__ = ["Activation", "LeakyReLU", "MaxMin"]

Array = NDArray[np.float64]
Interval = tuple[Array, Array]  # lowest and highest values


class Activation(Protocol):
    """What a hidden layer does to its sums, and how gradients pass through it."""

    keeps_norms: ClassVar[bool]  # whether outputs are as long as the sums

    def apply(self, sums: Array) -> Array:
        """Return the outputs of a layer."""
        ...

    def back(self, gradient: Array, sums: Array) -> Array:
        """Return the gradient with respect to the sums, given that with respect to the outputs."""
        ...

    def forth(self, tangent: Array, sums: Array) -> Array:
        """Return the change of the outputs that a change of the sums makes."""
        ...

    def interval(self, sums: Interval) -> Interval:
        """Return bounds on the outputs, given bounds on the sums."""
        ...

    def interval_back(self, gradient: Interval, sums: Interval) -> Interval:
        """Return bounds on the gradient with respect to the sums, given bounds on both."""
        ...


@dataclass(frozen=True)
class LeakyReLU:
    """Multiply what is not positive by a slope, as equation (3.5) of Pedersen's thesis.

    Parameters
    ----------
    slope : float
        In [0, 1]. It is also the derivative at 0.

    Examples
    --------
    >>> LeakyReLU(0.2).apply(np.array([-1.0, 0.0, 2.0])).tolist()
    [-0.2, 0.0, 2.0]
    """

    slope: float = 0.2
    keeps_norms: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.slope <= 1:
            raise InvalidInput(
                f"the slope of a LeakyReLU must lie in [0, 1], got {self.slope}: gradient bounds count on it."
            )

    def apply(self, sums: Array) -> Array:
        """Return the outputs of a layer; with a slope of at most 1, the larger of the two."""
        return np.maximum(sums, self.slope * sums)

    def back(self, gradient: Array, sums: Array) -> Array:
        """Return the gradient with respect to the sums."""
        # The derivative as numbers, 1 or the slope: several times quicker than choosing between two arrays.
        return gradient * np.maximum((sums > 0).astype(sums.dtype), self.slope)

    def forth(self, tangent: Array, sums: Array) -> Array:
        """Return the change of the outputs; the Jacobian is diagonal, so it is its own transpose."""
        return self.back(tangent, sums)

    def interval(self, sums: Interval) -> Interval:
        """Return bounds on the outputs, equation (3.11): the function rises."""
        return self.apply(sums[0]), self.apply(sums[1])

    def interval_back(self, gradient: Interval, sums: Interval) -> Interval:
        """Return bounds on the gradient, equations (3.19) and (3.20): the derivative is the slope, 1, or either."""
        low, high = gradient
        flat, steep = sums[0] <= 0, sums[1] > 0  # whether each derivative can occur
        lowest = np.minimum(
            np.where(flat, self.slope * low, np.inf), np.where(steep, low, np.inf)
        )
        highest = np.maximum(
            np.where(flat, self.slope * high, -np.inf), np.where(steep, high, -np.inf)
        )
        return lowest, highest


@dataclass(frozen=True)
class MaxMin:
    """Put the larger of two neighbouring numbers first.

    Examples
    --------
    >>> MaxMin().apply(np.array([[1.0, 3.0, 2.0, -1.0]])).tolist()
    [[3.0, 1.0, 2.0, -1.0]]
    """

    keeps_norms: ClassVar[bool] = True

    def apply(self, sums: Array) -> Array:
        """Return the outputs of a layer."""
        return self.forth(sums, sums)

    def back(self, gradient: Array, sums: Array) -> Array:
        """Return the gradient with respect to the sums; an exchange is its own inverse."""
        return self.forth(gradient, sums)

    def forth(self, tangent: Array, sums: Array) -> Array:
        """Return the change of the outputs: it is exchanged where the sums are."""
        first, second = _pairs(tangent)
        a, b = _pairs(sums)
        swap = b > a
        return _joined(np.where(swap, second, first), np.where(swap, first, second))

    def interval(self, sums: Interval) -> Interval:
        """Return bounds on the outputs: maximum and minimum rise with both numbers."""
        return self.apply(sums[0]), self.apply(sums[1])

    def interval_back(self, gradient: Interval, sums: Interval) -> Interval:
        """Return bounds on the gradient: exchanged, not exchanged, or either."""
        low_a, low_b = _pairs(sums[0])
        high_a, high_b = _pairs(sums[1])
        swapped, straight = high_b > low_a, high_a >= low_b  # whether each can occur
        ends = []
        for side, worse, never in (
            (gradient[0], np.minimum, np.inf),
            (gradient[1], np.maximum, -np.inf),
        ):
            first, second = _pairs(side)
            ends.append(
                _joined(
                    worse(
                        np.where(straight, first, never),
                        np.where(swapped, second, never),
                    ),
                    worse(
                        np.where(straight, second, never),
                        np.where(swapped, first, never),
                    ),
                )
            )
        return ends[0], ends[1]


def _pairs(numbers: Array) -> tuple[Array, Array]:
    return numbers[..., 0::2], numbers[..., 1::2]


def _joined(first: Array, second: Array) -> Array:
    joined = np.empty((*first.shape[:-1], 2 * first.shape[-1]))
    joined[..., 0::2], joined[..., 1::2] = first, second
    return joined
