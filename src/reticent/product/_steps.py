"""Read the steps of a stored module from words that may be a stranger's: every name is a key of a list, every number bounded."""

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

MOST_STEPS = 10_000
MOST_WHOLE = 2**31  # largest whole number in a description
MOST_PARTS = 2**10  # of a tuple in a description
DEEPEST = 8  # tuples in tuples
ENDLESS = ("inf", "-inf", "nan")


@dataclass(frozen=True)
class _Ref:
    """The value that a step made."""

    value: int


@dataclass(frozen=True, kw_only=True)
class Step:
    """One operation on values that earlier steps made.

    Parameters
    ----------
    kind : str
        Where the operation stands: ``layer``, ``tensor``, ``function``, ``method`` or ``attribute``.
    name : str
        Its key there.
    arguments, named : tuple, mapping
        Literals, and references to values.
    """

    kind: str
    name: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict)

    def refers(self) -> set[int]:
        """Return which values it needs."""
        return set(_refers((*self.arguments, *self.named.values())))


def read_step(word: Any, at: int) -> Step:
    """Return a step from its words."""
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
        raise ValueError(f"its step {at} is no operation, or one too many")
    table = tables[kind]
    if table is not None and name not in table:
        raise ValueError(
            f"its step {at} asks the {kind} {name!r}, which is not on the list of what only calculates"
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
        raise ValueError(f"its step {at} gives a word to {name}")
    if (kind == "tensor" and (arguments or named)) or (kind == "attribute" and named):
        raise ValueError(f"its step {at} has too many arguments")
    return Step(kind=kind, name=name, arguments=arguments, named=named)


def _value(word: Any, at: int, depth: int = 0) -> Any:
    """Return a literal from its words, or a reference to a value made before step ``at``."""
    if depth > DEEPEST:
        raise ValueError(f"its step {at} has tuples in tuples in tuples")
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
                f"its step {at} asks about the value {content!r}, which is not made before it"
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
    """Return a setting of a layer: a literal, or a tuple of such."""
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
    if isinstance(word, str) and len(word) <= 64:
        return word
    raise ValueError("it holds something that is no number and no word")


def _short(word: list[Any]) -> list[Any]:
    if len(word) > MOST_PARTS:
        raise ValueError(f"it holds a list of {len(word):,} entries")
    return word


def listed(word: Mapping[str, Any], key: str, default: Any = None) -> list[Any]:
    """Return the list under a key."""
    found = word.get(key, default)
    if not isinstance(found, list):
        raise ValueError(f"its {key} cannot be read")
    return found


def mapped(word: Mapping[str, Any], key: str, default: Any = None) -> Mapping[str, Any]:  # fmt: skip
    """Return the mapping under a key."""
    found = word.get(key, default)
    if not isinstance(found, Mapping):
        raise ValueError(f"its {key} cannot be read")
    return found


def resolved(value: Any, values: Mapping[int, Any]) -> Any:
    """Return an argument with the values that it refers to."""
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
    """Return the tensors in what a step made; refuse anything but them, numbers and types."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)
    elif not (value is None or isinstance(value, int | float | torch.dtype)):
        raise ValueError(f"a step makes a {type(value).__name__}")
