"""Describe a module without code: its forward pass is traced once and written down as steps from a short list of operations."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx, nn

from reticent.errors import OutputRefused
from reticent.product._operations import (
    ATTRIBUTES,
    LAYERS,
    METHODS,
    key_of_function,
    settings_of,
)
from reticent.product.graph import Description, Graph, rebuilt

__all__ = ["described", "evaluating"]

INSTEAD = "or do not save it"


def described(module: nn.Module, *, inputs: int, classes: int) -> Description:
    """Return a description of a module from which it can be rebuilt with the same answers.

    The forward pass is traced by ``torch.fx`` and rebuilt, and the answers of both to artificial records are compared.

    Parameters
    ----------
    module : nn.Module
        Maps (batch, inputs) to (batch, classes); it is described in evaluation mode, in which it answers.
    inputs, classes : int
        Number of inputs that the module takes per record, and of logits that it gives.

    Raises
    ------
    OutputRefused
        If the module does anything that cannot be written down.

    Examples
    --------
    >>> description = described(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), inputs=2, classes=3)
    >>> [step["name"] for step in description.words["steps"]], sorted(description.tensors)
    (['0', '1'], ['0', '1'])
    """
    if isinstance(module, Graph):
        return module.description
    name = type(module).__name__
    with evaluating(module):
        description = _Writer(module).written()
        try:
            copy = rebuilt(description, inputs=inputs, classes=classes)
        except ValueError as error:
            raise OutputRefused(
                f"the module {name} cannot be stored without code, because {error}; use plain layers in its place, {INSTEAD}."
            ) from error
        if not _answer_alike(module, copy, inputs):
            raise OutputRefused(
                f"the module {name} cannot be stored without code, because a copy rebuilt from its operations gives other answers, as if the "
                f"module had hooks, drew at random or changed values that it still needs; write it without these, {INSTEAD}."
            )
    return description


class _Whole(nn.Module):
    """A module that is called with one input, so that its other arguments have their defaults."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, inputs: Tensor) -> Any:
        return self.inner(inputs)


class _Tracer(fx.Tracer):
    """Trace into every module except PyTorch's own layers."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return _is_listed(m) or super().is_leaf_module(m, module_qualified_name)


def _is_listed(layer: nn.Module) -> bool:
    """Whether the class of a layer is on the list; a class derived from a listed one may do something else."""
    kind = type(layer)
    return kind.__name__ in LAYERS and kind is LAYERS[kind.__name__][0]


class _Writer:
    """Write the description of one module; operations that are not on the lists are refused."""

    def __init__(self, module: nn.Module) -> None:
        self.name = type(module).__name__
        self.whole = _Whole(module)
        self.values: dict[fx.Node, int] = {}
        self.steps: list[dict[str, Any]] = []
        self.layers: dict[str, dict[str, Any]] = {}
        self.loose: dict[str, dict[str, Any]] = {}
        self.keys: dict[int, str] = {}  # keys of layers and tensors by their identity
        self.tensors: dict[str, Tensor] = {}

    def written(self) -> Description:
        """Return the description."""
        output = 0
        traced = self._trace()
        needed = _needed(traced)
        for node in traced.nodes:
            if node not in needed:
                continue
            if node.op == "placeholder":
                self.values[node] = 0
            elif node.op == "output":
                answer = node.args[0]
                if not isinstance(answer, fx.Node):
                    raise self._refusal(f"it returns a {type(answer).__name__}")
                output = self.values[answer]
            else:
                self._write(node)
        words = {
            "steps": self.steps,
            "output": output,
            "layers": self.layers,
            "tensors": self.loose,
        }
        return Description(words=words, tensors=self.tensors)

    def _trace(self) -> fx.Graph:
        try:
            return _Tracer().trace(self.whole)
        except Exception as error:
            first = (str(error).strip().splitlines() or ["no message"])[0][:200]
            raise OutputRefused(
                f"the module {self.name} cannot be stored without code, because its forward is not a fixed sequence of operations "
                f"({type(error).__name__}: {first}); write it without branches that depend on the records, for example with torch.where, "
                f"{INSTEAD}."
            ) from error

    def _write(self, node: fx.Node) -> None:
        named = {
            name: value
            for name, value in node.kwargs.items()
            if name not in ("inplace", "_stacklevel")  # neither changes the result
        }
        if node.target is nn.functional.dropout and named.get("training") is False:
            # Dropout in evaluation mode passes its input on.
            (argument,) = node.args
            assert isinstance(argument, fx.Node)
            self.values[node] = self.values[argument]
            return
        kind, name = self._operation(node)
        arguments = node.args[:1] if kind == "attribute" else node.args
        step: dict[str, Any] = {"kind": kind, "name": name}
        if arguments:
            step["arguments"] = [self._word(a, name) for a in arguments]
        if named:
            step["named"] = {n: self._word(a, name) for n, a in named.items()}
        self.steps.append(step)
        self.values[node] = len(self.steps)

    def _operation(self, node: fx.Node) -> tuple[str, str]:
        """Return the kind and the name of the operation of a node."""
        target = node.target
        if node.op == "call_module":
            return "layer", self._layer(str(target))
        if node.op == "get_attr":
            return "tensor", self._tensor(str(target))
        if node.op == "call_method":
            if target not in METHODS:
                raise self._refusal(f"it calls the method {target} of a tensor")
            return "method", str(target)
        if target is getattr:
            if node.args[1] not in ATTRIBUTES:
                raise self._refusal(f"it uses the attribute {node.args[1]} of a tensor")
            return "attribute", str(node.args[1])
        key = key_of_function(target)
        if key is None:
            place = getattr(target, "__module__", None)
            called = getattr(target, "__name__", str(target))
            raise self._refusal(f"it calls {f'{place}.' if place else ''}{called}")
        return "function", key

    def _layer(self, target: str) -> str:
        layer = self.whole.get_submodule(target)
        if id(layer) in self.keys:
            return self.keys[id(layer)]
        kind, place = type(layer).__name__, target.removeprefix("inner").lstrip(".")
        what = f"the layer {place or '(the module itself)'} is a {kind}"
        if not _is_listed(layer):
            raise self._refusal(what)
        try:
            settings = settings_of(layer)
        except ValueError as error:
            raise self._refusal(f"{what}, and {error}") from error
        key = self.keys[id(layer)] = str(len(self.layers))
        tensors = (*layer.named_parameters(), *layer.named_buffers())
        self.layers[key] = {
            "layer": kind,
            "name": place,
            "settings": {name: self._word(v, kind) for name, v in settings.items()},
            "tensors": {name: self._stored(tensor) for name, tensor in tensors},
        }
        return key

    def _tensor(self, target: str) -> str:
        owner, _, name = target.rpartition(".")
        tensor = getattr(self.whole.get_submodule(owner), name)
        if not isinstance(tensor, Tensor):
            raise self._refusal(f"it uses {name}, which is a {type(tensor).__name__}")
        if id(tensor) not in self.keys:
            self.keys[id(tensor)] = str(len(self.loose))
            self.loose[self.keys[id(tensor)]] = {
                "tensor": self._stored(tensor),
                "parameter": isinstance(tensor, nn.Parameter),
            }
        return self.keys[id(tensor)]

    def _stored(self, tensor: Tensor) -> str:
        """Store a tensor and return its name; a tensor that several layers share has one name."""
        for name, earlier in self.tensors.items():
            if earlier is tensor:
                return name
        name = str(len(self.tensors))
        self.tensors[name] = tensor
        return name

    def _word(self, value: Any, name: str) -> Any:
        """Return a literal, or a reference to an earlier value, in a form that JSON can hold."""
        if isinstance(value, fx.Node):
            return {"value": self.values[value]}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, slice):
            ends = (value.start, value.stop, value.step)
            return {"slice": [self._word(end, name) for end in ends]}
        if isinstance(value, tuple | list):
            items = [self._word(item, name) for item in value]
            return {"tuple": items} if isinstance(value, tuple) else items
        if value is Ellipsis:
            return {"ellipsis": True}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise self._refusal(f"it passes a {type(value).__name__} to {name}")

    def _refusal(self, why: str) -> OutputRefused:
        return OutputRefused(
            f"the module {self.name} cannot be stored without code, because {why}, which is not on the list of operations that only "
            f"calculate; use another layer or operation in its place, {INSTEAD}."
        )


def _needed(traced: fx.Graph) -> set[fx.Node]:
    """Return the nodes that the answer depends on, and the input."""
    needed: set[fx.Node] = set()
    for node in reversed(traced.nodes):
        if node.op in ("placeholder", "output") or node in needed:
            needed.update((node, *node.all_input_nodes))
    return needed


def _answer_alike(module: nn.Module, copy: Graph, inputs: int) -> bool:
    """Whether two modules agree on those artificial records that the first can answer at all."""
    drawn = torch.randn(5, inputs, generator=torch.Generator().manual_seed(0))
    asked = 0
    for records in (drawn, drawn[:1], torch.zeros(2, inputs), torch.ones(2, inputs)):
        with torch.no_grad():
            try:
                expected = module(records.clone())
            except (RuntimeError, IndexError, ValueError):
                continue  # an embedding accepts only some values
            answer = copy(records.clone())
        asked += 1
        # The tolerance leaves room for rounding in single precision over a few layers.
        if not torch.allclose(answer, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
            return False
    return asked > 0


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode, and restore its mode afterwards."""
    before = [(layer, layer.training) for layer in module.modules()]
    try:
        module.eval()
        yield
    finally:
        for layer, training in before:
            layer.training = training
