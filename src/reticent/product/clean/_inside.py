"""Look through a fitted estimator: which objects it is made of, and what each of them is given when it answers."""

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Part", "as_matrix", "parts_of", "recorded"]

# Objects in an estimator; a crafted file must not take forever.
MOST_PARTS = 1_000_000
MOST_CELLS = 40_000_000  # of a sparse input that is made dense, 320 megabytes
# Different inputs of one object that are kept; it is asked once per answer, or twice.
MOST_INPUTS = 4
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, np.generic)


@dataclass(frozen=True, kw_only=True)
class Part:
    """An object inside an estimator.

    Parameters
    ----------
    thing : object
        The object itself.
    owner : object or None
        The nearest object with attributes that holds it; None for the estimator.
    """

    thing: Any
    owner: Any


def parts_of(estimator: Any) -> list[Part]:
    """Return an estimator and every object with attributes inside it, each once.

    Lists, tuples, sets, dictionaries and arrays of objects are looked through. Only what stands in ``__dict__`` is read, so no property and no
    other code of theirs is run.

    Parameters
    ----------
    estimator : object
        A fitted estimator.
    """
    parts: list[Part] = []
    seen: set[int] = set()
    waiting: list[tuple[Any, Any]] = [(estimator, None)]
    while waiting and len(seen) < MOST_PARTS:
        thing, owner = waiting.pop()
        if isinstance(thing, _PLAIN) or id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            children = thing.ravel().tolist() if thing.dtype == object else []
        elif isinstance(thing, dict):
            children = list(thing.values())
        elif isinstance(thing, list | tuple | set | frozenset):
            children = list(thing)
        else:
            parts.append(Part(thing=thing, owner=owner))
            owner = thing
            children = list(getattr(thing, "__dict__", {}).values())
        waiting += [(child, owner) for child in reversed(children)]
    return parts


@contextmanager
def recorded(
    methods: list[tuple[Any, str]],
) -> Iterator[Callable[[Any], list[Any]]]:
    """Record the first argument of methods while the estimator around them is asked.

    Yield a function from an object to the different inputs that it was given.

    Parameters
    ----------
    methods : list of (object, str)
        Objects and names of their methods. Each object gets a method of its own for the time of the recording.
    """
    inputs: defaultdict[int, list[Any]] = defaultdict(list)

    def record(thing: Any, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(X: Any, *arguments: Any, **named: Any) -> Any:
            known = inputs[id(thing)]
            if len(known) < MOST_INPUTS and not any(X is other for other in known):
                known.append(X)
            return method(X, *arguments, **named)

        return call

    patched = []
    try:
        for thing, name in methods:
            method = getattr(thing, name, None)
            if callable(method) and name not in vars(thing):
                setattr(thing, name, record(thing, method))
                patched.append((thing, name))
        # Other processes would record into memory of their own.
        with joblib.parallel_config(backend="threading"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield lambda thing: inputs[id(thing)]
    finally:
        for thing, name in patched:
            delattr(thing, name)


def as_matrix(X: Any) -> NDArray[np.float64] | None:
    """Return an input as numbers; None if it holds something else, or is too large."""
    if sparse.issparse(X):
        matrix: Any = X
        if np.prod(matrix.shape, dtype=np.float64) > MOST_CELLS:
            return None
        X = matrix.toarray()
    if isinstance(X, pd.DataFrame):
        X = X.to_numpy()
    try:
        numbers = np.asarray(X)
        if numbers.dtype.kind not in "fiub":
            numbers = numbers.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.ndim == 2 else None
