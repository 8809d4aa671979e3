"""Read decision trees: whose values lie beside a threshold, who would lie between, and how many records a leaf has room for.

CART puts a threshold halfway between two neighbouring values of its records, :math:`t = (x_a + x_b) / 2`. So among the records that reach
a node, two with :math:`x_a + x_b = 2t` were very likely in it, and one strictly between them was not. A leaf says how many records of
which class it holds; if as many candidates end there as it holds, all of them are members.

A threshold that was moved at random inside its gap (:func:`reticent.product.clean_product`) is no midpoint any more. Yet no member lies between it and the ends of
that gap, while other people do. So how far records lie from the thresholds that they meet still tells something.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.attack._searched import Cell, TreeEvidence
from reticent.attack.reader._levels import Level, Ordered, begins, ranges
from reticent.product import OpenedFile, Stage
from reticent.product.contents import Tree

__all__ = ["Distances", "Seen", "tree_evidence", "walk"]

# Part of the largest value by which a sum may differ from twice the threshold.
EXACT = 1e-9
ROUNDED = 2.0**-22  # the same if the threshold is kept in single precision
# Levels; nobody trains deeper trees, and a crafted one must not take forever.
DEEPEST = 400
# Records times trees; beyond, trees at even distances are read.
MOST_VISITS = 30_000_000
# Records times trees that walk at once: with 39,000 records, two trees of a forest took 0.92 of the time of one, four 0.95, eight 1.02.
AT_ONCE = 80_000
SAMPLED = 64  # thresholds by which the stage that a tree sees is recognised
BINS = 10
LEAST_GAIN = 0.999  # of a record that alone has the value beside a threshold
# A leaf's mean is a record's own target if they differ by less than this part of the targets' spread.
SAME_TARGET = 1e-7
# Logarithms of distances, in standard deviations of the column: nothing is nearer than the first, and without a threshold it is the second.
CLOSE, FAR = 1e-9, 2.0


def tree_evidence(file: OpenedFile) -> list[TreeEvidence]:
    """Return what the trees of a file say about each record, one entry per place.

    Parameters
    ----------
    file : OpenedFile
        The file laid beside the records.
    """
    places: defaultdict[str, list[Tree]] = defaultdict(list)
    for tree in file.contents.trees:
        if tree.width:
            places[tree.place].append(tree)
    evidence = []
    for place, trees in places.items():
        most = max(1, MOST_VISITS // max(len(file), 1))
        chosen = trees
        if len(trees) > most:
            at = np.linspace(0, len(trees) - 1, most).astype(np.int64)
            chosen = [trees[k] for k in at]
        stage = _stage_of(chosen, file.stages)
        if stage is not None:
            evidence.append(_evidence(place, chosen, stage, file))
    return evidence


def _evidence(
    place: str, trees: list[Tree], stage: Stage, file: OpenedFile
) -> TreeEvidence:
    n = len(file)
    pair, largest, gap, room, match = (np.zeros(n) for _ in range(5))
    least_room = np.ones(n)
    distances = Distances(n)
    # Trees of one place are of one library, and so of one precision.
    seen = Seen.of(stage.matrix, single=trees[0].single, strict=trees[0].strict)
    for some in _some_at_once(trees, n):
        walked = walk(some, seen, distances)
        pair += walked.gains.sum(axis=0)
        largest = np.maximum(largest, walked.gains.max(axis=0))
        gap += (walked.gaps > 0).sum(axis=0)
        for tree, node in zip(some, walked.node, strict=True):
            rooms, matches = _leaves(tree, node, file)
            room += rooms
            least_room = np.minimum(least_room, rooms)
            match += matches
    count = len(trees)
    inputs = np.column_stack(
        [
            *(pair / count, largest, gap / count, room / count, least_room),
            *(match / count, *distances.summary()),
        ]
    )
    found = (largest >= LEAST_GAIN) | (match > 0)
    cells = []
    for column in inputs.T:
        borders = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1]))
        categories = np.searchsorted(borders, column, side="right").astype(np.uint8)
        cells.append(
            Cell(
                kind="trees",
                place=place,
                stage=stage.name,
                categories=categories,
                found=found,
            )
        )
    return TreeEvidence(place=place, inputs=inputs, cells=tuple(cells))


def _some_at_once(trees: list[Tree], n: int) -> Iterator[list[Tree]]:
    """Yield trees in their order, as many at once as may be walked together; one with sets of categories walks alone."""
    most = max(1, AT_ONCE // max(n, 1))
    for has_sets, some in groupby(trees, key=lambda tree: tree.categories is not None):
        alike = list(some)
        size = 1 if has_sets else most
        yield from (alike[at : at + size] for at in range(0, len(alike), size))


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Records as trees compare them.

    Parameters
    ----------
    matrix : array of float, shape (n, d)
        The records.
    unit : array of float, shape (d,)
        Distance of the points of each column's grid: numbers closer than that are one.
    """

    matrix: NDArray[np.float64]
    unit: NDArray[np.float64]

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """Standard deviation of each column without its missing values, or 1."""
        finite = np.where(np.isfinite(self.matrix), self.matrix, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns without values
            spread = np.nanstd(finite, axis=0)
        return np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)

    @cached_property
    def coded(self) -> "_Coded":
        """The records by the different values of each column."""
        n, width = self.matrix.shape
        codes = np.empty((width, n), dtype=np.min_scalar_type(n))
        values, ranks = [], []
        for j, column in enumerate(self.matrix.T):
            different, codes[j] = np.unique(column, return_inverse=True)
            # Sorted, so that those on one point of the grid stand together; a missing value comes last, and its rank means nothing.
            point = np.rint(different / self.unit[j])
            ranks.append(np.cumsum(begins(point)) - 1)
            values.append(different)
        sizes = [len(different) for different in values]
        return _Coded(
            codes=codes.ravel(),
            starts=np.cumsum([0, *sizes[:-1]]),
            values=np.concatenate([np.empty(0), *values]),
            ranks=np.concatenate([np.empty(0, dtype=np.int64), *ranks]),
        )

    @cached_property
    def is_finite(self) -> bool:
        """Whether no value is missing or infinite."""
        return bool(np.isfinite(self.matrix).all())

    @classmethod
    def of(cls, matrix: NDArray[np.float64], *, single: bool, strict: bool) -> "Seen":
        matrix = _rounded(matrix, single=single)
        unit = _largest(matrix) * (ROUNDED if strict else EXACT)
        # Column by column in memory: records of a node are asked for the same one.
        return cls(matrix=np.asfortranarray(matrix), unit=unit)


@dataclass(frozen=True, kw_only=True)
class _Coded:
    """Records as numbers of a few bytes, one column after the other, which are looked up in less time than the values themselves.

    Parameters
    ----------
    codes : array of int, shape (d * n,)
        Place of each value among the different ones of its column.
    starts : array of int, shape (d,)
        Where those of each column begin in the arrays below.
    values : array of float
        The different values of each column, one column after the other.
    ranks : array of int
        Place of each of them among the different points of its column's grid.
    """

    codes: NDArray[np.unsignedinteger[Any]]
    starts: NDArray[np.int64]
    values: NDArray[np.float64]
    ranks: NDArray[np.int64]


def _rounded(matrix: NDArray[np.float64], *, single: bool) -> NDArray[np.float64]:
    if not single:
        return matrix
    with np.errstate(over="ignore"):
        return matrix.astype(np.float32).astype(np.float64)


def _largest(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    finite = np.where(np.isfinite(matrix), np.abs(matrix), 0.0)
    largest = finite.max(axis=0, initial=0.0)
    return np.where(largest > 0, largest, 1.0)


def _stage_of(trees: list[Tree], stages: tuple[Stage, ...]) -> Stage | None:
    """Return the stage whose columns the trees compare: most thresholds lie halfway between two of its values.

    Where thresholds are no midpoints, they lie at least in the range of the column; of equals, the last stage is what the last estimator
    of a pipeline sees.
    """
    features = np.concatenate([t.features for t in trees])
    thresholds = np.concatenate([t.thresholds for t in trees])
    inner = np.flatnonzero((features >= 0) & np.isfinite(thresholds))
    width = max(tree.width for tree in trees)
    if not len(inner):
        return None
    sample = inner[np.linspace(0, len(inner) - 1, SAMPLED).astype(np.int64)]
    best: tuple[int, int, int] | None = None
    tolerance = ROUNDED if trees[0].strict else EXACT
    for at, stage in enumerate(stages):
        if stage.matrix.shape[1] < width:
            continue
        matrix = _rounded(stage.matrix, single=trees[0].single)
        width_of_one = _largest(matrix) * tolerance
        hits = inside = 0
        for j, t in zip(features[sample], thresholds[sample], strict=True):
            values = matrix[:, j]
            values = np.sort(values[np.isfinite(values)])
            if len(values) and values[0] <= t <= values[-1]:
                inside += 1
                middle = np.searchsorted(values, t, side="right")
                partners = 2 * t - values[:middle]
                found = np.searchsorted(values, partners).clip(0, len(values) - 1)
                before = np.maximum(found - 1, 0)
                apart = np.minimum(
                    np.abs(values[found] - partners), np.abs(values[before] - partners)
                )
                # Values at the threshold itself are their own partners, and prove nothing.
                proper = partners > t + width_of_one[j]
                hits += bool((apart[proper] <= width_of_one[j]).any())
        key = (hits, inside, at)
        best = key if best is None or key > best else best
    return None if best is None else stages[best[2]]


class Distances:
    """How far records lie from the thresholds that they meet, summed up over trees.

    Parameters
    ----------
    n : int
        Number of records.
    """

    def __init__(self, n: int) -> None:
        self.trees = 0
        self.nearest, self.squares, self.mean = (np.zeros(n) for _ in range(3))
        self.times, self.off = np.zeros(n), np.zeros(n)

    def add(self, met: "_Met", beside: "_Beside", trees: int) -> None:
        """Add what the records met in some trees."""
        self.trees += trees
        least = met.least.reshape(trees, -1)
        self.nearest += least.sum(axis=0)
        self.squares += (least**2).sum(axis=0)
        self.mean += (met.total / np.maximum(met.times, 1)).reshape(trees, -1).sum(axis=0)  # fmt: skip
        self.times += beside.times.reshape(trees, -1).sum(axis=0)
        self.off += beside.off.reshape(trees, -1).sum(axis=0)

    def summary(self) -> tuple[NDArray[np.float64], ...]:
        """Return five numbers per record."""
        trees = max(self.trees, 1)
        nearest = self.nearest / trees
        spread = np.sqrt(np.maximum(self.squares / trees - nearest**2, 0.0))
        off = self.off / np.maximum(self.times, 1)
        return nearest, spread, self.mean / trees, self.times / trees, off


class _Beside:
    """How often each traveller lay next to a threshold, and how far those thresholds were off the middle.

    Parameters
    ----------
    travellers : int
        Records times trees.
    """

    def __init__(self, travellers: int) -> None:
        self.times, self.off = np.zeros(travellers), np.zeros(travellers)

    def add(self, level: Level, ordered: Ordered, ids: NDArray[np.int64]) -> None:
        """Add the last value below each threshold of one depth and the first above it, where there are both."""
        below = ordered.below()
        a, b = (level.x.take(ordered.record(k)) for k in (below, below + 1))
        t = level.t.take(ordered.record(below))
        off = np.abs((t - a) / (b - a) - 0.5)
        # Both sides stand together, and nobody is on both.
        counts = ordered.counts.take(below) + ordered.counts.take(below + 1)
        both = ranges(ordered.starts.take(below), counts)
        beside = ids.take(ordered.order.take(both))
        self.times[beside] += 1
        self.off[beside] += np.repeat(off, counts)


class _Met:
    """What travellers met on their way: the node where each is, its gains and gaps, and its distances from thresholds.

    Parameters
    ----------
    node : array of int
        Where each begins.
    """

    def __init__(self, node: NDArray[np.int64]) -> None:
        n = len(node)
        self.node = node
        self.gains, self.gaps = np.zeros(n), np.zeros(n)
        self.least, self.total = np.full(n, FAR), np.zeros(n)
        self.times = np.zeros(n, dtype=np.int64)


class _Travellers(_Met):
    """Records on their way down trees, one traveller for every record and tree. Arrays hold only those that go on: most of the time of a walk is spent on looking up single records.

    Parameters
    ----------
    node : array of int
        The root of each.
    """

    def __init__(self, node: NDArray[np.int64]) -> None:
        super().__init__(node)
        self.ids, self.arrived = np.arange(len(node)), _Met(node.copy())

    def leave_behind(self, goes_on: NDArray[np.bool_]) -> None:
        """Put down what those have met who have arrived."""
        if goes_on.all():
            return
        # Positions and not masks, by which numpy looks up several times as fast.
        on, off = np.flatnonzero(goes_on), np.flatnonzero(~goes_on)
        at = self.ids.take(off)
        for name, put_down in vars(self.arrived).items():
            values = getattr(self, name)
            put_down[at] = values.take(off)
            setattr(self, name, values.take(on))
        self.ids = self.ids.take(on)

    def meet(self, level: Level, spread: NDArray[np.float64]) -> None:
        """Add how far each lies from the threshold of its node."""
        apart = np.abs(level.x - level.t)
        apart /= spread
        apart += CLOSE
        if level.known is None:
            log = np.log(apart, out=apart)
            np.minimum(self.least, log, out=self.least)
            self.total += log
            self.times += 1
        else:
            known, log = level.known, np.log(apart[level.known])
            self.least[known] = np.minimum(self.least[known], log)
            self.total[known] += log
            self.times[known] += 1


@dataclass(frozen=True, kw_only=True)
class Walked:
    """What came of a walk, with one row per tree and one column per record.

    Parameters
    ----------
    gains : array of float
        What each record gains from pairs.
    gaps : array of float
        In how many gaps it lies.
    node : array of int
        Where it ends.
    """

    gains: NDArray[np.float64]
    gaps: NDArray[np.float64]
    node: NDArray[np.int64]


def walk(
    trees: Sequence[Tree], seen: Seen, distances: Distances | None = None
) -> Walked:
    """Lead all records down some trees of one kind; all nodes of one depth are handled at once, of all of the trees.

    Parameters
    ----------
    trees : sequence of Tree
        One tree, or several without sets of categories.
    seen : Seen
        The records.
    distances : Distances, optional
        What is added to.
    """
    n, first = len(seen.matrix), trees[0]
    sizes = [len(tree.left) for tree in trees]
    roots = np.cumsum([0, *sizes[:-1]])
    columns = np.concatenate([tree.columns for tree in trees])
    # The left child of node k stands at 2k, and the right one after it.
    children = np.concatenate(
        [
            np.column_stack([tree.left, tree.right]).ravel() + root
            for tree, root in zip(trees, roots, strict=True)
        ]
    )
    is_inner = np.concatenate([tree.left >= 0 for tree in trees]) & (columns >= 0)
    thresholds = np.concatenate([tree.thresholds for tree in trees])
    missing_left = np.concatenate([tree.missing_left for tree in trees])
    sets = first.categories if len(trees) == 1 else None
    if sets is not None:
        # A set of categories has no threshold beside which anybody could lie.
        thresholds = np.where(sets.columns >= 0, np.nan, thresholds)
    all_known = seen.is_finite and bool(np.isfinite(thresholds[is_inner]).all())
    # Of each node: where its column begins in the records laid column by column, and what numbers in it are compared by. Travellers of the second tree are numbered
    # from n on, those of the third from 2n on.
    starts = n * (columns - np.repeat(np.arange(len(trees)), sizes))
    units, spreads = seen.unit[columns], seen.spread[columns]
    coded = seen.coded
    firsts = coded.starts[columns]
    travellers, beside = _Travellers(np.repeat(roots, n)), _Beside(n * len(trees))
    for _ in range(DEEPEST):
        travellers.leave_behind(is_inner.take(travellers.node))
        ids, here = travellers.ids, travellers.node
        if not len(ids):
            break
        value = firsts.take(here) + coded.codes.take(starts.take(here) + ids)
        x, t = coded.values.take(value), thresholds.take(here)
        goes_left = (x < t) if first.strict else (x <= t)
        known = None
        if not all_known:
            known = np.flatnonzero(np.isfinite(x) & np.isfinite(t))
            if sets is not None:
                is_set = sets.columns[here] >= 0
                goes_left = np.where(is_set, sets.goes_left(here, x), goes_left)
            missing = np.isnan(x)
            if missing.any():
                goes_left = np.where(missing, missing_left[here], goes_left)
        level = Level(
            node=here,
            unit=units.take(here),
            x=x,
            rank=coded.ranks.take(value),
            t=t,
            left=goes_left,
            known=known,
        )
        ordered = level.ordered()
        if distances is not None:
            travellers.meet(level, spreads.take(here))
            beside.add(level, ordered, ids)
        gain, gap = ordered.pairs(level)
        travellers.gains += gain
        travellers.gaps += gap
        travellers.node = children.take(2 * here + ~goes_left)
    travellers.leave_behind(np.zeros(len(travellers.ids), dtype=bool))
    arrived, shape = travellers.arrived, (len(trees), n)
    if distances is not None:
        distances.add(arrived, beside, len(trees))
    return Walked(
        gains=arrived.gains.reshape(shape),
        gaps=arrived.gaps.reshape(shape),
        node=arrived.node.reshape(shape) - roots[:, None],
    )


def _leaves(
    tree: Tree, node: NDArray[np.int64], file: OpenedFile
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of the candidates in each record's leaf that it has room for, and whether it answers the record's target."""
    leaf = tree.left[node] < 0
    match = np.zeros(len(node))
    if not file.classes:
        spread = float(file.target.std()) or 1.0
        same = np.abs(tree.values[node, 0] - file.target) <= SAME_TARGET * spread
        match = (same & leaf).astype(np.float64)
    counts = tree.counts[node]
    known = leaf & np.isfinite(counts)
    room = np.ones(len(node))
    group, held = node, counts
    classes = tree.values.shape[1]
    if tree.shares and file.classes == classes:
        label = file.target.astype(np.int64)
        group = node * classes + label
        held = counts * tree.values[node, label]
    candidates = np.bincount(group[known], minlength=int(group.max(initial=0)) + 1)
    room[known] = np.minimum(1.0, held[known] / candidates[group[known]])
    return room, match
