"""The generator: dense layers from random numbers to coordinates, and its gradient. It never sees a record."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Adam", "GeneratorNetwork", "Moments", "generator_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class GeneratorNetwork:
    """Weights of a generator with ReLU in its hidden layers, and a sigmoid or a softmax for every group of coordinates.

    Parameters
    ----------
    weights, biases : tuple of array
        One per layer; weights have the shape (outputs, inputs).
    groups : tuple of int
        Sizes of the groups of coordinates.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    groups: tuple[int, ...]

    @property
    def parameters(self) -> tuple[Array, ...]:
        """All weights, then all biases."""
        return (*self.weights, *self.biases)

    @property
    def latent(self) -> int:
        """How many random numbers make a row."""
        return int(self.weights[0].shape[1])

    def with_parameters(self, parameters: Sequence[Array]) -> "GeneratorNetwork":
        """Return a generator of the same shape with other parameters."""
        count = len(self.weights)
        return GeneratorNetwork(
            weights=tuple(parameters[:count]),
            biases=tuple(parameters[count:]),
            groups=self.groups,
        )

    def rows(self, latent: Array) -> tuple[Array, list[Array]]:
        """Return rows of coordinates, and the inputs of all layers."""
        layers = [latent]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layers.append(np.maximum(layers[-1] @ weight.T + bias, 0.0))
        return self._heads(layers[-1] @ self.weights[-1].T + self.biases[-1]), layers

    def gradient(
        self, rows: Array, layers: list[Array], slope: Array
    ) -> tuple[Array, ...]:
        """Return the gradient of a mean over rows, given its slope with respect to each row's coordinates."""
        back = self._back(rows, slope / len(rows))
        weights, biases = [], []
        for place in range(len(self.weights) - 1, -1, -1):
            weights.append(back.T @ layers[place])
            biases.append(back.sum(axis=0))
            if place:
                back = (back @ self.weights[place]) * (layers[place] > 0)
        return (*weights[::-1], *biases[::-1])

    def _heads(self, sums: Array) -> Array:
        # Sigmoids of all coordinates at once; those of groups are overwritten.
        out = 0.5 * (1 + np.tanh(sums / 2))
        for group in self._wide:
            part = sums[:, group]
            powers = np.exp(part - part.max(axis=1, keepdims=True))
            out[:, group] = powers / powers.sum(axis=1, keepdims=True)
        return out

    def _back(self, rows: Array, slope: Array) -> Array:
        out = rows * (1 - rows) * slope
        for group in self._wide:
            p, s = rows[:, group], slope[:, group]
            out[:, group] = p * (s - (p * s).sum(axis=1, keepdims=True))
        return out

    @property
    def _wide(self) -> list[slice]:
        """Where the coordinates of each softmax are."""
        ends = list(itertools.accumulate(self.groups))
        return [
            slice(end - size, end)
            for end, size in zip(ends, self.groups, strict=True)
            if size > 1
        ]


def generator_of(
    widths: Sequence[int], groups: Sequence[int], rng: np.random.Generator
) -> GeneratorNetwork:
    """Return a generator with random weights.

    Parameters
    ----------
    widths : sequence of int
        Random numbers per row, units of each hidden layer, coordinates.
    groups : sequence of int
        Sizes of the groups of coordinates.
    rng : numpy.random.Generator
        Randomness, which protects nobody.

    Examples
    --------
    >>> made = generator_of((4, 8, 4), (1, 3), np.random.default_rng(0))
    >>> rows, _ = made.rows(np.zeros((2, 4)))
    >>> rows.shape, rows[:, 1:].sum(axis=1).round(6).tolist()
    ((2, 4), [1.0, 1.0])
    """
    weights = [
        rng.standard_normal((outputs, inputs)) * np.sqrt(2 / inputs)
        for inputs, outputs in itertools.pairwise(widths)
    ]
    return GeneratorNetwork(
        weights=tuple(weights),
        biases=tuple(np.zeros(width) for width in widths[1:]),
        groups=tuple(groups),
    )


@dataclass(frozen=True, kw_only=True)
class Moments:
    """What Adam remembers of the steps before.

    Parameters
    ----------
    steps : int
        How many there were.
    means, squares : tuple of array
        Decaying means of gradients and of their squares; empty before the first step.
    """

    steps: int = 0
    means: tuple[Array, ...] = ()
    squares: tuple[Array, ...] = ()


@dataclass
class Adam:
    """The optimiser Adam [1]_, upwards: it follows a gradient that is to be made larger.

    Parameters
    ----------
    rate : float
        Learning rate.
    first, second : float
        Decay of the means of gradients and of their squares.
    moments : Moments
        What is remembered of earlier steps.

    References
    ----------
    .. [1] Kingma & Ba, "Adam: a method for stochastic optimization", arXiv:1412.6980.
    """

    rate: float
    first: float = 0.5
    second: float = 0.9
    moments: Moments = field(default_factory=Moments)

    def moved(
        self, parameters: Sequence[Array], gradient: Sequence[Array]
    ) -> list[Array]:
        """Return parameters after one step."""
        before = self.moments
        zeros = () if before.means else tuple(np.zeros_like(p) for p in parameters)
        steps = before.steps + 1
        warm_first = 1 - self.first**steps
        warm_second = 1 - self.second**steps
        moved, means, squares = [], [], []
        for parameter, slope, old_mean, old_square in zip(
            parameters,
            gradient,
            before.means or zeros,
            before.squares or zeros,
            strict=True,
        ):
            mean = self.first * old_mean + (1 - self.first) * slope
            square = self.second * old_square + (1 - self.second) * np.square(slope)
            # In place: these arrays are as long as the networks, and there are many steps.
            below = square / warm_second
            np.sqrt(below, out=below)
            below += 1e-8
            step = mean / warm_first
            step /= below
            step *= self.rate
            step += parameter
            moved.append(step)
            means.append(mean)
            squares.append(square)
        self.moments = Moments(steps=steps, means=tuple(means), squares=tuple(squares))
        return moved
