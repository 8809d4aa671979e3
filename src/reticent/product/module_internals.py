"""Open any PyTorch module: the length of every record's gradient, layer by layer.

The inputs of a linear layer and the deltas propagated back to it give the length of its gradients without forming them.
Other layers are differentiated by ``torch.func.vmap``, or one record after another where PyTorch cannot do that.
"""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from reticent.errors import InvalidInput, InvalidPredictions
from reticent.product.describe import evaluating
from reticent.product.internals import (
    Internals,
    joined,
    loss_and_delta,
    units_shown,
)

__all__ = ["internals_of_module"]

CHUNK = 256  # records differentiated at once, so that the layers' outputs stay small
# Numbers that the gradients of a chunk may take: 128 MB in single precision.
ROOM = 2**25
# Name of the layer that holds the module's direct parameters.
ITSELF = "(the module itself)"
Layers = Mapping[str, Mapping[str, nn.Parameter]]


def internals_of_module(
    module: nn.Module, inputs: Tensor, labels: NDArray[np.int64]
) -> Internals:
    """Return what an attacker who opens a module sees at each record.

    A layer is any submodule that directly holds parameters; all of them count, even those that were not trained. The module
    is used in evaluation mode, in which it answers, and left as it was. Fast methods are first tried on two records: a
    layer whose lengths differ from those of plain differentiation is differentiated plainly.

    Parameters
    ----------
    module : nn.Module
        Maps (n, ...) to (n, classes) logits, each record independently of the others.
    inputs : Tensor, shape (n, ...)
        Inputs of the records.
    labels : array of int, shape (n,)
        True classes of the records.

    Raises
    ------
    InvalidInput
        If the module has no parameter, there is no record, or the labels do not fit.
    InvalidPredictions
        If the output is not one row of logits per record.
    """
    layers = _layers(module)
    if len(inputs) == 0 or len(inputs) != len(labels):
        raise InvalidInput(
            f"there are {len(inputs)} records and {len(labels)} labels; pass one label for each of at least one record."
        )
    with evaluating(module):
        ways = _try_out(module, layers, inputs[[0, -1]], labels[[0, -1]])
        formed = sum(
            p.numel()
            for parameters in ways.at_once.values()
            for p in parameters.values()
        )
        size = min(
            CHUNK, max(1, ROOM // max(formed, 1)), getattr(module, "at_once", CHUNK)
        )
        parts = [
            _internals(module, layers, ways, piece, labels[at : at + size])
            for at, piece in _pieces(inputs, size)
        ]
    if len({part.activations.shape[1] for part in parts}) > 1:
        # Records end in different layers, so there is no layer in which they could be compared.
        parts = [
            replace(part, activations=np.ones((len(part), 1), dtype=np.float32))
            for part in parts
        ]
    return joined(parts)


def _pieces(inputs: Tensor, size: int) -> Iterator[tuple[int, Tensor]]:
    for at in range(0, len(inputs), size):
        yield at, inputs[at : at + size]


def _layers(module: nn.Module) -> Layers:
    """Return the parameters of each layer by name; a shared parameter belongs to the first layer that uses it."""
    layers: dict[str, dict[str, nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        # Integers have no gradient.
        if parameter.is_floating_point():
            owner = name.rpartition(".")[0] or ITSELF
            layers.setdefault(owner, {})[name] = parameter
    if not layers:
        raise InvalidInput(
            f"the module {type(module).__name__} has no parameter, so there is no gradient to look at; leave the white-box attacks out."
        )
    return layers


@dataclass(frozen=True, kw_only=True)
class _Ways:
    """How the gradients of each layer are best taken: tapped by hooks, for all records at once, or one record after another."""

    tapped: Layers
    at_once: Layers
    singly: Layers


def _internals(
    module: nn.Module,
    layers: Layers,
    ways: _Ways,
    inputs: Tensor,
    labels: NDArray[np.int64],
) -> Internals:
    watched = _watch(module, layers, ways.tapped, inputs)
    losses, lengths, unit = _unit_deltas(watched.logits, labels)
    # A module that routes records differently may call a layer for some of them only.
    missed = {
        n: parameters for n, parameters in ways.tapped.items() if not watched.by_rows(n)
    }
    tapped = {n: parameters for n, parameters in ways.tapped.items() if n not in missed}
    norms = {
        **watched.norms(tapped, unit),
        **_at_once(module, ways.at_once, inputs, unit),
        **_singly(module, {**ways.singly, **missed}, inputs, unit),
    }
    return Internals(
        losses=losses,
        gradient_norms=lengths[:, None]
        * np.stack([norms[name] for name in layers], axis=1),
        layers=tuple(layers),
        activations=units_shown(watched.activations()),
    )


def _unit_deltas(
    logits: Tensor, labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], Tensor]:
    """Return losses, the lengths of their gradients with respect to the logits, and these gradients scaled to length 1."""
    values = logits.detach().cpu().numpy().astype(np.float64)
    losses, delta = loss_and_delta(values, labels)
    lengths = np.linalg.norm(delta, axis=1)
    unit = delta / np.where(lengths > 0, lengths, 1.0)[:, None]
    return losses, lengths, torch.from_numpy(unit).to(logits)


@dataclass(kw_only=True)
class _Watched:
    """What the hooks recorded during a forward pass."""

    records: int
    logits: Tensor = field(default_factory=lambda: torch.empty(0))
    last: Tensor | None = None
    calls: dict[str, list[tuple[Tensor, Tensor]]] = field(default_factory=dict)

    def activations(self) -> NDArray[np.float32]:
        """Return the inputs of the last layer with parameters, or the logits if those are not one row per record."""
        values = self.last
        if values is None or values.ndim < 2 or len(values) != self.records:
            values = self.logits
        return np.asarray(values.detach().cpu().flatten(1).numpy(), dtype=np.float32)

    def by_rows(self, name: str) -> bool:
        """Whether a layer was called once, with one row per record."""
        calls = self.calls.get(name, [])
        return len(calls) == 1 and calls[0][0].shape == (self.records,)

    def norms(self, tapped: Layers, unit: Tensor) -> dict[str, NDArray[np.float64]]:
        """Return the lengths of the gradients of linear layers that were called once."""
        if not tapped:
            return {}
        calls = [self.calls[name][0] for name in tapped]
        deltas = torch.autograd.grad(
            self.logits,
            [output for _, output in calls],
            unit,
            allow_unused=True,
            materialize_grads=True,
        )
        return {
            name: (delta.norm(dim=1).double() * length).cpu().numpy()
            for name, delta, (length, _) in zip(tapped, deltas, calls, strict=True)
        }


def _watch(
    module: nn.Module, layers: Layers, tapped: Layers, inputs: Tensor
) -> _Watched:
    """Call the module; record the inputs of its last layer, and the input lengths and outputs of the tapped linear layers."""
    watched = _Watched(records=len(inputs))

    def hook(name: str) -> Callable[..., Tensor | None]:
        def record(
            layer: nn.Module, given: tuple[object, ...], output: object
        ) -> Tensor | None:
            if not given or not isinstance(given[0], Tensor):
                return None
            watched.last = given[0].detach()
            if name not in tapped or not isinstance(output, Tensor):
                return None
            if not output.requires_grad:
                output.requires_grad_()
            # A bias is a weight whose input is always 1.
            one = 0.0 if getattr(layer, "bias", None) is None else 1.0
            # Computed now, because a later layer may change its input in place.
            length = (given[0].detach().double().square().sum(-1) + one).sqrt()
            watched.calls.setdefault(name, []).append((length, output))
            # A later layer may change its input in place, and autograd would then refuse the recorded one.
            return output.clone()

        return record

    named = dict(module.named_modules())
    hooks = [
        named[name].register_forward_hook(hook(name))
        for name in layers
        if name != ITSELF
    ]
    try:
        with torch.enable_grad():
            watched.logits = module(inputs)
    finally:
        for handle in hooks:
            handle.remove()
    if watched.logits.ndim != 2 or len(watched.logits) != len(inputs):
        raise InvalidPredictions(
            f"the module {type(module).__name__} gives an output of shape {tuple(watched.logits.shape)} for {len(inputs)} records; "
            "return one row per record and one logit per class."
        )
    return watched


def _try_out(
    module: nn.Module, layers: Layers, inputs: Tensor, labels: NDArray[np.int64]
) -> _Ways:
    """Return for each layer the fastest way that gives the lengths of plain differentiation on two records.

    A layer may be called more than once, its weights may be used elsewhere as well, or PyTorch may be unable to
    vectorise it: whatever the reason, a way whose lengths differ is not used.
    """
    named = dict(module.named_modules())
    linear = {
        n: parameters
        for n, parameters in layers.items()
        if type(named.get(n)) is nn.Linear
    }
    watched = _watch(module, layers, linear, inputs)
    _, _, unit = _unit_deltas(watched.logits, labels)
    try:
        exact = _singly(module, layers, inputs, unit)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput(
            f"the module {type(module).__name__} cannot be differentiated as it answers ({reason}), so nobody can look at its "
            "gradients; let its answers depend on its parameters by operations that PyTorch can differentiate."
        ) from error

    def agreeing(tried: Layers, norms: Mapping[str, NDArray[np.float64]]) -> Layers:
        # A wrong way differs by whole gradients; the tolerance leaves room for single precision.
        return {
            name: parameters
            for name, parameters in tried.items()
            if name in norms
            and np.allclose(norms[name], exact[name], rtol=1e-3, atol=1e-6)
        }

    once = {n: parameters for n, parameters in linear.items() if watched.by_rows(n)}
    tapped = agreeing(once, watched.norms(once, unit))
    rest = {
        name: parameters for name, parameters in layers.items() if name not in tapped
    }
    try:
        at_once = agreeing(rest, _at_once(module, rest, inputs, unit))
    except (RuntimeError, NotImplementedError, ValueError):
        at_once = {}
    singly = {
        name: parameters for name, parameters in rest.items() if name not in at_once
    }
    return _Ways(tapped=tapped, at_once=at_once, singly=singly)


def _at_once(
    module: nn.Module, layers: Layers, inputs: Tensor, unit: Tensor
) -> dict[str, NDArray[np.float64]]:
    """Return the lengths of gradients that have to be formed, for all records at once."""
    if not layers:
        return {}
    moving, along = _along(module, layers)
    with warnings.catch_warnings():
        # PyTorch gives this warning where it works record by record inside, which is slow but correct.
        warnings.filterwarnings("ignore", message="There is a performance drop")
        gradients = vmap(grad(along), in_dims=(None, 0, 0))(moving, inputs, unit)
    return _by_layer(layers, gradients, len(inputs))


def _singly(
    module: nn.Module, layers: Layers, inputs: Tensor, unit: Tensor
) -> dict[str, NDArray[np.float64]]:
    """Return the lengths of gradients by plain differentiation, one record after another."""
    if not layers:
        return {}
    parameters = {n: p for parameters in layers.values() for n, p in parameters.items()}
    each = []
    with _wanted(parameters.values()), torch.enable_grad():
        for x, direction in zip(inputs, unit, strict=True):
            slopes = torch.autograd.grad(
                module(x[None]),
                list(parameters.values()),
                direction[None],
                allow_unused=True,
            )
            gradients = {
                n: (torch.zeros_like(p) if slope is None else slope)[None]
                for (n, p), slope in zip(parameters.items(), slopes, strict=True)
            }
            each.append(_by_layer(layers, gradients, 1))
    return {name: np.concatenate([part[name] for part in each]) for name in layers}


def _along(
    module: nn.Module, layers: Layers
) -> tuple[dict[str, Tensor], Callable[[dict[str, Tensor], Tensor, Tensor], Tensor]]:
    """Return the parameters, and a function of them: the logits of a record along a direction."""
    moving = {
        n: p.detach() for parameters in layers.values() for n, p in parameters.items()
    }
    fixed = {
        **{n: p.detach() for n, p in module.named_parameters() if n not in moving},
        **{n: b.detach() for n, b in module.named_buffers()},
    }

    def along(moving: dict[str, Tensor], x: Tensor, direction: Tensor) -> Tensor:
        logits: Tensor = functional_call(module, {**moving, **fixed}, (x[None],))
        return (logits[0] * direction).sum()

    return moving, along


def _by_layer(
    layers: Layers, gradients: Mapping[str, Tensor], records: int
) -> dict[str, NDArray[np.float64]]:
    """Return the length of each layer's gradient, per record."""
    norms = {}
    for name, parameters in layers.items():
        squares = sum(
            gradients[n].detach().reshape(records, -1).norm(dim=1).double().square()
            for n in parameters
        )
        assert isinstance(squares, Tensor)
        norms[name] = squares.sqrt().cpu().numpy()
    return norms


@contextmanager
def _wanted(parameters: Collection[nn.Parameter]) -> Iterator[None]:
    """Let gradients of all parameters be formed, even of those that were not trained."""
    before = [(p, p.requires_grad) for p in parameters]
    try:
        for p, _ in before:
            p.requires_grad_(True)
        yield
    finally:
        for p, was in before:
            p.requires_grad_(was)
