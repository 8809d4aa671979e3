"""The records in all nodes of one depth of some trees: in the order of their values, and in pairs around the thresholds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Level", "Ordered", "begins", "ranges"]

# Points on the grid of a column lie between -2^30 and 2^30, and those of partners are kept within 2^32; the side of the threshold stands in the bit above
# them, and the node in the bits above that.
BITS, OFFSET, FARTHEST = 34, 2**33, 2.0**32
SIDE = np.int64(1) << BITS
WIDTH = 63  # bits of a number without its sign


@dataclass(frozen=True, kw_only=True)
class Level:
    """The records in all nodes of one depth, and what those nodes compare.

    Parameters
    ----------
    node : array of int, shape (n,)
        Where each record is.
    unit : array of float, shape (n,)
        Distance of the points of the grid of the column that is compared.
    x, t : array of float, shape (n,)
        Value and threshold.
    rank : array of int, shape (n,)
        Place of the value among those of its column; those on one point of the grid share it.
    left : array of bool, shape (n,)
        Who goes left.
    known : array of int or None
        Records whose value and threshold are both finite; None if all are.
    """

    node: NDArray[np.int64]
    unit: NDArray[np.float64]
    x: NDArray[np.float64]
    rank: NDArray[np.int64]
    t: NDArray[np.float64]
    left: NDArray[np.bool_]
    known: NDArray[np.int64] | None

    def ordered(self) -> "Ordered":
        """Return the records in the order of their nodes, sides and values."""
        node, left, rank = self.node, self.left, self.rank
        if self.known is not None:
            node, left, rank = node[self.known], left[self.known], rank[self.known]
        # Nodes and sides, ranks, and positions share the bits of one number: numpy sorts numbers several times as fast as it finds their order.
        side = 2 * node + ~left
        of_rank, of_place = (int(size).bit_length() for size in (rank.max(initial=0), len(rank)))  # fmt: skip
        if int(side.max(initial=0)).bit_length() + of_rank + of_place < WIDTH:
            key = ((side << of_rank) + rank) << of_place
            key += np.arange(len(key))
            if not (
                key[1:] >= key[:-1]
            ).all():  # as they are beside the borders of bins
                key.sort()
            order = key & ((1 << of_place) - 1)
            key >>= of_place
            starts = np.flatnonzero(begins(key))
        else:
            order = np.lexsort((rank, side))
            starts = np.flatnonzero(begins(side[order]) | begins(rank[order]))
        positions = order if self.known is None else self.known[order]
        first = positions.take(starts)
        point = np.rint(self.x.take(first) / self.unit.take(first)).astype(np.int64)
        return Ordered(
            order=positions,
            starts=starts,
            counts=np.diff(starts, append=len(order)),
            keys=(side.take(order.take(starts)) << BITS) + (OFFSET + point),
        )


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """The records of one depth by node, side of the threshold and value; a group shares all three.

    Parameters
    ----------
    order : array of int
        Positions in the level.
    starts, counts : array of int, shape (g,)
        Where each group begins in ``order``, and its records.
    keys : array of int, shape (g,)
        Node, side and point on the grid of each group.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    keys: NDArray[np.int64]

    def record(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return one record of each group."""
        return self.order.take(self.starts.take(groups))

    def records(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return all records of some groups, one group after the other."""
        at = ranges(self.starts.take(groups), self.counts.take(groups))
        return self.order.take(at)

    def below(self) -> NDArray[np.int64]:
        """Return the last group below the threshold of every node that has groups on both sides; the first above it comes next."""
        half = self.keys >> BITS
        return np.flatnonzero((half[:-1] & 1 == 0) & (half[1:] == half[:-1] + 1))

    def pairs(self, level: Level) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return what each record gains as one of a pair, and whether it lies between one.

        A gain is divided by the records that share the value, and by the number of pairs that fit the same threshold.
        """
        n = len(level.x)
        gains, gaps = np.zeros(n), np.zeros(n, dtype=bool)
        first = np.flatnonzero(self.keys & SIDE == 0)
        record = self.record(first)
        mirrored = 2 * level.t.take(record) - level.x.take(record)
        mirrored /= level.unit.take(record)
        # A threshold far outside the column has no partner in it; the bound keeps it inside the bits of its node.
        mirrored = np.rint(mirrored.clip(-FARTHEST, FARTHEST)).astype(np.int64)
        half = (self.keys.take(first) >> BITS) + 1
        partner = (half << BITS) + (mirrored + OFFSET)
        second = np.searchsorted(self.keys, partner - 1)
        second = np.minimum(second, len(self.keys) - 1)
        # The grid's rounding may move both by half a point.
        is_pair = np.abs(self.keys.take(second) - partner) <= 1
        first, second, half = first[is_pair], second[is_pair], half[is_pair]
        if not len(first):
            return gains, gaps
        # Sorted by node and value: pairs of one threshold stand together, and the last of them is the narrowest.
        last = np.flatnonzero(np.diff(half, append=-1))
        in_node = np.diff(last, prepend=-1)
        pairs = np.repeat(in_node, in_node)
        for side in (first, second):
            count = self.counts.take(side)
            gains[self.records(side)] = np.repeat(1 / (count * pairs), count)
        narrow = first[last]
        start = self.starts.take(narrow) + self.counts.take(narrow)
        between = self.starts.take(second[last]) - start
        gaps[self.order.take(ranges(start, between))] = True
        return gains, gaps


def begins(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each number differs from the one before it."""
    begins = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return begins


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of several ranges, one range after the other."""
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0)
    return within + np.repeat(starts - ends + counts, counts)
