"""Train modules of the user with differential privacy, one after another.

Gradients of single records come from hooks ("taps") if every layer allows it: a hook records the inputs of a layer and
the deltas that are propagated back to it, and autograd forms no gradient of the weights. Linear layers then need no
per-record gradient at all; convolutions and normalisation layers need a small one each. Modules with other layers are
differentiated record by record by ``torch.func.vmap``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from reticent.errors import InvalidInput
from reticent.train._trial import made_with
from reticent.train._vector import chosen_dropout
from reticent.train.losses import Loss, cross_entropy, loss_of
from reticent.train.modules import Modules, laid_out, wants_channels_last
from reticent.train.private.dropout import Chosen, KeyedDropout, dropout_keys
from reticent.train.private.networks import Follower, randomness_of
from reticent.train.private.randomness import Randomness
from reticent.train.private.sums import Column, Outer, Piece, Sum, Whole
from reticent.train.recipes import Private
from reticent.train.stacking import Cohort, View

__all__ = [
    "gradients_of_records",
    "refuse_mixing",
    "train_modules_privately",
    "trained_layers",
]

CHUNK = 256  # records differentiated at once, so that per-record gradients stay small


def train_modules_privately(
    make: Callable[[], nn.Module],
    cohort: Cohort,
    recipe: Private,
    *,
    randomness: Sequence[Randomness] | None = None,
    tell: Callable[[int], None] | None = None,
) -> Modules:
    """Train one private module per mask.

    Parameters
    ----------
    make : callable
        Returns a new module, as in :func:`reticent.train.modules.train_modules`.
    cohort : Cohort
        Records, members and seeds. Centres and scales must be public. A seed gives the initialisation; and batches and
        noise, if they are seeded.
    recipe : Private
        Training, clipping and noise.
    randomness : sequence of Randomness, optional
        Batches and noise of each model, instead of the recipe's.
    tell : callable, optional
        Called after each step of a model with the number of its completed steps.

    Raises
    ------
    InvalidInput
        If the module or its loss mixes records, as a batch norm does, or draws at random elsewhere than in ``nn.Dropout``.
    """
    members = cohort.members()
    modules = []
    for k, seed in enumerate(cohort.seeds):
        view = cohort.of(k)
        module, _ = made_with(make, int(seed), view.inputs[:1])
        refuse_mixing(module)
        source = randomness_of(recipe, [seed]) if randomness is None else randomness[k]
        key = dropout_keys([int(seed)], secret=source.secret)
        with chosen_dropout(module) as layers:
            _must_answer_alone(module, view, members[k])
            record = view.batch(members[k][:1][None])[0][0]
            dropout = KeyedDropout(module, layers, record, key)
            _train_one(module, view, members[k], recipe, source, dropout, tell)
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
    dropout: KeyedDropout,
    tell: Callable[[int], None] | None,
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
        for chunk in torch.split(rows, CHUNK) if len(rows) else ():
            x, y = view.batch(chunk[None])
            # A member's place among the members: its masks do not depend on other records of the table.
            kept = dropout.chosen(done, torch.searchsorted(members, chunk))
            pieces = gradients_of_records(
                module, laid_out(x[0], module), y[0], loss, kept
            )
            sums = follower.sums(pieces, torch.ones(1, len(chunk), dtype=torch.bool))
            for total, part in zip(totals, _flat(sums), strict=True):
                total.add_(part.formed().view(total.shape))
        follower.follow([Sum(whole=total) for total in totals], randomness)
        if tell is not None:
            tell(done + 1)


def _flat(sums: Sequence[Sequence[Sum]]) -> Iterator[Sum]:
    return (part for layer in sums for part in layer)


def trained_layers(module: nn.Module) -> list[tuple[nn.Module, list[nn.Parameter]]]:
    """Return every layer that directly holds trained parameters, with these parameters.

    A parameter that several layers share belongs to the first.
    """
    listed: set[int] = set()
    layers = []
    for layer in module.modules():
        parameters = [
            p
            for p in layer.parameters(recurse=False)
            if p.requires_grad and id(p) not in listed
        ]
        listed.update(id(p) for p in parameters)
        if parameters:
            layers.append((layer, parameters))
    if not layers:
        raise InvalidInput(
            "the module has no parameter to train, so it cannot learn; give it one with requires_grad."
        )
    return layers


def gradients_of_records(
    module: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    loss: Loss = cross_entropy,
    kept: Chosen | None = None,
) -> list[list[Piece]]:
    """Return the gradients of the loss of every record, by layer and parameter.

    Parameters
    ----------
    module : nn.Module
        Maps (batch, ...) to (batch, classes) logits, each record independently of the others.
    inputs : Tensor, (batch, ...)
        Inputs of the records.
    targets : Tensor, (batch, classes)
        Class probabilities of the records.
    loss : callable
        Maps logits and targets to one loss per record, which depends on that record alone.
    kept : list of (ChosenDropout, list of Tensor), optional
        What each dropout layer keeps of the records in each of its calls.
    """
    layers, kept = trained_layers(module), kept or []
    if all(
        _can_tap(layer, parameters) for layer, parameters in layers
    ) and not _in_place(module):
        tapped = _by_taps(module, layers, inputs, targets, loss, kept)
        if tapped is not None:
            return tapped
    return _by_vmap(module, layers, inputs, targets, loss, kept)


def _by_vmap(
    module: nn.Module,
    layers: Sequence[tuple[nn.Module, list[nn.Parameter]]],
    inputs: Tensor,
    targets: Tensor,
    loss: Loss,
    kept: Chosen,
) -> list[list[Piece]]:
    names = {id(p): name for name, p in module.named_parameters()}
    trained = {names[id(p)]: p.detach() for _, parameters in layers for p in parameters}
    fixed = {
        **{n: p.detach() for n, p in module.named_parameters() if n not in trained},
        **{n: b.detach() for n, b in module.named_buffers()},
    }

    def loss_of_record(
        moving: dict[str, Tensor], x: Tensor, y: Tensor, own: list[list[Tensor]]
    ) -> Tensor:
        for (layer, _), calls in zip(kept, own, strict=True):
            layer.choose([call[None] for call in calls])
        logits = functional_call(module, {**moving, **fixed}, (x[None],))
        return loss(logits, y[None])[0]

    gradients = vmap(grad(loss_of_record), in_dims=(None, 0, 0, 0))(
        trained, inputs, targets, [calls for _, calls in kept]
    )
    return [
        [Whole(gradients=gradients[names[id(p)]][None]) for p in parameters]
        for _, parameters in layers
    ]


def _by_taps(
    module: nn.Module,
    layers: Sequence[tuple[nn.Module, list[nn.Parameter]]],
    inputs: Tensor,
    targets: Tensor,
    loss: Loss,
    kept: Chosen,
) -> list[list[Piece]] | None:
    """Return the gradients from the layers' inputs and deltas; None unless every layer is called once with one row per record."""
    calls: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {}

    def tap(layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if not output.requires_grad:
            output.requires_grad_()
        calls.setdefault(layer, []).append((given[0].detach(), output))
        return output

    for dropped, own in kept:
        dropped.choose(own)
    hooks = [layer.register_forward_hook(tap) for layer, _ in layers]
    try:
        with _frozen(layers), torch.enable_grad():
            logits = module(inputs)
            total = loss(logits, targets).sum()
            if any(len(calls.get(layer, ())) != 1 for layer, _ in layers):
                return None
            outputs = [calls[layer][0][1] for layer, _ in layers]
            deltas = torch.autograd.grad(total, outputs)
    finally:
        for hook in hooks:
            hook.remove()
    pieces = []
    for (layer, parameters), delta in zip(layers, deltas, strict=True):
        below = calls[layer][0][0]
        if len(below) != len(inputs) or len(delta) != len(inputs):
            return None  # the first dimension is not the records
        pieces.append([_piece(layer, p, below, delta) for p in parameters])
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

    A gradient is the product of the deltas with the windows of the input that they belong to. The innermost dimension is
    always a long one, the channels if there are many, else the columns of the image, so that windows are copied in long
    pieces.
    """
    assert not isinstance(layer.padding, str)
    (tall, wide), (down, across) = layer.kernel_size, layer.dilation
    padded = below.permute(0, 2, 3, 1)
    if any(layer.padding):
        up, side = layer.padding
        padded = nn.functional.pad(padded, (0, 0, side, side, up, up))
    windows = padded.unfold(1, (tall - 1) * down + 1, layer.stride[0])
    windows = windows.unfold(2, (wide - 1) * across + 1, layer.stride[1])
    # Records, rows, columns, channels, height, width.
    windows = windows[..., ::down, ::across]
    records, rows, columns, channels = windows.shape[:4]
    above = delta.permute(0, 2, 3, 1).reshape(records, rows * columns, -1)
    if channels >= wide:
        flat = windows.permute(0, 1, 2, 4, 5, 3).reshape(records, rows * columns, -1)
        product = torch.bmm(above.transpose(1, 2), flat)
        return product.view(records, -1, tall, wide, channels).permute(0, 1, 4, 2, 3)
    flat = windows.permute(0, 3, 4, 5, 1, 2).reshape(records, -1, rows * columns)
    product = torch.bmm(flat, above).transpose(1, 2)
    return product.reshape(records, -1, channels, tall, wide)


def _can_tap(layer: nn.Module, parameters: Sequence[nn.Parameter]) -> bool:
    if isinstance(layer, nn.Conv2d):
        return (
            layer.groups == 1
            and layer.padding_mode == "zeros"
            and not isinstance(layer.padding, str)
        )
    known = type(layer) in (nn.Linear, nn.GroupNorm, nn.LayerNorm)
    return known and len(parameters) == len(list(layer.parameters(recurse=False)))


def _in_place(module: nn.Module) -> bool:
    return any(getattr(layer, "inplace", False) for layer in module.modules())


@contextmanager
def _frozen(
    layers: Sequence[tuple[nn.Module, list[nn.Parameter]]],
) -> Iterator[None]:
    """Keep autograd from forming gradients of the parameters, and allow it again afterwards."""
    parameters = [p for _, group in layers for p in group]
    try:
        for parameter in parameters:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def _must_answer_alone(module: nn.Module, view: View, members: Tensor) -> None:
    """Refuse a module whose answer for a record depends on the other records of a batch, or on random draws."""
    records = view.batch(members[torch.arange(3) % len(members)][None])[0][0]
    module.train()
    with torch.no_grad():
        together = module(records)
        alone = torch.cat([module(records[k : k + 1]) for k in range(len(records))])
    # The tolerance leaves room for single precision; a module that mixes records differs by far more.
    if not torch.allclose(together, alone, rtol=1e-3, atol=1e-5, equal_nan=True):
        raise InvalidInput(
            f"the module {type(module).__name__} answers differently for three records together than for each alone, so that a bound on one "
            "record's gradient does not bound its influence; compute the answer for every record from that record alone, without random numbers other than those of nn.Dropout."
        )


def refuse_mixing(module: nn.Module) -> None:
    """Refuse layers in which one record changes the gradient of another."""
    for name, layer in module.named_modules():
        what = f"the layer {name or '(the module itself)'} is a {type(layer).__name__}"
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise InvalidInput(
                f"{what}, which mixes the records of a batch, so that a bound on one record's gradient does not bound its influence; "
                "use nn.GroupNorm or nn.LayerNorm in its place."
            )
        dropout = isinstance(layer, nn.modules.dropout._DropoutNd)
        if dropout and type(layer) is not nn.Dropout and layer.p > 0:
            raise InvalidInput(
                f"{what}, whose random draws for one record depend on the number of other records; use nn.Dropout, which is drawn for each "
                "record by itself, or leave it out."
            )
        tracks = getattr(layer, "track_running_stats", False)
        if isinstance(layer, nn.modules.instancenorm._InstanceNorm) and tracks:
            raise InvalidInput(
                f"{what} that stores statistics of all records without noise; set track_running_stats=False."
            )
