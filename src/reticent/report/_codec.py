"""Turn frozen dataclasses into JSON values and back, by their types alone."""

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any

from reticent.errors import InvalidInput

__all__ = ["decode", "encode"]


def encode(value: Any) -> Any:
    """Return the JSON value of dataclasses, tuples, mappings and numbers; infinity is null.

    Examples
    --------
    >>> encode((1.0, float("inf")))
    [1.0, None]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, StrEnum) else value


def decode(kind: Any, value: Any) -> Any:
    """Return the object of a given type that :func:`encode` turned into ``value``.

    Examples
    --------
    >>> decode(tuple[float, ...], [1, 2])
    (1.0, 2.0)
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        inner = next(a for a in arguments if a is not types.NoneType)
        return decode(inner, value)
    if origin is tuple:
        return tuple(decode(arguments[0], item) for item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: decode(arguments[1], item) for key, item in value.items()}
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        names = [f.name for f in fields(kind)]
        unknown = set(value) - set(names)
        if unknown:
            raise InvalidInput(
                f"a part of the dossier has the unknown key {min(unknown)!r}; "
                "it was written by another version."
            )
        return kind(
            **{
                name: decode(hints[name], value[name])
                for name in names
                if name in value
            }
        )  # type: ignore[operator]
    if kind is float:
        return math.inf if value is None else float(value)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    return value
