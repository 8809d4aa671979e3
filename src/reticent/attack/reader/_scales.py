"""Recognise records in an array although their columns were scaled, shifted or rounded."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree

from reticent.attack.reader._columns import (
    SINGLE,
    TENTHS,
    Columns,
    coarseness,
    contained,
)

__all__ = [
    "LEAST_CONTAINED",
    "LEAST_SHAPES",
    "MOST_COLUMNS",
    "SAMPLED",
    "Match",
    "Recognised",
    "rounded_copies",
    "scaled_copies",
]

SAMPLED = 256  # rows of an array from which its columns are recognised
LEAST_CONTAINED = 0.95  # of the sampled values that stand in a column; the rest may be damaged or of others
# Beyond, columns are compared in their own order only, not each with each.
MOST_COLUMNS = 64
EXTREMES = 16  # smallest and largest candidates; the extreme member is among them unless 16 tosses of a coin say no
FIRST_TRIED = (
    16  # values with which scales are tried; the few that fit are tried with more
)
# Different values of a column whose scale can be recognised from its extremes.
LEAST_VALUES = 50
LEAST_ALIGNED = 20  # rows from which the shape of a column's distribution is recognised
LEAST_SHAPES = 3  # columns of a like shape; fewer are found among any numbers
# By how much the tenths of two columns of one law may differ, in parts of the distance from the first to the last: so many over the root of the rows, and so many at most.
LIKE_SHAPE = (3.0, 0.4)
MOST_ALIGNED = 20_000  # records on which the scale is fitted
ROUNDS = 8  # of fitting the scale; it stays as it is after five
ROOM = 1.2  # for what is left of the scale's error


@dataclass(frozen=True, kw_only=True)
class Match:
    """Which columns of an array hold which columns of the records."""

    array_columns: tuple[int, ...]
    record_columns: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """An array's matching columns in the records' scale, and within what two numbers of each are one."""

    match: Match
    rows: NDArray[np.float64]
    tolerance: NDArray[np.float64]


def scaled_copies(matrix: NDArray[np.float64], columns: Columns) -> Recognised | None:
    """Return columns in their own order that are scaled and shifted copies of records, scaled back.

    The smallest and the largest value of an array belong to two of the smallest and largest candidates. Each pair of candidates
    gives a scale and a shift; they are taken if nearly all other values of the array are then values of the column.
    """
    pairs: list[tuple[int, NDArray[np.float64]]] = []
    for j in range(min(matrix.shape[1], columns.width)):
        values, known = np.unique(matrix[:, j]), columns.values(j)
        values = values[np.isfinite(values)]
        if len(values) < LEAST_VALUES or len(known) < LEAST_VALUES:
            continue
        tolerance = columns.tolerance(max(coarseness(values), SINGLE), rows=True)[j]
        back = _scale_of(values, known, float(tolerance))
        if back is None and not pairs:
            return None  # it is no scaled copy, and the other columns need not be tried
        if back is not None:
            pairs.append((j, matrix[:, j] * back[0] + back[1]))
    if len(pairs) < 2:
        return None
    chosen = tuple(j for j, _ in pairs)
    rows = np.column_stack([scaled for _, scaled in pairs])
    precision = max(coarseness(rows), SINGLE)
    return Recognised(
        match=Match(array_columns=chosen, record_columns=chosen),
        rows=rows,
        tolerance=columns.tolerance(precision, rows=True)[list(chosen)],
    )


def _scale_of(
    values: NDArray[np.float64], known: NDArray[np.float64], tolerance: float
) -> tuple[float, float] | None:
    """Return the slope and the shift that lead nearly all sorted values to known ones; None if none of those tried does."""
    low, high = values[0], values[-1]
    smallest, largest = np.meshgrid(known[:EXTREMES], known[-EXTREMES:])
    # Records may also be mirrored, with the largest candidate as the smallest value.
    first = np.concatenate([smallest.ravel(), largest.ravel()])
    last = np.concatenate([largest.ravel(), smallest.ravel()])
    slopes = (last - first) / (high - low)
    shifts = first - slopes * low
    for count in (FIRST_TRIED, SAMPLED):
        sample = values[np.linspace(1, len(values) - 2, count).astype(np.int64)]
        back = sample * slopes[:, None] + shifts[:, None]
        inside = contained(back.ravel(), known, tolerance).reshape(back.shape)
        kept = inside.mean(axis=1) > LEAST_CONTAINED
        slopes, shifts = slopes[kept], shifts[kept]
    return (float(slopes[0]), float(shifts[0])) if len(slopes) else None


def rounded_copies(
    matrix: NDArray[np.float64], sample: NDArray[np.float64], columns: Columns
) -> Recognised | None:
    """Return columns that are records after a change of scale and some rounding, such as numbers of one byte, in the records' scale.

    Columns are recognised by the shape of their distribution. Rows are then laid on the nearest records, and the scale is fitted to those
    (iterated closest points, Besl & McKay 1992). Each number may differ by half a step of its column.
    """
    if (
        len(sample) < LEAST_ALIGNED
        or max(sample.shape[1], columns.width) > MOST_COLUMNS
    ):
        return None
    match, slopes, shifts = _by_shape(matrix[:MOST_ALIGNED], columns)
    if len(match.array_columns) < LEAST_SHAPES:
        return None
    mine, theirs = list(match.array_columns), list(match.record_columns)
    matrix, sample = np.nan_to_num(matrix), np.nan_to_num(sample)
    step = -(-len(columns.matrix) // MOST_ALIGNED)
    scale = columns.deviation[theirs]
    known = np.nan_to_num(columns.matrix[::step, theirs]) / scale
    tree, rows = cKDTree(known), sample[:, mine]
    for _ in range(ROUNDS):
        laid = np.nan_to_num((rows * slopes + shifts) / scale)
        distance, at = tree.query(laid)
        nearest = np.asarray(at, dtype=np.int64)
        close = np.asarray(distance) <= np.median(distance)
        for k in range(len(mine)):
            x, y = rows[close, k], known[nearest[close], k] * scale[k]
            spread = ((x - x.mean()) ** 2).sum()
            if spread > 0:
                slopes[k] = ((x - x.mean()) * (y - y.mean())).sum() / spread
                shifts[k] = y.mean() - slopes[k] * x.mean()
    half_step = np.array(
        [np.diff(np.unique(matrix[:, a])).min(initial=np.inf) / 2 for a in mine]
    )
    tolerance = half_step * np.abs(slopes) * ROOM
    if not (np.isfinite(tolerance) & (tolerance > 0) & (tolerance < scale / 4)).all():
        return None
    return Recognised(
        match=match, rows=matrix[:, mine] * slopes + shifts, tolerance=-tolerance
    )


def _by_shape(
    sample: NDArray[np.float64], columns: Columns
) -> tuple[Match, NDArray[np.float64], NDArray[np.float64]]:
    """Return columns whose distributions have the same shape, and the slope and shift that lead one to the other."""
    a_quantiles = np.quantile(np.nan_to_num(sample), TENTHS, axis=0)
    r_quantiles = columns.tenths
    a_width, r_width = (q[-1] - q[0] for q in (a_quantiles, r_quantiles))
    a_flat, r_flat = (
        (q - q[4]) / np.where(w > 0, w, 1)
        for q, w in ((a_quantiles, a_width), (r_quantiles, r_width))
    )
    cost = np.abs(a_flat[:, :, None] - r_flat[:, None, :]).max(axis=0)
    cost[a_width <= 0] = 1e3
    cost[:, r_width <= 0] = 1e3
    # A column of few values has no shape of its own.
    few = [len(columns.values(j)) < LEAST_VALUES for j in range(columns.width)]
    cost[:, few] = 1e3
    # Of columns of like shape, those in their own places.
    order = np.abs(np.arange(len(cost))[:, None] - np.arange(cost.shape[1]))
    rows, chosen = linear_sum_assignment(cost + 0.01 * order)
    kept = cost[rows, chosen] < min(LIKE_SHAPE[1], LIKE_SHAPE[0] / len(sample) ** 0.5)
    rows, chosen = rows[kept], chosen[kept]
    slopes = r_width[chosen] / a_width[rows]
    shifts = r_quantiles[4, chosen] - slopes * a_quantiles[4, rows]
    match = Match(
        array_columns=tuple(int(a) for a in rows),
        record_columns=tuple(int(j) for j in chosen),
    )
    return match, slopes, shifts
