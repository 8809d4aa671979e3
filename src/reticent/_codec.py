"""Turn frozen dataclasses into JSON values and back, by their types alone, and describe these values in a JSON schema.

One walk over the type hints serves all three, so what is written, what is accepted and what is published cannot drift
apart. JSON knows no NaN and no infinity: they are written as the strings that other readers of JSON use for them.
"""

import math
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from reticent.errors import InvalidInput

__all__ = [
    "NON_FINITE",
    "NOT_WRITTEN",
    "decode",
    "encode",
    "schema_of",
    "type_hints",
    "written",
]

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
# Metadata of a field that lives in memory only.
NOT_WRITTEN = {"written": False}
LARGEST_INT = 2**63 - 1
LARGEST_FLOAT = sys.float_info.max
_PLAIN = {str: "a text", bool: "true or false", int: "a whole number"}


def encode(value: Any) -> Any:
    """Return the JSON value of dataclasses, tuples, mappings and numbers.

    Examples
    --------
    >>> encode((1.0, float("inf"), float("nan"), None))
    [1.0, 'Infinity', 'NaN', None]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in written(type(value))}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        # The names of JavaScript and of Python's json module.
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value) if isinstance(value, StrEnum) else value


def decode(kind: Any, value: Any, at: tuple[str | int, ...] = ()) -> Any:
    """Return the object of a given type that :func:`encode` turned into ``value``.

    Parameters
    ----------
    kind : type
        A dataclass, an enumeration of strings, a tuple, a mapping, a plain type, or any of these or None.
    value : object
        The JSON value.
    at : tuple of str and int
        Its place in the whole, for the error.

    Raises
    ------
    InvalidInput
        If the value does not have the type; the sentence says where.

    Examples
    --------
    >>> decode(tuple[float, ...], [1, "-Infinity"])
    (1.0, -inf)
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else decode(_not_none(kind), value, at)
    if origin is tuple:
        if not isinstance(value, list):
            raise _refused(value, "a list", at)
        return tuple(
            decode(arguments[0], item, (*at, number))
            for number, item in enumerate(value)
        )
    if _is_mapping(origin):
        if not isinstance(value, dict):
            raise _refused(value, "an object", at)
        return {
            key: decode(arguments[1], item, (*at, key)) for key, item in value.items()
        }
    if is_dataclass(kind):
        return _decode_fields(kind, value, at)
    return _decode_plain(kind, value, at)


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of what :func:`encode` makes of a type; dataclasses are added to ``definitions``.

    Examples
    --------
    >>> schema_of(tuple[str, ...], {})
    {'type': 'array', 'items': {'type': 'string'}}
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [schema_of(_not_none(kind), definitions), {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0], definitions)}
    if _is_mapping(origin):
        return {
            "type": "object",
            "additionalProperties": schema_of(arguments[1], definitions),
        }
    if is_dataclass(kind):
        name = kind.__name__  # type: ignore[union-attr]
        if name not in definitions:
            definitions[name] = {}  # so that a type may contain itself
            definitions[name] = _fields_schema(kind, definitions)
        return {"$ref": f"#/$defs/{name}"}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [str(member) for member in kind]}
    if kind is float:
        return {"anyOf": [{"type": "number"}, {"enum": list(NON_FINITE)}]}
    return {"type": {str: "string", bool: "boolean", int: "integer"}[kind]}


# A dossier holds hundreds of values of a few dozen types, and resolving the hints of one takes longer than reading a value.
type_hints = cache(typing.get_type_hints)


@cache
def written(kind: Any) -> list[Field[Any]]:
    """Return the fields of a dataclass that JSON has."""
    return [field for field in fields(kind) if field.metadata.get("written", True)]


def _fields_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = type_hints(kind)
    return {
        "type": "object",
        "properties": {
            f.name: schema_of(hints[f.name], definitions) for f in written(kind)
        },
        "required": [f.name for f in written(kind) if _is_required(f)],
        # An unknown key is a misspelling or another version: refused, as when reading.
        "additionalProperties": False,
    }


def _decode_fields(kind: Any, value: Any, at: tuple[str | int, ...]) -> Any:
    if not isinstance(value, dict):
        raise _refused(value, "an object", at)
    hints = type_hints(kind)
    known = {field.name: field for field in written(kind)}
    for key in value:
        if key not in known:
            raise _misfit(f"the key {key!r} is not known there", at)
    for name, field in known.items():
        if name not in value and _is_required(field):
            raise _misfit(f"the key {name!r} is missing there", at)
    parts = {
        name: decode(hints[name], value[name], (*at, name))
        for name in known
        if name in value
    }
    try:
        return kind(**parts)
    except InvalidInput as error:  # the value is of the type, but makes no sense
        raise _misfit(str(error).rstrip("."), at) from error


def _decode_plain(kind: Any, value: Any, at: tuple[str | int, ...]) -> Any:
    if kind is float:
        if isinstance(value, str) and value in NON_FINITE:
            return NON_FINITE[value]
        # In Python True is an integer; in a dossier it is not a number.
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refused(value, "a number", at)
        # An infinity may be written in words alone, and whole numbers may be too large for a float.
        if not -LARGEST_FLOAT <= value <= LARGEST_FLOAT:
            raise _refused(value, "a number of usual size", at)
        return float(value)
    if issubclass(kind, StrEnum):
        if value not in list(kind):
            raise _refused(value, f"one of {', '.join(kind)}", at)
        return kind(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _refused(value, _PLAIN[kind], at)
    if kind is int and abs(value) > LARGEST_INT:
        raise _refused(value, "a whole number of usual size", at)
    return value


def _is_mapping(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _not_none(kind: Any) -> Any:
    return next(a for a in typing.get_args(kind) if a is not types.NoneType)


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _refused(value: Any, wanted: str, at: tuple[str | int, ...]) -> InvalidInput:
    shown = repr(value)
    # A whole list of curves in an error would hide its reason.
    if len(shown) > 60:
        shown = shown[:59] + "…"
    return _misfit(f"{shown} is not {wanted}", at)


def _misfit(why: str, at: tuple[str | int, ...]) -> InvalidInput:
    where = "/".join(map(str, at)) or "the top"
    return InvalidInput(
        f"the file does not obey its schema at {where}: {why}; it was changed or written by another version."
    )
