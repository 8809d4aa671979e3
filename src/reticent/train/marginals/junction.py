r"""The distribution of greatest entropy with given marginals, on a junction tree.

With factors on single columns and pairs, the distribution is :math:`p \propto \exp \sum_f \theta_f`. Its marginals follow by sending
messages between the cliques of a triangulated graph (Koller & Friedman, 2009, Chapter 10), and entropic mirror descent moves :math:`\theta_f` against the
gradient with respect to the marginal (McKenna, Sheldon & Miklau, "Graphical-model based estimation and inference for differential privacy", ICML 2019).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from reticent.train.marginals.sampling import drawn

__all__ = ["Factor", "Junction", "Measured", "cells_of", "fitted"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
# The least logarithm of a cell's potentials, beside 0 for the largest: 1e-109. Two such cells may be multiplied without becoming 0.
LEAST = -250.0
TINY = 1e-300  # the least share of a message, by which others are divided
Factor = tuple[int, ...]  # one or two columns, in ascending order


@dataclass(frozen=True)
class Junction:
    """Cliques of a triangulated graph of columns, each behind its parent.

    Parameters
    ----------
    sizes : tuple of int
        Number of bins of each column.
    cliques : tuple of tuple of int
        Columns of each clique, in ascending order.
    parents : tuple of int
        The parent of each clique, which stands before it; -1 for the first.
    """

    sizes: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: tuple[int, ...], pairs: Sequence[Factor]) -> "Junction":
        """Return the junction tree of a graph, triangulated by eliminating the column of the smallest clique first."""
        found = _triangulated(sizes, pairs)
        # A tree of greatest overlap, grown from the first clique, is a junction tree.
        order, parents = [found[0]], [-1]
        rest = found[1:]
        while rest:
            overlap, at, parent = max(
                (len(clique & other), -k, -p)
                for k, clique in enumerate(rest)
                for p, other in enumerate(order)
            )
            order.append(rest.pop(-at))
            parents.append(-parent)
            del overlap
        return cls(sizes, tuple(tuple(sorted(c)) for c in order), tuple(parents))

    def home(self, factor: Factor) -> int:
        """Return the smallest clique that holds the columns of a factor."""
        homes = [k for k, c in enumerate(self.cliques) if set(factor) <= set(c)]
        return min(homes, key=lambda k: _cells(self.sizes, self.cliques[k]))

    def beliefs(self, potentials: Mapping[Factor, Array]) -> list[Array]:
        """Return the probabilities of each clique's cells."""
        logs = [np.zeros(_cells(self.sizes, clique)) for clique in self.cliques]
        for factor, theta in potentials.items():
            at = self.home(factor)
            logs[at] += theta.ravel()[_places(self.sizes, self.cliques[at], factor)]
        return self.calibrated(logs)

    def calibrated(self, logs: Sequence[Array]) -> list[Array]:
        """Turn the sums of potentials on each clique's cells into probabilities, by a sweep up the tree and one down.

        Probabilities are multiplied, and not their logarithms added: a cell is exponentiated once in a sweep, whatever the number of its neighbours.
        """
        # The largest is 1, so that nothing overflows; what is rarer than e^LEAST is never drawn.
        cells = [np.exp(np.maximum(log - log.max(), LEAST)) for log in logs]
        messages: dict[int, Array] = {}
        for k in range(len(cells) - 1, 0, -1):
            own, above, states = self._separators[k - 1]
            message = np.bincount(own, cells[k], minlength=states)
            messages[k] = np.maximum(message / message.max(), TINY)
            parent = cells[self.parents[k]]
            parent *= messages[k][above]
            parent /= parent.max()
        for k in range(1, len(cells)):
            own, above, states = self._separators[k - 1]
            message = np.bincount(above, cells[self.parents[k]], minlength=states)
            cells[k] *= (message / messages[k])[own]
        return [shares / shares.sum() for shares in cells]

    @cached_property
    def _separators(self) -> tuple[tuple[Places, Places, int], ...]:
        """Of each clique but the first: where its cells, and those of its parent, lie among the states of the columns of both; and how many states these are."""
        found = []
        for k, parent in enumerate(self.parents[1:], start=1):
            both = self._common(k)
            own, above = (
                _places(self.sizes, self.cliques[c], both) for c in (k, parent)
            )
            found.append((own, above, _cells(self.sizes, both)))
        return tuple(found)

    def marginal(self, beliefs: Sequence[Array], factor: Factor) -> Array:
        """Return the probabilities of a factor's columns."""
        at = self.home(factor)
        places = _places(self.sizes, self.cliques[at], factor)
        shape = [self.sizes[c] for c in factor]
        sums = np.bincount(places, beliefs[at], minlength=math.prod(shape))
        return np.asarray(sums, dtype=np.float64).reshape(shape)

    def sample(
        self, beliefs: Sequence[Array], rows: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return bins of new rows, clique by clique."""
        bins = np.zeros((rows, len(self.sizes)), dtype=np.int64)
        for k, clique in enumerate(self.cliques):
            common = self._common(k) if k else ()
            new = tuple(c for c in clique if c not in common)
            axes = [clique.index(c) for c in (*common, *new)]
            states = _cells(self.sizes, new)
            cells = beliefs[k].reshape([self.sizes[c] for c in clique])
            weights = cells.transpose(axes).reshape(-1, states)
            groups = np.zeros(rows, dtype=np.int64)
            for c in common:
                groups = groups * self.sizes[c] + bins[:, c]
            chosen = drawn(weights, groups, rng)
            for c in reversed(new):
                chosen, bins[:, c] = np.divmod(chosen, self.sizes[c])
        return bins

    def _common(self, k: int) -> tuple[int, ...]:
        other = set(self.cliques[self.parents[k]])
        return tuple(c for c in self.cliques[k] if c in other)


@dataclass(frozen=True)
class Measured:
    """Noisy counts of one factor.

    Parameters
    ----------
    factor : tuple of int
        Its columns.
    counts : array of float
        The counts.
    variances : array of float or float
        Of the noise on each of them.
    """

    factor: Factor
    counts: Array
    variances: Array | float


def fitted(
    tree: Junction,
    measured: Sequence[Measured],
    start: Mapping[Factor, Array],
    *,
    total: float,
    rounds: int,
) -> dict[Factor, Array]:
    """Return potentials whose marginals are near the measured counts, by entropic mirror descent.

    Parameters
    ----------
    tree : Junction
        With a home for every factor.
    measured : sequence of Measured
        What is known.
    start : mapping
        Potentials to begin with.
    total : float
        Number of records.
    rounds : int
        Steps to take; a step that makes the fit worse is taken back and halved.
    """
    goal = _Goal.of(measured)
    spread = _spreading(tree, goal.factors)
    gathered = spread.T.tocsr()
    ends = np.cumsum([_cells(tree.sizes, clique) for clique in tree.cliques])[:-1]

    def errors(potentials: Array) -> tuple[float, Array]:
        beliefs = tree.calibrated(np.split(spread @ potentials, ends))
        off = total * (gathered @ np.concatenate(beliefs)) - goal.counts
        steep = goal.weights * off
        return float(steep @ off) / 2, total * steep

    theta = goal.flat(start)
    loss, slopes = errors(theta)
    # The curvature of the loss is at most total^2 over the least variance, times the number of factors that share a clique.
    least = min(float(np.min(m.variances)) for m in measured)
    step = 2.0 * least / total**2
    for _ in range(rounds):
        moved = theta - step * slopes
        found, steeper = errors(moved)
        if found <= loss:
            theta, loss, slopes, step = moved, found, steeper, 1.5 * step
        else:
            step /= 2
    return goal.parted(theta)


@dataclass(frozen=True)
class _Goal:
    """What is known of all factors, one behind the other in flat arrays: counts, and one over their variances."""

    shapes: Mapping[Factor, tuple[int, ...]]
    counts: Array
    weights: Array

    @classmethod
    def of(cls, measured: Sequence[Measured]) -> "_Goal":
        """Return the goal; a factor that was measured twice has the mean of its counts, weighted by their precision."""
        sums: dict[Factor, Array] = {}
        weights: dict[Factor, Array] = {}
        for m in measured:
            precision = np.broadcast_to(1.0 / np.asarray(m.variances), m.counts.shape)
            weights[m.factor] = weights.get(m.factor, 0.0) + precision
            sums[m.factor] = sums.get(m.factor, 0.0) + precision * m.counts
        flat = np.concatenate([w.ravel() for w in weights.values()])
        counts = np.concatenate([s.ravel() for s in sums.values()]) / flat
        return cls({f: w.shape for f, w in weights.items()}, counts, flat)

    @property
    def factors(self) -> tuple[Factor, ...]:
        return tuple(self.shapes)

    def flat(self, potentials: Mapping[Factor, Array]) -> Array:
        """Return potentials one behind the other; those of a factor that has none yet are 0."""
        each = (potentials.get(f, np.zeros(shape)) for f, shape in self.shapes.items())
        return np.concatenate([theta.ravel() for theta in each])

    def parted(self, flat: Array) -> dict[Factor, Array]:
        """Return the potentials of each factor."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])[:-1]
        parts = np.split(flat, ends)
        return {
            factor: part.reshape(shape)
            for (factor, shape), part in zip(self.shapes.items(), parts, strict=True)
        }


def _spreading(tree: Junction, factors: Sequence[Factor]) -> csr_array:
    """Return the matrix of zeros and ones that adds the potentials of all factors up on the cells of all cliques.

    Transposed, it adds cells up to marginals. Sums along the axes of small arrays took most of a fit.
    """
    sizes = [_cells(tree.sizes, clique) for clique in tree.cliques]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows, columns, width = [], [], 0
    for factor in factors:
        at = tree.home(factor)
        rows.append(np.arange(starts[at], starts[at + 1]))
        columns.append(width + _places(tree.sizes, tree.cliques[at], factor))
        width += _cells(tree.sizes, factor)
    where = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.ones(len(where[0])), where), shape=(int(starts[-1]), width))


def cells_of(sizes: tuple[int, ...], pairs: Sequence[Factor]) -> int:
    """Return the number of cells of all cliques of the junction tree of a graph, without making it."""
    return sum(_cells(sizes, clique) for clique in _triangulated(sizes, pairs))


def _triangulated(
    sizes: tuple[int, ...], pairs: Sequence[Factor]
) -> list[frozenset[int]]:
    """Return the cliques of a graph, triangulated by eliminating the column of the smallest clique first."""
    near: dict[int, set[int]] = {i: set() for i in range(len(sizes))}
    for i, j in pairs:
        near[i].add(j)
        near[j].add(i)
    found: list[frozenset[int]] = []
    # Cells of the clique that each column would leave behind.
    left = {c: _cells(sizes, {c, *near[c]}) for c in near}
    while left:
        column = min(left, key=lambda c: (left[c], c))
        clique = frozenset({column, *near[column]})
        if not any(clique <= other for other in found):
            found.append(clique)
        del left[column]
        for a in near[column]:
            near[a] |= near[column] - {a}
            near[a].discard(column)
        for a in near[column]:
            left[a] = _cells(sizes, {a, *near[a]})
    return found


def _cells(sizes: Sequence[int], columns: object) -> int:
    number = 1
    for c in columns:  # type: ignore[attr-defined]
        number *= sizes[c]
    return number


def _places(
    sizes: Sequence[int], clique: tuple[int, ...], columns: tuple[int, ...]
) -> Places:
    """Return, for every cell of a clique, its place in the table of some of its columns."""
    shape = [sizes[c] for c in clique]
    place = np.zeros([1] * len(clique), dtype=np.intp)
    for c in columns:
        along = [-1 if other == c else 1 for other in clique]
        place = place * sizes[c] + np.arange(sizes[c]).reshape(along)
    return np.broadcast_to(place, shape).ravel()
