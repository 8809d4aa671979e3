"""The content of values: the part of an argument that a result depends on."""

import functools
import hashlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from reticent.run._code import code_of, from_library, why_not_retrievable
from reticent.run._content import Content

__all__ = ["content_of", "content_of_fields"]

# Texts up to this length are kept readable, so that a key can be looked at; longer ones are hashed.
READABLE = 200


def content_of(*values: object) -> Content:
    """Return the content of values, in their order.

    Numbers, texts, enumerations, paths (their text, not the file), arrays, collections, dataclasses, estimators with
    ``get_params``, functions, classes, partial functions and bound methods can be hashed, each with
    the user's code that it reaches; see :func:`code_of`. An object with a method
    ``content()`` states itself what it depends on. Everything else is opaque, and so are lambdas
    and functions that were not read from a file.

    Values of different types differ, and so do dictionaries of different order.

    Examples
    --------
    >>> content_of(1, "a").parts
    ('int: 1', "str: 'a'")
    >>> content_of(object()).opaque
    ('a value of the type builtins.object cannot be hashed.',)
    """
    return _Reader().all(values)


def content_of_fields(value: Any) -> Content:
    """Return the content of a dataclass by its fields and its code, whatever ``content()`` it has.

    A recipe that is a dataclass may implement its ``content`` with this function.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Recipe:
    ...     rate: float
    ...
    ...     def content(self):
    ...         return content_of_fields(self)
    >>> content_of_fields(Recipe(0.1)) == content_of_fields(Recipe(0.2))
    False
    """
    return _Reader().dataclass(value)


def _name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _text(label: str, value: object) -> Content:
    text = repr(value)
    if len(text) > READABLE:
        text = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Content((f"{label}: {text}",))


def _opaque(reason: str) -> Content:
    return Content((), (reason,))


def _joined(contents: Iterable[Content]) -> Content:
    """Return the sum of many contents, in time proportional to their number."""
    parts: list[str] = []
    reasons: dict[str, None] = {}
    for content in contents:
        parts += content.parts
        reasons |= dict.fromkeys(content.opaque)
    return Content(tuple(parts), tuple(reasons))


def _labelled(label: str, inside: Content) -> Content:
    """Return a content of one part, so that what is inside cannot be confused with its neighbours."""
    return Content((f"{label}({Content(inside.parts).digest})",), inside.opaque)


class _Reader:
    """Read values, and remember which ones are being read because some contain themselves."""

    def __init__(self) -> None:
        self.reading: set[int] = set()
        self.classes: dict[type, Content] = {}

    def all(self, values: Iterable[Any]) -> Content:
        return _joined([self.one(value) for value in values])

    def one(self, value: Any) -> Content:
        if id(value) in self.reading:
            # A value that contains itself is named, not followed for ever.
            return Content(("itself",))
        self.reading.add(id(value))
        try:
            return self._one(value)
        finally:
            self.reading.discard(id(value))

    def _one(self, value: Any) -> Content:
        kind = type(value)
        if isinstance(value, Content):
            return value
        # The exact type: True and 1 are equal, but not the same argument.
        if kind in (bool, int, float, complex, str, type(None), range):
            return _text(kind.__name__, value)
        if kind in (bytes, bytearray):
            return Content((f"bytes: {hashlib.sha256(value).hexdigest()}",))
        for predicate, read in self._readers():
            if predicate(value):
                return read(value)
        return _opaque(f"a value of the type {_name(kind)} cannot be hashed.")

    def _readers(
        self,
    ) -> list[tuple[Callable[[Any], bool], Callable[[Any], Content]]]:
        """Return predicates of values and how to read them, the more specific ones first."""
        return [
            (lambda v: isinstance(v, type), self._class),
            (lambda v: callable(getattr(type(v), "content", None)), self._by_method),
            (lambda v: isinstance(v, Enum), self._enum),
            (lambda v: isinstance(v, PurePath), lambda v: _text("path", str(v))),
            (lambda v: isinstance(v, np.dtype), lambda v: _text("dtype", v)),
            (lambda v: type(v) in (np.ndarray, np.memmap), self._array),
            (lambda v: isinstance(v, np.generic), self._array),
            (lambda v: isinstance(v, dict | MappingProxyType), self._mapping),
            (lambda v: isinstance(v, tuple | list), self._sequence),
            (lambda v: isinstance(v, set | frozenset), self._set),
            (lambda v: isinstance(v, functools.partial), self._partial),
            (lambda v: isinstance(v, MethodType), self._method),
            (lambda v: isinstance(v, FunctionType), self._function),
            (lambda v: isinstance(v, ModuleType), self._module),
            (is_dataclass, self.dataclass),
            (lambda v: callable(getattr(v, "get_params", None)), self._estimator),
            (_can_be_imported, self._named),
        ]

    def _instance(self, value: Any, inside: Content) -> Content:
        """Return what is inside a value, with the name and the code of its class."""
        kind = type(value)
        if kind.__module__ == "builtins":
            return _labelled(kind.__name__, inside)
        if kind not in self.classes:
            self.classes[kind] = self._class(kind)
        return _labelled(_name(kind), inside + self.classes[kind])

    def _by_method(self, value: Any) -> Content:
        content = value.content()
        if not isinstance(content, Content):
            return _opaque(
                f"content() of {_name(type(value))} returned a value of the type {_name(type(content))}, not a Content."
            )
        return self._instance(value, content)

    def _enum(self, value: Enum) -> Content:
        return self._instance(value, self.all((value.name, value.value)))

    def _array(self, value: Any) -> Content:
        array = np.asarray(value)
        if array.dtype.hasobject:
            inside = self.all((array.shape, array.ravel().tolist()))
            return _labelled("array of objects", inside)
        digest = hashlib.sha256()
        if array.nbytes:
            # The bytes in row order: two arrays that differ only in their layout in memory are the same value.
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        label = "array" if isinstance(value, np.ndarray) else "scalar"
        kind = array.dtype.descr if array.dtype.fields else array.dtype.str
        return Content((f"{label} {kind} {array.shape}: {digest.hexdigest()}",))

    def _mapping(self, value: Any) -> Content:
        return self._instance(value, self.all(list(value.items())))

    def _sequence(self, value: Any) -> Content:
        return self._instance(value, self.all(value))

    def _set(self, value: Any) -> Content:
        contents = [self.one(element) for element in value]
        # A set has no order that could be relied on between processes.
        contents.sort(key=lambda content: content.parts)
        return self._instance(value, _joined(contents))

    def _partial(self, value: Any) -> Content:
        return self._instance(value, self.all((value.func, value.args, value.keywords)))

    def _method(self, value: MethodType) -> Content:
        return _labelled("method", self.all((value.__self__, value.__func__)))

    def _module(self, value: ModuleType) -> Content:
        return _labelled(f"module {value.__name__}", code_of(value))

    def _function(self, value: FunctionType) -> Content:
        reason = why_not_retrievable(value)
        if reason:
            return _opaque(reason)
        inside = code_of(value) + self._surroundings(value)
        return _labelled(f"function {_name(value)}", inside)

    def _surroundings(self, function: FunctionType) -> Content:
        """Return what a function inside another one took with it: variables and defaults."""
        if "<locals>" not in function.__qualname__ and not function.__closure__:
            return Content(())
        try:
            cells = [cell.cell_contents for cell in function.__closure__ or ()]
        except ValueError:  # a variable that has no value yet
            return _opaque(f"the function {_name(function)!r} is not complete yet.")
        return self.all((*cells, function.__defaults__, function.__kwdefaults__))

    def _class(self, kind: type) -> Content:
        inside = code_of(kind)
        if not from_library(kind.__module__):
            module = sys.modules.get(kind.__module__)
            if getattr(module, "__file__", None) is None:
                inside += _opaque(
                    f"the class {_name(kind)} was not read from a file, so its code cannot be hashed; "
                    "put it into a module."
                )
        if "<locals>" in kind.__qualname__:
            for member in vars(kind).values():
                function = getattr(member, "__func__", member)
                if isinstance(function, FunctionType):
                    inside += self._surroundings(function)
        return _labelled(f"class {_name(kind)}", inside)

    def dataclass(self, value: Any) -> Content:
        pairs = [(field.name, getattr(value, field.name)) for field in fields(value)]
        return self._instance(value, self.all(pairs))

    def _estimator(self, value: Any) -> Content:
        """Return parameters and, of an estimator that is fitted, what it has learned."""
        parameters = dict(sorted(value.get_params(deep=False).items()))
        state = getattr(value, "__dict__", {})
        # A fitted estimator with the same parameters may have learned from other records.
        learned = {n: state[n] for n in sorted(state) if n not in parameters}
        return self._instance(value, self.all((parameters, learned)))

    def _named(self, value: Any) -> Content:
        module, name = _address(value)
        return _labelled(f"name {module}.{name}", code_of(module))


def _address(value: Any) -> tuple[str, str]:
    """Return the module and the name under which a value can be imported; empty if it cannot."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if module is None:  # compiled functions may know their module only so
        module = getattr(getattr(value, "__self__", None), "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return "", ""
    here = getattr(sys.modules.get(module), name, None) is value
    return (module, name) if here else ("", "")


def _can_be_imported(value: Any) -> bool:
    return _address(value) != ("", "")
