"""Train many multilayer perceptrons with differential privacy in one pass.

This is the step of :mod:`reticent.train.engine` with three changes: a coin flip decides whether a record takes part
(Poisson sampling), each record's gradient is clipped, and the sum is released with noise before the weights follow it.
Gradients of single records are never formed: see :mod:`reticent.train.private.sums`.

The guarantee rests on the following: the denominator is a public constant, not the size of the batch; an empty batch is
released with noise and counts as a step; a gradient that is not finite counts as zero; and the noise is scaled to the
bound that the clipping states.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.errors import InvalidInput
from reticent.train.engine import (
    FEW_RECORDS,
    LARGE,
    Kept,
    Networks,
    backward,
    forward,
    stacked_parameters,
)
from reticent.train.private.clipping import PerLayer, Scaling
from reticent.train.private.dropout import dropout_keys, kept_units
from reticent.train.private.randomness import (
    Batch,
    Randomness,
    SecretRandomness,
    SeededRandomness,
    margin,
)
from reticent.train.private.sums import Piece, Sum, clipped_sums, of_linear
from reticent.train.recipes import Private, PrivateNetwork
from reticent.train.stacking import Cohort, Descent, View, rotated

__all__ = [
    "Follower",
    "can_rotate",
    "gradients_of_batch",
    "randomness_of",
    "train_privately",
]


def train_privately(
    cohort: Cohort,
    recipe: PrivateNetwork,
    *,
    rotate: bool = False,
    randomness: Randomness | None = None,
    tell: Callable[[int], None] | None = None,
) -> Networks:
    """Train one private network per mask, all in one pass, or one by one if they are large and their batches small.

    Batches are drawn by chance, so that several networks in one pass all compute as many columns as the largest batch among
    them: 31 for an expected batch of 20 and ten networks. The parameters of several large networks also leave the processor's cache.

    Parameters
    ----------
    cohort : Cohort
        Records, members and seeds. Centres and scales must be public: computing them from the records without noise
        voids the guarantee. A seed gives the initialisation, which needs no secret; and batches and noise, if they are seeded.
    recipe : PrivateNetwork
        Shape, training, clipping and noise.
    rotate : bool
        Whether to train on coordinates of the records in a basis of their span, which is faster if there are more
        columns than records and does not change the distribution of the answers for these records. The networks
        cannot answer for other records, so this is for pools, not for products.
    randomness : Randomness, optional
        Batches and noise instead of the recipe's, to watch or replay a training.
    tell : callable, optional
        Called after each step with the number of completed steps.
    """
    cohort.members()  # refuses what does not fit
    view: View = cohort
    basis = None
    if rotate:
        _refuse_rotation(recipe)
        basis, view = rotated(view)
    seeds = [int(seed) for seed in cohort.seeds]
    inputs, classes = view.inputs.shape[1], cohort.targets.shape[-1]
    large = sum(recipe.sizes(inputs, classes)) > LARGE and recipe.batch < FEW_RECORDS
    alone = large and (randomness is None or len(seeds) == 1)
    width = 1 if alone else len(seeds)
    groups = [
        _train_group(
            _Group(
                view=view.of(at) if alone else view,
                masks=cohort.masks[at : at + width],
                seeds=seeds[at : at + width],
                basis=basis,
                by_record=alone,
            ),
            recipe,
            randomness or randomness_of(recipe, seeds[at : at + width]),
            tell,
        )
        for at in range(0, len(seeds), width)
    ]
    return Networks(
        weights=tuple(
            torch.cat(layer) for layer in zip(*[w for w, _ in groups], strict=True)
        ),
        biases=tuple(
            torch.cat(layer) for layer in zip(*[b for _, b in groups], strict=True)
        ),
        activation=recipe.activation,
        basis=basis,
    )


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Models that are trained together, and the records as they see them, in a basis if there is one.

    ``by_record`` says how activations are stored, see :func:`reticent.train.engine.forward`.
    """

    view: View
    masks: NDArray[np.bool_]
    seeds: Sequence[int]
    basis: Tensor | None
    by_record: bool

    def parameters(self, recipe: PrivateNetwork) -> tuple[list[Tensor], list[Tensor]]:
        """Return the initial weights and biases of all layers."""
        generators = [torch.Generator().manual_seed(seed) for seed in self.seeds]
        inputs = self.view.inputs.shape[1] if self.basis is None else len(self.basis)
        sizes = [inputs, *recipe.hidden, self.view.targets.shape[-1]]
        weights, biases = stacked_parameters(sizes, generators, recipe.initial)
        if self.basis is not None:
            weights[0] = weights[0] @ self.basis
        return weights, biases


def _train_group(
    group: _Group,
    recipe: PrivateNetwork,
    randomness: Randomness,
    tell: Callable[[int], None] | None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the trained weights and biases of the models of a group."""
    members = [torch.from_numpy(np.flatnonzero(mask)) for mask in group.masks]
    courses = [recipe.course(len(rows)) for rows in members]
    weights, biases = group.parameters(recipe)
    follower = Follower(
        list(zip(weights, biases, strict=True)), [recipe.l2, 0.0] * len(weights), recipe
    )
    keys = dropout_keys(group.seeds, secret=randomness.secret)
    # A member's place among the members, so that a model of a pool has the masks that it has alone.
    places = torch.from_numpy(group.masks.cumsum(1) - 1)
    batches = randomness.batches(
        members,
        [course.sampling_rate for course in courses],
        steps=max(course.steps for course in courses),
        expected=recipe.batch,
    )
    for done, drawn in enumerate(batches):
        batch = drawn.without_padding() if group.by_record else drawn
        active = None
        if any(course.steps <= done for course in courses):
            active = torch.tensor([done < course.steps for course in courses])
        kept = kept_units(recipe, keys, done, places.gather(1, batch.index))
        gradients = gradients_of_batch(
            weights, biases, group.view, batch, recipe, kept, by_record=group.by_record
        )
        sums = follower.sums(gradients, batch.present)
        follower.follow([s for layer in sums for s in layer], randomness, active)
        if tell is not None:
            tell(done + 1)
    return weights, biases


def can_rotate(recipe: Private) -> bool:
    """Whether training commutes with rotations of the inputs: lengths and normal noise are not changed by them, elements are."""
    by_length = isinstance(recipe.clipping, Scaling | PerLayer)
    return by_length and recipe.optimiser.turns_with_gradients


def _refuse_rotation(recipe: Private) -> None:
    if not can_rotate(recipe):
        raise InvalidInput(
            f"{type(recipe.clipping).__name__} with {type(recipe.optimiser).__name__} works on single elements of gradients, so the inputs "
            "cannot be rotated; use Clip and SGD, or leave rotate out."
        )


def randomness_of(recipe: Private, seeds: Sequence[int]) -> Randomness:
    """Return the randomness that a recipe asks for."""
    if recipe.noise == "seeded":
        return SeededRandomness(seeds)
    return SecretRandomness()


class Follower:
    """Parameters that follow noisy sums of clipped gradients.

    Parameters
    ----------
    layers : sequence of sequences of Tensor, each (M, ...)
        Parameters by layer, which are changed in place.
    decays : sequence of float
        Weight decay of each parameter, in the order of the layers.
    recipe : Private
        Optimiser, clipping, noise.
    """

    def __init__(
        self,
        layers: Sequence[Sequence[Tensor]],
        decays: Sequence[float],
        recipe: Private,
    ) -> None:
        self.recipe, self.decays = recipe, decays
        flat = [parameter for layer in layers for parameter in layer]
        self.descent = Descent(flat, recipe.optimiser)
        self.bound = recipe.clipping.bound(
            [sum(parameter[0].numel() for parameter in layer) for layer in layers]
        )
        self.margin = margin(recipe.batch)

    def sums(
        self, layers: Sequence[Sequence[Piece]], present: Tensor
    ) -> list[list[Sum]]:
        """Return the sums of clipped gradients, by layer and parameter."""
        return clipped_sums(self.recipe.clipping, layers, present, margin=self.margin)

    def follow(
        self,
        sums: Sequence[Sum],
        randomness: Randomness,
        active: Tensor | None = None,
    ) -> None:
        """Release sums with noise, and move all parameters by the released sums.

        Where nobody sees the released sums, noise and sums are added to the parameters directly.
        """
        optimiser = self.recipe.optimiser
        rate = optimiser.rate / self.recipe.batch
        if (
            optimiser.is_plain
            and active is None
            and randomness.add_to(
                self.descent.parameters,
                [1 - optimiser.rate * decay for decay in self.decays],
                deviation=rate * self.recipe.noise_multiplier * self.bound,
            )
        ):
            self.descent.begin(active)
            for parameter, total in zip(self.descent.parameters, sums, strict=True):
                total.add_to(parameter, -rate)
            return
        released = randomness.release(
            sums, bound=self.bound, noise_multiplier=self.recipe.noise_multiplier
        )
        self.move(released, active)

    def move(self, released: Sequence[Tensor], active: Tensor | None = None) -> None:
        """Move all parameters by the released sums, divided by the public batch size."""
        recipe, optimiser = self.recipe, self.recipe.optimiser
        self.descent.begin(active)
        simple = optimiser.is_plain
        for slot, (parameter, total, decay) in enumerate(
            zip(self.descent.parameters, released, self.decays, strict=True)
        ):
            if simple and active is None:
                if decay:
                    parameter.mul_(1 - optimiser.rate * decay)
                parameter.sub_(total, alpha=optimiser.rate / recipe.batch)
                continue
            gradient = total.div_(recipe.batch)
            if decay:
                gradient.add_(parameter, alpha=decay)
            self.descent.follow(slot, gradient, active)


def gradients_of_batch(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    view: View,
    batch: Batch,
    recipe: PrivateNetwork,
    kept: Kept | None = None,
    *,
    by_record: bool = False,
) -> Sequence[Sequence[Piece]]:
    """Return the gradients of every layer's weights and biases for every record of a batch, given what dropout keeps."""
    x, y = view.batch(batch.index)
    activations = forward(
        weights,
        biases,
        x.transpose(1, 2),
        recipe.activation,
        kept,
        by_record=by_record,
    )
    delta = torch.softmax(activations.pop(), 1).sub_(y.transpose(1, 2))
    lengths = view.lengths(batch.index)
    return [
        of_linear(above, below, None if layer else lengths)
        for layer, above, below in backward(
            weights, activations, delta, kept, recipe, by_record=by_record
        )
    ][::-1]
