"""A tree of pairs: each column depends on one other, chosen by the exponential mechanism. For few rows with much noise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.train.marginals.histograms import nearest_counts
from reticent.train.marginals.noise import Noise
from reticent.train.marginals.pairs import Binned, Pair
from reticent.train.marginals.sampling import drawn

__all__ = ["Tree", "fit_tree"]

Array = NDArray[np.float64]
FITTINGS = (
    30  # rounds of iterative proportional fitting: margins then agree to a thousandth
)


@dataclass(frozen=True, kw_only=True)
class Tree:
    """Pairs of columns that form a tree, each with its estimated counts.

    Parameters
    ----------
    first : int
        The column that rows begin with.
    margins : tuple of array
        Estimated counts of the bins of each column.
    edges : tuple of (int, int, array)
        Parent, child and their counts, parents before children.
    """

    first: int
    margins: tuple[Array, ...]
    edges: tuple[tuple[int, int, Array], ...]

    def sample(self, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return bins of new rows, shape (rows, d)."""
        bins = np.zeros((rows, len(self.margins)), dtype=np.int64)
        start = np.zeros(rows, dtype=np.int64)
        bins[:, self.first] = drawn(self.margins[self.first][None, :], start, rng)
        for parent, child, counts in self.edges:
            bins[:, child] = drawn(counts, bins[:, parent], rng)
        return bins


def fit_tree(
    data: Binned,
    margins: tuple[Array, ...],
    noise: Noise,
    *,
    epsilon: float,
    deviation: float,
) -> Tree:
    """Choose and measure a tree: one choice and one measurement for every column but one.

    Parameters
    ----------
    data : Binned
        The records.
    margins : tuple of array
        Noisy counts of each column's bins, which have been paid for.
    noise : Noise
        The source of noise.
    epsilon : float
        Of each choice.
    deviation : float
        Standard deviation of the noise on the counts of each pair.
    """
    d = len(data.sizes)
    total = float(margins[0].sum())
    part = list(range(d))  # columns in one part are connected already
    independent = {
        (i, j): np.outer(margins[i], margins[j]) / total for i, j in data.pairs
    }
    pairs = data.pairs
    scores = data.scores(pairs, [independent[pair] for pair in pairs], deviation)
    chosen: dict[Pair, Array] = {}
    for _ in range(d - 1):
        open_ = [k for k, (i, j) in enumerate(pairs) if part[i] != part[j]]
        pair = pairs[open_[noise.choose(scores[open_], epsilon)]]
        noisy = noise.on_counts(data.counts(pair), deviation)
        chosen[pair] = _consistent(noisy, margins[pair[0]], margins[pair[1]])
        joined = part[pair[1]]
        part = [part[pair[0]] if p == joined else p for p in part]
    first = 0 if data.target is None else data.target
    return Tree(first=first, margins=margins, edges=_from(first, chosen))


def _consistent(noisy: Array, rows: Array, columns: Array) -> Array:
    """Return non-negative counts near noisy ones, whose margins are those of the single columns."""
    total = float(rows.sum())
    counts = nearest_counts(noisy, total)
    # A hint of independence, so that rows without any count can be fitted.
    counts += 1e-6 * np.outer(rows, columns) / total
    for _ in range(FITTINGS):
        counts *= _ratio(columns, counts.sum(axis=0))[None, :]
        counts *= _ratio(rows, counts.sum(axis=1))[:, None]
    return counts


def _ratio(wanted: Array, found: Array) -> Array:
    return np.asarray(np.where(found > 0, wanted / np.where(found > 0, found, 1), 0.0))


def _from(first: int, chosen: dict[Pair, Array]) -> tuple[tuple[int, int, Array], ...]:
    """Return the edges of a tree, directed away from a column."""
    edges: list[tuple[int, int, Array]] = []
    reached, waiting = {first}, [first]
    while waiting:
        parent = waiting.pop(0)
        for (i, j), counts in chosen.items():
            child = j if i == parent else i
            if parent not in (i, j) or child in reached:
                continue
            edges.append((parent, child, counts if i == parent else counts.T))
            reached.add(child)
            waiting.append(child)
    return tuple(edges)
