"""Graphs of columns, triangulated: which cliques a set of pairs makes, and which pairs a model still has room for."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Factor", "affordable", "cells_of", "cliques_of"]

Factor = tuple[int, ...]  # one or two columns, in ascending order
AT_ONCE = 256  # graphs that are triangulated at the same time: some megabytes for a hundred columns


def cells_of(sizes: Sequence[int], columns: Iterable[int]) -> int:
    """Return the number of cells that some columns have together."""
    return math.prod([sizes[c] for c in columns])


def cliques_of(sizes: tuple[int, ...], pairs: Sequence[Factor]) -> list[frozenset[int]]:
    """Return the cliques of a graph, triangulated by eliminating the column of the smallest clique first."""
    (cliques,) = _triangulated(sizes, _graph(len(sizes), pairs)[None])
    return [frozenset(np.flatnonzero(c).tolist()) for c in cliques if c.any()]


def affordable(
    sizes: tuple[int, ...],
    known: Sequence[tuple[int, int]],
    pairs: Sequence[tuple[int, int]],
    *,
    most: int,
) -> list[tuple[int, int]]:
    """Return the pairs that may join a graph: those after which the cliques of its junction tree have at most so many cells.

    Parameters
    ----------
    sizes : tuple of int
        Number of bins of each column.
    known : sequence of tuple of int
        Pairs of the graph, which may always be measured again.
    pairs : sequence of tuple of int
        What might join it.
    most : int
        The most cells of all cliques together.
    """
    found = set(known)
    others = [pair for pair in pairs if pair not in found]
    for start in range(0, len(others), AT_ONCE):
        tried = others[start : start + AT_ONCE]
        graphs = np.repeat(_graph(len(sizes), known)[None], len(tried), axis=0)
        first, second = np.array(tried).T
        each = np.arange(len(tried))
        graphs[each, first, second] = graphs[each, second, first] = True
        cliques = _triangulated(sizes, graphs)
        cells = np.where(cliques, np.asarray(sizes, dtype=np.float64), 1.0).prod(axis=2)
        totals = np.where(cliques.any(axis=2), cells, 0.0).sum(axis=1)
        found.update(p for p, n in zip(tried, totals, strict=True) if n <= most)
    return [pair for pair in pairs if pair in found]


def _graph(d: int, pairs: Sequence[Factor]) -> NDArray[np.bool_]:
    """Return which columns are neighbours, or the same."""
    graph = np.eye(d, dtype=bool)
    for i, j in pairs:
        graph[i, j] = graph[j, i] = True
    return graph


def _triangulated(sizes: tuple[int, ...], near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the cliques of several graphs, each triangulated by eliminating the column of its smallest clique first.

    Graphs go hand in hand, a column of each at a time: before a pair is chosen all pairs are tried, which took a third of a fit when it was done one by one.

    Parameters
    ----------
    sizes : tuple of int
        Number of bins of each column.
    near : array of bool, shape (graphs, d, d)
        Which columns are neighbours, or the same; it is changed.

    Returns
    -------
    array of bool, shape (graphs, d, d)
        The columns of each clique, in the order of elimination; nothing where a clique lies in an earlier one.
    """
    d, bins = len(sizes), np.asarray(sizes, dtype=np.float64)
    every = np.arange(len(near))
    # A column and its neighbours are the clique that it would leave behind.
    cells = np.where(near, bins, 1.0).prod(axis=2)
    cliques = np.empty_like(near)
    for step in range(d):
        column = cells.argmin(axis=1)
        clique = near[every, column]
        cliques[:, step] = clique
        cells[every, column] = np.inf
        others = clique.copy()
        others[every, column] = False
        graph, beside = np.nonzero(others)
        joined = near[graph, beside] | others[graph]
        joined[np.arange(len(graph)), column[graph]] = False
        near[graph, beside] = joined
        cells[graph, beside] = np.where(joined, bins, 1.0).prod(axis=1)
    # A clique lies in another one if it has as many columns in common with it as it has at all.
    numbers = cliques.astype(np.float32)
    common = numbers @ numbers.transpose(0, 2, 1)
    inside = common == numbers.sum(axis=2)[:, :, None]
    cliques[np.tril(inside, -1).any(axis=2)] = False
    return cliques
