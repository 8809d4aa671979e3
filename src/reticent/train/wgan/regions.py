"""The set in which every coded record lies, whoever it belongs to: bounds on gradients are bounds over this set."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Region"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Region:
    """A public box, and a ball around a public centre; records lie in both.

    Parameters
    ----------
    low, high : array of float
        Lowest and highest value of each coordinate.
    centre : array of float
        Centre of the ball.
    radius : float
        Largest distance of a record from the centre. For categories it is far below that of the corners of the box, because a record has one category at a time.
    """

    low: Array
    high: Array
    centre: Array
    radius: float

    @classmethod
    def cube(cls, dimension: int) -> "Region":
        """Return the unit cube, as in the thesis.

        Examples
        --------
        >>> Region.cube(4).radius
        1.0
        """
        return cls(
            low=np.zeros(dimension),
            high=np.ones(dimension),
            centre=np.full(dimension, 0.5),
            radius=math.sqrt(dimension) / 2,
        )

    @classmethod
    def point(cls, place: Array) -> "Region":
        """Return a single point: every bound must then equal the value itself."""
        return cls(low=place, high=place, centre=place, radius=0.0)
