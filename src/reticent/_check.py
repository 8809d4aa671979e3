"""Checks of arguments that several packages share."""

import difflib
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.errors import InvalidInput

__all__ = ["as_scores", "in_open_unit", "nearest"]

LEAST_SIMILARITY = 0.5  # half of the letters agree; below, hints name unrelated words
MOST_NAMES = 12  # names listed in a hint, so that an error stays about one line long


def in_open_unit(value: float, name: str) -> float:
    """Return ``value`` if it lies inside (0, 1), else raise.

    Examples
    --------
    >>> in_open_unit(0.95, "level")
    0.95
    """
    if not 0 < value < 1:
        raise InvalidInput(
            f"{name} must lie inside (0, 1), got {value!r}; write 95 % as 0.95."
        )
    return float(value)


def as_scores(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return the scores as a non-empty, one-dimensional array without NaN.

    Examples
    --------
    >>> as_scores([1, 2], "members")
    array([1., 2.])
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise InvalidInput(
            f"{name} has shape {array.shape}, so there is nothing to compare; "
            "pass one score per record, and at least one record."
        )
    if np.isnan(array).any():
        raise InvalidInput(
            f"{np.isnan(array).sum()} of {len(array)} scores of {name} are NaN, so they cannot be ranked; "
            "repair the attack or leave those records out."
        )
    return array


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the known word closest to ``word``, or lists the known words.

    Examples
    --------
    >>> nearest("incme", ["age", "income"])
    "the nearest match is 'income'"
    >>> nearest("x", ["age", "income"])
    "known: 'age', 'income'"
    """
    names = [str(name) for name in known]
    close = difflib.get_close_matches(word, names, n=1, cutoff=LEAST_SIMILARITY)
    if not close:
        by_case = [name for name in names if name.lower() == word.lower()]
        close = by_case[:1]
    if close:
        return f"the nearest match is {close[0]!r}"
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    return f"known: {shown}" + (", ..." if len(names) > MOST_NAMES else "")
