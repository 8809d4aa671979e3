r"""The gradient penalty :math:`\lambda (\|\nabla_x D\| - 1)^2`, its gradient in factors, and bounds on it.

With :math:`v = \nabla_x D`, :math:`t^0 = v/\|v\|` and :math:`t^l = \varphi'(z^l) W^l t^{l-1}`,

.. math:: \nabla_{W^l} \lambda(\|v\| - 1)^2 = 2\lambda (\|v\| - 1)\, g^l (t^{l-1})^\top,

and biases get 0, because the second derivative of the activations is 0. Spectral norms bound its norm by

.. math:: 2\lambda \max(1, V - 1)\, \|g^l\| \textstyle\prod_{k<l} \|W^k\|_2

with V the largest norm of v over the region. Theorem 3.1.3 of the thesis [1]_ multiplies Frobenius norms, those of the diagonal matrices of derivatives included, each the root of a width: the
bound is valid if V is the largest norm over the region and not that at one record. With V from the same norms it is about 1e12 for the thesis's critic, where spectral norms give 1e2.

References
----------
.. [1] Pedersen, "Privacy-preserving synthetic data", Theorem 3.1.3. Equation (3.27) drops the factor 2 max(...); the theorem leaves out lambda.
"""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.train.wgan.bounds import Bounds
from reticent.train.wgan.critics import Critic, Factors, Sums, values_and_factors

__all__ = [
    "frobenius_penalty_bounds",
    "penalty_factors",
    "penalty_of",
    "spectral_penalty_bounds",
]

Array = NDArray[np.float64]


def penalty_factors(critic: Critic, points: Array, strength: float) -> Factors:
    """Return the gradient of the penalty at each point, in factors; only its weights count, its biases are 0."""
    _, factors = values_and_factors(critic, points)
    steep = factors.gradients[0] @ critic.weights[0]
    norms = np.linalg.norm(steep, axis=1, keepdims=True)
    tangents = [np.divide(steep, norms, out=np.zeros_like(steep), where=norms > 0)]
    for weight, sums in zip(critic.weights[:-1], factors.sums, strict=True):
        tangents.append(critic.activation.forth(tangents[-1] @ weight.T, sums))
    scale = 2 * strength * (norms - 1)
    return Factors(
        inputs=tuple(tangents),
        gradients=tuple(scale * g for g in factors.gradients),
        sums=factors.sums,
    )


def penalty_of(critic: Critic, points: Array, strength: float) -> Sums:
    """Return the mean gradient of the penalty at points that hold no data."""
    total = penalty_factors(critic, points, strength).total()
    count = len(critic.weights)
    matrices = (part / len(points) for part in total[:count])
    return (*matrices, *(np.zeros_like(bias) for bias in critic.biases))


def spectral_penalty_bounds(bounds: Bounds, strength: float) -> tuple[float, ...]:
    """Return the largest norm of the penalty's gradient for one record, for the weights of each layer."""
    factor = 2 * strength * max(1.0, bounds.steepness - 1)
    return tuple(
        factor * norm * math.prod(bounds.spectral[:layer])
        for layer, norm in enumerate(bounds.gradient_norms)
    )


def frobenius_penalty_bounds(critic: Critic, strength: float) -> tuple[float, ...]:
    """Return the bounds that Theorem 3.1.3 prints, for comparison, with the largest steepness from the same norms."""
    norms = [float(np.linalg.norm(weight)) for weight in critic.weights]
    widths = math.prod(math.sqrt(len(bias)) for bias in critic.biases)
    factor = 2 * strength * max(1.0, widths * math.prod(norms) - 1)
    return tuple(
        factor * widths * math.prod(norms[:layer] + norms[layer + 1 :])
        for layer in range(len(norms))
    )
