r"""The distribution of greatest entropy with given marginals, on a junction tree.

With factors on single columns and pairs, the distribution is :math:`p \propto \exp \sum_f \theta_f`. Its marginals follow by sending
messages between the cliques of a triangulated graph (Koller & Friedman, 2009, Chapter 10), and entropic mirror descent moves :math:`\theta_f` against the
gradient with respect to the marginal (McKenna, Sheldon & Miklau, "Graphical-model based estimation and inference for differential privacy", ICML 2019).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.train.marginals.sampling import drawn

__all__ = ["Factor", "Junction", "Measured", "cells_of", "fitted"]

Array = NDArray[np.float64]
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
    # Asked for in every step of a fit.
    _homes: dict[Factor, int] = field(default_factory=dict, repr=False, compare=False)

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
        if factor not in self._homes:
            homes = [k for k, c in enumerate(self.cliques) if set(factor) <= set(c)]
            smallest = min(homes, key=lambda k: _cells(self.sizes, self.cliques[k]))
            self._homes[factor] = smallest
        return self._homes[factor]

    def beliefs(self, potentials: Mapping[Factor, Array]) -> list[Array]:
        """Return the logarithm of each clique's distribution."""
        logs = [np.zeros([self.sizes[c] for c in clique]) for clique in self.cliques]
        for factor, theta in potentials.items():
            at = self.home(factor)
            logs[at] += _spread(theta, factor, self.cliques[at])
        messages: dict[int, Array] = {}
        for k in range(len(logs) - 1, 0, -1):
            parent, common = self.parents[k], self._common(k)
            messages[k] = _margin(logs[k], self.cliques[k], common)
            logs[parent] += _spread(messages[k], common, self.cliques[parent])
        for k in range(1, len(logs)):
            parent, common = self.parents[k], self._common(k)
            above = _margin(logs[parent], self.cliques[parent], common)
            logs[k] += _spread(above - messages[k], common, self.cliques[k])
        whole = _margin(logs[0], self.cliques[0], ())
        return [log - whole for log in logs]

    def marginal(self, beliefs: Sequence[Array], factor: Factor) -> Array:
        """Return the probabilities of a factor's columns."""
        return self.marginals(beliefs, [factor])[factor]

    def marginals(
        self, beliefs: Sequence[Array], factors: Iterable[Factor]
    ) -> dict[Factor, Array]:
        """Return the probabilities of the columns of each factor; a clique that is home to several is looked at once."""
        at_home: dict[int, list[Factor]] = {}
        for factor in factors:
            at_home.setdefault(self.home(factor), []).append(factor)
        found = {}
        for at, inside in at_home.items():
            shares = np.exp(beliefs[at])
            for factor in inside:
                found[factor] = _summed(shares, self.cliques[at], factor)
        return found

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
            weights = np.exp(beliefs[k]).transpose(axes).reshape(-1, states)
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
    theta = {
        m.factor: np.array(start.get(m.factor, np.zeros(m.counts.shape)))
        for m in measured
    }

    def errors(potentials: Mapping[Factor, Array]) -> tuple[float, dict[Factor, Array]]:
        beliefs = tree.beliefs(potentials)
        shares = tree.marginals(beliefs, potentials)
        loss, slopes = 0.0, {f: np.zeros_like(t) for f, t in potentials.items()}
        for m in measured:
            off = total * shares[m.factor] - m.counts
            loss += float((off**2 / m.variances).sum()) / 2
            slopes[m.factor] += total * off / m.variances
        return loss, slopes

    loss, slopes = errors(theta)
    # The curvature of the loss is at most total^2 over the least variance, times the number of factors that share a clique.
    least = min(float(np.min(m.variances)) for m in measured)
    step = 2.0 * least / total**2
    for _ in range(rounds):
        moved = {f: t - step * slopes[f] for f, t in theta.items()}
        found, steeper = errors(moved)
        if found <= loss:
            theta, loss, slopes, step = moved, found, steeper, 1.5 * step
        else:
            step /= 2
    return theta


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


def _spread(theta: Array, columns: Factor, clique: tuple[int, ...]) -> Array:
    """Return a factor in the shape of a clique; columns of both are in ascending order."""
    shape = [theta.shape[columns.index(c)] if c in columns else 1 for c in clique]
    return theta.reshape(shape)


def _margin(log: Array, clique: tuple[int, ...], columns: Factor) -> Array:
    axes = tuple(k for k, c in enumerate(clique) if c not in columns)
    if not axes:
        return log
    top = log.max(axis=axes, keepdims=True)
    sums = np.log(np.exp(log - top).sum(axis=axes, keepdims=True)) + top
    return np.asarray(sums.squeeze(axis=axes))


def _summed(shares: Array, clique: tuple[int, ...], columns: Factor) -> Array:
    axes = tuple(k for k, c in enumerate(clique) if c not in columns)
    return np.asarray(shares.sum(axis=axes)) if axes else shares
