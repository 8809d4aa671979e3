"""Permute the tags of whole people within their half: one set of permutations for all properties and classifiers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from reticent.attack.blind._people import FOLDS, People

__all__ = ["TESTS", "Differences", "accuracy_of", "permutation_tests"]

Array = NDArray[np.float32]

PERMUTATIONS = 999  # with the observed order 1,000, so p-values are multiples of 0.001
TESTS = (
    1 + FOLDS
)  # of the properties, and of the classifiers in either half; each has a third of the error
CHUNK = 125  # permutations at a time: 40 MB at 80,000 people
ROUNDING = 1e-3  # standard deviations: sums in single precision err by less, and such differences count as ties


@dataclass(frozen=True, kw_only=True)
class Differences:
    """The largest of several differences between the two sides, against its distribution by permutation.

    Parameters
    ----------
    observed : array of float
        Each difference, in its standard deviations under permutation.
    errors : array of float
        These standard deviations.
    largest : array of float
        The largest difference of every permutation.
    two_sided : bool
        Whether a difference counts in either direction.
    """

    observed: NDArray[np.float64]
    errors: NDArray[np.float64]
    largest: NDArray[np.float64]
    two_sided: bool

    @property
    def strongest(self) -> int:
        """The place of the largest difference."""
        return int(np.argmax(self._sized(self.observed)))

    @property
    def p_value(self) -> float:
        """Share of permutations, the observed order among them, whose largest difference is as large (Westfall and Young)."""
        observed = self._sized(self.observed).max()
        as_large = np.count_nonzero(self.largest >= observed - ROUNDING)
        return float((1 + as_large) / (1 + len(self.largest)))

    def critical(self, level: float) -> float:
        """Return the difference, in standard deviations, above which the p-value is at most ``level``."""
        # So many permutations may be as large.
        allowed = int(np.floor(level * (1 + len(self.largest)) + 1e-9)) - 1
        if allowed < 0:
            return float(np.inf)
        return float(np.sort(self.largest)[::-1][allowed] + ROUNDING)

    def _sized(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.abs(values) if self.two_sided else values


def permutation_tests(
    people: People,
    properties: Array,
    scores: Sequence[Array],
    *,
    rng: np.random.Generator,
) -> tuple[Differences, ...]:
    """Return the differences of properties between the sides, and those of scores within either half.

    Neither properties nor the scores in a half depend on the tags in that half. If the two sides are alike, every assignment of its tags to
    its people was equally likely, so that permutations give the exact null distribution of anything computed from them; of a
    largest difference as well, so that choosing among properties or classifiers costs nothing more.

    Parameters
    ----------
    people : People
        Who they are.
    properties : array of float32, shape (n, m)
        Properties that no tag has entered, mean 0.
    scores : sequence of arrays of float32, shape (rows of the half, k)
        For each half, ranks by classifiers that learned from the other half, mean 0.
    rng : numpy.random.Generator
        Stream of the permutations.
    """
    halves = [_Half.of(people, properties, scores[k], k) for k in range(FOLDS)]
    whole = np.sqrt(sum(half.variance(half.properties) for half in halves))
    parts = [np.sqrt(half.variance(half.scores)) for half in halves]
    observed: list[NDArray[np.float64]] = []
    largest: list[list[NDArray[np.float64]]] = [[] for _ in range(TESTS)]
    for inside in _assignments(halves, rng):
        sums = [
            tags @ half.properties for tags, half in zip(inside, halves, strict=True)
        ]
        rows = [tags @ half.rows for tags, half in zip(inside, halves, strict=True)]
        all_sums, all_rows = sums[0] + sums[1], rows[0] + rows[1]
        differences = [_difference(all_sums, all_rows, len(people)) / whole]
        for tags, half, part, chosen in zip(inside, halves, parts, rows, strict=True):
            total = float(half.rows.sum())
            differences.append(_difference(tags @ half.scores, chosen, total) / part)
        if not observed:
            observed = [d[0] for d in differences]
        for test, d in enumerate(differences):
            largest[test].append((np.abs(d) if test == 0 else d).max(axis=1))
    members = [float(half.rows[half.tags].sum()) for half in halves]
    totals = [float(half.rows.sum()) for half in halves]
    # What a sum's standard deviation is in the mean of one side less that of the other.
    scales = [_scale(sum(members), sum(totals))]
    scales += [_scale(m, n) for m, n in zip(members, totals, strict=True)]
    return tuple(
        Differences(
            observed=observed[test] / scales[test],
            errors=error * scales[test],
            largest=np.concatenate(largest[test])[1:] / scales[test],
            two_sided=test == 0,
        )
        for test, error in enumerate([whole, *parts])
    )


def accuracy_of(values: Array, people: People) -> float:
    """Return the LTU accuracy of a property, by ranks; at least one half, because it may point either way."""
    ranks = rankdata(values)
    gap = ranks[people.tags].mean() - ranks[~people.tags].mean()
    return float(0.5 + abs(gap) / len(people))


@dataclass(frozen=True, kw_only=True)
class _Half:
    """The people of one half, with sums over the records of each."""

    tags: NDArray[np.bool_]
    rows: Array
    properties: Array
    scores: Array

    @classmethod
    def of(cls, people: People, properties: Array, scores: Array, k: int) -> "_Half":
        inside = np.flatnonzero(people.fold == k)
        _, unit = np.unique(people.units[inside], return_inverse=True)
        order = np.argsort(unit, kind="stable")
        starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
        return cls(
            tags=people.tags[inside][order][starts],
            rows=np.bincount(unit).astype(np.float32),
            properties=_sums(properties[inside[order]], starts),
            scores=_sums(scores[order], starts),
        )

    def variance(self, sums: Array) -> NDArray[np.float64]:
        """Return the variance of the members' sum under permutation of the tags."""
        people, members = len(self.tags), int(self.tags.sum())
        spread = ((sums - sums.mean(axis=0)) ** 2).sum(axis=0, dtype=np.float64)
        share = members * (people - members) / (people * max(people - 1, 1))
        # Where nothing varies, nothing can differ.
        return np.asarray(np.maximum(spread * share, 1e-12))


def _sums(values: Array, starts: NDArray[np.int64]) -> Array:
    """Return sums over the records of each person, which stand next to one another."""
    return values if len(starts) == len(values) else np.add.reduceat(values, starts)


def _assignments(
    halves: Sequence[_Half], rng: np.random.Generator
) -> Iterator[list[Array]]:
    """Yield blocks of tags for each half, one row per assignment; the first is the observed one."""
    for start in range(0, 1 + PERMUTATIONS, CHUNK):
        count = min(CHUNK, 1 + PERMUTATIONS - start)
        block = []
        for half in halves:
            members = int(half.tags.sum())
            draws = rng.random((count, len(half.tags)), dtype=np.float32)
            tags = np.zeros(draws.shape, dtype=np.float32)
            chosen = np.argpartition(draws, members - 1, axis=1)[:, :members]
            np.put_along_axis(tags, chosen, 1.0, axis=1)
            if start == 0:
                tags[0] = half.tags
            block.append(tags)
        yield block


def _difference(sums: Array, rows: Array, total: float) -> NDArray[np.float64]:
    """Return the members' mean less that of the others, one row per assignment; the values have mean 0."""
    inside = np.asarray(rows, dtype=np.float64)[:, None]
    return np.asarray(sums * _scale(inside, total), dtype=np.float64)


def _scale(members: Any, total: float) -> Any:
    """Return what turns the members' sum into the difference of means, for values with mean 0; of a number or an array."""
    return total / (members * (total - members))
