r"""Fidelity of a synthetic table: marginals, correlations, rare categories and coverage, each beside what sampling alone gives.

A histogram of m fresh rows differs from that of n others although nothing is wrong: by

.. math:: E[TV] \approx \frac12 \sum_k \sqrt{\tfrac{2}{\pi}\, p_k (1 - p_k) (1/n + 1/m)}

in total variation, with the shares p of both together. That number stands beside every distance here.

References
----------
.. [1] Zou, "Toward using confidence intervals to compare correlations", Psychological Methods 12, 2007.
.. [2] Naeem et al., "Reliable fidelity and diversity metrics for generative models", arXiv:2002.09797 (coverage).
"""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from reticent._check import in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._distances import nearest_rows
from reticent.evidence._estimate import Estimate, split_level
from reticent.evidence._resampling import require_rows
from reticent.evidence.columns import Columns
from reticent.evidence.disclosure import Success, compare_success

__all__ = [
    "Correlations",
    "Coverage",
    "Marginals",
    "RareCategories",
    "compare_correlations",
    "compare_marginals",
    "count_rare_categories",
    "cover_rows",
]

BINS = 10  # of a numeric column, with equally many real rows each
NEIGHBOURS = (
    5  # whose distance is the radius within which a row counts as covered, as in [2]_
)
MOST_COVERED = (
    2000  # real rows that are looked at for coverage: an error of 1 % at most
)
RARE = 0.05  # share of rows below which a category is called rare


@dataclass(frozen=True, kw_only=True)
class Marginals:
    """Total variation between the histograms of two tables, for each column and each pair of columns.

    Parameters
    ----------
    one : tuple of Estimate
        For each column, numeric ones first. The low end is free of what sampling adds.
    one_by_chance : tuple of float
        What sampling alone would give.
    mean_one, mean_two : Estimate
        Means over columns and over pairs of columns.
    mean_one_by_chance, mean_two_by_chance : float
        What sampling alone would give.
    """

    one: tuple[Estimate, ...]
    one_by_chance: tuple[float, ...]
    mean_one: Estimate
    mean_one_by_chance: float
    mean_two: Estimate | None
    mean_two_by_chance: float


@dataclass(frozen=True, kw_only=True)
class Correlations:
    """Differences between the rank correlations of numeric columns in two tables.

    Parameters
    ----------
    mean : float
        Mean absolute difference over pairs of columns.
    mean_by_chance : float
        What sampling alone would give.
    largest : Estimate
        The largest difference, synthetic minus real; the interval pays for the choice.
    pair : tuple of int
        The two columns it belongs to.
    """

    mean: float
    mean_by_chance: float
    largest: Estimate
    pair: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class RareCategories:
    """How many rare categories a synthetic table has. Counts only: a category of few people is never named.

    Parameters
    ----------
    rare : int
        Categories with a share below 5 % that at least the smallest group of real rows has.
    missing : int
        Those of them that the synthetic table lacks.
    missing_by_chance : float
        How many a fresh sample of the same size would lack on average.
    below : int
        Categories that fewer real rows have than the smallest group.
    emitted : int
        Those of them that the synthetic table has: each may point at somebody.
    new : int
        Categories of the synthetic table that no real row has.
    """

    rare: int
    missing: int
    missing_by_chance: float
    below: int
    emitted: int
    new: int


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Share of real rows with a synthetic row in their neighbourhood; mode collapse leaves rows uncovered.

    Parameters
    ----------
    synthetic, real : Estimate
        Share of test rows that have a synthetic row, and another real row of equally many, within the distance of their fifth neighbour.
    lost : Estimate
        Real minus synthetic: 0 if nothing has collapsed.
    """

    synthetic: Estimate
    real: Estimate
    lost: Estimate


def compare_marginals(real: Columns, synthetic: Columns, *, level: float) -> Marginals:
    """Return the total variation between two tables, column by column and in pairs.

    Numbers are put into ten bins with equally many real rows each; a missing number is a bin of its own. With the signs of the differences held
    fixed, the distance is a difference of two means, which gives its standard error; the low end is also lowered by what sampling adds.

    Parameters
    ----------
    real, synthetic : Columns
        Independent rows, coded alike.
    level : float
        Confidence of each interval, in (0, 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def rows(shift):
    ...     return Columns(numbers=rng.normal(shift, 1, (1000, 2)), codes=rng.integers(0, 2, (1000, 1)), ranges=[[-5, 5]] * 2)
    >>> found = compare_marginals(rows(0), rows(1), level=0.95)
    >>> [estimate.low > 0 for estimate in found.one]
    [True, True, False]
    """
    in_open_unit(level, "level")
    require_rows({"real": real, "synthetic": synthetic})
    cells = _cells(real, synthetic)
    n = len(real)
    one = [_variation(c[:n], c[n:], level) for c in cells]
    two = []
    for a, b in combinations(cells, 2):
        both = a * (int(b.max()) + 1) + b
        two.append(_variation(both[:n], both[n:], level))
    return Marginals(
        one=tuple(estimate for estimate, _ in one),
        one_by_chance=tuple(chance for _, chance in one),
        mean_one=_mean([estimate for estimate, _ in one]),
        mean_one_by_chance=float(np.mean([chance for _, chance in one])),
        mean_two=_mean([estimate for estimate, _ in two]) if two else None,
        mean_two_by_chance=float(np.mean([c for _, c in two])) if two else 0.0,
    )


def compare_correlations(
    real: Columns, synthetic: Columns, *, level: float
) -> Correlations | None:
    """Return how far rank correlations of numeric columns differ; None if there are fewer than two such columns.

    The interval of each difference follows from those of Fisher's transformation of both correlations [1]_.

    Parameters
    ----------
    real, synthetic : Columns
        Independent rows, at least four, coded alike. A missing number is replaced by the middle of its range.
    level : float
        Confidence, in (0, 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def rows(points):
    ...     return Columns(numbers=points, codes=np.empty((len(points), 0)), ranges=[[-5, 5]] * 2)
    >>> a, b = rng.normal(size=(2, 500))
    >>> tied, apart = rows(np.column_stack([a, a + b])), rows(np.column_stack([a, b]))
    >>> compare_correlations(tied, apart, level=0.95).largest.high < -0.5
    True
    """
    in_open_unit(level, "level")
    if min(len(real), len(synthetic)) < 4:
        raise InvalidInput(
            f"a correlation needs at least four rows, got {len(real)} and {len(synthetic)}."
        )
    columns = real.numbers.shape[1]
    if columns < 2:
        return None
    (r, r_ends), (s, s_ends) = (
        _correlations(c, split_level(level, columns * (columns - 1) // 2))
        for c in (real, synthetic)
    )
    upper = np.triu_indices(columns, 1)
    gap = (s - r)[upper]
    place = int(np.abs(gap).argmax())
    i, j = int(upper[0][place]), int(upper[1][place])
    value = float(gap[place])
    low = value - math.hypot(s[i, j] - s_ends[0][i, j], r_ends[1][i, j] - r[i, j])
    high = value + math.hypot(s_ends[1][i, j] - s[i, j], r[i, j] - r_ends[0][i, j])
    pooled = ((r + s) / 2)[upper]
    noise = (1 - pooled**2) * math.sqrt(1 / (len(real) - 3) + 1 / (len(synthetic) - 3))
    return Correlations(
        mean=float(np.abs(gap).mean()),
        mean_by_chance=float((math.sqrt(2 / math.pi) * noise).mean()),
        largest=Estimate(
            value=value,
            low=max(-2.0, low),
            high=min(2.0, high),
            level=level,
            method=f"Zou, Fisher's z, joint over {len(gap)} pairs",
        ),
        pair=(i, j),
    )


def count_rare_categories(
    real: Columns, synthetic: Columns, *, smallest: int
) -> RareCategories:
    """Return how many rare categories are missing, and how many of very few people are emitted.

    Parameters
    ----------
    real, synthetic : Columns
        Rows coded alike.
    smallest : int
        Number of real rows from which a category may be spoken of.

    Examples
    --------
    >>> def rows(codes):
    ...     return Columns(numbers=np.empty((len(codes), 0)), codes=np.array(codes)[:, None], ranges=[])
    >>> found = count_rare_categories(rows([0] * 970 + [1] * 28 + [2] * 2), rows([0] * 999 + [2]), smallest=20)
    >>> found.rare, found.missing, found.below, found.emitted
    (1, 1, 1, 1)
    """
    rare = missing = below = emitted = new = 0
    by_chance = 0.0
    for ours, theirs in zip(real.codes.T, synthetic.codes.T, strict=True):
        values, counts = np.unique(ours, return_counts=True)
        has = np.isin(values, theirs)
        few, share = counts < smallest, counts / len(ours)
        uncommon = ~few & (share < RARE)
        rare += int(uncommon.sum())
        missing += int((uncommon & ~has).sum())
        by_chance += float(((1 - share[uncommon]) ** len(theirs)).sum())
        below += int(few.sum())
        emitted += int((few & has).sum())
        new += int((~np.isin(np.unique(theirs), values)).sum())
    return RareCategories(
        rare=rare,
        missing=missing,
        missing_by_chance=by_chance,
        below=below,
        emitted=emitted,
        new=new,
    )


def cover_rows(
    test: Columns,
    train: Columns,
    synthetic: Columns,
    *,
    level: float,
    rng: np.random.Generator,
) -> Coverage:
    """Return the share of real rows that have a synthetic row in their neighbourhood, beside real rows in its place.

    Parameters
    ----------
    test : Columns
        Real rows that the generator has not seen; up to 2,000 are looked at.
    train, synthetic : Columns
        The rows it has seen, and those it made; both are reduced to equal size.
    level : float
        Confidence of each interval, in (0, 1).
    rng : numpy.random.Generator
        Draws the subsamples.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def rows(points):
    ...     return Columns(numbers=points, codes=np.empty((len(points), 0)), ranges=[[-4, 4]] * 2)
    >>> test, train = rng.normal(size=(2, 300, 2))
    >>> collapsed = cover_rows(rows(test), rows(train), rows(train / 3), level=0.95, rng=rng)
    >>> collapsed.real.value > 0.9, collapsed.lost.low > 0.3
    (True, True)
    """
    in_open_unit(level, "level")
    require_rows({"test": test, "training": train, "synthetic": synthetic})
    if len(test) <= NEIGHBOURS:
        raise InvalidInput(
            f"{len(test)} test rows have no {NEIGHBOURS} neighbours each; pass more test rows."
        )
    asked = test.take(rng.permutation(len(test))[:MOST_COVERED])
    size = min(len(asked), len(train), len(synthetic))
    # The row itself is the nearest, or one identical to it.
    own = nearest_rows(asked, asked, NEIGHBOURS + 1, distance="euclid", rng=rng)[:, -1]
    radius = _gaps(asked, asked.take(own))
    covered = []
    for table in (train, synthetic):
        some = table.take(rng.permutation(len(table))[:size])
        near = nearest_rows(asked, some, 1, distance="euclid", rng=rng)[:, 0]
        covered.append(
            (_gaps(asked, some.take(near)) <= radius + 1e-9).astype(np.float64)
        )
    found = compare_success(
        Success(attack=covered[0], baseline=covered[1]),
        Success(attack=covered[1], baseline=covered[1]),
        level=level,
        rng=rng,
    )
    return Coverage(
        synthetic=found.nonmembers, real=found.members, lost=found.over_baseline
    )


def _gaps(a: Columns, b: Columns) -> NDArray[np.float64]:
    """Return the Euclidean distance of each row to its counterpart."""
    both = Columns.stack([a, b])
    numbers, codes = both.scaled, both.categories
    n = len(a)
    squared = ((numbers[:n] - numbers[n:]) ** 2).sum(axis=1)
    return np.asarray(np.sqrt(squared + (codes[:n] != codes[n:]).sum(axis=1)))


def _cells(real: Columns, synthetic: Columns) -> list[NDArray[np.int64]]:
    """Return the cell of each row, real ones first, in each column."""
    both = Columns.stack([real, synthetic])
    found = []
    for ours, column in zip(real.numbers.T, both.numbers.T, strict=True):
        present = ours[~np.isnan(ours)]
        edges = (
            np.unique(np.quantile(present, np.arange(1, BINS) / BINS, method="lower"))
            if len(present)
            else np.empty(0)
        )
        cells = np.searchsorted(edges, column, side="left")
        found.append(np.where(np.isnan(column), len(edges) + 1, cells))
    found += [np.unique(column, return_inverse=True)[1] for column in both.codes.T]
    return [np.asarray(cells, dtype=np.int64).ravel() for cells in found]


def _variation(
    ours: NDArray[np.int64], theirs: NDArray[np.int64], level: float
) -> tuple[Estimate, float]:
    """Return the total variation between two histograms, and what sampling alone would give."""
    total = int(max(ours.max(), theirs.max())) + 1
    a, b = np.bincount(ours, minlength=total), np.bincount(theirs, minlength=total)
    n, m = len(ours), len(theirs)
    p, q = a / n, b / m
    pooled = (a + b) / (n + m)
    value = float(np.abs(p - q).sum() / 2)
    chance = float(
        np.sqrt(2 / np.pi * pooled * (1 - pooled) * (1 / n + 1 / m)).sum() / 2
    )
    sign = np.sign(p - q)
    spread = math.sqrt(
        (1 - float(sign @ p) ** 2) / (4 * n) + (1 - float(sign @ q) ** 2) / (4 * m)
    )
    reach = float(ndtri(1 - (1 - level) / 2)) * spread
    return (
        Estimate(
            value=min(value, 1.0),
            low=max(0.0, value - chance - reach),
            high=min(1.0, value + reach),
            level=level,
            method="plug-in; low end without what sampling adds",
        ),
        min(chance, 1.0),
    )


def _mean(estimates: list[Estimate]) -> Estimate:
    """Return the mean of several; its interval is the mean of theirs, as wide as if they erred together."""
    return Estimate(
        value=float(np.mean([e.value for e in estimates])),
        low=float(np.mean([e.low for e in estimates])),
        high=float(np.mean([e.high for e in estimates])),
        level=estimates[0].level,
        method=f"mean of {len(estimates)} intervals",
    )


def _correlations(
    columns: Columns, level: float
) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return rank correlations and the limits of each; a constant column has correlation 0."""
    ranks = rankdata(columns.scaled, axis=0)
    ranks -= ranks.mean(axis=0)
    norms = np.sqrt((ranks**2).sum(axis=0))
    unit = ranks / np.where(norms > 0, norms, 1.0)
    r = np.clip(unit.T @ unit, -1.0, 1.0)
    z = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
    # The variance of a rank correlation's transform (Fieller, Hartley and Pearson 1957).
    half = float(ndtri(1 - (1 - level) / 2)) * math.sqrt(1.06 / (len(ranks) - 3))
    return r, (np.minimum(r, np.tanh(z - half)), np.maximum(r, np.tanh(z + half)))
