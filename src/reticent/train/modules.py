"""Train many modules of the user: stacked and vectorised if they can be, else one by one.

Each model has its own members, initialisation, batch order and dropout, all from its own seed,
so a result does not depend on which models are trained together, nor, up to rounding, on
whether they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reticent.errors import InvalidInput
from reticent.train._trial import (
    Trial,
    is_convolution,
    made_with,
    no_fallback_warnings,
    try_out,
)
from reticent.train._vector import (
    ChosenDropout,
    Kept,
    chosen_dropout,
    gradients_of,
    stacked,
)
from reticent.train.losses import loss_of
from reticent.train.recipes import Training
from reticent.train.stacking import Cohort, Descent, Epoch, View, batch_order

__all__ = [
    "Modules",
    "laid_out",
    "optimiser_of",
    "train_modules",
    "trial_of",
    "wants_channels_last",
]

_CHUNK = 1024  # records predicted at once, so that the layers' outputs stay small


@dataclass(frozen=True, kw_only=True)
class Modules:
    """M trained modules, ready to answer.

    Parameters
    ----------
    modules : tuple of nn.Module
        The modules, in evaluation mode.
    together : bool
        Whether they were trained stacked, in one pass.
    stackable : bool
        Whether they could have been.
    why : str
        Why they were trained as they were.
    """

    modules: tuple[nn.Module, ...]
    together: bool
    stackable: bool
    why: str

    def __len__(self) -> int:
        return len(self.modules)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What users should know about the training: that it could not be stacked, and why."""
        if self.stackable:
            return ()
        return (f"models are trained one by one: {self.why}",)

    def of(self, model: int) -> "Modules":
        """Return one of the modules."""
        return Modules(
            modules=self.modules[model : model + 1],
            together=self.together,
            stackable=self.stackable,
            why=self.why,
        )

    def probabilities(self, inputs: Tensor) -> NDArray[np.float32]:
        """Return the class probabilities of all modules for all records, shape (M, n, c).

        Parameters
        ----------
        inputs : Tensor, shape (n, ...)
            Records, common to all modules.
        """
        with torch.no_grad():
            answers = [
                torch.cat(
                    [
                        torch.softmax(module(laid_out(piece, module)), 1)
                        for piece in torch.split(inputs, _CHUNK)
                    ]
                )
                for module in self.modules
            ]
        return np.asarray(torch.stack(answers).numpy(), dtype=np.float32)


def train_modules(
    make: Callable[[], nn.Module],
    cohort: Cohort,
    recipe: Training,
    *,
    together: bool | None = None,
) -> Modules:
    """Train one module per mask, all in one pass or one after another.

    Each step lowers the mean of the recipe's loss over the records of a batch. The batches of stacked models are padded to
    equal sizes with records of weight 0. If a layer is a batch norm, a last batch of a single record is left out, because
    it has no spread.

    Parameters
    ----------
    make : callable
        Returns a new module; what it draws from PyTorch's global generator depends on the
        model's seed.
    cohort : Cohort
        Records (rows of a table, images, whatever the module takes), members and seeds; a seed gives the initialisation,
        then batch orders and dropout.
    recipe : Training
        Epochs, batches, optimiser, weight decay, loss.
    together : bool, optional
        Whether to stack the models. By default they are stacked if they can be and if that is
        faster, which it is not for convolutions and large layers.

    Raises
    ------
    InvalidInput
        If shapes do not fit, or ``together=True`` and the modules cannot be stacked.
    """
    members = cohort.members()
    trial = trial_of(make, cohort, members[0], cohort.seeds[0], recipe)
    if together and trial.obstacle is not None:
        raise InvalidInput(
            f"{trial.obstacle.why}, so the modules cannot be trained together; {trial.obstacle.instead}."
        )
    stackable = trial.obstacle is None
    chosen = together if together is not None else stackable and not trial.slow
    if trial.obstacle is not None:
        why = trial.obstacle.why
    elif together is not None:
        why = "the caller asked for it"
    else:
        why = trial.slow or "every layer can be stacked, and it is faster"
    fit = _train_stacked if chosen else _train_each
    modules = fit(make, cohort, members, recipe, trial)
    return Modules(
        modules=tuple(module.eval() for module in modules),
        together=chosen,
        stackable=stackable,
        why=why,
    )


def trial_of(
    make: Callable[[], nn.Module],
    view: View,
    members: Tensor,
    seed: int,
    recipe: Training,
) -> Trial:
    """Return what a trial with three members of the first model shows about the modules."""
    rows = members[torch.arange(3) % len(members)]
    records, targets = view.of(0).batch(rows[None])
    classes = targets.shape[-1]
    return try_out(
        make,
        seed,
        records[0],
        classes=classes,
        batch=recipe.batch,
        loss=loss_of(recipe, classes),
    )


def _train_stacked(
    make: Callable[[], nn.Module],
    cohort: Cohort,
    members: list[Tensor],
    recipe: Training,
    trial: Trial,
) -> list[nn.Module]:
    example = cohort.inputs[:1]
    pairs = [made_with(make, int(seed), example) for seed in cohort.seeds]
    modules = [module for module, _ in pairs]
    generators = [generator for _, generator in pairs]
    moving, fixed = stacked(modules)
    parameters = list(moving.values())
    # Only parameters with two or more dimensions decay; a stacked one has the models as an additional dimension.
    decays = [recipe.l2 if p.ndim > 2 else 0.0 for p in parameters]
    descent = Descent(parameters, recipe.optimiser)
    frame = modules[0].train()
    with chosen_dropout(frame) as layers, no_fallback_warnings():
        loss = loss_of(recipe, cohort.targets.shape[-1])
        gradients = gradients_of(frame, layers, loss)
        for _ in range(recipe.epochs):
            orders = [
                batch_order(m, g) for m, g in zip(members, generators, strict=True)
            ]
            epoch = Epoch.of(orders)
            for start in range(0, epoch.index.shape[1], recipe.batch):
                index = epoch.index[:, start : start + recipe.batch]
                counts = epoch.counts(start, index.shape[1])
                kept = _kept(layers, trial, counts, index.shape[1], generators)
                x, y = cohort.batch(index)
                weights = epoch.weights(start, index.shape[1])
                if weights is None:
                    weights = torch.full(index.shape, 1 / index.shape[1])
                slopes, _ = gradients(moving, fixed, kept, x, y, weights)
                _descend(descent, list(slopes.values()), decays, epoch.active(start))
    with torch.no_grad():
        for k, module in enumerate(modules):
            trained = dict(module.named_parameters())
            for name, stack in moving.items():
                trained[name].copy_(stack[k])
    return modules


def _descend(
    descent: Descent,
    slopes: Sequence[Tensor],
    decays: Sequence[float],
    active: Tensor | None,
) -> None:
    descent.begin(active)
    for slot, (slope, decay) in enumerate(zip(slopes, decays, strict=True)):
        gradient = slope
        if decay > 0:
            gradient = slope.add(descent.parameters[slot], alpha=decay)
        descent.follow(slot, gradient, active)


def _kept(
    layers: list[ChosenDropout],
    trial: Trial,
    counts: Sequence[int],
    width: int,
    generators: Sequence[torch.Generator],
) -> Kept:
    """Return what dropout keeps in one step, (M, width, ...) per call, drawn from each model's generator."""
    shapes = trial.kept or ()
    kept = [
        [torch.ones(len(counts), width, *shape) for shape in calls] for calls in shapes
    ]
    for k, (count, generator) in enumerate(zip(counts, generators, strict=True)):
        for layer, calls in zip(layers, kept, strict=True):
            for call in calls:
                call[k, :count] = layer.draw(count, call.shape[2:], generator)
    return kept


def _train_each(
    make: Callable[[], nn.Module],
    cohort: Cohort,
    members: list[Tensor],
    recipe: Training,
    trial: Trial,
) -> list[nn.Module]:
    modules = []
    for k, seed in enumerate(cohort.seeds):
        module, generator = made_with(make, int(seed), cohort.inputs[:1])
        with torch.random.fork_rng(devices=[]):
            # Layers that draw at random use another stream than the batch orders.
            torch.manual_seed(generator.initial_seed() + 1)
            _train_one(module, generator, cohort.of(k), members[k], recipe, trial)
        modules.append(module)
    return modules


def _train_one(
    module: nn.Module,
    generator: torch.Generator,
    view: View,
    members: Tensor,
    recipe: Training,
    trial: Trial,
) -> None:
    module.train()
    if wants_channels_last(view.inputs, module):
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = optimiser_of(module, recipe)
    judge = loss_of(recipe, view.targets.shape[-1])
    with chosen_dropout(module, trial.kept is not None) as layers:
        for _ in range(recipe.epochs):
            for index in torch.split(batch_order(members, generator), recipe.batch):
                if trial.mixes and len(index) == 1:
                    continue
                x, y = view.batch(index[None])
                kept = _kept(layers, trial, [len(index)], len(index), [generator])
                for layer, calls in zip(layers, kept, strict=True):
                    layer.choose([call[0] for call in calls])
                logits = module(laid_out(x[0], module))
                loss = judge(logits, y[0]).mean()
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
    module.zero_grad(set_to_none=True)


def optimiser_of(module: nn.Module, recipe: Training) -> torch.optim.Optimizer:
    """Return PyTorch's optimiser for a module's trained parameters, with the settings of a recipe."""
    trained = [p for p in module.parameters() if p.requires_grad]
    groups: list[dict[str, Any]] = [{"params": trained, "weight_decay": 0.0}]
    if recipe.l2 > 0:
        groups = [
            {"params": [p for p in trained if p.ndim >= 2], "weight_decay": recipe.l2},
            {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
        ]
    return recipe.optimiser.of_torch(groups)


def wants_channels_last(inputs: Tensor, module: nn.Module) -> bool:
    """Whether the inputs are images for convolutions, which are faster with the channels innermost."""
    return inputs.ndim == 4 and any(is_convolution(layer) for layer in module.modules())


def laid_out(inputs: Tensor, module: nn.Module) -> Tensor:
    """Return the inputs with the channels innermost if that is faster."""
    if wants_channels_last(inputs, module):
        return inputs.contiguous(memory_format=torch.channels_last)
    return inputs
