r"""The distribution that noisy marginals make most plausible, on a junction tree.

With factors on single columns and pairs, the distribution is :math:`p \propto \exp \sum_f \theta_f`. Its marginals :math:`\mu_f` follow by sending
messages between the cliques of a triangulated graph (Koller & Friedman, 2009, Chapter 10). Of N records with noisy counts :math:`y_f` of variances :math:`\sigma_f^2`,

.. math:: \max_p\; \lambda N H(p) - \tfrac12 \sum_f \|N \mu_f - y_f\|^2 / \sigma_f^2

is found by its dual, :math:`\min_\theta N \log Z(\theta) - \theta \cdot y + \tfrac\lambda2 \sum_f \sigma_f^2 \|\theta_f\|^2`, which is convex without bounds. With
:math:`\lambda = 1` this would be the most probable table, if all records were equally probable; with :math:`\lambda = 0` the least squares of McKenna, Sheldon & Miklau ("Graphical-model based
estimation and inference for differential privacy", ICML 2019), which fit the noise as well.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import daxpy
from scipy.sparse import csr_array

from reticent.train.marginals.sampling import drawn

__all__ = ["Factor", "Junction", "Measured", "affordable", "fitted"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
# The least logarithm of a cell's potentials, beside 0 for the largest: 1e-109. Two such cells may be multiplied without becoming 0.
LEAST = -250.0
# The weight of entropy, as a part of that which makes the most probable table: from tables with a tenth models learn as much as from any other, or more (Adult, Framingham and Diabetes: tried were 0.1, 0.3 and 1, beside least
# squares). All of it shrinks what much noise measured too far towards independence, because real columns are not independent.
ENTROPY = 0.1
# Counts are of people: to be told them to less than one helps nobody, and with less noise the search would be long, because margins that contradict each other a little pull without end.
LEAST_VARIANCE = 1.0
MOST_STEPS, MOST_HALVINGS, REMEMBERED = 300, 20, 10  # of L-BFGS
SUFFICIENT = (
    1e-4  # part of the decrease that the slope promises, with which a step is content
)
TINY = 1e-200  # the least share of a message, by which others are divided
SMALL = 1e-50  # the cells of a clique are made larger if none is above this: with TINY, far from what a double can hold
AT_ONCE = 256  # graphs that are triangulated at the same time: some megabytes for a hundred columns
Factor = tuple[int, ...]  # one or two columns, in ascending order


@dataclass(frozen=True)
class Junction:
    """Cliques of a triangulated graph of columns, each behind its parent.

    Parameters
    ----------
    sizes : tuple of int
        Number of bins of each column.
    cliques : tuple of tuple of int
        Columns of each clique; those that its parent has, too, come last.
    parents : tuple of int
        The parent of each clique, which stands before it; -1 for the first.
    """

    sizes: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: tuple[int, ...], pairs: Sequence[Factor]) -> "Junction":
        """Return the junction tree of a graph, triangulated by eliminating the column of the smallest clique first."""
        (cliques,) = _triangulated(sizes, _graph(len(sizes), pairs)[None])
        found = [frozenset(np.flatnonzero(c).tolist()) for c in cliques if c.any()]
        # A tree of greatest overlap, grown from the first clique, is a junction tree. Of several parents the smallest is taken: all of its cells are gone through for each child.
        order, parents = [found[0]], [-1]
        rest = found[1:]
        while rest:
            *_, at, parent = max(
                (len(clique & other), -_cells(sizes, other), -k, -p)
                for k, clique in enumerate(rest)
                for p, other in enumerate(order)
            )
            order.append(rest.pop(-at))
            parents.append(-parent)
        above = [frozenset[int]() if p < 0 else order[p] for p in parents]
        cliques = [
            (*sorted(clique - other), *sorted(clique & other))
            for clique, other in zip(order, above, strict=True)
        ]
        return cls(sizes, tuple(cliques), tuple(parents))

    def home(self, factor: Factor) -> int:
        """Return the smallest clique that holds the columns of a factor."""
        homes = [k for k, c in enumerate(self.cliques) if set(factor) <= set(c)]
        return min(homes, key=lambda k: _cells(self.sizes, self.cliques[k]))

    def beliefs(self, potentials: Mapping[Factor, Array]) -> list[Array]:
        """Return the probabilities of each clique's cells."""
        logs = np.zeros(self._ends[-1])
        parts = self._parts(logs)
        for factor, theta in potentials.items():
            at = self.home(factor)
            parts[at] += theta.ravel()[_places(self.sizes, self.cliques[at], factor)]
        return self.calibrated(logs)[0]

    def calibrated(self, logs: Array) -> tuple[list[Array], float]:
        """Turn the sums of potentials on the cells of all cliques into probabilities, by a sweep up the tree and one down; return the logarithm of their sum, too.

        Probabilities are multiplied, and not their logarithms added: a cell is exponentiated once in a sweep, whatever the number of its neighbours. They take the place of the sums:
        to allot new memory takes as long as to fill it.
        """
        # The largest is 1, so that nothing overflows; what is rarer than e^LEAST is never drawn.
        cells = self._parts(logs)
        peaks = np.maximum.reduceat(logs, [0, *self._ends[:-1]])
        for part, peak in zip(cells, peaks.tolist(), strict=True):
            np.subtract(part, peak, out=part)
        log_sum = float(peaks.sum())
        np.maximum(logs, LEAST, out=logs)
        np.exp(logs, out=logs)
        messages: list[Array] = []
        for k in range(len(cells) - 1, 0, -1):
            both = self._separators[k - 1]
            message = both.ones_below @ cells[k].reshape(-1, both.states)
            largest = float(message.max())
            messages.append(np.maximum(message, TINY * largest, out=message))
            parent = cells[self.parents[k]]
            room = self._scratch[: len(parent)]
            parent *= np.take(message / largest, both.above, out=room, mode="clip")
            log_sum += math.log(largest)
            if (scale := float(parent.max())) < SMALL:
                parent /= scale
                log_sum += math.log(scale)
        whole = float(cells[0].sum())
        log_sum += math.log(whole)
        cells[0] /= whole
        # A clique that is divided by its message and multiplied by its parent's adds up to 1 as its parent does.
        for k in range(1, len(cells)):
            both = self._separators[k - 1]
            parent = cells[self.parents[k]]
            room = self._scratch[: len(parent)]
            np.take(parent, both.order, out=room, mode="clip")
            message = both.ones_above @ room.reshape(-1, both.states)
            message /= messages.pop()
            own = cells[k].reshape(-1, both.states)
            own *= message
        return cells, log_sum

    @cached_property
    def _ends(self) -> list[int]:
        """Where the cells of each clique end, if they stand one behind the other."""
        return list(accumulate(_cells(self.sizes, c) for c in self.cliques))

    def _parts(self, flat: Array) -> list[Array]:
        """Return the cells of each clique, of all that stand one behind the other."""
        starts = [0, *self._ends]
        return [flat[i:j] for i, j in pairwise(starts)]

    @cached_property
    def _scratch(self) -> Array:
        """Room for the cells of any clique: new memory for each message took longer than the message."""
        return np.empty(max(_cells(self.sizes, c) for c in self.cliques))

    @cached_property
    def _separators(self) -> tuple["_Separator", ...]:
        """What each clique but the first has in common with its parent."""
        found = []
        for k, parent in enumerate(self.parents[1:], start=1):
            both, above = self._common(k), self.cliques[parent]
            ordered = (*(c for c in above if c not in both), *both)
            cells = np.arange(_cells(self.sizes, above))
            shaped = cells.reshape([self.sizes[c] for c in above])
            order = shaped.transpose([above.index(c) for c in ordered]).ravel()
            states = _cells(self.sizes, both)
            found.append(
                _Separator(
                    states=states,
                    ones_above=np.ones(len(cells) // states),
                    ones_below=np.ones(_cells(self.sizes, self.cliques[k]) // states),
                    above=_places(self.sizes, above, both),
                    order=order,
                )
            )
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
        # By columns, as they are drawn and counted.
        bins = np.zeros((rows, len(self.sizes)), dtype=np.int64, order="F")
        for k, clique in enumerate(self.cliques):
            common = self._common(k) if k else ()
            new = tuple(c for c in clique if c not in common)
            axes = [clique.index(c) for c in (*common, *new)]
            states = _cells(self.sizes, new)
            cells = beliefs[k].reshape([self.sizes[c] for c in clique])
            weights = cells.transpose(axes).reshape(-1, states)
            groups = np.zeros(rows, dtype=np.int64)
            for c in common:
                groups *= self.sizes[c]
                groups += bins[:, c]
            chosen = drawn(weights, groups, rng)
            for c in reversed(new[1:]):
                chosen, bins[:, c] = np.divmod(chosen, self.sizes[c])
            bins[:, new[0]] = chosen
        return bins

    def _common(self, k: int) -> tuple[int, ...]:
        other = set(self.cliques[self.parents[k]])
        return tuple(c for c in self.cliques[k] if c in other)


@dataclass(frozen=True, kw_only=True)
class _Separator:
    """The columns that a clique has in common with its parent.

    Parameters
    ----------
    states : int
        Number of their states.
    ones_above, ones_below : array of float
        As many ones as a state has cells in the parent, and in the clique: a product with them adds cells up in less than half of the time of a sum.
    above : array of int
        The state of each cell of the parent.
    order : array of int
        The cells of the parent in an order in which these columns come last, as they do in the clique itself.
    """

    states: int
    ones_above: Array
    ones_below: Array
    above: Places
    order: Places


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
    precision: float,
) -> tuple[dict[Factor, Array], list[Array]]:
    """Return the potentials that maximise entropy less the squared errors of the counts, and the beliefs of all cliques; see the top of this module.

    Steps are those of L-BFGS (Nocedal & Wright, 2006, Algorithm 7.4), with the diagonal of the Hessian at the start in place of a multiple of the unit matrix: it
    spans four orders of magnitude from rare to frequent bins.

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
    precision : float
        Part of the noise's standard deviation by which counts may lie beside where they should, in the root mean square.
    """
    goal = _Goal.of(measured, total)
    spread = _spreading(tree, goal.factors)
    gathered = spread.T
    pull = ENTROPY / goal.weights

    def dual(theta: Array) -> tuple[float, Array, list[Array]]:
        cells = spread @ theta
        beliefs, log_sum = tree.calibrated(cells)  # in place
        shares = gathered @ cells
        value = total * log_sum - theta @ goal.counts + theta @ (pull * theta) / 2
        return float(value), total * shares - goal.counts + pull * theta, beliefs

    theta = goal.flat(start)
    value, slope, beliefs = dual(theta)
    shares = (slope + goal.counts - pull * theta) / total
    steps = _Steps(1 / (total * shares * (1 - shares) + pull))
    near = precision**2 * len(theta)
    for _ in range(MOST_STEPS):
        if slope @ (goal.weights * slope) <= near:
            break
        move = steps.direction(slope)
        length, gain = 1.0, SUFFICIENT * float(slope @ move)
        for _ in range(MOST_HALVINGS):
            moved = theta + length * move
            lower, flatter, there = dual(moved)
            if lower <= value + length * gain:
                break
            length /= 2
        else:
            break  # the value no longer changes by more than its rounding
        steps.learn(moved - theta, flatter - slope)
        theta, value, slope, beliefs = moved, lower, flatter, there
    return goal.parted(theta), beliefs


class _Steps:
    """The inverse of the Hessian as L-BFGS learns it from steps.

    Parameters
    ----------
    diagonal : array of float
        What it is taken for at first.
    """

    def __init__(self, diagonal: Array) -> None:
        self.diagonal = diagonal
        self.scale = 1.0
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=REMEMBERED)

    def direction(self, slope: Array) -> Array:
        """Return the step that a quadratic function with this Hessian would ask for."""
        rest = slope.copy()
        parts = []
        for moved, bent, product in reversed(self.pairs):
            parts.append(float(moved @ rest) / product)
            daxpy(bent, rest, a=-parts[-1])  # in place
        rest *= self.scale * self.diagonal
        for (moved, bent, product), part in zip(self.pairs, reversed(parts), strict=True):  # fmt: skip
            daxpy(moved, rest, a=part - float(bent @ rest) / product)
        return -rest

    def learn(self, moved: Array, bent: Array) -> None:
        """Remember how the slope changed by a step."""
        product = float(moved @ bent)
        if product > 0:  # the function is convex, so only rounding says otherwise
            self.pairs.append((moved, bent, product))
            self.scale = product / float(bent @ (self.diagonal * bent))


@dataclass(frozen=True)
class _Goal:
    """What is known of all factors, one behind the other in flat arrays: counts, and one over their variances."""

    shapes: Mapping[Factor, tuple[int, ...]]
    counts: Array
    weights: Array

    @classmethod
    def of(cls, measured: Sequence[Measured], total: float) -> "_Goal":
        """Return the goal; a factor that was measured twice has the mean of its counts, weighted by their precision.

        The counts of each factor are moved to add up to the total, each in proportion to its variance. That moves no maximum, because no distribution could do
        anything about it, but it spares the search a direction that leads nowhere.
        """
        sums: dict[Factor, Array] = {}
        weights: dict[Factor, Array] = {}
        for m in measured:
            variances = np.maximum(np.asarray(m.variances), LEAST_VARIANCE)
            precision = np.broadcast_to(1.0 / variances, m.counts.shape)
            weights[m.factor] = weights.get(m.factor, 0.0) + precision
            sums[m.factor] = sums.get(m.factor, 0.0) + precision * m.counts
        counts = []
        for factor, precision in weights.items():
            mean, variance = sums[factor] / precision, 1 / precision
            mean -= (mean.sum() - total) * variance / variance.sum()
            counts.append(mean.ravel())
        flat = np.concatenate([w.ravel() for w in weights.values()])
        shapes = {f: w.shape for f, w in weights.items()}
        return cls(shapes, np.concatenate(counts), flat)

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
    guests: list[list[Places]] = [[] for _ in tree.cliques]
    width = 0
    for factor in factors:
        at = tree.home(factor)
        guests[at].append(width + _places(tree.sizes, tree.cliques[at], factor))
        width += _cells(tree.sizes, factor)
    # Every cell of a clique has one entry for each factor that is at home there.
    sizes = [_cells(tree.sizes, clique) for clique in tree.cliques]
    entries = np.repeat([len(places) for places in guests], sizes)
    columns = [np.stack(places, axis=1).ravel() for places in guests if places]
    ends = np.concatenate([[0], np.cumsum(entries)])
    ones, shape = np.ones(ends[-1]), (len(entries), width)
    return csr_array((ones, np.concatenate(columns), ends), shape=shape)


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
    found = []
    for start in range(0, len(pairs), AT_ONCE):
        tried = pairs[start : start + AT_ONCE]
        graphs = np.repeat(_graph(len(sizes), known)[None], len(tried), axis=0)
        first, second = np.array(tried).T
        each = np.arange(len(tried))
        graphs[each, first, second] = graphs[each, second, first] = True
        cliques = _triangulated(sizes, graphs)
        cells = np.where(cliques, np.asarray(sizes, dtype=np.float64), 1.0).prod(axis=2)
        totals = np.where(cliques.any(axis=2), cells, 0.0).sum(axis=1)
        found += [p for p, n in zip(tried, totals, strict=True) if p in known or n <= most]  # fmt: skip
    return found


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
