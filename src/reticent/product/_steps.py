"""Read the steps of a stored module from a file that a stranger may have written: every name is a key of a list, and every number is bounded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from reticent.product._operations import (
    ATTRIBUTES,
    DTYPES,
    FIXED,
    FUNCTIONS,
    METHODS,
    WORDS,
)

__all__ = [
    "MOST_PARTS",
    "Step",
    "listed",
    "mapped",
    "read_setting",
    "read_step",
    "resolved",
    "tensors_in",
]

# These bounds lie far above what real modules need, and far below what would exhaust memory or time while a file is read.
MOST_STEPS = 10_000  # steps of a module
MOST_WHOLE = 2**31  # largest integer in a description
MOST_PARTS = 2**10  # entries of a tuple in a description
DEEPEST = 8  # nesting of tuples in tuples
LONGEST_WORD = 64  # characters of a string in a description
ENDLESS = ("inf", "-inf", "nan")  # floats that JSON has no numbers for


@dataclass(frozen=True)
class _Ref:
    """A reference to the input (0) or to the result of a step (its number plus 1)."""

    value: int


@dataclass(frozen=True, kw_only=True)
class Step:
    """One operation on the results of earlier steps.

    Parameters
    ----------
    kind : str
        Kind of the operation: ``layer``, ``tensor``, ``function``, ``method`` or ``attribute``.
    name : str
        Key of the operation among those of its kind.
    arguments, named : tuple, mapping
        Positional and keyword arguments: literals, and references to results.
    """

    kind: str
    name: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict)

    def refers(self) -> set[int]:
        """Return the numbers of the values that the step needs."""
        return set(_refers((*self.arguments, *self.named.values())))


def read_step(word: Any, at: int) -> Step:
    """Return a step from its description."""
    if not isinstance(word, Mapping):
        raise ValueError(f"its step {at} cannot be read")
    kind, name = word.get("kind"), word.get("name")
    tables: dict[str, Mapping[str, Any] | None] = {
        "layer": None,
        "tensor": None,
        "function": FUNCTIONS,
        "method": METHODS,
        "attribute": ATTRIBUTES,
    }
    if not isinstance(kind, str) or not isinstance(name, str):
        raise ValueError(f"its step {at} is no operation")
    if at >= MOST_STEPS or kind not in tables:
        raise ValueError(
            f"its step {at} is no operation, or exceeds {MOST_STEPS:,} steps"
        )
    table = tables[kind]
    if table is not None and name not in table:
        raise ValueError(
            f"its step {at} uses the {kind} {name!r}, which is not on the list of operations that only calculate"
        )
    arguments = tuple(_value(a, at) for a in listed(word, "arguments", []))
    named = {n: _value(a, at) for n, a in mapped(word, "named", {}).items()}
    for argument, only in FIXED.items():
        if named.get(argument, only) not in (only, None):
            raise ValueError(f"its step {at} has the argument {argument}")
    if name == "functional.scaled_dot_product_attention" and len(arguments) > 4:
        raise ValueError(f"its step {at} has too many arguments")
    if name not in WORDS and any(
        isinstance(a, str) for a in (*arguments, *named.values())
    ):
        raise ValueError(f"its step {at} passes a string to {name}")
    if (kind == "tensor" and (arguments or named)) or (kind == "attribute" and named):
        raise ValueError(f"its step {at} has too many arguments")
    return Step(kind=kind, name=name, arguments=arguments, named=named)


def _value(word: Any, at: int, depth: int = 0) -> Any:
    """Return a literal from its description, or a reference to a value that exists before step ``at``."""
    if depth > DEEPEST:
        raise ValueError(f"its step {at} nests more than {DEEPEST} tuples")
    if isinstance(word, list):
        return [_value(item, at, depth + 1) for item in _short(word)]
    if not isinstance(word, Mapping):
        return _literal(word)
    if len(word) != 1:
        raise ValueError(f"its step {at} has an argument that cannot be read")
    ((kind, content),) = word.items()
    if kind == "value":
        if type(content) is not int or not 0 <= content <= at:
            raise ValueError(
                f"its step {at} uses the value {content!r}, which does not exist before it"
            )
        return _Ref(content)
    if kind == "tuple" and isinstance(content, list):
        return tuple(_value(item, at, depth + 1) for item in _short(content))
    if kind == "slice" and isinstance(content, list) and len(content) == 3:
        return slice(*(_value(end, at, depth + 1) for end in content))
    if kind == "dtype" and isinstance(content, str) and content in DTYPES:
        return DTYPES[content]
    if kind == "float" and content in ENDLESS:
        return float(content)
    if kind == "ellipsis":
        return Ellipsis
    raise ValueError(f"its step {at} has an argument that cannot be read")


def read_setting(word: Any) -> Any:
    """Return a setting of a layer: a literal, or a tuple of literals."""
    if isinstance(word, Mapping) and set(word) == {"tuple"}:
        word = word["tuple"]
    if isinstance(word, list):
        return tuple(_literal(item) for item in _short(word))
    if isinstance(word, Mapping) and word.get("float") in ENDLESS:
        return float(word["float"])
    return _literal(word)


def _literal(word: Any) -> Any:
    if isinstance(word, int) and abs(word) > MOST_WHOLE:
        raise ValueError(f"it holds the number {str(word)[:20]}, which is too large")
    if word is None or isinstance(word, bool | int | float):
        return word
    if isinstance(word, str) and len(word) <= LONGEST_WORD:
        return word
    raise ValueError("it holds a value that is neither a number nor a short string")


def _short(word: list[Any]) -> list[Any]:
    if len(word) > MOST_PARTS:
        raise ValueError(f"it holds a list of {len(word):,} entries")
    return word


def listed(word: Mapping[str, Any], key: str, default: Any = None) -> list[Any]:
    """Return the list under a key."""
    content = word.get(key, default)
    if not isinstance(content, list):
        raise ValueError(f"its {key} cannot be read")
    return content


def mapped(word: Mapping[str, Any], key: str, default: Any = None) -> Mapping[str, Any]:  # fmt: skip
    """Return the mapping under a key."""
    content = word.get(key, default)
    if not isinstance(content, Mapping):
        raise ValueError(f"its {key} cannot be read")
    return content


def resolved(value: Any, values: Mapping[int, Any]) -> Any:
    """Return an argument with its references replaced by the values that they stand for."""
    if isinstance(value, _Ref):
        return values[value.value]
    if isinstance(value, tuple | list):
        return type(value)(resolved(item, values) for item in value)
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        return slice(*(resolved(end, values) for end in ends))
    return value


def _refers(value: Any) -> Iterator[int]:
    if isinstance(value, _Ref):
        yield value.value
    elif isinstance(value, slice):
        yield from _refers((value.start, value.stop, value.step))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _refers(item)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in the result of a step; refuse anything but tensors, numbers and dtypes."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)
    elif not (value is None or isinstance(value, int | float | torch.dtype)):
        raise ValueError(f"a step gives a {type(value).__name__}")
