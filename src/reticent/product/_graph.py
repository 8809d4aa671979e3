"""A module as a list of steps, carried out by a small interpreter: no code, nothing but the operations of a list.

Each step asks a layer, a function or a method of :mod:`reticent.product._operations` about values that earlier steps made. A stranger's
description is believed in nothing: its layers are made without memory, and the steps are tried out on tensors without
content, before a number of it is touched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from reticent.errors import InvalidPredictions
from reticent.product._operations import (
    ARITHMETIC,
    ATTRIBUTES,
    FUNCTIONS,
    LAYERS,
    METHODS,
)
from reticent.product._steps import (
    MOST_PARTS,
    Step,
    listed,
    mapped,
    read_setting,
    read_step,
    resolved,
    tensors_in,
)

__all__ = ["Description", "Graph", "rebuilt", "reordered"]

MOST_NUMBERS = 2**24  # that may be held at once, a record
MOST_PIECES = 2**18  # tensors that all steps may make together
WIDEST = 2**16  # of what is cut into pieces, each of which is a tensor of its own
AT_ONCE = 2**26  # numbers that may be held of all records asked about at once
RECORDS = 1024  # asked about at once


@dataclass(frozen=True, kw_only=True)
class Description:
    """All that a module is: words that JSON can hold, and tensors by name.

    Parameters
    ----------
    words : mapping
        ``steps``, each with ``kind``, ``name``, ``arguments`` and ``named``; ``output``, the number of the value that is the answer (0
        is the input, step k makes k + 1); ``layers`` with ``layer``, ``settings`` and names of ``tensors``; and ``tensors`` of no layer.
    tensors : mapping of str to Tensor
        The numbers.
    """

    words: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


class Graph(nn.Module):
    """A module that carries out the steps of a description.

    Parameters
    ----------
    description : Description
        What it was made from.
    steps : sequence of Step
        The steps, read.
    layers, loose : mapping
        Layers, and tensors that belong to none, by key.
    """

    def __init__(
        self,
        description: Description,
        steps: Sequence[Step],
        layers: Mapping[str, nn.Module],
        loose: Mapping[str, Tensor],
    ) -> None:
        super().__init__()
        self.description = description
        self.largest = 1  # numbers that are held at once at most, a record
        self.layers = nn.ModuleList(layers.values())
        self._steps, self._output = tuple(steps), int(description.words["output"])
        self._places = {key: place for place, key in enumerate(layers)}
        self._loose = {key: f"tensor_{place}" for place, key in enumerate(loose)}
        for key, tensor in loose.items():
            if isinstance(tensor, nn.Parameter):
                self.register_parameter(self._loose[key], tensor)
            else:
                self.register_buffer(self._loose[key], tensor)
        last = {ref: at for at, step in enumerate(steps) for ref in step.refers()}
        self._needed = {self._output, *last}
        self._done: list[list[int]] = [[] for _ in steps]
        for ref, at in last.items():
            if ref != self._output:
                self._done[at].append(ref)
        self.eval()

    @property
    def at_once(self) -> int:
        """Records that may be asked about at once."""
        return max(1, min(RECORDS, AT_ONCE // self.largest))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits, (batch, classes)."""
        values: dict[int, Any] = {0: inputs}
        for at, step in enumerate(self._steps):
            try:
                made = self._made(step, values)
            except (
                *(ArithmeticError, LookupError, RuntimeError),
                *(TypeError, ValueError),
            ) as error:
                raise InvalidPredictions(
                    f"step {at} of the stored module, {step.name}, cannot be carried out on these records "
                    f"({type(error).__name__}: {str(error).splitlines()[0][:200]}); audit it on records like those it was trained on."
                ) from error
            self._keep(values, at, made)
        answer: Tensor = values[self._output]
        return answer

    def tried(self, inputs: Tensor) -> Tensor:
        """Return the logits of records without content, and note how many numbers are held at once.

        Raises
        ------
        ValueError
            If a value is no tensor, number or tuple of them, or too large.
        """
        values: dict[int, Any] = {0: inputs}
        held, pieces = {0: inputs.numel()}, 0
        for at, step in enumerate(self._steps):
            made = self._made(step, values)
            self._keep(values, at, made)
            tensors = [*tensors_in(made)]
            pieces += len(tensors)
            held[at + 1] = sum(t.numel() for t in tensors)
            each = -(-sum(held.values()) // len(inputs))
            if each > MOST_NUMBERS or pieces > MOST_PIECES:
                raise ValueError(
                    f"its step {at} makes {held[at + 1]:,} numbers of {len(inputs)} records"
                )
            self.largest = max(self.largest, each)
            held = {ref: size for ref, size in held.items() if ref in values}
        answer = values[self._output]
        if not isinstance(answer, Tensor):
            raise ValueError(f"it answers with a {type(answer).__name__}")
        return answer

    def _keep(self, values: dict[int, Any], at: int, made: Any) -> None:
        """Keep what a step made as long as it is needed."""
        if at + 1 in self._needed:
            values[at + 1] = made
        for ref in self._done[at]:
            del values[ref]

    def _made(self, step: Step, values: Mapping[int, Any]) -> Any:
        if step.kind == "tensor":
            return getattr(self, self._loose[step.name])
        arguments = [resolved(a, values) for a in step.arguments]
        named = {name: resolved(a, values) for name, a in step.named.items()}
        if step.kind == "layer":
            return self.layers[self._places[step.name]](*arguments, **named)
        _look_at(step, arguments)
        if step.kind == "attribute":
            return ATTRIBUTES[step.name](*arguments)
        table = METHODS if step.kind == "method" else FUNCTIONS
        return table[step.name](*arguments, **named)


def reordered(description: Description, order: Sequence[int]) -> Description:
    """Return the description of the same module with its logits in another order."""
    words = description.words
    taken = [{"value": words["output"]}, {"tuple": [{"slice": [None] * 3}, [*order]]}]
    step = {"kind": "function", "name": "operator.getitem", "arguments": taken}
    steps = [*words["steps"], step]
    return Description(
        words={**words, "steps": steps, "output": len(steps)},
        tensors=description.tensors,
    )


def rebuilt(description: Description, *, inputs: int, classes: int) -> Graph:
    """Return the module that a description is of.

    Parameters
    ----------
    description : Description
        Maybe a stranger's.
    inputs, classes : int
        Numbers that the module must take of a record, and logits that it must give.

    Raises
    ------
    ValueError
        If anything in it is not on the lists, does not fit, or is too large.
    """
    words, given = description.words, description.tensors
    steps = [read_step(word, at) for at, word in enumerate(listed(words, "steps"))]
    output = words.get("output")
    if type(output) is not int or not 0 <= output <= len(steps):
        raise ValueError(f"its answer is the value {output!r}, which no step makes")
    layers: dict[str, nn.Module] = {}
    sources: list[tuple[nn.Module, str, str]] = []
    for key, word in mapped(words, "layers").items():
        layers[key], own = _empty_layer(key, word, given)
        sources += own
    loose: dict[str, Tensor] = {}
    for key, word in mapped(words, "tensors").items():
        source = str(mapped({key: word}, key).get("tensor"))
        if source not in given:
            raise ValueError(f"the tensor {source!r} is not there")
        empty = torch.empty_like(given[source], device="meta")
        parameter = word.get("parameter") is True and empty.is_floating_point()
        loose[key] = nn.Parameter(empty) if parameter else empty
    for at, step in enumerate(steps):
        known: Mapping[str, Any] | None = {"layer": layers, "tensor": loose}.get(step.kind)  # type: ignore[assignment]  # fmt: skip
        if known is not None and step.name not in known:
            raise ValueError(f"its step {at} asks a {step.kind} that is not there")
    graph = Graph(description, steps, layers, loose)
    _try_out(graph, inputs, classes)
    sources += [(graph, graph._loose[k], words["tensors"][k]["tensor"]) for k in loose]
    _fill(sources, given)
    return graph


def _fill(sources: Sequence[tuple[nn.Module, str, str]], given: Mapping[str, Tensor]) -> None:  # fmt: skip
    """Put tensors into their places; one that stands in several is one parameter."""
    shared: dict[str, nn.Parameter] = {}
    for owner, name, source in sources:
        if name in owner._parameters:
            if source not in shared:
                shared[source] = nn.Parameter(given[source])
            setattr(owner, name, shared[source])
        else:
            setattr(owner, name, given[source])


def _empty_layer(
    key: str, word: Any, given: Mapping[str, Tensor]
) -> tuple[nn.Module, list[tuple[nn.Module, str, str]]]:
    """Return a layer without memory, and which tensor belongs where in it."""
    kind = word.get("layer") if isinstance(word, Mapping) else None
    if not isinstance(kind, str) or kind not in LAYERS:
        raise ValueError(
            f"its layer {key} is a {kind!r}, which is not on the list of layers that only calculate"
        )
    made, known = LAYERS[kind]
    settings = {n: read_setting(v) for n, v in mapped(word, "settings").items()}
    if not set(settings) <= set(known):
        raise ValueError(
            f"its layer {key} has the setting {min(set(settings) - set(known))!r}"
        )
    for name in ("max_norm", "return_indices"):
        if settings.get(name):
            raise ValueError(f"its layer {key} has the setting {name}")
    if settings.get("num_layers", 1) > MOST_PARTS:
        raise ValueError(f"its layer {key} is {settings['num_layers']} layers deep")
    try:
        with torch.device("meta"):
            layer = made(**settings).eval()
    except Exception as error:
        raise ValueError(f"its layer {key} cannot be made ({error})") from error
    names = mapped(word, "tensors")
    places = {
        f"{place}.{name}".lstrip("."): (owner, name, tensor)
        for place, owner in layer.named_modules()
        for name, tensor in (*owner._parameters.items(), *owner._buffers.items())
        if tensor is not None
    }
    if set(names) != set(places):
        raise ValueError(f"its layer {key} has other tensors than a {kind}")
    for name, (_, _, empty) in places.items():
        tensor = given.get(str(names[name]))
        if tensor is None or tensor.shape != empty.shape or tensor.dtype != empty.dtype:
            raise ValueError(
                f"the {name} of its layer {key} should be {tuple(empty.shape)}, and is "
                f"{'not there' if tensor is None else tuple(tensor.shape)}"
            )
    return layer, [(o, n, str(names[k])) for k, (o, n, _) in places.items()]


def _try_out(graph: Graph, inputs: int, classes: int) -> None:
    """Carry the steps out without memory; refuse what fails, grows, or changes the module."""
    own = [*graph.parameters(), *graph.buffers()]
    versions = [tensor._version for tensor in own]
    for records in (2, 3):
        try:
            with torch.no_grad():
                answer = graph.tried(torch.empty(records, inputs, device="meta"))
        except ValueError:
            raise
        except Exception as error:
            first = (str(error).splitlines() or [""])[0][:200]
            raise ValueError(f"its steps do not fit each other ({first})") from error
        if answer.shape != (records, classes) or not answer.is_floating_point():
            raise ValueError(
                f"it gives an answer of shape {tuple(answer.shape)} for {records} records and {classes} classes"
            )
    if versions != [tensor._version for tensor in own]:
        raise ValueError("it changes its own weights while it answers")


def _look_at(step: Step, arguments: Sequence[Any]) -> None:
    """Refuse arguments that would make Python, not PyTorch, do something large."""
    first = arguments[0] if arguments else None
    if step.kind in ("method", "attribute") and not isinstance(first, Tensor):
        raise ValueError(f"{step.name} is asked of a {type(first).__name__}")
    if step.name in ARITHMETIC:
        numbers = all(isinstance(a, Tensor | int | float) for a in arguments)
        tuples = step.name == "operator.add" and all(
            isinstance(a, tuple) and len(a) < MOST_PARTS for a in arguments
        )
        power = step.name == "operator.pow" and not isinstance(first, Tensor)
        whole = [a for a in arguments if isinstance(a, int) and abs(a) > 2**62]
        if power or whole or not (numbers or tuples):
            raise ValueError(f"{step.name} is asked about no tensors")
    cuts = step.name.rpartition(".")[2] in ("chunk", "split")
    if cuts and not (
        isinstance(first, Tensor) and max(first.shape, default=0) <= WIDEST
    ):
        raise ValueError(f"{step.name} would make too many pieces")
