"""Turn typed values into bytes and back, by their types alone; reading never runs code."""

import io
import json
import struct
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent._codec import type_hints

__all__ = ["pack", "unpack"]

T = TypeVar("T")

# The first bytes tell a stored value from any other file before anything of it is parsed.
MAGIC = b"reticent packed value, version 1\n"
# The length of the skeleton: eight bytes, the lowest first, on every machine.
LENGTH = struct.Struct("<Q")

# How each type looks in the skeleton. The members of a union must look different, so that they can be told apart.
_SCALARS: dict[Any, str] = {
    type(None): "null",
    bool: "truth value",
    int: "integer",
    float: "number",
    str: "text",
}


def pack(value: object) -> bytes:
    """Return a value as bytes that :func:`unpack` reads.

    Numbers (including NaN and infinities), texts, truth values, None, enumerations, arrays without
    objects, tuples, lists, mappings from texts, and dataclasses of all these can be packed.

    Raises
    ------
    TypeError
        If the value, or the declared type of a field, is something else.

    Examples
    --------
    >>> unpack(tuple[float, ...], pack((1.5, float("inf"))))
    (1.5, inf)
    """
    arrays: list[NDArray[Any]] = []
    skeleton = json.dumps(_skeleton(value, "the value", arrays)).encode()
    out = io.BytesIO()
    out.write(MAGIC + LENGTH.pack(len(skeleton)) + skeleton)
    for array in arrays:
        # Without pickles neither writing nor reading can run code.
        np.lib.format.write_array(out, array, allow_pickle=False)
    return out.getvalue()


def unpack(kind: type[T] | Any, data: bytes) -> T:
    """Return the value of a given type that :func:`pack` turned into bytes.

    Parameters
    ----------
    kind : type
        The type of the value: a class, or an annotation such as ``NDArray[np.float64]`` or ``dict[str, float]``.
    data : bytes
        What :func:`pack` returned.

    Raises
    ------
    TypeError
        If the bytes hold a value of another type.
    ValueError
        If they are not what :func:`pack` writes.

    Examples
    --------
    >>> unpack(int, pack("three"))
    Traceback (most recent call last):
    ...
    TypeError: the value should be of the type int, but text was stored.
    """
    file = io.BytesIO(data)
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("the bytes are not a packed value.")
    try:
        (length,) = LENGTH.unpack(file.read(LENGTH.size))
        skeleton = json.loads(file.read(length))
        arrays = []
        while file.tell() < len(data):
            arrays.append(np.lib.format.read_array(file, allow_pickle=False))
    except (ValueError, EOFError, struct.error, OverflowError) as error:
        raise ValueError(f"the bytes of a packed value are damaged: {error}") from error
    try:
        value: T = _value(kind, skeleton, "the value", arrays)
    except LookupError as error:
        raise ValueError("the parts of a packed value do not fit together.") from error
    return value


# --- to bytes ------------------------------------------------------------------------------


def _skeleton(value: Any, where: str, arrays: list[NDArray[Any]]) -> Any:
    """Return the JSON form of a value; append its arrays to ``arrays``."""
    # The exact type: a subclass could carry more than its text shows.
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Enum):
        # By name, because values of enumerations may be anything.
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return _skeleton_of_dataclass(value, arrays)
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        return value.item()
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        if value.dtype.hasobject:
            raise TypeError(
                f"{where} is an array of objects, which cannot be stored safely; give it a dtype of numbers or text."
            )
        arrays.append(np.asarray(value))
        return {"array": len(arrays) - 1}
    if isinstance(value, tuple | list):
        return [_skeleton(v, f"{where}[{k}]", arrays) for k, v in enumerate(value)]
    if isinstance(value, Mapping):
        if not all(type(key) is str for key in value):
            raise TypeError(
                f"{where} is a mapping whose keys are not all text, so it cannot be stored."
            )
        items = {k: _skeleton(v, f"{where}[{k!r}]", arrays) for k, v in value.items()}
        return {"mapping": items}
    raise TypeError(
        f"{where} is of the type {_name(type(value))}, which cannot be stored; "
        "use numbers, text, arrays, tuples, mappings and dataclasses of them."
    )


def _skeleton_of_dataclass(value: Any, arrays: list[NDArray[Any]]) -> Any:
    kind: Any = type(value)
    skeletons = {}
    for name, hint in _hints(kind):
        where = f"{kind.__name__}.{name}"
        _check_hint(hint, where)
        item = getattr(value, name)
        skeleton = _skeleton(item, where, arrays)
        if not _agrees(hint, skeleton, arrays):
            raise TypeError(
                f"{where} is declared as {_name(hint)} but holds a value of the type {_name(type(item))}, "
                "so it could not be read again."
            )
        skeletons[name] = skeleton
    return {"class": _name(kind), "fields": skeletons}


@cache
def _hints(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return the name and the declared type of every field that the constructor takes."""
    hints = type_hints(kind)
    return tuple(
        (field.name, hints[field.name]) for field in fields(kind) if field.init
    )


def _check_hint(hint: Any, where: str) -> None:
    """Raise if a declared type does not say how a value is to be read."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        looks = [look for member in arguments for look in _looks(member)]
        if len(looks) != len(set(looks)):
            raise TypeError(
                f"{where} is declared as {_name(hint)}, but the stored forms of these types cannot be told apart."
            )
        for member in arguments:
            _check_hint(member, where)
    elif origin is tuple or _is_subclass(origin, Sequence):
        for member in arguments:
            if member is not Ellipsis:
                _check_hint(member, where)
    elif _is_subclass(origin, Mapping) and arguments[0] is str:
        _check_hint(arguments[1], where)
    elif not _looks(hint):
        raise TypeError(
            f"{where} is declared as {_name(hint)}, which does not say what is stored; "
            "declare a class of numbers, text, arrays, tuples, mappings or dataclasses."
        )


@cache
def _looks(hint: Any) -> tuple[str, ...]:
    """Return how the values of a type look in the skeleton; empty if that is not known."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SCALARS or hint is None:
        return (_SCALARS[type(None) if hint is None else hint],)
    if origin is Literal:
        return tuple(sorted({_SCALARS[type(value)] for value in arguments}))
    if origin in (types.UnionType, typing.Union):
        return tuple(look for member in arguments for look in _looks(member))
    if _is_array(hint):
        return ("array",)
    if origin is tuple or _is_subclass(origin, Sequence):
        return ("list",)
    if _is_subclass(origin, Mapping):
        return ("mapping",)
    if _is_subclass(hint, Enum):
        return ("text",)
    if is_dataclass(hint) and isinstance(hint, type):
        return (_name(hint),)
    return ()


def _look(skeleton: Any) -> str:
    """Return how a skeleton looks, in the words of :func:`_looks`."""
    if isinstance(skeleton, list):
        return "list"
    if isinstance(skeleton, dict):
        if "class" in skeleton:
            return str(skeleton["class"])
        return "array" if "array" in skeleton else "mapping"
    return _SCALARS[type(skeleton)]


# --- and back ------------------------------------------------------------------------------


def _agrees(hint: Any, skeleton: Any, arrays: list[NDArray[Any]]) -> bool:
    """Return whether a skeleton can be read as a type, without building the value.

    Of a dataclass only the class is compared; its fields are checked one by one.
    """
    member = _member(hint, skeleton)
    if member is None:
        return False
    origin, arguments = typing.get_origin(member), typing.get_args(member)
    if _is_array(member):
        return _has_dtype(arrays[skeleton["array"]], arguments)
    if isinstance(skeleton, list):
        members = _members(origin, arguments, len(skeleton))
        return len(members) == len(skeleton) and all(
            _agrees(m, item, arrays) for m, item in zip(members, skeleton, strict=True)
        )
    if _is_subclass(origin, Mapping):
        items = skeleton["mapping"].values()
        return all(_agrees(arguments[1], item, arrays) for item in items)
    if _is_subclass(member, Enum):
        return skeleton in member.__members__
    return origin is not Literal or skeleton in arguments


def _member(hint: Any, skeleton: Any) -> Any:
    """Return the type as which a skeleton is read, one member if it is a union; None if there is none."""
    origin = typing.get_origin(hint)
    members = [hint]
    if origin in (types.UnionType, typing.Union):
        members = list(typing.get_args(hint))
    look = _look(skeleton)
    for member in members:
        if look in _looks(member):
            return type(None) if member is None else member
    # A whole number that was given for a float is an integer in JSON.
    return float if look == "integer" and float in members else None


def _members(origin: Any, arguments: tuple[Any, ...], length: int) -> list[Any]:
    """Return the types of the entries of a list or tuple."""
    if origin is not tuple or arguments[-1:] == (Ellipsis,):
        return [arguments[0]] * length
    return list(arguments)


def _value(kind: Any, skeleton: Any, where: str, arrays: list[NDArray[Any]]) -> Any:
    """Return the value of a skeleton, read as a type."""
    if not _agrees(kind, skeleton, arrays):
        raise TypeError(
            f"{where} should be of the type {_name(kind)}, but {_look(skeleton)} was stored."
        )
    member = _member(kind, skeleton)
    origin, arguments = typing.get_origin(member), typing.get_args(member)
    if member is float:
        return float(skeleton)
    if _is_array(member):
        return arrays[skeleton["array"]]
    if isinstance(skeleton, list):
        members = _members(origin, arguments, len(skeleton))
        values = [
            _value(m, item, f"{where}[{k}]", arrays)
            for k, (m, item) in enumerate(zip(members, skeleton, strict=True))
        ]
        return values if origin is list else tuple(values)
    if _is_subclass(origin, Mapping):
        return {
            key: _value(arguments[1], item, f"{where}[{key!r}]", arrays)
            for key, item in skeleton["mapping"].items()
        }
    if _is_subclass(member, Enum):
        return member[skeleton]
    if is_dataclass(member):
        return _dataclass(member, skeleton["fields"], arrays)
    return skeleton


def _dataclass(kind: Any, stored: dict[str, Any], arrays: list[NDArray[Any]]) -> Any:
    hints = dict(_hints(kind))
    # Written by other code: to fill in a default could change a result silently.
    if hints.keys() != stored.keys():
        raise TypeError(f"{_name(kind)} was stored with other fields than it has now.")
    return kind(
        **{
            name: _value(hint, stored[name], f"{kind.__name__}.{name}", arrays)
            for name, hint in hints.items()
        }
    )


def _is_array(hint: Any) -> bool:
    return _is_subclass(typing.get_origin(hint) or hint, np.ndarray)


def _has_dtype(array: NDArray[Any], arguments: tuple[Any, ...]) -> bool:
    """Return whether an array is of the declared kind of numbers; any width will do."""
    scalar: Any = typing.get_args(arguments[1])[0] if arguments else None
    scalar = typing.get_origin(scalar) or scalar
    if not _is_subclass(scalar, np.generic):  # NDArray[Any] and plain ndarray
        return True
    if scalar.__subclasses__():  # an abstract kind such as np.floating
        return np.issubdtype(array.dtype, scalar)
    return np.can_cast(array.dtype, scalar, "same_kind")


def _is_subclass(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _name(kind: Any) -> str:
    if isinstance(kind, type) and typing.get_origin(kind) is None:
        builtin = kind.__module__ == "builtins"
        return (
            kind.__qualname__ if builtin else f"{kind.__module__}.{kind.__qualname__}"
        )
    return str(kind)
