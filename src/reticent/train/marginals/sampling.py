"""Draw rows from estimated distributions with as little chance as possible: shares are met to within one row."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.train.marginals.columns import Column

__all__ = ["decoded", "drawn", "rows_in_cells"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
# Bits of chance in the order of rows, at least: two rows of a group then have the same number, and stay in the order in which they were made, once in a million times.
FEWEST_BITS = 20


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
    number, states = weights.shape
    shares: Array = np.cumsum(weights, axis=1)
    empty = shares[:, -1] <= 0
    if empty.any():
        shares[empty] = np.arange(1, states + 1)
    sizes = np.bincount(groups, minlength=number)
    # Row k of a group has a state if (k + offset) / size lies in its part of the shares, so the rows up to each state can be counted. Offsets of 24 bits are taken from up to 2^29 rows without rounding.
    shares /= shares[:, -1:]
    shares *= sizes[:, None]
    shares -= rng.random((number, 1), dtype=np.float32)
    upto = np.ceil(shares, out=shares).astype(np.int64)
    counts = upto.copy()
    counts[:, 1:] -= upto[:, :-1]
    in_order = np.tile(np.arange(states), number).repeat(counts.ravel())
    result = np.empty(len(groups), dtype=np.int64)
    result[_grouped(groups, number, rng)] = in_order
    return result


def _grouped(groups: Whole, number: int, rng: np.random.Generator) -> Whole:
    """Return the rows of all groups, one group behind the other and in random order inside each, so that no state is tied to the order in which rows were made."""
    n = len(groups)
    place, group = max(1, (n - 1).bit_length()), max(1, (number - 1).bit_length())
    chance = 63 - place - group
    if chance < FEWEST_BITS:  # of groups that are about as many as there can be rows
        order = rng.permutation(n)
        return order[np.argsort(groups[order], kind="stable")]
    # Group, chance and row in one number each: such numbers are sorted several times as fast as places by their values.
    keys = rng.integers(1 << chance, size=n)
    keys += groups.astype(np.int64, copy=False) << chance
    keys <<= place
    keys += np.arange(n)
    keys.sort()
    keys &= (1 << place) - 1
    return keys


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
