"""Write a module down without code: what it does is traced once, and told in the words of a short list of operations."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx, nn

from reticent.errors import OutputRefused
from reticent.product._graph import Description, Graph, rebuilt
from reticent.product._operations import (
    ATTRIBUTES,
    LAYERS,
    METHODS,
    key_of_function,
    settings_of,
)

__all__ = ["described"]

INSTEAD = "or leave the saving out"


def described(module: nn.Module, *, inputs: int, classes: int) -> Description:
    """Return what a module is; made again from it, it answers the same.

    The course of its forward is traced by ``torch.fx``, made again, and both are asked about made-up records.

    Parameters
    ----------
    module : nn.Module
        From (batch, inputs) to (batch, classes); it is described as it answers, in evaluation mode.
    inputs, classes : int
        Numbers that it sees of a record, and logits that it gives.

    Raises
    ------
    OutputRefused
        If it does anything that cannot be written down.

    Examples
    --------
    >>> made = described(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), inputs=2, classes=3)
    >>> [step["name"] for step in made.words["steps"]], sorted(made.tensors)
    (['0', '1'], ['0', '1'])
    """
    if isinstance(module, Graph):
        return module.description
    name = type(module).__name__
    with _evaluating(module):
        made = _Writer(module).written()
        try:
            again = rebuilt(made, inputs=inputs, classes=classes)
        except ValueError as error:
            raise OutputRefused(
                f"the module {name} cannot be stored without code, because {error}; use plain layers in its place, {INSTEAD}."
            ) from error
        if not _answer_alike(module, again, inputs):
            raise OutputRefused(
                f"the module {name} cannot be stored without code, because made again from its operations it answers otherwise, as if it "
                f"had hooks, drew at random or changed values that it still needs; write it without these, {INSTEAD}."
            )
    return made


class _Whole(nn.Module):
    """A module that is asked about one input, so that its other arguments have their defaults."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, inputs: Tensor) -> Any:
        return self.inner(inputs)


class _Tracer(fx.Tracer):
    """Look into every module but PyTorch's own."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return _is_listed(m) or super().is_leaf_module(m, module_qualified_name)


def _is_listed(layer: nn.Module) -> bool:
    """Whether a layer is exactly one of the list: a class derived from it may do something else."""
    kind = type(layer)
    return kind.__name__ in LAYERS and kind is LAYERS[kind.__name__][0]


class _Writer:
    """Write one module down; what there are no words for is refused."""

    def __init__(self, module: nn.Module) -> None:
        self.name = type(module).__name__
        self.whole = _Whole(module)
        self.values: dict[fx.Node, int] = {}
        self.steps: list[dict[str, Any]] = []
        self.layers: dict[str, dict[str, Any]] = {}
        self.loose: dict[str, dict[str, Any]] = {}
        self.keys: dict[int, str] = {}  # of layers and tensors by identity
        self.tensors: dict[str, Tensor] = {}

    def written(self) -> Description:
        """Return the description."""
        output = 0
        course = self._course()
        needed = _needed(course)
        for node in course.nodes:
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

    def _course(self) -> fx.Graph:
        try:
            return _Tracer().trace(self.whole)
        except Exception as error:
            first = (str(error).strip().splitlines() or ["no message"])[0][:200]
            raise OutputRefused(
                f"the module {self.name} cannot be stored without code, because its forward is no fixed course of operations "
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
            (given,) = node.args
            assert isinstance(given, fx.Node)
            self.values[node] = self.values[given]
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
        """Return the kind and the name of what a node asks."""
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
            "tensors": {name: self._kept(tensor) for name, tensor in tensors},
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
                "tensor": self._kept(tensor),
                "parameter": isinstance(tensor, nn.Parameter),
            }
        return self.keys[id(tensor)]

    def _kept(self, tensor: Tensor) -> str:
        """Return the name of a tensor; one that several layers share has one name."""
        for name, kept in self.tensors.items():
            if kept is tensor:
                return name
        name = str(len(self.tensors))
        self.tensors[name] = tensor
        return name

    def _word(self, value: Any, name: str) -> Any:
        """Return a literal, or a reference to an earlier value, as JSON can hold it."""
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
        raise self._refusal(f"it gives a {type(value).__name__} to {name}")

    def _refusal(self, why: str) -> OutputRefused:
        return OutputRefused(
            f"the module {self.name} cannot be stored without code, because {why}, which is not on the list of what is known to calculate "
            f"only; use another layer or operation in its place, {INSTEAD}."
        )


def _needed(course: fx.Graph) -> set[fx.Node]:
    """Return the nodes that the answer rests on, and the input."""
    found: set[fx.Node] = set()
    for node in reversed(course.nodes):
        if node.op in ("placeholder", "output") or node in found:
            found.update((node, *node.all_input_nodes))
    return found


def _answer_alike(module: nn.Module, again: Graph, inputs: int) -> bool:
    """Whether two modules agree on made-up records, as far as the first can answer about them at all."""
    drawn = torch.randn(5, inputs, generator=torch.Generator().manual_seed(0))
    asked = 0
    for records in (drawn, drawn[:1], torch.zeros(2, inputs), torch.ones(2, inputs)):
        with torch.no_grad():
            try:
                expected = module(records.clone())
            except (RuntimeError, IndexError, ValueError):
                continue  # an embedding knows some values only
            found = again(records.clone())
        asked += 1
        if not torch.allclose(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
            return False
    return asked > 0


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
