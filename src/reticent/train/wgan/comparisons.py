"""Bounds of the literature on a critic's gradient, kept for comparison: none of them scales the noise of a release."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.train.wgan.activations import Interval
from reticent.train.wgan.bounds import Bounds
from reticent.train.wgan.critics import Critic
from reticent.train.wgan.penalty import frobenius_penalty_bounds
from reticent.train.wgan.regions import Region

__all__ = ["PrintedBounds", "box_only", "printed_bounds"]


@dataclass(frozen=True, kw_only=True)
class PrintedBounds:
    """Sensitivities as they are printed, for one critic and region.

    Parameters
    ----------
    xie : float
        Equation (3.1): twice the clipping constant times the bound on outputs times the number of weights, an L1 norm.
    without_fakes : float
        The first improvement: only the value of a record queries the data, half of it.
    in_l2 : float
        The second: the L2 norm of a vector with components of that size.
    of_weights : float
        The third: component-wise intervals from the weights of the moment (Theorem 3.1.1), the range from lowest to highest.
    penalty : float
        Theorem 3.1.3 over all layers, lambda included.
    algorithm : float
        Line 7 of Algorithm 1: range and penalty in quadrature. Both move the same weights, so they add up linearly.
    """

    xie: float
    without_fakes: float
    in_l2: float
    of_weights: float
    penalty: float
    algorithm: float

    @property
    def linear(self) -> float:
        """Range and penalty added up, as line 7 of Algorithm 1 should."""
        return self.of_weights + self.penalty


def printed_bounds(
    critic: Critic, region: Region, *, strength: float, clip: float | None = None
) -> PrintedBounds:
    """Return the printed bounds for a critic.

    Parameters
    ----------
    critic : Critic
        The weights.
    region : Region
        Where records lie.
    strength : float
        Lambda of the penalty.
    clip : float, optional
        The constant by which weights are clipped; the largest weight by default.

    References
    ----------
    .. [1] Xie et al., "Differentially private generative adversarial network", arXiv:1802.06739.
    """
    largest = clip or max(float(np.abs(w).max()) for w in critic.weights)
    lows_and_highs = box_only(critic, region)
    outputs = max(float(np.abs(np.stack(x)).max()) for x in lows_and_highs.inputs)
    weights = sum(weight.size for weight in critic.weights)
    component = largest * outputs  # the activations' derivatives are at most 1
    ranges = math.sqrt(
        math.fsum(
            float(np.square(_widths(g, x)).sum()) + float(np.square(g[1] - g[0]).sum())
            for g, x in zip(
                lows_and_highs.gradients, lows_and_highs.inputs, strict=True
            )
        )
    )
    penalty = math.hypot(*frobenius_penalty_bounds(critic, strength))
    return PrintedBounds(
        xie=2 * component * weights,
        without_fakes=component * weights,
        in_l2=component * math.sqrt(weights),
        of_weights=ranges,
        penalty=penalty,
        algorithm=math.hypot(ranges, penalty),
    )


def box_only(critic: Critic, region: Region) -> Bounds:
    """Return the intervals of Theorem 3.1.1 alone, not narrowed by norms."""
    inputs = [(region.low, region.high)]
    sums = []
    for weight, bias in zip(critic.weights[:-1], critic.biases, strict=True):
        up, down = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
        low, high = inputs[-1]
        sums.append((up @ low + down @ high + bias, up @ high + down @ low + bias))
        inputs.append(critic.activation.interval(sums[-1]))
    gradients = [(np.ones(1), np.ones(1))]
    for weight, before in zip(critic.weights[:0:-1], sums[::-1], strict=True):
        up, down = np.maximum(weight.T, 0.0), np.minimum(weight.T, 0.0)
        low, high = gradients[-1]
        after = (up @ low + down @ high, up @ high + down @ low)
        gradients.append(critic.activation.interval_back(after, before))
    count = len(critic.weights)
    nowhere = (math.inf,) * count
    return Bounds(
        spectral=nowhere,
        inputs=tuple(inputs),
        gradients=tuple(gradients[::-1]),
        input_norms=nowhere,
        gradient_norms=nowhere,
        at_centre=tuple(low for low, _ in inputs),
        spreads=nowhere,
    )


def _widths(g: Interval, x: Interval) -> NDArray[np.float64]:
    ends = [np.outer(a, b) for a in g for b in x]
    return np.asarray(np.maximum.reduce(ends) - np.minimum.reduce(ends))
