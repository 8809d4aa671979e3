r"""Move the thresholds of a tree inside their gaps, so that no record it was trained on goes another way.

Of the records that reach a node, let :math:`a` be the largest value that goes left and :math:`b` the smallest that goes right. Every threshold
in :math:`[a, b)` sends them the same ways. CART takes the middle, from which :math:`a` and :math:`b` can be read; a uniform draw is
as near to them as the value of another person who happened to lie between.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Splits", "moved"]

# Whether each value goes left, given the node that each record is in: for nodes that compare a set of categories.
GoesLeft = Callable[[NDArray[np.int64], NDArray[np.float64]], NDArray[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class Splits:
    """The questions of a tree, one entry per node; node 0 is the root.

    Parameters
    ----------
    features : array of int
        Column that a node compares.
    thresholds : array of float
        Records go left if their value is at most the threshold, or below it if ``strict``.
    left, right : array of int
        Children; negative in leaves.
    missing_left : array of bool
        Whether records without a value go left.
    by_category : array of bool or None
        Nodes that compare a set of categories and not a threshold.
    goes_left : callable or None
        Decides in those nodes.
    strict : bool
        Whether records go left only if they are below the threshold, which is then kept in single precision.
    """

    features: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    by_category: NDArray[np.bool_] | None = None
    goes_left: GoesLeft | None = None
    strict: bool = False

    def gaps(
        self, matrix: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the largest value that goes left in each node, and the smallest that goes right; infinite where nobody does.

        Parameters
        ----------
        matrix : array of float, shape (n, d)
            The records as the tree compares them.
        """
        nodes = len(self.features)
        low, high = np.full(nodes, -np.inf), np.full(nodes, np.inf)
        rows, node = np.arange(len(matrix)), np.zeros(len(matrix), dtype=np.int64)
        for _ in range(nodes):  # no path is longer
            inner = self.left[node] >= 0
            rows, node = rows[inner], node[inner]
            if not len(rows):
                break
            x = matrix[rows, self.features[node]].astype(np.float64)
            t = self.thresholds[node]
            left = (x < t) if self.strict else (x <= t)
            missing = np.isnan(x)
            left = np.where(missing, self.missing_left[node], left)
            asked = ~missing
            if self.by_category is not None and self.goes_left is not None:
                named = self.by_category[node]
                left[named] = self.goes_left(node[named], x[named])
                asked &= ~named
            below, above = asked & left, asked & ~left
            np.maximum.at(low, node[below], x[below])
            np.minimum.at(high, node[above], x[above])
            node = np.where(left, self.left[node], self.right[node])
        return low, high


def moved(
    splits: Splits, matrix: NDArray[np.floating], *, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return new thresholds, and which of them were moved.

    A threshold beside which nobody is found on one of its sides stays, because its gap is not known.

    Parameters
    ----------
    splits : Splits
        The questions of the tree.
    matrix : array of float, shape (n, d)
        The members as the tree compares them.
    rng : Generator
        Draws the new thresholds. Whoever knows its seed can undo the shift.

    Examples
    --------
    >>> tree = Splits(features=np.array([0, -2, -2]), thresholds=np.array([2.5, -2, -2]), left=np.array([1, -1, -1]),
    ...               right=np.array([2, -1, -1]), missing_left=np.zeros(3, dtype=bool))
    >>> thresholds, changed = moved(tree, np.array([[1.0], [2.0], [3.0]]), rng=np.random.default_rng(0))
    >>> bool(2 <= thresholds[0] < 3), changed.tolist()
    (True, [True, False, False])
    """
    low, high = splits.gaps(matrix)
    movable = (splits.left >= 0) & np.isfinite(low) & np.isfinite(high) & (low < high)
    if splits.by_category is not None:
        movable &= ~splits.by_category
    a, b = low[movable], high[movable]
    share = rng.random(len(a))
    # Two products, because the difference of large numbers may overflow.
    drawn = a * (1 - share) + b * share
    thresholds = splits.thresholds.copy()
    if splits.strict:
        single = drawn.astype(np.float32)
        above = np.nextafter(a.astype(np.float32), np.float32(np.inf))
        thresholds[movable] = np.clip(single, above, b.astype(np.float32))
    else:
        thresholds[movable] = np.clip(drawn, a, np.nextafter(b, a))
    return thresholds, movable
