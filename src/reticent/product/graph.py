"""A module as a list of steps, carried out by a small interpreter: without code, with nothing but listed operations.

Each step applies a layer, a function or a method of :mod:`reticent.product._operations` to the results of earlier steps. A stranger's
description is not trusted: its layers are built without memory, and the steps are tried out on tensors without content, before any of its
numbers is used.
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

# Bounds on what a stranger's description may make this process do; real modules stay far below them.

# Numbers that may be held at once per record: 64 MB in single precision.
MOST_NUMBERS = 2**24
MOST_PIECES = 2**18  # tensors that all steps together may give
# Size of a tensor that may be cut into pieces, since each piece becomes a tensor.
WIDEST = 2**16
# Numbers that may be held at once for a batch of records: 256 MB in single precision.
AT_ONCE = 2**26
RECORDS = 1024  # records predicted at once, so that the layers' outputs stay small


@dataclass(frozen=True, kw_only=True)
class Description:
    """A complete description of a module: words that JSON can hold, and tensors by name.

    Parameters
    ----------
    words : mapping
        ``steps``, each with ``kind``, ``name``, ``arguments`` and ``named``; ``output``, the number of the value that is the answer (0
        is the input, k + 1 the result of step k); ``layers`` with ``layer``, ``settings`` and names of ``tensors``; and ``tensors`` that
        belong to no layer.
    tensors : mapping of str to Tensor
        The tensors by name.
    """

    words: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


class Graph(nn.Module):
    """A module that carries out the steps of a description.

    Parameters
    ----------
    description : Description
        The description that the module was built from.
    steps : sequence of Step
        The steps of the description.
    layers, loose : mapping
        Layers, and tensors that belong to no layer, by key.
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
        self.largest = 1  # largest count of numbers held at once per record
        self.layers = nn.ModuleList(layers.values())
        self._steps, self._output = tuple(steps), int(description.words["output"])
        self._places = {key: place for place, key in enumerate(layers)}
        self._loose = {key: f"tensor_{place}" for place, key in enumerate(loose)}
        for key, tensor in loose.items():
            if isinstance(tensor, nn.Parameter):
                self.register_parameter(self._loose[key], tensor)
            else:
                self.register_buffer(self._loose[key], tensor)
        # The last step that reads each value; behind it the value is dropped, so that memory stays bounded.
        last = {ref: at for at, step in enumerate(steps) for ref in step.refers()}
        self._needed = {self._output, *last}
        self._done: list[list[int]] = [[] for _ in steps]
        for ref, at in last.items():
            if ref != self._output:
                self._done[at].append(ref)
        self.eval()

    @property
    def at_once(self) -> int:
        """Number of records that may be predicted at once."""
        return max(1, min(RECORDS, AT_ONCE // self.largest))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits, (batch, classes)."""
        values: dict[int, Any] = {0: inputs}
        for at, step in enumerate(self._steps):
            try:
                result = self._result(step, values)
            except (
                *(ArithmeticError, LookupError, RuntimeError),
                *(TypeError, ValueError),
            ) as error:
                raise InvalidPredictions(
                    f"step {at} of the stored module, {step.name}, cannot be carried out on these records "
                    f"({type(error).__name__}: {str(error).splitlines()[0][:200]}); audit it on records like those it was trained on."
                ) from error
            self._keep(values, at, result)
        answer: Tensor = values[self._output]
        return answer

    def tried(self, inputs: Tensor) -> Tensor:
        """Return the logits of records without content, and record how many numbers are held at once.

        Raises
        ------
        ValueError
            If a value is too large, or is not a tensor, a number or a tuple of these.
        """
        values: dict[int, Any] = {0: inputs}
        held, pieces = {0: inputs.numel()}, 0
        for at, step in enumerate(self._steps):
            result = self._result(step, values)
            self._keep(values, at, result)
            tensors = [*tensors_in(result)]
            pieces += len(tensors)
            held[at + 1] = sum(t.numel() for t in tensors)
            # Rounded up.
            each = -(-sum(held.values()) // len(inputs))
            if each > MOST_NUMBERS or pieces > MOST_PIECES:
                raise ValueError(
                    f"its step {at} gives {held[at + 1]:,} numbers for {len(inputs)} records"
                )
            self.largest = max(self.largest, each)
            held = {ref: size for ref, size in held.items() if ref in values}
        answer = values[self._output]
        if not isinstance(answer, Tensor):
            raise ValueError(f"it answers with a {type(answer).__name__}")
        return answer

    def _keep(self, values: dict[int, Any], at: int, result: Any) -> None:
        """Keep the result of a step if a later one needs it, and drop what is no longer needed."""
        if at + 1 in self._needed:
            values[at + 1] = result
        for ref in self._done[at]:
            del values[ref]

    def _result(self, step: Step, values: Mapping[int, Any]) -> Any:
        if step.kind == "tensor":
            return getattr(self, self._loose[step.name])
        arguments = [resolved(a, values) for a in step.arguments]
        named = {name: resolved(a, values) for name, a in step.named.items()}
        if step.kind == "layer":
            return self.layers[self._places[step.name]](*arguments, **named)
        _check_arguments(step, arguments)
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
    """Return the module that a description describes.

    Parameters
    ----------
    description : Description
        The description, which a stranger may have written.
    inputs, classes : int
        Number of inputs that the module must take per record, and of logits that it must give.

    Raises
    ------
    ValueError
        If anything in the description is not on the lists, does not fit, or is too large.
    """
    words, given = description.words, description.tensors
    steps = [read_step(word, at) for at, word in enumerate(listed(words, "steps"))]
    output = words.get("output")
    if type(output) is not int or not 0 <= output <= len(steps):
        raise ValueError(f"its answer is the value {output!r}, which no step gives")
    layers: dict[str, nn.Module] = {}
    sources: list[tuple[nn.Module, str, str]] = []
    for key, word in mapped(words, "layers").items():
        layers[key], places = _empty_layer(key, word, given)
        sources += places
    loose: dict[str, Tensor] = {}
    for key, word in mapped(words, "tensors").items():
        source = str(mapped({key: word}, key).get("tensor"))
        if source not in given:
            raise ValueError(f"the tensor {source!r} is not there")
        # Without memory, until all steps have been tried out.
        empty = torch.empty_like(given[source], device="meta")
        parameter = word.get("parameter") is True and empty.is_floating_point()
        loose[key] = nn.Parameter(empty) if parameter else empty
    for at, step in enumerate(steps):
        known: Mapping[str, Any] | None = {"layer": layers, "tensor": loose}.get(step.kind)  # type: ignore[assignment]  # fmt: skip
        if known is not None and step.name not in known:
            raise ValueError(f"its step {at} uses a {step.kind} that is not there")
    graph = Graph(description, steps, layers, loose)
    _try_out(graph, inputs, classes)
    sources += [(graph, graph._loose[k], words["tensors"][k]["tensor"]) for k in loose]
    _fill(sources, given)
    return graph


def _fill(sources: Sequence[tuple[nn.Module, str, str]], given: Mapping[str, Tensor]) -> None:  # fmt: skip
    """Put tensors into their places; a tensor that is used in several places is one parameter."""
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
    """Return a layer without memory, and the tensor that belongs in each of its places."""
    kind = word.get("layer") if isinstance(word, Mapping) else None
    if not isinstance(kind, str) or kind not in LAYERS:
        raise ValueError(
            f"its layer {key} is a {kind!r}, which is not on the list of layers that only calculate"
        )
    layer_class, known = LAYERS[kind]
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
            layer = layer_class(**settings).eval()
    except Exception as error:
        raise ValueError(f"its layer {key} cannot be built ({error})") from error
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
                f"the {name} of its layer {key} should have the shape {tuple(empty.shape)}, and "
                f"{'is not there' if tensor is None else f'has the shape {tuple(tensor.shape)}'}"
            )
    return layer, [(o, n, str(names[k])) for k, (o, n, _) in places.items()]


def _try_out(graph: Graph, inputs: int, classes: int) -> None:
    """Carry the steps out without memory; refuse a module that fails, grows too large, or changes itself."""
    tensors = [*graph.parameters(), *graph.buffers()]
    # PyTorch counts the changes of every tensor in place.
    versions = [tensor._version for tensor in tensors]
    for records in (2, 3):  # two sizes, so that a size written into a step is noticed
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
    if versions != [tensor._version for tensor in tensors]:
        raise ValueError("it changes its own weights while it answers")


def _check_arguments(step: Step, arguments: Sequence[Any]) -> None:
    """Refuse arguments with which Python itself, not PyTorch, would compute something large."""
    first = arguments[0] if arguments else None
    if step.kind in ("method", "attribute") and not isinstance(first, Tensor):
        raise ValueError(f"{step.name} is applied to a {type(first).__name__}")
    if step.name in ARITHMETIC:
        numbers = all(isinstance(a, Tensor | int | float) for a in arguments)
        tuples = step.name == "operator.add" and all(
            isinstance(a, tuple) and len(a) < MOST_PARTS for a in arguments
        )
        power = step.name == "operator.pow" and not isinstance(first, Tensor)
        # Integers beyond PyTorch's 64 bits could only grow from step to step.
        huge = [a for a in arguments if isinstance(a, int) and abs(a) > 2**62]
        if power or huge or not (numbers or tuples):
            raise ValueError(f"{step.name} is applied to no tensors")
    cuts = step.name.rpartition(".")[2] in ("chunk", "split")
    if cuts and not (
        isinstance(first, Tensor) and max(first.shape, default=0) <= WIDEST
    ):
        raise ValueError(f"{step.name} would give too many pieces")
