"""Train many multilayer perceptrons in one pass: stacked parameters, batched matrix products.

M models of one shape have parameters ``W[l]`` of shape (M, out, in). Each model has its own
members, initialisation, batch order and dropout, all from its own generator, so a result does
not depend on which models are trained together. Activations are stored feature-major, (M, features,
batch): the products ``W x`` then run at the speed of the matrix library even for narrow layers.
There is no autograd: forward, backward and update are written out, and a plain step updates the
weights inside the matrix product that forms their gradient.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.errors import InvalidInput
from reticent.train.recipes import Network
from reticent.train.stacking import (
    Cohort,
    Descent,
    Epoch,
    View,
    batch_order,
    rotated,
)

__all__ = [
    "FEW_RECORDS",
    "LARGE",
    "Kept",
    "Networks",
    "backward",
    "forward",
    "initial_parameters",
    "stacked_parameters",
    "train_networks",
]

PIECE = 4096  # records predicted at once, so that the layers' outputs stay small
# Weights above which, and records per batch below which, matrix products are faster record by record: 69 against 40 GFLOP/s for 20
# records and 512 x 1280 weights, and 70 against 79 for 32 (one thread of a processor with AVX2).
LARGE = 2**16
FEW_RECORDS = 32
# What dropout keeps of each hidden layer, (M, width, k), scaled by 1 / keep; None for a layer that keeps everything.
Kept = Sequence[Tensor | None]


@dataclass(frozen=True, kw_only=True)
class Networks:
    """M trained networks of one shape.

    Parameters
    ----------
    weights : tuple of Tensor, each (M, out, in)
        Weights of the layers.
    biases : tuple of Tensor, each (M, out, 1)
        Biases of the layers.
    activation : str
        Activation function of the hidden units.
    basis : Tensor, shape (d, r), optional
        The basis, if networks were trained on coordinates in one: they ignore what lies outside it.
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    activation: str = "relu"
    basis: Tensor | None = None

    def __len__(self) -> int:
        return len(self.weights[0])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What users should know about the training: nothing."""
        return ()

    def of(self, model: int) -> "Networks":
        """Return one of the networks."""
        one = slice(model, model + 1)
        return Networks(
            weights=tuple(w[one] for w in self.weights),
            biases=tuple(b[one] for b in self.biases),
            activation=self.activation,
            basis=self.basis,
        )

    def probabilities(self, inputs: Tensor) -> NDArray[np.float32]:
        """Return the class probabilities of all networks for all records, shape (M, n, c).

        Parameters
        ----------
        inputs : Tensor, shape (n, d) or (M, n, d)
            Records, common to all networks or as each network sees them.
        """
        pieces = [torch.softmax(piece, 1) for piece in self._last_layers(inputs)]
        return _records_by_outputs(pieces)

    def values(self, inputs: Tensor) -> NDArray[np.float32]:
        """Return the standardised predictions of a quantity by all networks for all records, shape (M, n, 1).

        Parameters
        ----------
        inputs : Tensor, shape (n, d) or (M, n, d)
            Records, common to all networks or as each network sees them.
        """
        return _records_by_outputs(list(self._last_layers(inputs)))

    def _last_layers(self, inputs: Tensor) -> Iterator[Tensor]:
        """Yield the outputs of the last layers, one piece of the records after another, (M, outputs, k)."""
        for start in range(0, inputs.shape[-2], PIECE):
            piece = inputs[..., start : start + PIECE, :]
            if self.basis is not None:
                piece = piece @ self.basis
            if piece.ndim == 2:
                piece = piece.expand(len(self), *piece.shape)
            yield forward(
                self.weights, self.biases, piece.transpose(1, 2), self.activation
            )[-1]


def _records_by_outputs(pieces: Sequence[Tensor]) -> NDArray[np.float32]:
    """Return pieces (M, outputs, k) as one array (M, n, outputs)."""
    joined = torch.cat([piece.transpose(1, 2) for piece in pieces], 1)
    return np.asarray(joined.numpy(), dtype=np.float32)


def initial_parameters(
    sizes: Sequence[int], generator: torch.Generator, initial: str = "pytorch"
) -> tuple[list[Tensor], list[Tensor]]:
    """Return weights and biases of one model, drawn as PyTorch or as Keras ("glorot") draws them.

    References
    ----------
    .. [1] Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010, Eq. 16.
    """
    weights, biases = [], []
    for inputs, outputs in itertools.pairwise(sizes):
        bound = 1 / math.sqrt(inputs)
        spread, of_bias = bound, bound
        if initial == "glorot":
            spread, of_bias = math.sqrt(6 / (inputs + outputs)), 0.0
        weights.append(
            (2 * torch.rand(outputs, inputs, generator=generator) - 1) * spread
        )
        biases.append((2 * torch.rand(outputs, 1, generator=generator) - 1) * of_bias)
    return weights, biases


def stacked_parameters(
    sizes: Sequence[int],
    generators: Sequence[torch.Generator],
    initial: str = "pytorch",
) -> tuple[list[Tensor], list[Tensor]]:
    """Return weights (M, out, in) and biases (M, out, 1) of the layers of all models."""
    drawn = [initial_parameters(sizes, generator, initial) for generator in generators]
    layers = range(len(sizes) - 1)
    weights = [torch.stack([w[layer] for w, _ in drawn]) for layer in layers]
    biases = [torch.stack([b[layer] for _, b in drawn]) for layer in layers]
    return weights, biases


def train_networks(
    cohort: Cohort, recipe: Network, *, rotate: bool = False
) -> Networks:
    """Train one network per mask, all in one pass.

    Parameters
    ----------
    cohort : Cohort
        Records, members and seeds; a seed gives the initialisation, then batch orders and dropout.
    recipe : Network
        Shape and training.
    rotate : bool
        Whether to train on coordinates of the records in a basis of their span, which is faster if there are more columns than
        records and does not change the answers for these records, except for rounding. The networks cannot answer for other records.
    """
    members = cohort.members()
    generators = [torch.Generator().manual_seed(int(seed)) for seed in cohort.seeds]
    sizes = [cohort.inputs.shape[1], *recipe.hidden, cohort.targets.shape[-1]]
    weights, biases = stacked_parameters(sizes, generators, recipe.initial)
    view: View = cohort
    basis = None
    if rotate:
        _refuse_rotation(recipe)
        basis, view = rotated(cohort)
        weights[0] = weights[0] @ basis
    state = _State(weights=weights, biases=biases, recipe=recipe)
    for _ in range(recipe.epochs):
        orders = [batch_order(m, g) for m, g in zip(members, generators, strict=True)]
        keeps = _keep_masks(orders, generators, recipe)
        epoch = Epoch.of(orders)
        for start in range(0, epoch.index.shape[1], recipe.batch):
            _step(state, view, epoch, keeps, start)
    return Networks(
        weights=tuple(weights),
        biases=tuple(biases),
        activation=recipe.activation,
        basis=basis,
    )


def _refuse_rotation(recipe: Network) -> None:
    if not recipe.optimiser.turns_with_gradients:
        raise InvalidInput(
            f"{type(recipe.optimiser).__name__} works on single elements of gradients, so the inputs cannot be rotated; use SGD, or leave "
            "rotate out."
        )


class _State:
    """The parameters, and how they follow the deltas."""

    def __init__(
        self, *, weights: list[Tensor], biases: list[Tensor], recipe: Network
    ) -> None:
        self.weights, self.biases, self.recipe = weights, biases, recipe
        self.descent = Descent([*weights, *biases], recipe.optimiser)
        size = sum(weight[0].numel() for weight in weights)
        self.by_record = size > LARGE and recipe.batch < FEW_RECORDS

    def descend(
        self, layer: int, delta: Tensor, below: Tensor, active: Tensor | None
    ) -> None:
        """Update one layer from its deltas (M, out, k) and the activations below (M, in, k)."""
        optimiser, l2 = self.recipe.optimiser, self.recipe.l2
        weight, bias = self.weights[layer], self.biases[layer]
        if optimiser.is_plain and active is None:
            rate = optimiser.rate
            # The gradient is never stored: W <- (1 - rate l2) W - rate delta a'.
            weight.baddbmm_(
                delta, below.transpose(1, 2), beta=1 - rate * l2, alpha=-rate
            )
            bias.add_(delta.sum(2, keepdim=True), alpha=-rate)
            return
        gradient = torch.bmm(delta, below.transpose(1, 2)).add_(weight, alpha=l2)
        self.descent.follow(layer, gradient, active)
        self.descent.follow(
            len(self.weights) + layer, delta.sum(2, keepdim=True), active
        )


def _keep_masks(
    orders: list[Tensor], generators: list[torch.Generator], recipe: Network
) -> Kept | None:
    """Return for each hidden layer what dropout keeps in an epoch, (M, width, longest), scaled by 1 / keep."""
    if not any(recipe.dropouts):
        return None
    longest = max(len(order) for order in orders)
    keeps: list[Tensor | None] = []
    for width, share in zip(recipe.hidden, recipe.dropouts, strict=True):
        if share == 0:
            keeps.append(None)
            continue
        keep = 1 - share
        kept = torch.ones(len(orders), width, longest)
        for units, order, generator in zip(kept, orders, generators, strict=True):
            # As many draws as the model has members, so that no other model changes its stream.
            drawn = torch.rand(width, len(order), generator=generator)
            units[:, : len(order)] = (drawn < keep).float() / keep
        keeps.append(kept)
    return keeps


def _step(
    state: _State, view: View, epoch: Epoch, keeps: Kept | None, start: int
) -> None:
    """Take one step of every model that still has members in this epoch."""
    index = epoch.index[:, start : start + state.recipe.batch]
    width = index.shape[1]
    kept = None
    if keeps is not None:
        kept = [
            None if keep is None else keep[:, :, start : start + width]
            for keep in keeps
        ]
    x, y = view.batch(index)
    activations = forward(
        state.weights,
        state.biases,
        x.transpose(1, 2),
        state.recipe.activation,
        kept,
        by_record=state.by_record,
    )
    # For cross-entropy and for half the squared error alike, delta is the answer minus the target.
    last = activations.pop()
    answers = last if state.recipe.quantity else torch.softmax(last, 1)
    delta = answers.sub_(y.transpose(1, 2))
    weights, active = epoch.weights(start, width), epoch.active(start)
    if weights is None:
        delta.div_(width)
    else:
        delta.mul_(weights[:, None])
    state.descent.begin(active)
    for layer, above, below in backward(
        state.weights,
        activations,
        delta,
        kept,
        state.recipe,
        by_record=state.by_record,
    ):
        state.descend(layer, above, below, active)


def backward(
    weights: Sequence[Tensor],
    activations: Sequence[Tensor],
    delta: Tensor,
    kept: Kept | None,
    recipe: Network,
    *,
    by_record: bool = False,
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield each layer, from the last, with the deltas above it and the activations below, stored as in :func:`forward`.

    The weights of a layer are not needed again once it has been yielded, so the caller may update them.
    """
    for layer in reversed(range(len(weights))):
        below = activations[layer]
        above = delta
        if layer > 0:
            of_layer = None if kept is None else kept[layer - 1]
            if by_record:
                delta = torch.bmm(above.transpose(1, 2), weights[layer]).transpose(1, 2)
            else:
                delta = torch.bmm(weights[layer].transpose(1, 2), above)
            if recipe.activation == "relu":
                delta.mul_(below.sign())  # 0 or 1; products with booleans are slow
            else:  # dropout divided what it kept by the share that it keeps
                values = below
                if of_layer is not None:
                    values = below * (1 - recipe.dropouts[layer - 1])
                delta.sub_(delta * values.square())
            if of_layer is not None:
                delta.mul_(of_layer)
        yield layer, above, below


def forward(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    inputs: Tensor,
    activation: str,
    kept: Kept | None = None,
    *,
    by_record: bool = False,
) -> list[Tensor]:
    """Return the activations of all layers, from the inputs to the logits, each (M, features, k).

    In memory they are stored feature by feature, or record by record, which is faster for a few records of wide layers.
    """
    activations = [inputs]
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if by_record:
            rows = activations[-1].transpose(1, 2)
            values = torch.baddbmm(
                bias.transpose(1, 2), rows, weight.transpose(1, 2)
            ).transpose(1, 2)
        else:
            values = torch.baddbmm(bias, weight, activations[-1])
        if layer < len(weights) - 1:
            if activation == "relu":
                values.clamp_min_(0)
            else:
                values.tanh_()
            of_layer = None if kept is None else kept[layer]
            if of_layer is not None:
                values.mul_(of_layer)
        activations.append(values)
    return activations
