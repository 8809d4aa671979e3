"""Train many multilayer perceptrons in one pass: stacked parameters, batched matrix products.

M models of one shape have parameters ``W[l]`` of shape (M, out, in). Each model has its own
members, initialisation, batch order and dropout, all from a generator of its own, so a result does
not depend on which models are trained together. Activations are kept feature-major, (M, features,
batch): the products ``W x`` then run at the speed of the matrix library even for narrow layers.
There is no autograd: forward, backward and update are written out, and a plain step updates the
weights inside the very product that forms their gradient.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.errors import InvalidInput
from reticent.train.recipes import SGD, Adam, Network

__all__ = ["Networks", "batch_order", "initial_parameters", "train_networks"]


@dataclass(frozen=True, kw_only=True)
class Networks:
    """M trained networks of one shape.

    Parameters
    ----------
    weights : tuple of Tensor, each (M, out, in)
        Weights of the layers.
    biases : tuple of Tensor, each (M, out, 1)
        Biases of the layers.
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]

    def __len__(self) -> int:
        return len(self.weights[0])

    def probabilities(self, inputs: Tensor) -> NDArray[np.float32]:
        """Return the answers of all networks on all records, shape (M, n, c).

        Parameters
        ----------
        inputs : Tensor, shape (n, d) or (M, n, d)
            Records, common to all networks or each network's own view of them.
        """
        pieces = []
        for start in range(0, inputs.shape[-2], 4096):
            piece = inputs[..., start : start + 4096, :]
            if piece.ndim == 2:
                piece = piece.expand(len(self), *piece.shape)
            values = _forward(self.weights, self.biases, piece.transpose(1, 2))[-1]
            pieces.append(torch.softmax(values, 1).transpose(1, 2))
        return np.asarray(torch.cat(pieces, 1).numpy(), dtype=np.float32)


def batch_order(members: Tensor, generator: torch.Generator) -> Tensor:
    """Return one epoch's order of a model's members."""
    return members[torch.randperm(len(members), generator=generator)]


def initial_parameters(
    sizes: Sequence[int], generator: torch.Generator
) -> tuple[list[Tensor], list[Tensor]]:
    """Return weights and biases of one model, uniform in +-1/sqrt(in) as PyTorch draws them."""
    weights, biases = [], []
    for inputs, outputs in itertools.pairwise(sizes):
        bound = 1 / math.sqrt(inputs)
        weights.append(
            (2 * torch.rand(outputs, inputs, generator=generator) - 1) * bound
        )
        biases.append((2 * torch.rand(outputs, 1, generator=generator) - 1) * bound)
    return weights, biases


def train_networks(
    inputs: Tensor,
    targets: Tensor,
    masks: NDArray[np.bool_],
    seeds: Sequence[int],
    recipe: Network,
    *,
    centres: Tensor | None = None,
    scales: Tensor | None = None,
) -> Networks:
    """Train one network per mask, all in one pass.

    Parameters
    ----------
    inputs : Tensor of float, shape (n, d)
        Records.
    targets : Tensor of float, shape (n, c) or (M, n, c)
        Class probabilities of each record (one-hot for hard labels), common or per model.
    masks : array of bool, shape (M, n)
        Members of each model.
    seeds : sequence of int
        Seed of each model: initialisation, then orders and dropout.
    recipe : Network
        Shape and training.
    centres, scales : Tensor of float, shape (M, d), optional
        Each model sees ``(inputs - centre) / scale``: its own standardisation. A missing
        value (NaN) then counts as the centre.
    """
    if masks.shape != (len(seeds), len(inputs)):
        raise InvalidInput(
            f"masks of shape {masks.shape} do not fit {len(seeds)} seeds and {len(inputs)} records; pass one row a "
            "model and one column a record."
        )
    members = [torch.from_numpy(np.flatnonzero(mask)) for mask in masks]
    if min(len(m) for m in members) == 0:
        raise InvalidInput(
            "a model of the pool has no member, so it cannot be trained."
        )
    generators = [torch.Generator().manual_seed(int(seed)) for seed in seeds]
    classes = targets.shape[-1]
    sizes = [inputs.shape[1], *recipe.hidden, classes]
    drawn = [initial_parameters(sizes, generator) for generator in generators]
    layers = range(len(sizes) - 1)
    weights = [torch.stack([w[layer] for w, _ in drawn]) for layer in layers]
    biases = [torch.stack([b[layer] for _, b in drawn]) for layer in layers]
    state = _State(weights=weights, biases=biases, recipe=recipe)
    view = _View(inputs=inputs, targets=targets, centres=centres, scales=scales)
    for _ in range(recipe.epochs):
        orders = [batch_order(m, g) for m, g in zip(members, generators, strict=True)]
        keeps = _keep_masks(orders, generators, recipe)
        epoch = _Epoch.of(orders, keeps)
        for start in range(0, epoch.index.shape[1], recipe.batch):
            _step(state, view, epoch, start)
    return Networks(weights=tuple(weights), biases=tuple(biases))


@dataclass(frozen=True, kw_only=True)
class _View:
    """The records as each model sees them."""

    inputs: Tensor
    targets: Tensor
    centres: Tensor | None
    scales: Tensor | None

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs (M, k, d) and targets (M, k, c) of an index (M, k)."""
        m, k = index.shape
        flat = index.reshape(-1)
        x = self.inputs.index_select(0, flat).view(m, k, -1)
        if self.centres is not None and self.scales is not None:
            # A missing value is NaN and becomes the centre, which is 0 here.
            x = (x - self.centres[:, None]).div_(self.scales[:, None]).nan_to_num_(0.0)
        if self.targets.ndim == 2:
            y = self.targets.index_select(0, flat).view(m, k, -1)
        else:
            y = self.targets[torch.arange(m)[:, None], index]
        return x, y


class _State:
    """Parameters and what the optimiser remembers of them."""

    def __init__(
        self, *, weights: list[Tensor], biases: list[Tensor], recipe: Network
    ) -> None:
        self.weights, self.biases, self.recipe = weights, biases, recipe
        self.steps = torch.zeros(len(weights[0]))
        optimiser = recipe.optimiser
        remembers = isinstance(optimiser, Adam) or optimiser.momentum > 0
        parameters = [*weights, *biases]
        self.first = [torch.zeros_like(p) for p in parameters] if remembers else []
        self.second = (
            [torch.zeros_like(p) for p in parameters]
            if isinstance(optimiser, Adam)
            else []
        )

    def descend(
        self, layer: int, delta: Tensor, below: Tensor, active: Tensor | None
    ) -> None:
        """Update one layer from its deltas (M, out, k) and the activations below (M, in, k)."""
        optimiser, l2 = self.recipe.optimiser, self.recipe.l2
        weight, bias = self.weights[layer], self.biases[layer]
        if isinstance(optimiser, SGD) and optimiser.momentum == 0 and active is None:
            rate = optimiser.rate
            # The gradient is never stored: W <- (1 - rate l2) W - rate delta a'.
            weight.baddbmm_(
                delta, below.transpose(1, 2), beta=1 - rate * l2, alpha=-rate
            )
            bias.add_(delta.sum(2, keepdim=True), alpha=-rate)
            return
        gradient = torch.bmm(delta, below.transpose(1, 2)).add_(weight, alpha=l2)
        self._follow(layer, weight, gradient, active)
        self._follow(
            len(self.weights) + layer, bias, delta.sum(2, keepdim=True), active
        )

    def _follow(
        self, slot: int, parameter: Tensor, gradient: Tensor, active: Tensor | None
    ) -> None:
        optimiser = self.recipe.optimiser
        here = torch.ones(1) if active is None else active.view(-1, 1, 1)
        if isinstance(optimiser, SGD):
            step = gradient
            if optimiser.momentum > 0:
                moved = optimiser.momentum * self.first[slot] + gradient
                self.first[slot] = here * moved + (1 - here) * self.first[slot]
                step = self.first[slot]
            parameter.sub_(here * optimiser.rate * step)
            return
        first = optimiser.beta_1 * self.first[slot] + (1 - optimiser.beta_1) * gradient
        second = (
            optimiser.beta_2 * self.second[slot] + (1 - optimiser.beta_2) * gradient**2
        )
        self.first[slot] = here * first + (1 - here) * self.first[slot]
        self.second[slot] = here * second + (1 - here) * self.second[slot]
        count = self.steps.view(-1, 1, 1)
        unbiased_1 = self.first[slot] / (1 - optimiser.beta_1**count)
        unbiased_2 = self.second[slot] / (1 - optimiser.beta_2**count)
        parameter.sub_(
            here * optimiser.rate * unbiased_1 / (unbiased_2.sqrt() + optimiser.epsilon)
        )


def _keep_masks(
    orders: list[Tensor], generators: list[torch.Generator], recipe: Network
) -> list[Tensor] | None:
    """Return per hidden layer what dropout keeps in an epoch, (M, width, longest), scaled."""
    if recipe.dropout == 0 or not recipe.hidden:
        return None
    longest = max(len(order) for order in orders)
    keep = 1 - recipe.dropout
    return [
        torch.stack(
            [
                (torch.rand(width, longest, generator=g) < keep).float() / keep
                for g in generators
            ]
        )
        for width in recipe.hidden
    ]


@dataclass(frozen=True, kw_only=True)
class _Epoch:
    """The order of all models' members in one epoch, filled up to the longest.

    Parameters
    ----------
    index : Tensor, shape (M, longest)
        Rows; behind a model's own members stands row 0, which will have weight 0.
    lengths : Tensor, shape (M,)
        Members of each model.
    even : bool
        Whether all have equally many.
    keeps : list of Tensor or None
        What dropout keeps.
    """

    index: Tensor
    lengths: Tensor
    even: bool
    keeps: list[Tensor] | None

    @classmethod
    def of(cls, orders: list[Tensor], keeps: list[Tensor] | None) -> "_Epoch":
        return cls(
            index=torch.nn.utils.rnn.pad_sequence(orders, batch_first=True),
            lengths=torch.tensor([len(order) for order in orders]),
            even=len({len(order) for order in orders}) == 1,
            keeps=keeps,
        )


def _step(state: _State, view: _View, epoch: _Epoch, start: int) -> None:
    """Take one step of every model that still has members in this epoch."""
    index = epoch.index[:, start : start + state.recipe.batch]
    width = index.shape[1]
    kept = None
    if epoch.keeps is not None:
        kept = [keep[:, :, start : start + width] for keep in epoch.keeps]
    x, y = view.batch(index)
    activations = _forward(state.weights, state.biases, x.transpose(1, 2), kept)
    delta = torch.softmax(activations.pop(), 1).sub_(y.transpose(1, 2))
    active = None
    if epoch.even:
        delta.div_(width)
    else:
        counts = (epoch.lengths - start).clamp(0, width)
        weight = torch.arange(width)[None] < counts[:, None]
        delta.mul_((weight / counts.clamp_min(1)[:, None])[:, None])
        active = (counts > 0).float()
    state.steps += 1.0 if active is None else active
    for layer in reversed(range(len(state.weights))):
        below = activations[layer]
        passed = None
        if layer > 0:
            passed = torch.bmm(state.weights[layer].transpose(1, 2), delta)
            passed.mul_(below > 0)
            if kept is not None:
                passed.mul_(kept[layer - 1])
        state.descend(layer, delta, below, active)
        if passed is not None:
            delta = passed


def _forward(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    inputs: Tensor,
    kept: list[Tensor] | None = None,
) -> list[Tensor]:
    """Return the activations of all layers, inputs first, logits last; (M, features, k)."""
    activations = [inputs]
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        values = torch.baddbmm(bias, weight, activations[-1])
        if layer < len(weights) - 1:
            values.clamp_min_(0)
            if kept is not None:
                values.mul_(kept[layer])
        activations.append(values)
    return activations
