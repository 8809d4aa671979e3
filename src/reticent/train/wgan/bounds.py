r"""How far one record can move the gradient of a critic: intervals of every component, intersected with norms.

Intervals go forward through the layers and backward again (Theorem 3.1.1 of the thesis [1]_); beside them go norms. With
:math:`s_l \ge \|W^l\|_2`, the activations 1-Lipschitz and c the centre of the region with radius R,

.. math:: \|x^l\| \le \min(s_l \|x^{l-1}\| + \|b^l\|,\; \|x^l(c)\| + R \textstyle\prod_{k\le l} s_k), \qquad \|g^l\| \le s_{l+1} \|g^{l+1}\|.

Each narrows the other: a sum :math:`z^l_j` stays within the norm of its row of weights times the spread of the inputs around :math:`z^l_j(c)`, and a norm
is at most that of the corner of the box. For the thesis's critic the box alone is 10 times as large as both together.

Everything is computed from the weights, which are public once they carry noise, and from the region. No record is looked at.

References
----------
.. [1] Pedersen, "Privacy-preserving synthetic data", Theorem 3.1.1; the sums of (3.9), (3.10), (3.21) and (3.22) run over the inputs of a layer, or over its outputs on the way back.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.train.wgan.activations import Interval
from reticent.train.wgan.critics import Critic, values_and_factors
from reticent.train.wgan.regions import Region
from reticent.train.wgan.spectral import spectral_norm

__all__ = ["Block", "Bounds", "blocks_of", "bounds_of"]

Array = NDArray[np.float64]
ROUNDING = 1 + 1e-9  # on products of norms, so that no bound is below its exact value


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bounds on inputs and gradients of all layers, over all records of a region.

    Parameters
    ----------
    spectral : tuple of float
        Spectral norm of the weights of each layer.
    inputs, gradients : tuple of interval
        Lowest and highest values of the inputs of each layer, and of the gradient with respect to its sums.
    input_norms, gradient_norms : tuple of float
        Largest norms of the same.
    at_centre : tuple of array
        Inputs of each layer for the centre of the region.
    spreads : tuple of float
        Largest distance of the inputs of each layer from those for the centre.
    """

    spectral: tuple[float, ...]
    inputs: tuple[Interval, ...]
    gradients: tuple[Interval, ...]
    input_norms: tuple[float, ...]
    gradient_norms: tuple[float, ...]
    at_centre: tuple[Array, ...]
    spreads: tuple[float, ...]

    @property
    def steepness(self) -> float:
        """Largest norm of the gradient with respect to the record."""
        return self.spectral[0] * self.gradient_norms[0]


@dataclass(frozen=True, kw_only=True)
class Block:
    """How far one record's gradient with respect to one parameter array can lie from public centres.

    Parameters
    ----------
    middle, half : array
        Middle and half width of the interval of each component.
    centre : array
        Centre of the ball; it is not the middle.
    radius : float
        Largest distance from the centre.
    """

    middle: Array
    half: Array
    centre: Array
    radius: float


def bounds_of(critic: Critic, region: Region) -> Bounds:
    """Return bounds on all layers of a critic.

    Examples
    --------
    >>> from reticent.train.wgan.activations import LeakyReLU
    >>> from reticent.train.wgan.critics import critic_of
    >>> critic = critic_of((4, 8, 1), LeakyReLU(), np.random.default_rng(0))
    >>> bounds = bounds_of(critic, Region.cube(4))
    >>> [round(norm, 2) for norm in bounds.input_norms]
    [2.0, 1.85]
    """
    spectral = tuple(spectral_norm(weight) for weight in critic.weights)
    _, centre = values_and_factors(critic, region.centre[None, :])
    at_centre = tuple(layer[0] for layer in centre.inputs)
    interval: Interval = (region.low, region.high)
    spread = min(region.radius, _distance(interval, at_centre[0]))
    norm = min(_corner(interval), float(np.linalg.norm(at_centre[0])) + spread)
    inputs, norms, spreads, sums = [interval], [norm], [spread], []
    for layer, bias in enumerate(critic.biases):
        weight = critic.weights[layer]
        rows = np.linalg.norm(weight, axis=1) * spread * ROUNDING
        before = _met(
            _times(weight, interval, bias),
            (centre.sums[layer][0] - rows, centre.sums[layer][0] + rows),
        )
        sums.append(before)
        interval = critic.activation.interval(before)
        spread = min(
            spectral[layer] * spread * ROUNDING,
            _distance(interval, at_centre[layer + 1]),
        )
        norm = min(
            (spectral[layer] * norm + float(np.linalg.norm(bias))) * ROUNDING,
            float(np.linalg.norm(at_centre[layer + 1])) + spread,
            _corner(interval),
        )
        inputs.append(interval)
        norms.append(norm)
        spreads.append(spread)
    gradients, gradient_norms = _backward(critic, spectral, sums)
    return Bounds(
        spectral=spectral,
        inputs=tuple(inputs),
        gradients=gradients,
        input_norms=tuple(norms),
        gradient_norms=gradient_norms,
        at_centre=at_centre,
        spreads=tuple(spreads),
    )


def _backward(
    critic: Critic, spectral: tuple[float, ...], sums: list[Interval]
) -> tuple[tuple[Interval, ...], tuple[float, ...]]:
    interval: Interval = (np.ones(1), np.ones(1))
    norm = 1.0
    intervals, norms = [interval], [norm]
    for layer in range(len(critic.biases) - 1, -1, -1):
        weight = critic.weights[layer + 1]
        columns = np.linalg.norm(weight, axis=0) * norm * ROUNDING
        after = _met(_times(weight.T, interval, 0.0), (-columns, columns))
        interval = critic.activation.interval_back(after, sums[layer])
        norm = min(
            spectral[layer + 1] * norm * ROUNDING, _corner(after), _corner(interval)
        )
        intervals.append(interval)
        norms.append(norm)
    return tuple(intervals[::-1]), tuple(norms[::-1])


def blocks_of(bounds: Bounds) -> tuple[Block, ...]:
    r"""Return what bounds on the layers say about the gradient: all weights, then all biases.

    The gradient of the last layer's weights is :math:`x^{L-1}`, which lies in a ball around its value for the centre of the region; for the other blocks the ball is around 0.
    """
    last = len(bounds.inputs) - 1
    matrices, vectors = [], []
    for layer, (x, g) in enumerate(zip(bounds.inputs, bounds.gradients, strict=True)):
        low, high = _outer(g, x)
        middle, half = (low + high) / 2, (high - low) / 2
        centre = np.zeros_like(middle)
        radius = bounds.gradient_norms[layer] * bounds.input_norms[layer] * ROUNDING
        if layer == last and bounds.spreads[layer] < radius:
            centre = bounds.at_centre[layer][None, :]
            radius = bounds.spreads[layer]
        matrices.append(Block(middle=middle, half=half, centre=centre, radius=radius))
        if layer != last:
            vectors.append(
                Block(
                    middle=(g[0] + g[1]) / 2,
                    half=(g[1] - g[0]) / 2,
                    centre=np.zeros_like(g[0]),
                    radius=bounds.gradient_norms[layer],
                )
            )
    return (*matrices, *vectors)


def _times(matrix: Array, interval: Interval, offset: Array | float) -> Interval:
    """Return bounds on a product with a matrix: each sum takes the low or the high end by the sign of its weight."""
    up, down = np.maximum(matrix, 0.0), np.minimum(matrix, 0.0)
    low, high = interval
    return up @ low + down @ high + offset, up @ high + down @ low + offset


def _outer(first: Interval, second: Interval) -> Interval:
    """Return bounds on an outer product, equations (3.15), (3.16) and (3.18)."""
    ends = [np.outer(a, b) for a in first for b in second]
    return np.minimum.reduce(ends), np.maximum.reduce(ends)


def _met(one: Interval, other: Interval) -> Interval:
    """Return the intersection of two boxes; where rounding leaves nothing, the sliver between them."""
    low, high = np.maximum(one[0], other[0]), np.minimum(one[1], other[1])
    return np.minimum(low, high), np.maximum(low, high)


def _corner(interval: Interval) -> float:
    """Return the largest norm in a box."""
    return float(np.linalg.norm(np.maximum(np.abs(interval[0]), np.abs(interval[1])))) * ROUNDING  # fmt: skip


def _distance(interval: Interval, place: Array) -> float:
    """Return the largest distance from a place in a box."""
    furthest = np.maximum(np.abs(interval[1] - place), np.abs(place - interval[0]))
    return float(np.linalg.norm(furthest)) * ROUNDING
