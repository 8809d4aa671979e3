"""Open any PyTorch module: the gradient of every record, layer by layer, as lengths.

What goes into a linear layer and what comes back from it gives the length of its gradients without forming one. Other
layers are differentiated by ``torch.func.vmap``, or one record after another where PyTorch cannot do that.
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
from reticent.product._internals import (
    Internals,
    joined,
    loss_and_delta,
    units_shown,
)

__all__ = ["internals_of_module"]

CHUNK = 256  # records opened at once
ROOM = 2**25  # numbers that the gradients of a chunk may take
ITSELF = "(the module itself)"
Layers = Mapping[str, Mapping[str, nn.Parameter]]


def internals_of_module(
    module: nn.Module, inputs: Tensor, labels: NDArray[np.int64]
) -> Internals:
    """Return what somebody sees at each record who opens a module.

    A layer is whatever holds parameters of its own; all are looked at, also those that were not trained. The module is
    asked as it answers, in evaluation mode, and left as it was. Short cuts are tried on two records first: a layer whose
    lengths differ from those of plain differentiation is differentiated plainly.

    Parameters
    ----------
    module : nn.Module
        From (n, ...) to (n, classes) logits, each record by itself.
    inputs : Tensor, shape (n, ...)
        Records.
    labels : array of int, shape (n,)
        Their true classes.

    Raises
    ------
    InvalidInput
        If the module has no parameter, there is no record, or labels do not fit.
    InvalidPredictions
        If the output is not one row of logits a record.
    """
    layers = _layers(module)
    if len(inputs) == 0 or len(inputs) != len(labels):
        raise InvalidInput(
            f"there are {len(inputs)} records and {len(labels)} labels; pass one label for each of at least one record."
        )
    with _evaluating(module):
        ways = _try_out(module, layers, inputs[[0, -1]], labels[[0, -1]])
        formed = sum(p.numel() for own in ways.at_once.values() for p in own.values())
        size = min(
            CHUNK, max(1, ROOM // max(formed, 1)), getattr(module, "at_once", CHUNK)
        )
        parts = [
            _opened(module, layers, ways, some, labels[at : at + size])
            for at, some in _pieces(inputs, size)
        ]
    if len({part.activations.shape[1] for part in parts}) > 1:
        # Records end in different layers: there is none to compare them in.
        parts = [
            replace(part, activations=np.ones((len(part), 1), dtype=np.float32))
            for part in parts
        ]
    return joined(parts)


def _pieces(inputs: Tensor, size: int) -> Iterator[tuple[int, Tensor]]:
    for at in range(0, len(inputs), size):
        yield at, inputs[at : at + size]


def _layers(module: nn.Module) -> Layers:
    """Return the parameters by the layer that owns them, by name; a shared one counts where it comes first."""
    found: dict[str, dict[str, nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if parameter.is_floating_point():
            owner = name.rpartition(".")[0] or ITSELF
            found.setdefault(owner, {})[name] = parameter
    if not found:
        raise InvalidInput(
            f"the module {type(module).__name__} has no parameter, so there is no gradient to look at; leave the white-box attacks out."
        )
    return found


@dataclass(frozen=True, kw_only=True)
class _Ways:
    """How the gradients of each layer are best taken: tapped, of all records at once, or of one after another."""

    tapped: Layers
    at_once: Layers
    singly: Layers


def _opened(
    module: nn.Module,
    layers: Layers,
    ways: _Ways,
    inputs: Tensor,
    labels: NDArray[np.int64],
) -> Internals:
    watched = _watch(module, layers, ways.tapped, inputs)
    losses, lengths, sent = _sent_back(watched.logits, labels)
    # Who sends records different ways may call a layer for some of them only.
    missed = {n: own for n, own in ways.tapped.items() if not watched.by_rows(n)}
    tapped = {n: own for n, own in ways.tapped.items() if n not in missed}
    norms = {
        **watched.norms(tapped, sent),
        **_at_once(module, ways.at_once, inputs, sent),
        **_singly(module, {**ways.singly, **missed}, inputs, sent),
    }
    return Internals(
        losses=losses,
        gradient_norms=lengths[:, None]
        * np.stack([norms[name] for name in layers], axis=1),
        layers=tuple(layers),
        activations=units_shown(watched.activations()),
    )


def _sent_back(
    logits: Tensor, labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], Tensor]:
    """Return losses, lengths of their gradients with respect to the logits, and these at length 1."""
    values = logits.detach().cpu().numpy().astype(np.float64)
    losses, delta = loss_and_delta(values, labels)
    lengths = np.linalg.norm(delta, axis=1)
    unit = delta / np.where(lengths > 0, lengths, 1.0)[:, None]
    return losses, lengths, torch.from_numpy(unit).to(logits)


@dataclass(kw_only=True)
class _Watched:
    """What a forward pass shows."""

    records: int
    logits: Tensor = field(default_factory=lambda: torch.empty(0))
    last: Tensor | None = None
    calls: dict[str, list[tuple[Tensor, Tensor]]] = field(default_factory=dict)

    def activations(self) -> NDArray[np.float32]:
        """Return what went into the last layer with parameters; the logits, if that is not one row a record."""
        seen = self.last
        if seen is None or seen.ndim < 2 or len(seen) != self.records:
            seen = self.logits
        return np.asarray(seen.detach().cpu().flatten(1).numpy(), dtype=np.float32)

    def by_rows(self, name: str) -> bool:
        """Whether a layer was called once, with one row a record."""
        calls = self.calls.get(name, [])
        return len(calls) == 1 and calls[0][0].shape == (self.records,)

    def norms(self, tapped: Layers, sent: Tensor) -> dict[str, NDArray[np.float64]]:
        """Return the lengths of the gradients of linear layers that were called once."""
        if not tapped:
            return {}
        calls = [self.calls[name][0] for name in tapped]
        deltas = torch.autograd.grad(
            self.logits,
            [tip for _, tip in calls],
            sent,
            allow_unused=True,
            materialize_grads=True,
        )
        return {
            name: (delta.norm(dim=1).double() * seen).cpu().numpy()
            for name, delta, (seen, _) in zip(tapped, deltas, calls, strict=True)
        }


def _watch(
    module: nn.Module, layers: Layers, tapped: Layers, inputs: Tensor
) -> _Watched:
    """Ask the module, and keep what goes into its last layer and into linear ones, and where deltas come back."""
    watched = _Watched(records=len(inputs))

    def hook(name: str) -> Callable[..., Tensor | None]:
        def seen(
            layer: nn.Module, given: tuple[object, ...], made: object
        ) -> Tensor | None:
            if not given or not isinstance(given[0], Tensor):
                return None
            watched.last = given[0].detach()
            if name not in tapped or not isinstance(made, Tensor):
                return None
            if not made.requires_grad:
                made.requires_grad_()
            one = 0.0 if getattr(layer, "bias", None) is None else 1.0
            # Taken now: a layer further up may change its input in place.
            length = (given[0].detach().double().square().sum(-1) + one).sqrt()
            watched.calls.setdefault(name, []).append((length, made))
            return made.clone()

        return seen

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
            "return one row a record and one logit a class."
        )
    return watched


def _try_out(
    module: nn.Module, layers: Layers, inputs: Tensor, labels: NDArray[np.int64]
) -> _Ways:
    """Return the short cuts that give the lengths of plain differentiation on two records.

    A layer may be called more than once, its weights be used by something else as well, or PyTorch be unable to
    vectorise it: whatever the reason, what differs is not used.
    """
    named = dict(module.named_modules())
    linear = {n: own for n, own in layers.items() if type(named.get(n)) is nn.Linear}
    watched = _watch(module, layers, linear, inputs)
    _, _, sent = _sent_back(watched.logits, labels)
    try:
        exact = _singly(module, layers, inputs, sent)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput(
            f"the module {type(module).__name__} cannot be differentiated as it answers ({reason}), so nobody can look at its "
            "gradients; let its answers depend on its parameters by operations that PyTorch can differentiate."
        ) from error

    def agreeing(asked: Layers, found: Mapping[str, NDArray[np.float64]]) -> Layers:
        return {
            name: own
            for name, own in asked.items()
            if name in found
            and np.allclose(found[name], exact[name], rtol=1e-3, atol=1e-6)
        }

    once = {n: own for n, own in linear.items() if watched.by_rows(n)}
    tapped = agreeing(once, watched.norms(once, sent))
    rest = {name: own for name, own in layers.items() if name not in tapped}
    try:
        at_once = agreeing(rest, _at_once(module, rest, inputs, sent))
    except (RuntimeError, NotImplementedError, ValueError):
        at_once = {}
    singly = {name: own for name, own in rest.items() if name not in at_once}
    return _Ways(tapped=tapped, at_once=at_once, singly=singly)


def _at_once(
    module: nn.Module, layers: Layers, inputs: Tensor, sent: Tensor
) -> dict[str, NDArray[np.float64]]:
    """Return the lengths of gradients that have to be formed, of all records at once."""
    if not layers:
        return {}
    moving, along = _along(module, layers)
    with warnings.catch_warnings():
        # Where PyTorch works record by record inside: slow, but right.
        warnings.filterwarnings("ignore", message="There is a performance drop")
        found = vmap(grad(along), in_dims=(None, 0, 0))(moving, inputs, sent)
    return _by_layer(layers, found, len(inputs))


def _singly(
    module: nn.Module, layers: Layers, inputs: Tensor, sent: Tensor
) -> dict[str, NDArray[np.float64]]:
    """Return the lengths of gradients by plain differentiation, one record after another."""
    if not layers:
        return {}
    parameters = {n: p for own in layers.values() for n, p in own.items()}
    each = []
    with _wanted(parameters.values()), torch.enable_grad():
        for x, direction in zip(inputs, sent, strict=True):
            slopes = torch.autograd.grad(
                module(x[None]),
                list(parameters.values()),
                direction[None],
                allow_unused=True,
            )
            found = {
                n: (torch.zeros_like(p) if slope is None else slope)[None]
                for (n, p), slope in zip(parameters.items(), slopes, strict=True)
            }
            each.append(_by_layer(layers, found, 1))
    return {name: np.concatenate([part[name] for part in each]) for name in layers}


def _along(
    module: nn.Module, layers: Layers
) -> tuple[dict[str, Tensor], Callable[[dict[str, Tensor], Tensor, Tensor], Tensor]]:
    """Return the parameters, and the logits of a record along a direction as their function."""
    moving = {n: p.detach() for own in layers.values() for n, p in own.items()}
    fixed = {
        **{n: p.detach() for n, p in module.named_parameters() if n not in moving},
        **{n: b.detach() for n, b in module.named_buffers()},
    }

    def along(moving: dict[str, Tensor], x: Tensor, direction: Tensor) -> Tensor:
        logits: Tensor = functional_call(module, {**moving, **fixed}, (x[None],))
        return (logits[0] * direction).sum()

    return moving, along


def _by_layer(
    layers: Layers, found: Mapping[str, Tensor], records: int
) -> dict[str, NDArray[np.float64]]:
    norms = {}
    for name, own in layers.items():
        squares = sum(
            found[n].detach().reshape(records, -1).norm(dim=1).double().square()
            for n in own
        )
        assert isinstance(squares, Tensor)
        norms[name] = squares.sqrt().cpu().numpy()
    return norms


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode for a while."""
    before = [(layer, layer.training) for layer in module.modules()]
    try:
        module.eval()
        yield
    finally:
        for layer, training in before:
            layer.training = training


@contextmanager
def _wanted(parameters: Collection[nn.Parameter]) -> Iterator[None]:
    """Let gradients of parameters be formed, also of those that were not trained."""
    before = [(p, p.requires_grad) for p in parameters]
    try:
        for p, _ in before:
            p.requires_grad_(True)
        yield
    finally:
        for p, was in before:
            p.requires_grad_(was)
