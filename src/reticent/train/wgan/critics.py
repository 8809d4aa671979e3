r"""A critic of dense layers: its value, and the gradient of its value for each record in factors.

With :math:`x^0` the input, :math:`z^l = W^l x^{l-1} + b^l`, :math:`x^l = \varphi(z^l)` and the value :math:`D = z^L`, back-propagation gives
:math:`g^L = 1` and :math:`g^l = \varphi'(z^l)^\top (W^{l+1})^\top g^{l+1}`, and for every single record

.. math:: \nabla_{W^l} D = g^l (x^{l-1})^\top, \qquad \nabla_{b^l} D = g^l.

The weight gradient is the outer product with the layer's input: equations (3.14), (3.23) and (3.24) of the thesis [1]_ print the gradient with respect to the input in its place.
Because it is an outer product, norms and sums over records follow from the factors, and no gradient of a single record is ever formed.

The last layer has no bias. Its gradient is 1 for every record, so it cancels in the loss of a Wasserstein critic and would be a bare count of the records.

References
----------
.. [1] Pedersen, "Privacy-preserving synthetic data", chapter 3.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.train.wgan.activations import Activation

__all__ = ["Critic", "Factors", "Sums", "critic_of", "values_and_factors"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Critic:
    """The weights of a critic.

    Parameters
    ----------
    weights : tuple of array
        One matrix per layer, shape (outputs, inputs); the last one has one row.
    biases : tuple of array
        One vector per hidden layer.
    activation : Activation
        Of the hidden layers.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activation: Activation

    @property
    def parameters(self) -> tuple[Array, ...]:
        """All weights, then all biases: the order of every list of blocks in this package."""
        return (*self.weights, *self.biases)

    def with_parameters(self, parameters: Sequence[Array]) -> "Critic":
        """Return a critic of the same shape with other parameters."""
        count = len(self.weights)
        return Critic(
            weights=tuple(parameters[:count]),
            biases=tuple(parameters[count:]),
            activation=self.activation,
        )


@dataclass(frozen=True, kw_only=True)
class Factors:
    """The gradient of the critic's value for each of n records, in factors.

    Parameters
    ----------
    inputs : tuple of array
        The inputs of each layer, shape (n, width).
    gradients : tuple of array
        The gradient with respect to the sums of each layer, shape (n, width).
    sums : tuple of array
        The sums of each hidden layer.
    """

    inputs: tuple[Array, ...]
    gradients: tuple[Array, ...]
    sums: tuple[Array, ...]

    def total(self, weights: Array | None = None) -> "Sums":
        """Return the sum over records, each multiplied by a weight if there are any."""
        scaled = self.gradients
        if weights is not None:
            scaled = tuple(g * weights[:, None] for g in self.gradients)
        matrices = [g.T @ x for g, x in zip(scaled, self.inputs, strict=True)]
        return (*matrices, *(g.sum(axis=0) for g in scaled[:-1]))

    def squared_norms(self) -> tuple[Array, ...]:
        """Return the squared norm of each block for each record: all weights, then all biases."""
        g = [np.square(part).sum(axis=1) for part in self.gradients]
        x = [np.square(part).sum(axis=1) for part in self.inputs]
        return (*(a * b for a, b in zip(g, x, strict=True)), *g[:-1])

    def products(self, blocks: "Sums") -> tuple[Array, ...]:
        """Return the inner product of each block of each record's gradient with a given one."""
        count = len(self.inputs)
        matrices = (
            np.einsum("no,no->n", g, x @ block.T)
            for g, x, block in zip(
                self.gradients, self.inputs, blocks[:count], strict=True
            )
        )
        vectors = (
            g @ block
            for g, block in zip(self.gradients[:-1], blocks[count:], strict=True)
        )
        return (*matrices, *vectors)


Sums = tuple[Array, ...]  # one array per parameter: all weights, then all biases


def critic_of(
    widths: Sequence[int], activation: Activation, rng: np.random.Generator
) -> Critic:
    """Return a critic with random weights: orthonormal rows or columns if the activation keeps norms, uniform ones up to one over the root of the inputs else.

    Parameters
    ----------
    widths : sequence of int
        Number of inputs, of units in each hidden layer, and 1.
    activation : Activation
        Of the hidden layers.
    rng : numpy.random.Generator
        Randomness, which protects nobody.
    """
    weights = []
    for inputs, outputs in itertools.pairwise(widths):
        if activation.keeps_norms:
            drawn = rng.standard_normal((max(inputs, outputs), min(inputs, outputs)))
            orthonormal = np.linalg.qr(drawn)[0]
            weights.append(orthonormal if outputs >= inputs else orthonormal.T)
        else:
            limit = 1 / np.sqrt(inputs)
            weights.append(rng.uniform(-limit, limit, (outputs, inputs)))
    biases = tuple(np.zeros(width) for width in widths[1:-1])
    return Critic(
        weights=tuple(np.ascontiguousarray(w) for w in weights),
        biases=biases,
        activation=activation,
    )


def values_and_factors(critic: Critic, inputs: Array) -> tuple[Array, Factors]:
    """Return the value of the critic for each record, and its gradient in factors.

    Examples
    --------
    >>> from reticent.train.wgan.activations import LeakyReLU
    >>> critic = critic_of((2, 4, 1), LeakyReLU(), np.random.default_rng(0))
    >>> values, factors = values_and_factors(critic, np.zeros((3, 2)))
    >>> values.tolist(), [block.shape for block in factors.total()]
    ([0.0, 0.0, 0.0], [(4, 2), (1, 4), (4,)])
    """
    layers, sums = [inputs], []
    for weight, bias in zip(critic.weights[:-1], critic.biases, strict=True):
        sums.append(layers[-1] @ weight.T + bias)
        layers.append(critic.activation.apply(sums[-1]))
    values = layers[-1] @ critic.weights[-1].T
    gradient = np.ones((len(inputs), 1), dtype=inputs.dtype)
    gradients = [gradient]
    for weight, before in zip(critic.weights[:0:-1], sums[::-1], strict=True):
        gradient = critic.activation.back(gradient @ weight, before)
        gradients.append(gradient)
    factors = Factors(
        inputs=tuple(layers), gradients=tuple(gradients[::-1]), sums=tuple(sums)
    )
    return values[:, 0], factors
