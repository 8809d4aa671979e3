"""JSON as reticent reads it from strangers and writes it for them."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from reticent._visible import visible_json
from reticent.errors import InvalidInput

__all__ = ["read_json", "write_json"]


def write_json(content: Mapping[str, Any]) -> str:
    """Return JSON text for people to read, in which nothing steers a terminal; NaN and infinities are refused."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return visible_json(text) + "\n"


def read_json(text: str, what: str) -> dict[str, Any]:
    """Return the object that a JSON text holds.

    Raises
    ------
    InvalidInput
        If the text is not JSON, or not an object. Bare NaN and Infinity are no JSON, and a key that stands twice would mean one
        thing to one reader and another to the next.
    """
    try:
        content = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated
        )
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"this is not JSON ({error}); pass the {what}.") from error
    if not isinstance(content, dict):
        raise InvalidInput(
            f"this is a JSON {type(content).__name__} and not an object; pass the {what}."
        )
    return content


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} must be written as a string")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice!r} stands there twice")
    return content
