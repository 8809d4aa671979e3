"""Parameters by which a harmless type opens a file, runs a stranger's function, or takes over the machine."""

from collections.abc import Iterator, Set
from functools import partial
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
)
from typing import Any

import numpy as np

from reticent.errors import UnsafeProduct
from reticent.product.clean._inside import parts_of

__all__ = ["refuse_parameters"]

# More threads than a large computer has cores ask for something else than speed; a model of such a computer may be asked on a small one.
MOST_JOBS = 256
# Parameters of boosters that name a file or a folder, or hold functions.
_OF_BOOSTERS = frozenset(
    [
        *("callbacks", "input_model", "model_file", "output_model"),
        *("output_result", "save_snapshot", "snapshot_file", "train_dir"),
    ]
)
_BOOSTERS = ("catboost.", "lightgbm.", "xgboost.")
_FUNCTIONS = (BuiltinFunctionType, FunctionType, MethodType, partial)


def refuse_parameters(estimator: Any, *, trusted: Set[str]) -> None:
    """Refuse an estimator with a parameter that opens, connects, runs or explodes.

    Numbers of jobs are bounded and not lowered, because some answers are sums over as many parts.

    Raises
    ------
    UnsafeProduct
        If a part has such a parameter.
    """
    for part in parts_of(estimator):
        thing = part.thing
        kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
        for name, value in _parameters(thing, kind):
            if name.startswith("__"):  # of Python: what a function wraps
                continue
            why = _why_not(kind, name, value, trusted)
            if why:
                raise UnsafeProduct(
                    f"{type(thing).__name__} in the product has {name}={_shown(value)}, {why}; set it to what the model needs to answer and save it anew."
                )


def _parameters(thing: Any, kind: str) -> Iterator[tuple[str, Any]]:
    """Yield attributes, and for boosters what stands in their dictionaries of parameters."""
    for name, value in getattr(thing, "__dict__", {}).items():
        yield str(name), value
        if kind.startswith(_BOOSTERS) and isinstance(value, dict):
            for key, inner in value.items():
                yield str(key), inner


def _why_not(kind: str, name: str, value: Any, trusted: Set[str]) -> str:
    """Return why a parameter is refused; nothing if it is harmless."""
    if name == "input" and kind.startswith("sklearn.feature_extraction."):
        return "" if _is(value, "content") else "which makes it read files"
    if name == "memory" and kind.startswith("sklearn."):
        return "" if value is None else "which makes it keep files"
    if name in ("n_jobs", "nthread", "num_threads", "thread_count"):
        is_number = isinstance(value, int | np.integer)
        usual = value is None or (is_number and -MOST_JOBS <= value <= MOST_JOBS)
        return (
            ""
            if usual
            else f"and only {-MOST_JOBS} to {MOST_JOBS} can be numbers of cores"
        )
    if name in _OF_BOOSTERS and kind.startswith(_BOOSTERS):
        return "which names files or functions" if value else ""
    for function in _functions_in(value):
        called = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
        if called not in trusted and not called.startswith("scipy.special."):
            return "a function that is not known to be harmless"
    return ""


def _functions_in(value: Any) -> Iterator[Any]:
    values = value.values() if isinstance(value, dict) else [value]
    return (value for value in values if isinstance(value, _FUNCTIONS))


def _is(value: Any, text: str) -> bool:
    return isinstance(value, str) and value == text


def _shown(value: Any) -> str:
    """Return a plain value as written, and the type of any other: its own words may be anything."""
    if isinstance(value, str | int | float | bool | None):
        return repr(value)[:80]
    return f"a {type(value).__name__}"
