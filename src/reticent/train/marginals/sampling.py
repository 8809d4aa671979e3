"""Draw rows from estimated distributions with as little chance as possible: shares are met to within one row."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.train.marginals.columns import Column

__all__ = ["decoded", "drawn", "rows_in_cells"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
SMALL = 2**16  # groups that two bytes tell apart


def drawn(weights: Array, groups: Whole, rng: np.random.Generator) -> Whole:
    """Return a state for each row, by systematic sampling inside each group.

    Parameters
    ----------
    weights : array of float, shape (groups, states)
        Weights of the states in each group; all states are alike where they are all 0.
    groups : array of int, shape (n,)
        Group of each row.
    rng : numpy.random.Generator
        Randomness of the sample, which protects nobody.

    Examples
    --------
    >>> states = drawn(np.array([[1.0, 3.0]]), np.zeros(8, dtype=np.int64), np.random.default_rng(0))
    >>> np.bincount(states).tolist()
    [2, 6]
    """
    number = len(weights)
    sums = weights.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0, weights, 1.0)
    bounds = np.cumsum(shares, axis=1)
    bounds /= bounds[:, -1:]
    # A random order inside each group, so that no state is tied to the order in which rows were made.
    order = rng.permutation(len(groups))
    # In two bytes numbers are sorted digit by digit, several times as fast.
    small = groups.astype(np.uint16) if number <= SMALL else groups
    order = order[np.argsort(small[order], kind="stable")]
    sizes = np.bincount(groups, minlength=number)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    sorted_groups = groups[order]
    rank = np.arange(len(groups)) - starts[sorted_groups]
    places = (rank + rng.random(number)[sorted_groups]) / sizes[sorted_groups]
    flat = (bounds + np.arange(number)[:, None]).ravel()
    found = np.searchsorted(flat, places + sorted_groups, side="right")
    states = np.clip(found - sorted_groups * weights.shape[1], 0, weights.shape[1] - 1)
    # Rounding may end a search on a state of weight 0 behind the last one that has any.
    last = weights.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    result = np.empty(len(groups), dtype=np.int64)
    result[order] = np.minimum(states, last[sorted_groups])
    return result


def rows_in_cells(
    bins: Whole,
    bin_of_cell: Sequence[Whole],
    counts: Sequence[Array],
    rng: np.random.Generator,
) -> Whole:
    """Return the cell of each row and column, given its bin: by the noisy counts of the cells inside the bin."""
    cells = np.empty_like(bins)
    for j, places in enumerate(bin_of_cell):
        number = int(places.max()) + 1
        weights = np.zeros((number, len(places)))
        weights[places, np.arange(len(places))] = counts[j]
        # A bin without any count: all of its cells are alike.
        empty = weights.sum(axis=1) == 0
        weights[empty] = places[None, :] == np.flatnonzero(empty)[:, None]
        cells[:, j] = drawn(weights, bins[:, j], rng)
    return cells


def decoded(
    cells: Whole, columns: Sequence[Column], rng: np.random.Generator
) -> dict[str, object]:
    """Return the values of all columns."""
    return {
        column.name: column.decode(cells[:, j], rng) for j, column in enumerate(columns)
    }
