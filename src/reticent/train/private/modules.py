"""Train modules of the user with differential privacy, one after another.

Gradients of single records come from taps where every layer allows it: a hook takes what goes into a layer and the
deltas that come back, and no gradient of the weights is formed on the way. Linear layers then need no gradient of a
record at all, convolutions and norms a small one each. Modules with other layers are differentiated
record by record by ``torch.func.vmap``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from reticent.errors import InvalidInput
from reticent.train._stack import View, members_of
from reticent.train._trial import made_with
from reticent.train.losses import Loss, cross_entropy, loss_of
from reticent.train.modules import Modules, laid_out, wants_channels_last
from reticent.train.private._sums import Column, Outer, Piece, Sum, Whole
from reticent.train.private.networks import Follower, randomness_of
from reticent.train.private.randomness import Randomness
from reticent.train.recipes import Private

__all__ = [
    "gradients_of_records",
    "refuse_mixing",
    "train_modules_privately",
    "trained_layers",
]

CHUNK = 256  # records differentiated at once


def train_modules_privately(
    make: Callable[[], nn.Module],
    inputs: Tensor,
    targets: Tensor,
    masks: NDArray[np.bool_],
    seeds: Sequence[int],
    recipe: Private,
    *,
    centres: Tensor | None = None,
    scales: Tensor | None = None,
    randomness: Sequence[Randomness] | None = None,
    told: Callable[[int], None] | None = None,
) -> Modules:
    """Train one private module per mask.

    Parameters
    ----------
    make, inputs, targets, masks, centres, scales
        As in :func:`reticent.train.modules.train_modules`. Centres and scales must be public.
    seeds : sequence of int
        Of the initialisation; and of batches and noise, if they are seeded.
    recipe : Private
        Training, clipping and noise.
    randomness : sequence of Randomness, optional
        Batches and noise of each model in place of the recipe's.
    told : callable, optional
        Called with the number of steps of a model done after each.

    Raises
    ------
    InvalidInput
        If the module mixes records, as a batch norm does, or draws for itself, as dropout does; or if its loss does.
    """
    view = View(inputs=inputs, targets=targets, centres=centres, scales=scales)
    members = members_of(masks, seeds, view)
    modules = []
    for k, seed in enumerate(seeds):
        module, _ = made_with(make, int(seed), view.inputs[:1])
        refuse_mixing(module)
        _must_answer_alone(module, view.of(k), members[k])
        own = randomness_of(recipe, [seed]) if randomness is None else randomness[k]
        _train_one(module, view.of(k), members[k], recipe, own, told)
        modules.append(module.eval())
    return Modules(
        modules=tuple(modules),
        together=False,
        stackable=True,
        why="private modules are trained one by one",
    )


def _train_one(
    module: nn.Module,
    view: View,
    members: Tensor,
    recipe: Private,
    randomness: Randomness,
    told: Callable[[int], None] | None,
) -> None:
    module.train()
    if wants_channels_last(view.inputs, module):
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    layers = trained_layers(module)
    parameters = [p for _, layer in layers for p in layer]
    follower = Follower(
        [[p.data[None] for p in layer] for _, layer in layers],
        [recipe.l2 if p.ndim >= 2 else 0.0 for p in parameters],
        recipe,
    )
    loss = loss_of(recipe, view.targets.shape[-1])
    course = recipe.course(len(members))
    batches = randomness.batches(
        [members], [course.sampling_rate], steps=course.steps, expected=recipe.batch
    )
    for done, batch in enumerate(batches):
        rows = batch.index[0][batch.present[0]]
        totals = [torch.zeros_like(p)[None] for p in parameters]
        for some in torch.split(rows, CHUNK) if len(rows) else ():
            x, y = view.batch(some[None])
            pieces = gradients_of_records(module, laid_out(x[0], module), y[0], loss)
            sums = follower.sums(pieces, torch.ones(1, len(some), dtype=torch.bool))
            for total, part in zip(totals, _flat(sums), strict=True):
                total.add_(part.formed().view(total.shape))
        follower.follow([Sum(whole=total) for total in totals], randomness)
        if told is not None:
            told(done + 1)


def _flat(sums: Sequence[Sequence[Sum]]) -> Iterator[Sum]:
    return (part for layer in sums for part in layer)


def trained_layers(module: nn.Module) -> list[tuple[nn.Module, list[nn.Parameter]]]:
    """Return every layer that has parameters of its own to train, and these."""
    found = [
        (layer, [p for p in layer.parameters(recurse=False) if p.requires_grad])
        for layer in module.modules()
    ]
    seen: set[int] = set()
    layers = []
    for layer, own in found:
        fresh = [p for p in own if id(p) not in seen]
        seen.update(id(p) for p in fresh)
        if fresh:
            layers.append((layer, fresh))
    if not layers:
        raise InvalidInput("the module has no parameter to train.")
    return layers


def gradients_of_records(
    module: nn.Module, inputs: Tensor, targets: Tensor, loss: Loss = cross_entropy
) -> list[list[Piece]]:
    """Return the gradients of the loss of every record, by layer and parameter.

    Parameters
    ----------
    module : nn.Module
        From (batch, ...) to (batch, classes) logits, each record by itself.
    inputs : Tensor, (batch, ...)
        Records.
    targets : Tensor, (batch, classes)
        Class probabilities.
    loss : callable
        From logits and targets to one loss per record, each of that record alone.
    """
    layers = trained_layers(module)
    if all(_can_tap(layer, own) for layer, own in layers) and not _in_place(module):
        tapped = _by_taps(module, layers, inputs, targets, loss)
        if tapped is not None:
            return tapped
    return _by_vmap(module, layers, inputs, targets, loss)


def _by_vmap(
    module: nn.Module,
    layers: Sequence[tuple[nn.Module, list[nn.Parameter]]],
    inputs: Tensor,
    targets: Tensor,
    loss: Loss,
) -> list[list[Piece]]:
    names = {id(p): name for name, p in module.named_parameters()}
    trained = {names[id(p)]: p.detach() for _, own in layers for p in own}
    fixed = {
        **{n: p.detach() for n, p in module.named_parameters() if n not in trained},
        **{n: b.detach() for n, b in module.named_buffers()},
    }

    def judged(moving: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        logits = functional_call(module, {**moving, **fixed}, (x[None],))
        return loss(logits, y[None])[0]

    found = vmap(grad(judged), in_dims=(None, 0, 0))(trained, inputs, targets)
    return [
        [Whole(gradients=found[names[id(p)]][None]) for p in own] for _, own in layers
    ]


def _by_taps(
    module: nn.Module,
    layers: Sequence[tuple[nn.Module, list[nn.Parameter]]],
    inputs: Tensor,
    targets: Tensor,
    loss: Loss,
) -> list[list[Piece]] | None:
    """Return the gradients from what goes into layers and the deltas that come out, if each is used once."""
    taken: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {}

    def tap(layer: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> Tensor:
        if not made.requires_grad:
            made.requires_grad_()
        taken.setdefault(layer, []).append((given[0].detach(), made))
        return made

    hooks = [layer.register_forward_hook(tap) for layer, _ in layers]
    try:
        with _frozen(layers), torch.enable_grad():
            logits = module(inputs)
            whole = loss(logits, targets).sum()
            if any(len(taken.get(layer, ())) != 1 for layer, _ in layers):
                return None
            tips = [taken[layer][0][1] for layer, _ in layers]
            deltas = torch.autograd.grad(whole, tips)
    finally:
        for hook in hooks:
            hook.remove()
    pieces = []
    for (layer, own), delta in zip(layers, deltas, strict=True):
        below = taken[layer][0][0]
        if len(below) != len(inputs) or len(delta) != len(inputs):
            return None  # the first dimension is not the records
        pieces.append([_piece(layer, p, below, delta) for p in own])
    return pieces


def _piece(
    layer: nn.Module, parameter: nn.Parameter, below: Tensor, delta: Tensor
) -> Piece:
    """Return the gradients of one parameter of a layer from its inputs and deltas."""
    is_weight = parameter is layer.weight
    if isinstance(layer, nn.Linear):
        if delta.ndim == 2:
            if is_weight:
                return Outer(above=delta.T[None], below=below.T[None])
            return Column(above=delta.T[None])
        flat, under = delta.flatten(1, -2), below.flatten(1, -2)
        if is_weight:
            return Whole(gradients=torch.bmm(flat.transpose(1, 2), under)[None])
        return Whole(gradients=flat.sum(1)[None])
    if isinstance(layer, nn.Conv2d):
        if not is_weight:
            return Whole(gradients=delta.sum((2, 3))[None])
        return Whole(gradients=_of_kernels(layer, below, delta)[None])
    if isinstance(layer, nn.GroupNorm):
        if is_weight:
            delta = delta * nn.functional.group_norm(
                below, layer.num_groups, eps=layer.eps
            )
        return Whole(gradients=delta.flatten(2).sum(2)[None])
    assert isinstance(layer, nn.LayerNorm)
    if is_weight:
        delta = delta * nn.functional.layer_norm(
            below, layer.normalized_shape, eps=layer.eps
        )
    inner = len(layer.normalized_shape)
    outer = tuple(range(1, delta.ndim - inner))
    return Whole(gradients=(delta.sum(outer) if outer else delta)[None])


def _of_kernels(layer: nn.Conv2d, below: Tensor, delta: Tensor) -> Tensor:
    """Return the gradients of a convolution's kernels, (batch, out, in, height, width).

    A gradient is the product of deltas and the windows that each of them has looked at. Whatever lies innermost is long:
    channels if there are many, else the columns of the image, so that windows are copied in long pieces.
    """
    assert not isinstance(layer.padding, str)
    (tall, wide), (down, across) = layer.kernel_size, layer.dilation
    seen = below.permute(0, 2, 3, 1)
    if any(layer.padding):
        up, side = layer.padding
        seen = nn.functional.pad(seen, (0, 0, side, side, up, up))
    windows = seen.unfold(1, (tall - 1) * down + 1, layer.stride[0])
    windows = windows.unfold(2, (wide - 1) * across + 1, layer.stride[1])
    windows = windows[
        ..., ::down, ::across
    ]  # records, rows, columns, in, height, width
    records, rows, columns, channels = windows.shape[:4]
    above = delta.permute(0, 2, 3, 1).reshape(records, rows * columns, -1)
    if channels >= wide:
        flat = windows.permute(0, 1, 2, 4, 5, 3).reshape(records, rows * columns, -1)
        made = torch.bmm(above.transpose(1, 2), flat)
        return made.view(records, -1, tall, wide, channels).permute(0, 1, 4, 2, 3)
    flat = windows.permute(0, 3, 4, 5, 1, 2).reshape(records, -1, rows * columns)
    made = torch.bmm(flat, above).transpose(1, 2)
    return made.reshape(records, -1, channels, tall, wide)


def _can_tap(layer: nn.Module, own: Sequence[nn.Parameter]) -> bool:
    if isinstance(layer, nn.Conv2d):
        return (
            layer.groups == 1
            and layer.padding_mode == "zeros"
            and not isinstance(layer.padding, str)
        )
    known = type(layer) in (nn.Linear, nn.GroupNorm, nn.LayerNorm)
    return known and len(own) == len(list(layer.parameters(recurse=False)))


def _in_place(module: nn.Module) -> bool:
    return any(getattr(layer, "inplace", False) for layer in module.modules())


@contextmanager
def _frozen(
    layers: Sequence[tuple[nn.Module, list[nn.Parameter]]],
) -> Iterator[None]:
    """Let no gradient of a parameter be formed."""
    parameters = [p for _, own in layers for p in own]
    try:
        for parameter in parameters:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def _must_answer_alone(module: nn.Module, view: View, members: Tensor) -> None:
    """Refuse a module whose answers depend on who else is asked about, or on draws of its own."""
    records = view.batch(members[torch.arange(3) % len(members)][None])[0][0]
    module.train()
    with torch.no_grad():
        together = module(records)
        alone = torch.cat([module(records[k : k + 1]) for k in range(len(records))])
    if not torch.allclose(together, alone, rtol=1e-3, atol=1e-5, equal_nan=True):
        raise InvalidInput(
            f"the module {type(module).__name__} answers otherwise about three records together than about each alone, so that no bound on "
            "one record's gradient bounds its influence; let it treat every record by itself, without draws of its own."
        )


def refuse_mixing(module: nn.Module) -> None:
    """Refuse layers that let one record change what another one's gradient is."""
    for name, layer in module.named_modules():
        what = f"the layer {name or '(the module itself)'} is a {type(layer).__name__}"
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise InvalidInput(
                f"{what}, which mixes the records of a batch, so that no bound on one record's gradient bounds its influence; "
                "use nn.GroupNorm or nn.LayerNorm in its place."
            )
        if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0:
            raise InvalidInput(
                f"{what}, whose draws for one record depend on how many others there are; leave it out: the noise regularises already."
            )
        tracks = getattr(layer, "track_running_stats", False)
        if isinstance(layer, nn.modules.instancenorm._InstanceNorm) and tracks:
            raise InvalidInput(
                f"{what} that keeps statistics of all records without noise; set track_running_stats=False."
            )
