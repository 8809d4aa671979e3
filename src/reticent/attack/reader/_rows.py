"""Find whole records in the arrays of a file: as they are, in another order, scaled, or nearly."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from scipy.stats import beta
from sklearn.metrics import pairwise_distances_argmin_min

from reticent.attack._searched import Cell
from reticent.attack.reader._columns import (
    SINGLE,
    Columns,
    coarseness,
    contained,
    row_hashes,
)
from reticent.attack.reader._scales import (
    LEAST_CONTAINED,
    LEAST_SHAPES,
    MOST_COLUMNS,
    SAMPLED,
    Match,
    Recognised,
    rounded_copies,
    scaled_copies,
)
from reticent.product import OpenedFile
from reticent.product.contents import NamedArray
from reticent.run import one_thread

__all__ = ["equal_rows", "row_cells"]

LEAST_ROWS = 5  # fewer are a summary; that of a single person is found by its values
TRIED_FIRST = 3  # columns of an array, those with most values; if none is recognised, it holds no records
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
LABELLED = 2_048  # numbers in a line by which the columns of its rows are recognised
LEAST_LABELLED = 0.5  # of them that stand in a column of the records, if it is rows
FOREIGN = 8  # columns of others that may stand between those of the records
STARTS = 3  # places that are tried for the beginning of a row
MOST_PRUNED = 3  # columns that are left out one after the other; more that fit by coincidence are no array of records
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


def row_cells(
    file: OpenedFile, stages: Sequence[tuple[str, Columns]]
) -> tuple[list[Cell], frozenset[str]]:
    """Return one cell for every place and stage at which rows are found, and the places that hold nothing but rows."""
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
    for (owner, size), columns_of_owner in beside.items():
        if size >= LEAST_ROWS and 2 <= len(columns_of_owner) <= MOST_COLUMNS:
            stacked = np.column_stack([a.values for a in columns_of_owner])
            together = NamedArray(path=f"{owner}.*", values=stacked)
            places[together.place].append(together)
    places.update({place: _stacked(arrays) for place, arrays in places.items()})
    words = _coded_words(file)
    cells: list[Cell] = []
    copies: set[str] = set()
    for place, arrays in places.items():
        for name, columns in stages:
            found = _found(arrays[:MOST_PARTS], beside, words, columns)
            if found is not None:
                categories = np.digitize(found.copies, COPIES).astype(np.uint8)
                cells.append(
                    Cell(
                        kind="rows",
                        place=place,
                        stage=name,
                        categories=categories,
                        found=categories > 0,
                        columns=tuple(found.columns),
                        tolerance=tuple(found.columns.values()),
                        rows=found.rows,
                        coincidence=found.coincidence,
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
    columns = Columns.beside(stage.matrix, file.target, file.people)
    chosen = list(cell.columns)
    matrix = columns.matrix[:, chosen]
    tolerance = np.array(cell.tolerance)
    equal = np.zeros(len(tags), dtype=bool)
    for phase in PHASES:
        hashes = row_hashes(matrix, tolerance, phase)
        equal |= np.isin(hashes, hashes[tags])
    return equal


def _stacked(arrays: list[NamedArray]) -> list[NamedArray]:
    """Return the arrays of one place, with short lists of one length below each other: a list for each person is a table."""
    lists = [a for a in arrays if a.values.ndim == 1 and a.values.dtype.kind in "biuf"]
    width = lists[0].values.size if lists else 0
    alike = [a for a in lists if a.values.size == width]
    if not (1 < width <= MOST_COLUMNS and len(alike) >= LEAST_ROWS):
        return arrays
    together = np.array([a.values for a in alike], dtype=np.float64)
    rest = [a for a in arrays if a.values.size != width]
    return [NamedArray(path=arrays[0].path, values=together), *rest]


def _coded_words(file: OpenedFile) -> dict[str, list[NDArray[np.float64]]]:
    """Return the columns of words beside tables that were written as text, by the path of the table, as the codes that records have."""
    coded: defaultdict[str, list[NDArray[np.float64]]] = defaultdict(list)
    for texts in file.contents.texts:
        table, mark, _ = texts.path.rpartition(".column[")
        if not mark or not file.words:
            continue
        known = set(texts.values)
        likest = max(
            file.words, key=lambda words: len(known.intersection(words.values))
        )
        code = {value: float(k) for k, value in enumerate(likest.values)}
        coded[table].append(np.array([code.get(v, np.nan) for v in texts.values]))
    return coded


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What of the records is found at one place.

    ``copies`` counts them for each record, ``share`` says which part of the place's rows are records, ``columns`` in which columns and within what tolerance, ``rows`` how
    many different rows there are, and ``coincidence`` bounds the chance that a stranger's row equals one of the records.
    """

    copies: NDArray[np.float64]
    share: float
    columns: Mapping[int, float]
    rows: int
    coincidence: float


def _found(
    arrays: Sequence[NamedArray],
    beside: Mapping[tuple[str, int], Sequence[NamedArray]],
    words: Mapping[str, Sequence[NDArray[np.float64]]],
    columns: Columns,
) -> _Found | None:
    """Return how often each record stands in arrays of one place; None if in none of them."""
    parts: defaultdict[tuple[Match, tuple[float, ...]], list[NDArray[np.float64]]] = (
        defaultdict(list)
    )
    for array in arrays:
        best, most = None, 0.0
        for matrix in _matrices(array, columns, words.get(array.path, ())):
            same = (
                beside.get((_owner(array), len(matrix)), ())
                if array.values.ndim > 1
                else ()
            )
            recognised = _recognised(_with_targets(matrix, same), columns)
            if recognised is None:
                continue
            share = _copies_of(recognised, columns, sample=True).share
            if share > most:
                best, most = recognised, share
            if most > LEAST_CONTAINED:
                break
        if best is not None:
            parts[best.match, tuple(best.tolerance)].append(best.rows)
    found: _Found | None = None
    for (match, tolerance), rows in parts.items():
        together = Recognised(
            match=match,
            rows=np.asfortranarray(np.concatenate(rows)),
            tolerance=np.array(tolerance),
        )
        counted = _copies_of(together, columns)
        found = counted if found is None else _both(found, counted)
    return found if found is not None and found.copies.any() else None


def _both(one: _Found, other: _Found) -> _Found:
    return _Found(
        copies=one.copies + other.copies,
        share=max(one.share, other.share),
        # Those that all of them hold: more records coincide in these.
        columns={
            j: max(within, other.columns[j])
            for j, within in one.columns.items()
            if j in other.columns
        },
        rows=one.rows + other.rows,
        coincidence=max(one.coincidence, other.coincidence),
    )


def _matrices(
    array: NamedArray, columns: Columns, words: Sequence[NDArray[np.float64]]
) -> Iterator[NDArray[np.float64]]:
    """Yield an array as matrices that may have one row per record, the likelier first."""
    values, width = array.values, columns.width
    if values.dtype.kind not in "biuf":
        return
    if words and values.ndim == 2:
        yield np.column_stack([values.astype(np.float64), *words])
    if values.size and values.ndim and values.shape[-1] in (width - 1, width):
        yield values.reshape(-1, values.shape[-1]).astype(np.float64)
    if values.size < LEAST_ROWS * 2:
        return
    if values.ndim > 1:
        last = values.reshape(-1, values.shape[-1])
        if len(last) >= LEAST_ROWS and last.shape[1] not in (1, width - 1, width):
            yield last.astype(np.float64)
        if values.ndim == 2 and values.shape[1] >= LEAST_ROWS and len(values) > 1:
            yield values.T.astype(np.float64)
        return
    flat = values.astype(np.float64)
    labels = _labels(flat[:LABELLED], columns)
    if labels is None:
        return
    yield from _by_period(flat, labels)
    for count in range(2, width + 1):
        rows, rest = divmod(values.size, count)
        if not rest and rows >= LEAST_ROWS:
            yield flat.reshape(count, rows).T


def _labels(
    values: NDArray[np.float64], columns: Columns
) -> NDArray[np.float64] | None:
    """Return by how much each value speaks for each column, shape (n, width); None if hardly any value stands in a column.

    A value in a column that contains nearly all of these values says nothing about where a row begins.
    """
    if columns.width > MOST_COLUMNS:
        return None
    tolerance = columns.tolerance(max(coarseness(values), SINGLE), rows=True)
    inside = np.column_stack(
        [contained(values, columns.values(j), tolerance[j]) for j in range(columns.width)]
    )  # fmt: skip
    if inside.any(axis=1).mean() < LEAST_LABELLED:
        return None
    return np.asarray(inside * (1.05 - inside.mean(axis=0)))


def _by_period(
    flat: NDArray[np.float64], labels: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    """Yield numbers that stand one after the other as rows of the length after which their columns repeat."""
    n, width = labels.shape
    periods = range(2, min(width + FOREIGN, n // LEAST_ROWS) + 1)
    if not periods:
        return
    alike = {
        p: float(np.minimum(labels[p:], labels[:-p]).max(axis=1).mean())
        for p in periods
    }
    most = max(alike.values())
    period = next(p for p in periods if alike[p] >= LEAST_CONTAINED * most)
    # Which column each place of the period holds tells where a row begins: there it falls back to an early one.
    means = np.array([labels[at::period].mean(axis=0) for at in range(period)])
    order = means.argmax(axis=1)

    def falls(start: int) -> int:
        return int((np.diff(np.roll(order, -start)) < 0).sum())

    for start in sorted(range(period), key=falls)[:STARTS]:
        rows = (len(flat) - start) // period
        if rows >= LEAST_ROWS:
            yield flat[start : start + rows * period].reshape(rows, period)


def _owner(array: NamedArray) -> str:
    """Return the path of the object that an array belongs to."""
    return array.path.rpartition(".")[0] or array.path.rpartition(":")[0]


def _with_targets(
    matrix: NDArray[np.float64], beside: Sequence[NamedArray]
) -> NDArray[np.float64]:
    """Return rows with the columns that the same object keeps beside them, such as the classes of stored records."""
    columns = [other.values.astype(np.float64) for other in beside[:MOST_BESIDE]]
    return np.column_stack([matrix, *columns]) if columns else matrix


def _recognised(matrix: NDArray[np.float64], columns: Columns) -> Recognised | None:
    """Return which columns hold which, in the records' scale; None if fewer than two do.

    Of several ways to read the array, the one by which most of its rows are records is taken.
    """
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

    same = tuple(j for j in range(min(a_width, width)) if holds(j, j))
    matches = [Match(array_columns=same, record_columns=same)]
    if max(a_width, width) <= MOST_COLUMNS and len(same) < width:
        matches.append(_assigned(sample, columns, holds))
    best, most = None, 0.0
    for match in matches:
        if len(match.array_columns) < 2:
            continue
        whole = Recognised(
            match=match,
            rows=matrix[:, list(match.array_columns)],
            tolerance=tolerance[list(match.record_columns)],
        )
        pruned, share = _pruned(whole, columns)
        if share > most:
            best, most = pruned, share
    return (
        best
        or scaled_copies(matrix, columns)
        or _in_place(matrix, columns, tolerance)
        or rounded_copies(matrix, sample, columns)
    )


def _in_place(
    matrix: NDArray[np.float64], columns: Columns, tolerance: NDArray[np.float64]
) -> Recognised | None:
    """Return an array with the columns of the records, in their order, if a few of its rows are records and the others are not."""
    width = matrix.shape[1]
    if width < LEAST_SHAPES or not columns.width - 1 <= width <= columns.width:
        return None
    own = tuple(range(width))
    whole = Recognised(
        match=Match(array_columns=own, record_columns=own),
        rows=matrix,
        tolerance=tolerance[:width],
    )
    return whole if _copies_of(whole, columns).copies.any() else None


def _pruned(recognised: Recognised, columns: Columns) -> tuple[Recognised, float]:
    """Leave out columns that were matched by coincidence: those without which many more rows are records."""
    share = _copies_of(recognised, columns, sample=True).share
    for _ in range(MOST_PRUNED):
        count = len(recognised.match.array_columns)
        if share >= LEAST_CONTAINED / 2 or not 2 < count <= MOST_COLUMNS:
            break
        fewer = [_without(recognised, k) for k in range(count)]
        shares = [_copies_of(less, columns, sample=True).share for less in fewer]
        k = int(np.argmax(shares))
        if shares[k] <= share and shares[k] > 0:
            break
        recognised, share = fewer[k], shares[k]
    return recognised, share


def _without(recognised: Recognised, k: int) -> Recognised:
    match = recognised.match
    return Recognised(
        match=Match(
            array_columns=match.array_columns[:k] + match.array_columns[k + 1 :],
            record_columns=match.record_columns[:k] + match.record_columns[k + 1 :],
        ),
        rows=np.delete(recognised.rows, k, axis=1),
        tolerance=np.delete(recognised.tolerance, k),
    )


def _assigned(
    sample: NDArray[np.float64], columns: Columns, holds: Callable[[int, int], bool]
) -> Match:
    """Return the assignment of columns, in any order, whose values are contained and whose means are closest."""
    distinct = [len(np.unique(sample[:, a])) for a in range(sample.shape[1])]
    telling = np.argsort(distinct, kind="stable")[::-1][:TRIED_FIRST]
    every = range(columns.width)
    if not any(holds(int(a), j) for a in telling for j in every):
        return Match(array_columns=(), record_columns=())
    allowed = np.array([[holds(a, j) for j in every] for a in range(sample.shape[1])])
    means = np.nan_to_num(sample).mean(axis=0)
    cost = np.abs(means[:, None] - columns.centre) / columns.spread
    rows, chosen = linear_sum_assignment(np.where(allowed, np.minimum(cost, 1e3), 1e6))
    kept = allowed[rows, chosen]
    return Match(
        array_columns=tuple(int(a) for a in rows[kept]),
        record_columns=tuple(int(j) for j in chosen[kept]),
    )


def _copies_of(
    recognised: Recognised, columns: Columns, *, sample: bool = False
) -> _Found:
    """Return how many rows equal each record, divided by the records that look like it, and what that is worth."""
    rows, chosen = recognised.rows, list(recognised.match.record_columns)
    if sample and len(rows) > SAMPLED:
        rows = rows[np.linspace(0, len(rows) - 1, SAMPLED).astype(np.int64)]
    records = columns.matrix[:, chosen]
    if (recognised.tolerance < 0).any():
        return _within(rows, records, -recognised.tolerance, chosen)
    copies, share, different, twins = np.zeros(len(records)), 0.0, 0, 0
    for phase in PHASES:
        hashes, counts = np.unique(
            row_hashes(rows, recognised.tolerance, phase), return_counts=True
        )
        asked, inverse, alike = np.unique(
            row_hashes(records, recognised.tolerance, phase),
            return_inverse=True,
            return_counts=True,
        )
        at = np.searchsorted(hashes, asked).clip(0, len(hashes) - 1)
        times = np.where(hashes[at] == asked, counts[at], 0)
        copies = np.maximum(copies, (times / alike)[inverse])
        share = max(share, float(times.sum() / len(rows)))
        different = max(different, len(hashes))
        twins = max(twins, int((alike[inverse] > 1).sum()))
    return _Found(
        copies=copies,
        share=share,
        columns=dict(zip(chosen, recognised.tolerance.tolist(), strict=True)),
        rows=different,
        coincidence=_at_most(twins, len(records)),
    )


def _within(
    rows: NDArray[np.float64],
    records: NDArray[np.float64],
    tolerance: NDArray[np.float64],
    chosen: Sequence[int],
) -> _Found:
    """Return the same for rows that may differ from a record by a tolerance in every column."""
    known = cKDTree(np.nan_to_num(records / tolerance))
    nearest = cKDTree(np.nan_to_num(rows / tolerance))
    distance, _ = nearest.query(known.data, p=np.inf, distance_upper_bound=1.0)
    found = np.isfinite(distance)
    of_rows, _ = known.query(nearest.data, p=np.inf, distance_upper_bound=1.0)
    second, _ = known.query(known.data, k=[2], p=np.inf, distance_upper_bound=1.0)
    return _Found(
        copies=found.astype(np.float64),
        share=float(np.isfinite(of_rows).mean()),
        columns=dict(zip(chosen, tolerance.tolist(), strict=True)),
        rows=len(np.unique(rows, axis=0)),
        coincidence=_at_most(int(np.isfinite(second).sum()), len(records)),
    )


def _at_most(found: int, of: int) -> float:
    """Return what a share is at most, at one error in a hundred thousand."""
    return float(beta.ppf(1 - 1e-5, found + 1, of - found)) if found < of else 1.0


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
