"""Junction trees: a distribution of many columns as distributions of a few of them that agree on what they share (Koller & Friedman, 2009, Chapter 10)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from reticent.train.marginals.graphs import Factor, cells_of, cliques_of
from reticent.train.marginals.sampling import drawn

__all__ = ["Junction", "places_in"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Columns = tuple[int, ...]
# Cliques are joined while they have at most so many cells together, because each costs some dozens of calls, which take longer than to go through so many cells;
# larger ones are divided into three blocks of columns. On Cardio a quarter and four times as many made no difference.
SMALL = 512
MOST_DIVIDED = 7  # columns of a clique of which every division is tried, 2,187 at most; with more, those alone that leave the columns in their order


@dataclass(frozen=True)
class Junction:
    """Cliques of a triangulated graph of columns, each behind its parent.

    Parameters
    ----------
    sizes : tuple of int
        Number of bins of each column.
    blocks : tuple of tuple of tuple of int
        Columns of each clique, in three blocks where it is large, or else in one; those that its parent has, too, come last.
    parents : tuple of int
        The parent of each clique, which stands before it; -1 for one that shares nothing with those before it.
    """

    sizes: tuple[int, ...]
    blocks: tuple[tuple[Columns, ...], ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: tuple[int, ...], pairs: Sequence[Factor]) -> "Junction":
        """Return the junction tree of a graph: columns of a pair are in a clique together."""
        order, parents = _joined(sizes, *_grown(sizes, cliques_of(sizes, pairs)))
        shared = [
            frozenset[int]() if p < 0 else clique & order[p]
            for clique, p in zip(order, parents, strict=True)
        ]
        blocks = [
            _in_blocks(sizes, clique, both, [both, *(s for s, p in zip(shared, parents, strict=True) if p == k)])
            for k, (clique, both) in enumerate(zip(order, shared, strict=True))
        ]  # fmt: skip
        return cls(sizes, tuple(blocks), tuple(parents))

    @cached_property
    def cliques(self) -> tuple[Columns, ...]:
        """Columns of each clique; those that its parent has, too, come last."""
        return tuple(tuple(chain.from_iterable(each)) for each in self.blocks)

    def home(self, factor: Factor) -> int:
        """Return the smallest clique that holds the columns of a factor."""
        homes = [k for k, c in enumerate(self.cliques) if set(factor) <= set(c)]
        return min(homes, key=lambda k: cells_of(self.sizes, self.cliques[k]))

    def common(self, k: int) -> Columns:
        """Return the columns that a clique has in common with its parent."""
        other = () if self.parents[k] < 0 else self.cliques[self.parents[k]]
        return tuple(c for c in self.cliques[k] if c in other)

    def marginal(self, beliefs: Sequence[Array], factor: Factor) -> Array:
        """Return the probabilities of a factor's columns, given those of each clique's cells."""
        at = self.home(factor)
        places = places_in(self.sizes, self.cliques[at], factor)
        shape = [self.sizes[c] for c in factor]
        sums = np.bincount(places, beliefs[at], minlength=math.prod(shape))
        return np.asarray(sums, dtype=np.float64).reshape(shape)

    def sample(
        self, beliefs: Sequence[Array], rows: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return bins of new rows, clique by clique."""
        # By columns, as they are drawn and counted.
        bins = np.zeros((rows, len(self.sizes)), dtype=np.int64, order="F")
        for k, clique in enumerate(self.cliques):
            common = self.common(k)
            new = clique[: len(clique) - len(common)]
            # Common columns are those of the last axis.
            weights = beliefs[k].reshape(cells_of(self.sizes, new), -1).T
            groups = np.zeros(rows, dtype=np.int64)
            for c in common:
                groups *= self.sizes[c]
                groups += bins[:, c]
            chosen = drawn(weights, groups, rng)
            for c in new:
                bins[:, c] = places_in(self.sizes, new, (c,))[chosen]
        return bins


def _grown(
    sizes: tuple[int, ...], cliques: list[frozenset[int]]
) -> tuple[list[frozenset[int]], list[int]]:
    """Return cliques in order, and their parents: a tree of greatest overlap, grown from the first one, is a junction tree. What has nothing in common is left apart."""
    cells = {clique: cells_of(sizes, clique) for clique in cliques}
    first, *rest = cliques
    order, parents = [first], [-1]
    while rest:
        # Of several parents the smallest is taken: all of its cells may be gone through for each child.
        overlap, _, at, parent = max(
            (len(clique & other), -cells[other], -k, -p)
            for k, clique in enumerate(rest)
            for p, other in enumerate(order)
        )
        order.append(rest.pop(-at))
        parents.append(-parent if overlap else -1)
    return order, parents


def _joined(
    sizes: tuple[int, ...], order: list[frozenset[int]], parents: list[int]
) -> tuple[list[frozenset[int]], list[int]]:
    """Join small cliques with their parents, or with others of the same parent; all still agree on what they share."""
    for k in range(len(order) - 1, 0, -1):
        for p in range(k):
            is_near = p == parents[k] or parents[p] == parents[k]
            if is_near and cells_of(sizes, order[p] | order[k]) <= SMALL:
                order[p] |= order[k]
                # What stood behind it becomes a child of the clique that it joins.
                parents = [p if q == k else q - (q > k) for q in parents]
                del order[k], parents[k]
                break
    return order, parents


def _in_blocks(
    sizes: tuple[int, ...],
    clique: frozenset[int],
    common: frozenset[int],
    asked: Sequence[frozenset[int]],
) -> tuple[Columns, ...]:
    """Return the columns of a clique, those of its parent last, in one block, or in three if it is large.

    What it shares with its parent, and with each child, must lie in two of the blocks, so that messages are about faces of the box; a clique that cannot be divided so stays whole.

    Parameters
    ----------
    sizes : tuple of int
        Number of bins of each column.
    clique : frozenset of int
        Its columns.
    common : frozenset of int
        Those that its parent has, too.
    asked : sequence of frozenset of int
        Those that messages are about: of its parent, and of its children.
    """
    new, old = (
        sorted(part, key=lambda c: (sizes[c], c)) for part in (clique - common, common)
    )
    columns = (*new, *old)
    best: tuple[Columns, ...] = (columns,)
    least: float = math.inf
    if cells_of(sizes, columns) <= SMALL:
        return best
    divisions: Iterator[Columns]  # the block of each column
    if len(columns) <= MOST_DIVIDED:
        divisions = product(range(3), repeat=len(columns))
    else:
        divisions = combinations_with_replacement(range(3), len(columns))
    for labels in divisions:
        # No block is empty, and no new column stands behind one of the parent's.
        last = max(labels[: len(new)])
        if len(set(labels)) < 3 or last > min(labels[len(new) :], default=2):
            continue
        pairs = tuple(zip(columns, labels, strict=True))
        blocks = tuple(tuple(c for c, at in pairs if at == k) for k in range(3))
        if any(all(both.intersection(b) for b in blocks) for both in asked):
            continue
        x, y, z = (cells_of(sizes, block) for block in blocks)
        if (cost := x * y + x * z + y * z) < least:
            best, least = blocks, cost
    return best


def places_in(sizes: Sequence[int], clique: Columns, columns: Columns) -> Places:
    """Return, for every cell of a clique, its place in the table of some of its columns."""
    shape = [sizes[c] for c in clique]
    place, step = np.zeros(shape, dtype=np.intp), 1
    for c in reversed(columns):
        along = [-1 if other == c else 1 for other in clique]
        place += step * np.arange(sizes[c]).reshape(along)
        step *= sizes[c]
    return place.reshape(-1)
