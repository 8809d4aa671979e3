"""Try modules out before they are trained, to learn whether they can be stacked."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.errors import InvalidInput
from reticent.train._vector import ChosenDropout, chosen_dropout, gradients_of, stacked
from reticent.train.losses import Loss

__all__ = [
    "Obstacle",
    "Trial",
    "is_convolution",
    "made_with",
    "no_fallback_warnings",
    "try_out",
]

# Above this many operations per step, overhead is a small part of the time and stacking saves nothing.
_LARGE = 40e6
_ONE_BY_ONE = "pass together=False"


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """What keeps modules from being trained together.

    Parameters
    ----------
    why : str
        The layer and the reason.
    instead : str
        What to do about it.
    """

    why: str
    instead: str = _ONE_BY_ONE


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a forward and a backward pass of untrained modules showed.

    Parameters
    ----------
    obstacle : Obstacle or None
        Why they cannot be trained together.
    slow : str
        Why they are better trained one by one; empty if they are not.
    kept : tuple or None
        Shape of one record at each call of each dropout layer; ``None`` if the first dimension
        of a layer's input is not the records.
    mixes : bool
        Whether a layer needs more than one record in a batch.
    parameters, activations : int
        Number of parameters of a model, and of outputs of its layers for one record.
    """

    obstacle: Obstacle | None
    slow: str
    kept: tuple[tuple[tuple[int, ...], ...], ...] | None
    mixes: bool
    parameters: int
    activations: int


def made_with(
    make: Callable[[], nn.Module], seed: int, example: Tensor
) -> tuple[nn.Module, torch.Generator]:
    """Return a module initialised from a seed, and the generator of its batch orders and dropout.

    Parameters
    ----------
    make : callable
        Returns a new module; what it draws from PyTorch's global generator depends on the seed.
    seed : int
        Seed of the model.
    example : Tensor, shape (1, ...)
        A record, from which lazy layers learn their shapes.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = make()
        if not isinstance(module, nn.Module):
            raise InvalidInput(
                f"make returns a {type(module).__name__}, which cannot be trained; return a torch.nn.Module."
            )
        if any(nn.parameter.is_lazy(p) for p in module.parameters()):
            with torch.no_grad():
                module.eval()(example)
        # The seed continues the stream of the initialisation, so that no random number is used twice.
        next_seed = int(torch.randint(2**62, ()))
    return module, torch.Generator().manual_seed(next_seed)


def try_out(
    make: Callable[[], nn.Module],
    seed: int,
    records: Tensor,
    *,
    classes: int,
    batch: int,
    loss: Loss,
) -> Trial:
    """Return what can be learned from two modules that are thrown away afterwards.

    Parameters
    ----------
    make : callable
        Returns a new module.
    seed : int
        Seed of the first module.
    records : Tensor, shape (3, ...)
        Three records.
    classes : int
        Number of logits that a record must get.
    batch : int
        Number of records in a training step.
    loss : callable
        Loss of each record.

    Raises
    ------
    InvalidInput
        If a module has nothing to train, or its answers are not one row of logits per record.
    """
    modules = [made_with(make, seed + k, records[:1])[0].train() for k in range(2)]
    first = modules[0]
    parameters = sum(p.numel() for p in first.parameters() if p.requires_grad)
    if parameters == 0:
        raise InvalidInput(
            f"the module {type(first).__name__} has no parameter that is trained, so it cannot learn; give it one with requires_grad."
        )
    obstacle = _unstackable_layer(first)
    with (
        torch.random.fork_rng(devices=[]),
        torch.no_grad(),
        chosen_dropout(first) as layers,
    ):
        before = {name: b.clone() for name, b in first.named_buffers()}
        logits, activations = _watched(first, records)
        if logits.shape != (len(records), classes):
            raise InvalidInput(
                f"the module {type(first).__name__} gives an output of shape {tuple(logits.shape)} for {len(records)} "
                f"records, where ({len(records)}, {classes}) was expected; return one row per record and one logit per class."
            )
        changed = [
            name
            for name, b in first.named_buffers()
            if not torch.equal(b, before[name])
        ]
        shapes = _dropout_shapes(first, layers, records)
        if obstacle is None:
            obstacle = _unstackable_behaviour(first, records, logits, changed, shapes)
    slow = ""
    if obstacle is None:
        obstacle, slow = _stacked_trial(modules, records, classes, loss)
    if any(is_convolution(layer) for layer in first.modules()):
        slow = "convolutions are faster one by one"
    elif 6 * parameters * batch > _LARGE:
        # Two operations per parameter and record forward, four backward.
        slow = f"a step takes {6e-6 * parameters * batch:.0f} million operations, of which stacking saves none"
    return Trial(
        obstacle=obstacle,
        slow=slow,
        kept=shapes,
        mixes=any(_is_batch_norm(layer) for layer in first.modules()),
        parameters=parameters,
        activations=activations,
    )


def is_convolution(layer: nn.Module) -> bool:
    """Whether a layer is a convolution."""
    return isinstance(layer, nn.modules.conv._ConvNd)


def _is_batch_norm(layer: nn.Module) -> bool:
    return isinstance(layer, nn.modules.batchnorm._BatchNorm)


@contextmanager
def no_fallback_warnings() -> Iterator[None]:
    """Silence PyTorch's warning that it works model by model inside a stacked pass, which is slow but correct."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        yield


def _unstackable_layer(module: nn.Module) -> Obstacle | None:
    """Return the first layer that is known not to be stackable."""
    for name, layer in module.named_modules():
        what = f"the layer {name!r} is a {type(layer).__name__}"
        if _is_batch_norm(layer):
            return Obstacle(
                why=f"{what}, which mixes the records of a batch and keeps running averages, and stacked models "
                "cannot share these",
                instead=f"use GroupNorm or LayerNorm, or {_ONE_BY_ONE}",
            )
        if (
            isinstance(layer, nn.modules.instancenorm._InstanceNorm)
            and layer.track_running_stats
        ):
            return Obstacle(
                why=f"{what} that keeps running averages, and stacked models cannot share these",
                instead=f"set track_running_stats=False, or {_ONE_BY_ONE}",
            )
        if _draws(layer):
            return Obstacle(
                why=f"{what}, whose random choices cannot be drawn for each of the stacked models",
                instead=f"use nn.Dropout, or {_ONE_BY_ONE}",
            )
    return None


def _draws(layer: nn.Module) -> bool:
    """Whether a layer, other than plain dropout, draws random numbers while it is trained."""
    if isinstance(layer, nn.MultiheadAttention):
        return bool(layer.dropout > 0)
    if isinstance(layer, nn.RNNBase):
        return layer.dropout > 0 and layer.num_layers > 1
    if isinstance(layer, nn.modules.dropout._DropoutNd):
        return type(layer) is not nn.Dropout and layer.p > 0
    return isinstance(layer, nn.RReLU | nn.FractionalMaxPool2d | nn.FractionalMaxPool3d)


def _watched(module: nn.Module, records: Tensor) -> tuple[Tensor, int]:
    """Return the logits, and the number of outputs of all layers for one record."""
    sizes = []
    hooks = [
        layer.register_forward_hook(
            lambda _layer, _inputs, output: sizes.append(
                output.numel() if isinstance(output, Tensor) else 0
            )
        )
        for layer in module.modules()
    ]
    try:
        logits: Tensor = module(records)
    finally:
        for hook in hooks:
            hook.remove()
    return logits, sum(sizes) // len(records)


def _dropout_shapes(
    module: nn.Module, layers: list[ChosenDropout], records: Tensor
) -> tuple[tuple[tuple[int, ...], ...], ...] | None:
    """Return the shape of one record at each call of each dropout layer."""
    three = [list(layer.seen) for layer in layers]
    for layer in layers:
        layer.seen.clear()
    module(records[:2])
    for calls, layer in zip(three, layers, strict=True):
        expected = [(2, *shape[1:]) for shape in calls]
        if [tuple(shape) for shape in layer.seen] != expected:
            return None
        if any(shape[0] != len(records) for shape in calls):
            return None
    return tuple(tuple(tuple(shape[1:]) for shape in calls) for calls in three)


def _unstackable_behaviour(
    module: nn.Module,
    records: Tensor,
    logits: Tensor,
    changed: list[str],
    dropout_shapes: object,
) -> Obstacle | None:
    """Return what the module does in a forward pass that stacked modules cannot do."""
    what = f"the module {type(module).__name__}"
    if changed:
        return Obstacle(
            why=f"{what} changes its buffer {changed[0]!r} in its forward pass, and stacked models cannot keep "
            "what they change"
        )
    if not torch.equal(module(records), logits):
        return Obstacle(
            why=f"{what} draws random numbers in its forward pass, which cannot be drawn for each of the stacked models",
            instead=f"use nn.Dropout, or {_ONE_BY_ONE}",
        )
    if not torch.allclose(module(records[:2]), logits[:2], rtol=1e-3, atol=1e-5):
        return Obstacle(
            why=f"{what} mixes the records of a batch, and stacked models of different sizes pad their batches"
        )
    if dropout_shapes is None:
        return Obstacle(
            why=f"{what} has a dropout layer whose input does not have the records as its first dimension"
        )
    return None


def _stacked_trial(
    modules: list[nn.Module], records: Tensor, classes: int, loss: Loss
) -> tuple[Obstacle | None, str]:
    """Return why a stacked pass fails or differs from single passes, and why it is slow."""
    frame = modules[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            moving, fixed = stacked(modules)
            with chosen_dropout(frame):  # no choice is made, so everything is kept
                _, logits = gradients_of(frame, [], loss)(
                    moving,
                    fixed,
                    [],
                    records.expand(2, *records.shape),
                    torch.ones(2, len(records), classes),
                    torch.ones(2, len(records)),
                )
        except (RuntimeError, NotImplementedError, InvalidInput) as error:
            text = str(error).strip().splitlines() or ["(no message)"]
            return (
                Obstacle(
                    why=f"PyTorch cannot stack the module {type(frame).__name__} and its loss ({text[0][:200]})"
                ),
                "",
            )
    for module, together in zip(modules, logits, strict=True):
        with chosen_dropout(module), torch.no_grad():
            alone = module(records)
        # The tolerance leaves room for single precision; a tensor that was not stacked differs by far more.
        if not torch.allclose(alone, together, rtol=1e-3, atol=1e-5, equal_nan=True):
            return (
                Obstacle(
                    why=f"stacked modules {type(frame).__name__} give other answers than each alone, as if one used a tensor "
                    "that is neither parameter nor buffer",
                    instead=f"register such a tensor with register_buffer, or {_ONE_BY_ONE}",
                ),
                "",
            )
    if any("performance drop" in str(warning.message) for warning in caught):
        return (
            None,
            "PyTorch does not vectorise one of its operations but loops over the models",
        )
    return None, ""
