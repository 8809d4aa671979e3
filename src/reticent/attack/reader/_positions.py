"""Find people by position: an array with one entry for each category tells which categories nobody had, without naming one."""

import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from reticent.attack._searched import Cell
from reticent.attack.reader._columns import people_sharing
from reticent.attack.reader._values import ABSENT, COMMON, FOUND, tells
from reticent.product import OpenedFile
from reticent.product.contents import NamedArray

__all__ = ["position_cells"]

MOST_COLUMNS = 10_000  # of a stage, and different codes of a column
LEAST_COLUMNS = 3  # of a stage of indicators; fewer positions are no list
_LAST_POSITION = re.compile(r".*\[(\d+)\]")


def position_cells(file: OpenedFile, *, smallest_group: int) -> list[Cell]:
    """Return one cell for every place with an array by positions, and every stage whose categories it may count.

    A count, a probability or a coefficient of a category that no member has stays at the value it began with: zero, or the smallest of all. So whoever
    has a rare category whose entry moved is likely a member, and whoever has one whose entry did not is none.
    """
    by_length: defaultdict[int, list[NamedArray]] = defaultdict(list)
    for array in file.contents.arrays:
        if "#" not in array.path and array.values.dtype.kind in "iuf":
            for length in set(array.shape):
                by_length[length].append(array)
    cells = []
    for stage in file.stages:
        for what, rare, arrays in _categories(stage.matrix, file, by_length, smallest_group):  # fmt: skip
            has_rare = rare.any(axis=1)
            absent: defaultdict[str, NDArray[np.bool_]] = defaultdict(
                lambda: np.zeros(len(file), dtype=bool)
            )
            for array in arrays:
                absent[array.place] |= _at_first_value(array, rare, file)
            for place, missing in absent.items():
                categories = np.where(
                    has_rare, np.where(missing, ABSENT, FOUND), COMMON
                )
                if tells(categories):
                    cells.append(
                        Cell(
                            kind="positions",
                            place=place,
                            stage=f"{stage.name}{what}",
                            categories=categories.astype(np.uint8),
                            found=categories == FOUND,
                        )
                    )
    return cells


def _categories(
    matrix: NDArray[np.float64],
    file: OpenedFile,
    by_length: dict[int, list[NamedArray]],
    smallest_group: int,
) -> Iterator[tuple[str, NDArray[np.bool_], list[NamedArray]]]:
    """Yield which rare categories each record has, shape (n, categories), and the arrays with an entry for each category."""
    n, width = matrix.shape
    if LEAST_COLUMNS <= width <= MOST_COLUMNS and width in by_length:
        has = (matrix != 0) & np.isfinite(matrix)
        _, rows_of_each = np.unique(file.people, return_counts=True)
        # Of so many rows, no fewer people than a group can be.
        most = smallest_group * rows_of_each.max(initial=0)
        few = np.array([0 < has[:, j].sum() < most and _people(has[:, j], file) < smallest_group for j in range(width)])  # fmt: skip
        if few.any():
            yield "", has & few, by_length[width]
    for j in range(min(width, MOST_COLUMNS)):
        codes = matrix[:, j]
        if not (np.isfinite(codes).all() and (codes >= 0).all() and (codes == np.round(codes)).all()):  # fmt: skip
            continue
        most = int(codes.max(initial=0)) + 1
        # In a list of arrays, the one of this column; its categories may be declared, and be more than those seen here.
        arrays = [
            array
            for length in by_length
            if most <= length <= MOST_COLUMNS and length >= LEAST_COLUMNS
            for array in by_length[length]
            if array.values.ndim <= 2 and _is_of(array, j) and array.shape[-1] == length
        ]
        if not arrays:
            continue
        whole = codes.astype(np.int64)
        few = people_sharing(whole, file.people) < smallest_group
        rare = np.zeros((n, max(a.shape[-1] for a in arrays)), dtype=bool)
        rare[np.arange(n)[few], whole[few]] = True
        if few.any():
            yield f", column {j + 1}", rare, arrays


def _is_of(array: NamedArray, column: int) -> bool:
    last = _LAST_POSITION.fullmatch(array.path)
    return last is not None and int(last[1]) == column


def _people(has: NDArray[np.bool_], file: OpenedFile) -> int:
    return len(np.unique(file.people[has]))


def _at_first_value(
    array: NamedArray, rare: NDArray[np.bool_], file: OpenedFile
) -> NDArray[np.bool_]:
    """Return which records have a rare category whose entry never moved; of an array by class, that of the record's own class."""
    length = array.shape[-1] if array.values.ndim <= 2 and array.shape[-1] <= rare.shape[1] else 0  # fmt: skip
    axis = -1 if length else array.shape.index(rare.shape[1])
    lanes = np.moveaxis(array.values, axis, -1).reshape(-1, array.shape[axis])
    zero = lanes == 0
    still = np.where(zero.any(axis=1, keepdims=True), zero, lanes == lanes.min(axis=1, keepdims=True))  # fmt: skip
    width = min(still.shape[1], rare.shape[1])
    still, rare = still[:, :width], rare[:, :width]
    if len(still) == file.classes and file.classes > 1:
        own = still[file.target.astype(np.int64)]
        return np.asarray((rare & own).any(axis=1))
    return np.asarray((rare & still.all(axis=0)).any(axis=1))
