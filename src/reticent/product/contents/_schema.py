"""Walk through the schema of a skops archive: names, numbers, texts, and which member holds which array."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from reticent.product.contents._values import attribute, key, position

__all__ = ["walk_schema"]

DEEPEST = 400  # nodes; two of them stand for one object
# What every node says about itself. Numbers of objects change with every saving and say nothing.
_ABOUT = frozenset(
    {"__class__", "__module__", "__loader__", "__id__", "type", "is_json", "file"}
)
_OWN = frozenset({*_ABOUT, "content", "key_types", "protocol", "_skops_version"})
LONGEST_NAME = 200  # characters of a class or module; a longer one is something else
_LISTS = frozenset({"ListNode", "TupleNode", "SetNode"})
_ABSENT = object()


class _Collects(Protocol):
    """What is told of the numbers and texts that are found."""

    def value(
        self, path: str, value: Any, *, depth: int = 0, layer: int = 0
    ) -> None: ...

    def unread(self, path: str, why: str) -> None: ...


def walk_schema(
    walk: _Collects, path: str, schema: Any, file: Callable[[str, str], None]
) -> None:
    """Walk through every node of a schema.

    Parameters
    ----------
    walk : Walk
        What is told of numbers and texts.
    path : str
        Where the archive stands.
    schema : object
        The decoded schema.
    file : callable
        Called with a path and the name of the member that stands there.
    """
    _node(walk, path, schema, file, attributes=False, depth=0)


def _node(
    walk: _Collects,
    path: str,
    node: Any,
    file: Callable[[str, str], None],
    *,
    attributes: bool,
    depth: int,
) -> None:
    """Walk through one node; the keys of its content are names of attributes, or else data."""
    if depth > DEEPEST:
        walk.unread(path, f"objects are nested more than {DEEPEST} deep")
        return
    if not isinstance(node, Mapping):
        walk.value(path, node)
        return
    plain = _plain(node)
    if plain is not _ABSENT:
        walk.value(path, plain)
        return
    if isinstance(node.get("file"), str):
        file(path, node["file"])
    _content(walk, path, node, file, attributes=attributes, depth=depth)
    for name, item in node.items():
        if name not in _OWN:
            _node(walk, attribute(path, name), item, file, attributes=True, depth=depth + 1)  # fmt: skip
        elif name != "content" and not _is_usual(name, item):
            walk.value(attribute(path, name), item)


def _content(
    walk: _Collects,
    path: str,
    node: Mapping[str, Any],
    file: Callable[[str, str], None],
    *,
    attributes: bool,
    depth: int,
) -> None:
    content, loader = node.get("content"), node.get("__loader__")
    if loader == "DictNode" and isinstance(content, Mapping):
        _mapping(walk, path, content, file, attributes=attributes, depth=depth)
    elif isinstance(content, Mapping) and "__loader__" in content:
        _node(walk, path, content, file, attributes=True, depth=depth + 1)
    elif isinstance(content, Mapping):
        _mapping(walk, path, content, file, attributes=True, depth=depth)
    elif isinstance(content, list):
        for at, item in enumerate(content):
            _node(walk, position(path, at), item, file, attributes=False, depth=depth + 1)  # fmt: skip
    elif content is not None:
        walk.value(path, content)


def _is_usual(name: str, item: Any) -> bool:
    """Whether what a node says about itself is what skops writes there, and not something that was hidden in its place."""
    if name == "key_types":
        types = item.get("content") if isinstance(item, Mapping) else None
        return isinstance(types, list) and all(
            isinstance(kind, Mapping)
            and kind.get("__loader__") == "TypeNode"
            and all(_is_usual(*entry) for entry in kind.items())
            for kind in types
        )
    if isinstance(item, str):
        return len(item) <= LONGEST_NAME
    return isinstance(item, int) and abs(item) < 2**64


def _mapping(
    walk: _Collects,
    path: str,
    content: Mapping[str, Any],
    file: Callable[[str, str], None],
    *,
    attributes: bool,
    depth: int,
) -> None:
    values = {name: _plain(item) for name, item in content.items()}
    simple = {k: v for k, v in values.items() if v is not _ABSENT}
    if not attributes:
        walk.value(path, simple)
        walk.value(f"{path}.keys", [str(k) for k in values if k not in simple])
    for name, item in content.items():
        if attributes and name in simple:
            walk.value(attribute(path, name), simple[name])
        elif name not in simple:
            where = attribute(path, name) if attributes else key(path, name)
            _node(walk, where, item, file, attributes=False, depth=depth + 1)


def _plain(node: Any, depth: int = 0) -> Any:
    """Return the value of a node that holds nothing but numbers, texts and lists of them; else a mark."""
    if not isinstance(node, Mapping) or depth > DEEPEST:
        return _ABSENT
    loader, content = node.get("__loader__"), node.get("content")
    about = ((k, v) for k, v in node.items() if k in _ABOUT)
    if not all(_is_usual(name, item) for name, item in about):
        return _ABSENT
    if not node.keys() <= (_OWN | {"shape"} if loader == "NdArrayNode" else _OWN):
        return _ABSENT
    if loader == "JsonNode" and isinstance(content, str):
        return json.loads(content)
    as_list = loader in _LISTS or (
        loader == "NdArrayNode" and node.get("type") == "json"
    )
    if as_list and isinstance(content, list):
        items = [_plain(item, depth + 1) for item in content]
        return _ABSENT if any(item is _ABSENT for item in items) else items
    return _ABSENT
