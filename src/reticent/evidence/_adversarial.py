r"""The engine of nearest-neighbour adversarial accuracy: exact values of many pairs of sets from one search for neighbours.

For a point of one set, let D be the distance to the nearest of k points drawn without replacement from the a others of its own set, and S that to the
nearest of k points drawn from the b points of the other set. With :math:`G(c; t, k) = \binom{t - c}{k} / \binom{t}{k}`, the chance that none
of c given points is among k drawn from t, and the numbers of own and other points that are not further than the groups of ties
:math:`g = 1, 2, ...` of its neighbours,

.. math:: P(D < S) + P(D = S)/2 = \sum_g (X_{g-1} - X_g) (Y_{g-1} + Y_g) / 2,
   \quad X_g = G(c_g^{own}; a, k), \; Y_g = G(c_g^{other}; b, k).

With k one less than the smaller set this is the mean over all subsamples of equal size of the unbiased adversarial accuracy; for equal
sizes it is that accuracy itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reticent.evidence._distances import Lists, Search, neighbour_lists

__all__ = ["Pair", "Sides", "Survey", "none_drawn", "survey"]

Counts = NDArray[np.int32]
Met = NDArray[np.int64]

# Neighbours that are looked up first. Among three sets of equal size, (2/3)^24 of the rows, one in 17,000, find none of their own.
FIRST = 24
NEAR = 8  # neighbours that are evaluated first
SMALL = 100  # distinct rows up to which one long list is faster than a short one and then a long one for some rows
STORED = 128  # neighbours that are kept for resampling; 300,000 rows then take 0.3 GB at most
WIDER = 8  # factor by which the list of a row grows while it is not long enough
EVALUATED_BYTES = 2**26  # of the arrays in which a block of lists is evaluated
NEGLIGIBLE = 1e-12  # share of a point's value that may be left open
HALF = 32  # bits of a number in which two counts travel
VANISHED = 1e-16  # a chance that changes no digit of a sum


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """Two sets to be compared, each as how many of its rows every distinct row stands for.

    Parameters
    ----------
    first, second : array of int, shape (u + 1,)
        Numbers of rows; the last entry is 0.
    size : int
        Number of rows to which both sets are reduced: at least 2, at most the smaller set.
    biased : bool
        Compare strictly and with all points of the other set, as the original definition does.
    """

    first: Counts
    second: Counts
    size: int
    biased: bool = False


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The two terms of an adversarial accuracy: that of the first set's points and that of the second's."""

    first: float
    second: float

    @property
    def mean(self) -> float:
        """The adversarial accuracy."""
        return (self.first + self.second) / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Survey:
    """What was seen of the neighbours of all distinct rows.

    Parameters
    ----------
    observed : tuple of Sides
        Exact values of the pairs that were asked for.
    lists : tuple of Lists
        Neighbours from which further pairs are evaluated. A value that a list of limited length leaves open counts as a tie.
    near : tuple of Lists
        The first few of them, which settle nearly all rows in a third of the time.
    """

    observed: tuple[Sides, ...]
    lists: tuple[Lists, ...]
    near: tuple[Lists, ...]

    def sides(self, pair: Pair) -> Sides:
        """Return the values of another pair of sets of the same rows."""
        totals = np.zeros(2)
        for near, lists in zip(self.near, self.lists, strict=True):
            totals += _both(lists, pair, near if len(lists.rows) > SMALL else None)[0]
        return _sides(totals, pair)


def survey(search: Search, observed: Sequence[Pair]) -> Survey:
    """Find the neighbours of all distinct rows, and evaluate some pairs of sets exactly."""
    totals = np.zeros((len(observed), 2))
    stored: list[Lists] = []
    first = FIRST if search.total > SMALL else STORED
    pending, count = np.arange(search.total), first
    while len(pending):
        whole = count >= search.total - 1
        left = []
        step = max(1, EVALUATED_BYTES // (64 * (count + 1)))
        for start in range(0, len(pending), step):
            lists = neighbour_lists(search, pending[start : start + step], count)
            open_share = np.zeros(len(lists.rows))
            for pair in observed:
                open_share = np.maximum(open_share, _both(lists, pair)[1])
            settled = (open_share <= NEGLIGIBLE) | whole
            known = lists.take(np.flatnonzero(settled))
            totals += [_both(known, pair)[0] for pair in observed]
            left.append(lists.rows[~settled])
            if count == STORED:
                stored.append(lists)
            elif count == first:
                stored.append(known)
        pending = np.concatenate(left)
        count = STORED if count < STORED else count * WIDER
    return Survey(
        observed=tuple(
            _sides(total, pair) for total, pair in zip(totals, observed, strict=True)
        ),
        lists=tuple(stored),
        near=tuple(lists.narrow(NEAR) for lists in stored),
    )


def _sides(totals: NDArray[np.float64], pair: Pair) -> Sides:
    return Sides(
        first=float(totals[0] / pair.first.sum()),
        second=float(totals[1] / pair.second.sum()),
    )


def _both(
    lists: Lists, pair: Pair, near: Lists | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of the values of both sets' points, and what is left open for each row."""
    left = np.zeros(len(lists.rows))
    sums = np.zeros(2)
    for side, (own, other) in enumerate(
        ((pair.first, pair.second), (pair.second, pair.first))
    ):
        present = np.flatnonzero(own[lists.rows])
        values, unknown = _values((near or lists).take(present), own, other, pair)
        if near is not None:
            again = np.flatnonzero(unknown > NEGLIGIBLE)
            values[again], unknown[again] = _values(
                lists.take(present[again]), own, other, pair
            )
        sums[side] = values @ own[lists.rows[present]]
        left[present] = np.maximum(left[present], unknown)
    return sums, left


def _values(
    lists: Lists, own: Counts, other: Counts, pair: Pair
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the value of a point at each row, and how much of it the list leaves open."""
    others = int(own.sum()) - 1
    everybody = int(other.sum())
    k = pair.size - 1
    own_chance = none_drawn(others, others if pair.biased else k)
    other_chance = none_drawn(everybody, everybody if pair.biased else k)
    own_met, other_met = _met(lists, own, other)
    x = _along(own[lists.rows] - 1, own_met, own_chance)
    y = _along(other[lists.rows], other_met, other_chance)
    steps = x[:, :-1] - x[:, 1:]
    after = y[:, 1:]
    levels = after if pair.biased else (y[:, :-1] + after) / 2
    left = x[:, -1] * y[:, -1]
    return (steps * levels).sum(axis=1) + left / 2, left


def _met(lists: Lists, own: Counts, other: Counts) -> tuple[Met, Met]:
    """Return how many own and other points lie within each group of neighbours of every row."""
    # Both counts in one number: looking neighbours up is most of the work.
    both = own.astype(np.int64) | (other.astype(np.int64) << HALF)
    met = both.take(lists.neighbours)
    np.cumsum(met, axis=1, out=met)
    met = np.take_along_axis(met, lists.ends.astype(np.intp), axis=1)
    return met & ((1 << HALF) - 1), met >> HALF


def _along(here: Counts, met: Met, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chance that nobody has been drawn: before the first, at the row itself, and after each group of neighbours."""
    rows, groups = met.shape
    reached = np.empty((rows, groups + 2))
    reached[:, 0] = 1.0
    last = len(chance) - 1
    reached[:, 1] = chance.take(np.minimum(here, last))
    chance.take(np.minimum(met + here[:, None], last), out=reached[:, 2:])
    return reached


@lru_cache(maxsize=64)
def none_drawn(total: int, drawn: int) -> NDArray[np.float64]:
    """Return the chances that none of 0, 1, 2, ... given points is among those drawn, until they vanish."""
    chances = [1.0]
    while chances[-1] > VANISHED:
        given = len(chances) - 1
        chances.append(chances[-1] * (total - given - drawn) / (total - given))
    chances[-1] = 0.0
    found = np.array(chances)
    found.flags.writeable = False  # it is cached
    return found
