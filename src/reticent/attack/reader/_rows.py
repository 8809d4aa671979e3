"""Find whole records in the arrays of a file: as they are, in another order, scaled, or nearly."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import pairwise_distances_argmin_min

from reticent.attack._searched import Cell
from reticent.attack.reader._columns import (
    SINGLE,
    Columns,
    coarseness,
    contained,
    row_hashes,
)
from reticent.product import OpenedFile
from reticent.product.contents import NamedArray
from reticent.run import one_thread

__all__ = ["equal_rows", "row_cells"]

LEAST_ROWS = 5  # fewer are a summary; that of a single person is found by its values
SAMPLED = 256  # rows of an array from which its columns are recognised
LEAST_CONTAINED = 0.95  # of the sampled values that stand in a column; the rest may be damaged or of others
# Beyond, columns are compared in their own order only, not each with each.
MOST_COLUMNS = 64
TRIED_FIRST = 3  # columns of an array, those with most values; if none is recognised, it holds no records
EXTREMES = 16  # smallest and largest candidates; the extreme member is among them unless 16 tosses of a coin say no
FIRST_TRIED = (
    16  # values with which scales are tried; the few that fit are tried with more
)
# Different values of a column whose scale can be recognised from its extremes.
LEAST_VALUES = 50
# Shifts of the grid; an error below a sixth of a cell crosses a border in one of them at most.
PHASES = (0.0, 1 / 3, 2 / 3)
# Borders of categories: copies of a row in the array, for each record that looks like it. Below 1, some of the records that
# look alike are not there; above 1, several bags or trees hold it.
COPIES = (1e-9, 0.4, 0.7, 0.999, 1.5, 3.5)
MOST_DISTANCES = 200_000_000  # between rows and records, about two seconds
BINS = 12  # of the distance to the nearest row
# Standard deviations from the centre; nothing that is like a record lies there.
FARTHEST = 1e6
ALIKE = 3.0  # factor by which the spread of an array's columns may differ from the records' if its rows are like records
MOST_BESIDE = 3  # columns that an object keeps beside its rows
# What trees say of each node. It is no record, and a forest has thousands of such arrays; single values are looked for in them all the same.
NODE_FIELDS = (
    *("feature", "impurity", "left_child", "right_child", "n_node_samples"),
    *("weighted_n_node_samples", "missing_go_to_left"),
    *("bin_threshold", "bitset_idx", "count", "depth", "feature_idx", "gain"),
    *("is_categorical", "is_leaf", "left", "right", "value"),
    *("base_weights", "default_left", "loss_changes", "parents", "split_type"),
    "sum_hessian",
)
MOST_PARTS = 64  # arrays of one place that are looked at one by one


@dataclass(frozen=True, kw_only=True)
class _Match:
    """Which columns of an array hold which columns of the records."""

    array_columns: tuple[int, ...]
    record_columns: tuple[int, ...]


def row_cells(file: OpenedFile) -> tuple[list[Cell], frozenset[str]]:
    """Return one cell for every place and stage at which rows are found, and the places that hold nothing but rows.

    Parameters
    ----------
    file : OpenedFile
        The file laid beside the records.
    """
    places: defaultdict[str, list[NamedArray]] = defaultdict(list)
    beside: defaultdict[tuple[str, int], list[NamedArray]] = defaultdict(list)
    in_trees = {
        f"{tree.path}.{field}" for tree in file.contents.trees for field in NODE_FIELDS
    }
    for array in file.contents.arrays:
        if "#" not in array.path and array.path not in in_trees:
            places[array.place].append(array)
            if array.values.ndim == 1 and array.values.dtype.kind in "biuf":
                beside[_owner(array), array.values.size].append(array)
    stages = [
        (stage.name, Columns(_with_target(stage.matrix, file.target), file.people))
        for stage in file.stages
    ]
    cells: list[Cell] = []
    copies: set[str] = set()
    for place, arrays in places.items():
        for name, columns in stages:
            found = _found(arrays[:MOST_PARTS], beside, columns)
            if found is not None:
                categories = np.digitize(found.copies, COPIES).astype(np.uint8)
                cells.append(
                    Cell(
                        kind="rows",
                        place=place,
                        stage=name,
                        categories=categories,
                        found=categories > 0,
                        columns=found.columns,
                        rows=found.rows,
                    )
                )
                copies |= {place} if found.share > LEAST_CONTAINED else set()
        if place not in copies:
            near = (_near(place, arrays, name, columns) for name, columns in stages)
            cells += [cell for cell in near if cell is not None]
    return cells, frozenset(copies)


def equal_rows(
    file: OpenedFile, cell: Cell, tags: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return whether each record equals a member's in the columns that stand at the place of a cell of rows."""
    stage = next(stage for stage in file.stages if stage.name == cell.stage)
    columns = Columns(_with_target(stage.matrix, file.target), file.people)
    chosen = list(cell.columns)
    matrix = columns.matrix[:, chosen]
    tolerance = columns.tolerance(SINGLE, rows=True)[chosen]
    equal = np.zeros(len(tags), dtype=bool)
    for phase in PHASES:
        hashes = row_hashes(matrix, tolerance, phase)
        equal |= np.isin(hashes, hashes[tags])
    return equal


def _with_target(
    matrix: NDArray[np.float64], target: NDArray[np.float64]
) -> NDArray[np.float64]:
    both = np.empty((len(matrix), matrix.shape[1] + 1), order="F")
    both[:, :-1], both[:, -1] = matrix, target
    return both


@dataclass(frozen=True, kw_only=True)
class _Found:
    """How many copies of each record there are, which share of an array's rows are records, in which columns all arrays agree, and their rows."""

    copies: NDArray[np.float64]
    share: float
    columns: tuple[int, ...]
    rows: int


def _found(
    arrays: Sequence[NamedArray],
    beside: Mapping[tuple[str, int], Sequence[NamedArray]],
    columns: Columns,
) -> _Found | None:
    """Return how often each record stands in arrays of one place; None if in none of them."""
    by_match: defaultdict[tuple[_Match, float], list[NDArray[np.float64]]] = (
        defaultdict(list)
    )
    for array in arrays:
        for matrix in _matrices(array, columns.width):
            same = (
                beside.get((_owner(array), len(matrix)), ())
                if array.values.ndim > 1
                else ()
            )
            whole = _with_targets(matrix, same)
            recognised = _recognised(whole, columns)
            if recognised is None:
                continue
            match, rescaled = recognised
            precision = max(coarseness(rescaled), SINGLE)
            by_match[match, precision].append(rescaled)
            break
    if not by_match:
        return None
    copies, share = np.zeros(len(columns.matrix)), 0.0
    for (match, precision), parts in by_match.items():
        tolerance = columns.tolerance(precision, rows=True)
        chosen = list(match.record_columns)
        counted, known = _copies(
            np.asfortranarray(np.concatenate(parts)),
            columns.matrix[:, chosen],
            tolerance[chosen],
        )
        copies, share = copies + counted, max(share, known)
    if not copies.any():
        return None
    # Where arrays hold different columns, those that all of them hold: more records coincide in these.
    common = set.intersection(*(set(match.record_columns) for match, _ in by_match))
    rows = sum(len(part) for parts in by_match.values() for part in parts)
    columns_ = tuple(sorted(common))
    return _Found(copies=copies, share=share, columns=columns_, rows=rows)


def _matrices(array: NamedArray, width: int) -> Iterator[NDArray[np.float64]]:
    """Yield an array as matrices that may have one row per record, the likelier first."""
    values = array.values
    if values.dtype.kind not in "biuf" or values.size < LEAST_ROWS * 2:
        return
    if values.ndim > 1:
        last = values.reshape(-1, values.shape[-1])
        if len(last) >= LEAST_ROWS and last.shape[1] > 1:
            yield last.astype(np.float64)
        if values.ndim == 2 and values.shape[1] >= LEAST_ROWS and len(values) > 1:
            yield values.T.astype(np.float64)
        return
    for columns in (width - 1, width):  # without the target, and with it
        rows, rest = divmod(values.size, max(columns, 1))
        if columns > 1 and not rest and rows >= LEAST_ROWS:
            yield values.reshape(rows, columns).astype(np.float64)
            yield values.reshape(columns, rows).T.astype(np.float64)


def _owner(array: NamedArray) -> str:
    """Return the path of the object that an array belongs to."""
    return array.path.rpartition(".")[0] or array.path.rpartition(":")[0]


def _with_targets(
    matrix: NDArray[np.float64], beside: Sequence[NamedArray]
) -> NDArray[np.float64]:
    """Return rows with the columns that the same object keeps beside them, such as the classes of stored records."""
    columns = [other.values.astype(np.float64) for other in beside[:MOST_BESIDE]]
    return np.column_stack([matrix, *columns]) if columns else matrix


def _recognised(
    matrix: NDArray[np.float64], columns: Columns
) -> tuple[_Match, NDArray[np.float64]] | None:
    """Return which columns hold which, and the array's matching columns in the records' scale; None if fewer than two match."""
    a_width, width = matrix.shape[1], columns.width
    if width > MOST_COLUMNS and a_width < width - 1:
        return None
    if len(matrix) < SAMPLED:
        # Each row once, told apart by its bytes: numpy compares rows number by number, and a forest has hundreds of such arrays.
        sample = matrix[
            list({row.tobytes(): k for k, row in enumerate(matrix)}.values())
        ]
    else:
        sample = matrix[np.linspace(0, len(matrix) - 1, SAMPLED).astype(np.int64)]
    tolerance = columns.tolerance(max(coarseness(sample), SINGLE), rows=True)

    def holds(a: int, j: int) -> bool:
        values = sample[:, a]
        values = values[np.isfinite(values)]
        # One value only, as of a padded column, is in every column and tells nothing.
        if not len(values) or (values[0] == values).all():
            return False
        inside = contained(values, columns.values(j), tolerance[j])
        return float(inside.mean()) > LEAST_CONTAINED

    same = [j for j in range(min(a_width, width)) if holds(j, j)]
    in_order = a_width >= width - 1 and len(same) >= width - 1
    if in_order or max(a_width, width) > MOST_COLUMNS:
        match = _Match(array_columns=tuple(same), record_columns=tuple(same))
    else:
        match = _assigned(sample, columns, holds)
    if len(match.array_columns) < 2:
        return _scaled(matrix, columns)
    return match, matrix[:, list(match.array_columns)]


def _assigned(
    sample: NDArray[np.float64], columns: Columns, holds: Callable[[int, int], bool]
) -> _Match:
    """Return the assignment of columns, in any order, whose values are contained and whose means are closest."""
    distinct = [len(np.unique(sample[:, a])) for a in range(sample.shape[1])]
    telling = np.argsort(distinct, kind="stable")[::-1][:TRIED_FIRST]
    every = range(columns.width)
    if not any(holds(int(a), j) for a in telling for j in every):
        return _Match(array_columns=(), record_columns=())
    allowed = np.array([[holds(a, j) for j in every] for a in range(sample.shape[1])])
    means = np.nan_to_num(sample).mean(axis=0)
    cost = np.abs(means[:, None] - columns.centre) / columns.spread
    rows, chosen = linear_sum_assignment(np.where(allowed, np.minimum(cost, 1e3), 1e6))
    kept = allowed[rows, chosen]
    return _Match(
        array_columns=tuple(int(a) for a in rows[kept]),
        record_columns=tuple(int(j) for j in chosen[kept]),
    )


def _scaled(
    matrix: NDArray[np.float64], columns: Columns
) -> tuple[_Match, NDArray[np.float64]] | None:
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
    match = _Match(array_columns=chosen, record_columns=chosen)
    return match, np.column_stack([scaled for _, scaled in pairs])


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


def _copies(
    rows: NDArray[np.float64],
    records: NDArray[np.float64],
    tolerance: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    """Return how many rows equal each record, divided by the records that look like it, and the share of rows that are records."""
    copies, share = np.zeros(len(records)), 0.0
    for phase in PHASES:
        hashes, counts = np.unique(
            row_hashes(rows, tolerance, phase), return_counts=True
        )
        asked, inverse, alike = np.unique(
            row_hashes(records, tolerance, phase),
            return_inverse=True,
            return_counts=True,
        )
        at = np.searchsorted(hashes, asked).clip(0, len(hashes) - 1)
        times = np.where(hashes[at] == asked, counts[at], 0)
        copies = np.maximum(copies, (times / alike)[inverse])
        share = max(share, float(times.sum() / len(rows)))
    return copies, share


def _near(
    place: str, arrays: Sequence[NamedArray], name: str, columns: Columns
) -> Cell | None:
    """Return how near each record is to the nearest row of arrays with the records' columns; None if they have others."""
    width = columns.width - 1  # without the target
    fitting = [
        array.values
        for array in arrays[:MOST_PARTS]
        if array.values.ndim == 2
        and array.values.dtype.kind == "f"
        and array.values.shape[1] == width
        and len(array.values) >= LEAST_ROWS
    ]
    if width < 2 or not fitting:
        return None
    centre, spread = columns.centre[:width], columns.deviation[:width]
    parts = []
    for values in fitting:
        rows = (values.astype(np.float64) - centre) / spread
        rows = rows[(np.abs(rows) < FARTHEST).all(axis=1)]
        if len(rows) < LEAST_ROWS:
            continue
        # Weights of a network may have as many columns as records have, but neither their centre nor their spread.
        usual = (np.abs(rows.mean(axis=0)) < 1) & (rows.std(axis=0) < ALIKE)
        if usual.mean() > 0.5:
            parts.append(rows)
    if not parts:
        return None
    rows = np.concatenate(parts)
    most = max(LEAST_ROWS, MOST_DISTANCES // max(len(columns.matrix), 1))
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    records = np.nan_to_num((columns.matrix[:, :width] - centre) / spread)
    with one_thread():
        _, distances = pairwise_distances_argmin_min(
            records.astype(np.float32), rows.astype(np.float32)
        )
    borders = np.unique(np.quantile(distances, np.linspace(0, 1, BINS + 1)[1:-1]))
    categories = np.searchsorted(borders, distances, side="right")
    return Cell(
        kind="near rows",
        place=place,
        stage=name,
        categories=categories.astype(np.uint8),
        found=categories == 0,
    )
