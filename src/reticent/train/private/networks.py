"""Train many multilayer perceptrons with differential privacy in one pass.

This is the step of :mod:`reticent.train.engine` with three changes: a coin flip decides whether a record takes part
(Poisson sampling), each record's gradient is clipped, and the sum is released with noise before the weights follow it.
Gradients of single records are never formed: see :mod:`reticent.train.private.sums`.

The guarantee rests on the following: the denominator is a public constant, not the size of the batch; an empty batch is
released with noise and counts as a step; a gradient that is not finite counts as zero; and the noise is scaled to the
bound that the clipping states.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from reticent.errors import InvalidInput
from reticent.train.engine import (
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
from reticent.train.private.sums import Column, Outer, Piece, Sum, clipped_sums
from reticent.train.recipes import Private, PrivateNetwork
from reticent.train.stacking import Cohort, Descent, View

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
    """Train one private network per mask, all in one pass.

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
    view: View = cohort
    basis = None
    if rotate:
        _refuse_rotation(recipe)
        basis, view = _rotated(view)
    members = cohort.members()
    courses = [recipe.course(len(rows)) for rows in members]
    generators = [torch.Generator().manual_seed(int(seed)) for seed in cohort.seeds]
    sizes = [cohort.inputs.shape[1], *recipe.hidden, cohort.targets.shape[-1]]
    weights, biases = stacked_parameters(sizes, generators)
    if basis is not None:
        weights[0] = weights[0] @ basis
    follower = Follower(
        list(zip(weights, biases, strict=True)), [recipe.l2, 0.0] * len(weights), recipe
    )
    if randomness is None:
        randomness = randomness_of(recipe, cohort.seeds)
    keys = dropout_keys(cohort.seeds, secret=randomness.secret)
    # A member's place among the members, so that a model of a pool has the masks that it has alone.
    places = torch.from_numpy(cohort.masks.cumsum(1) - 1)
    steps = max(course.steps for course in courses)
    batches = randomness.batches(
        members,
        [course.sampling_rate for course in courses],
        steps=steps,
        expected=recipe.batch,
    )
    for done, batch in enumerate(batches):
        active = None
        if any(course.steps <= done for course in courses):
            active = torch.tensor([done < course.steps for course in courses])
        kept = kept_units(recipe, keys, done, places.gather(1, batch.index))
        gradients = gradients_of_batch(weights, biases, view, batch, recipe, kept)
        sums = follower.sums(gradients, batch.present)
        follower.follow([s for layer in sums for s in layer], randomness, active)
        if tell is not None:
            tell(done + 1)
    return Networks(
        weights=tuple(weights),
        biases=tuple(biases),
        activation=recipe.activation,
        basis=basis,
    )


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


def _rotated(view: View) -> tuple[Tensor, View]:
    """Return a basis of the records' span, (d, r), and the view of their coordinates in it."""
    records = view.inputs
    if view.centres is not None and view.scales is not None:
        if bool(
            (view.centres != view.centres[:1]).any()
            or (view.scales != view.scales[:1]).any()
        ):
            raise InvalidInput(
                "each model sees the records in its own scale, so there is no common basis; leave rotate out."
            )
        records = ((records - view.centres[0]) / view.scales[0]).nan_to_num(0.0)
    basis, coordinates = torch.linalg.qr(records.double().T)
    return basis.float(), View(
        inputs=coordinates.T.float().contiguous(), targets=view.targets
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
        """Release sums with noise, and move all parameters by the released sums."""
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
) -> Sequence[Sequence[Piece]]:
    """Return the gradients of every layer's weights and biases for every record of a batch, given what dropout keeps."""
    x, y = view.batch(batch.index)
    activations = forward(weights, biases, x.transpose(1, 2), recipe.activation, kept)
    delta = torch.softmax(activations.pop(), 1).sub_(y.transpose(1, 2))
    lengths = view.lengths(batch.index)
    return [
        (
            Outer(above=above, below=below, lengths=None if layer else lengths),
            Column(above=above),
        )
        for layer, above, below in backward(weights, activations, delta, kept, recipe)
    ][::-1]
