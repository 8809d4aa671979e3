"""Read texts that hold a table: lines with separators, and records of JSON."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = [
    "Columns",
    "columns_of_lines",
    "columns_of_lists",
    "columns_of_records",
    "numbers_in",
]

SEPARATORS = (
    ",",
    ";",
    "\t",
    "|",
)  # blanks only where none of these is found: they stand in names
TRIED = 200  # lines by which a separator is recognised
LEAST_LINES = 5  # fewer are a summary
LEAST_SHARE = (
    0.95  # of lines as wide as most, and of cells of a column that are numbers
)
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")


@dataclass(frozen=True)
class Columns:
    """The columns of a table found in a text: a matrix of those of numbers, shape (rows, k), the texts of each other one, and a first line of names."""

    numbers: NDArray[np.float64]
    texts: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] = ()


def columns_of_lines(lines: Sequence[str]) -> Columns | None:
    """Return the columns of lines that share a separator; None if they are no table."""
    lines = [line for line in lines if line.strip()]
    if len(lines) < LEAST_LINES:
        return None
    width, separator = max((_width(lines[:TRIED], s), s) for s in SEPARATORS)
    if width < 2:
        width, separator = _width(lines[:TRIED], " "), " "
    if width < 2:
        return None
    # A header, if there is one, is told by a first line without a number; otherwise each column would be text.
    first = next(csv.reader(lines[:1], delimiter=separator))
    frame = pd.read_csv(
        io.StringIO("\n".join(lines)),
        sep=separator,
        header=None,
        names=range(width),
        skiprows=0 if any(map(_is_number, first)) else 1,
        keep_default_na=False,
        on_bad_lines="skip",
        engine="c",
        index_col=False,
        low_memory=False,
    )
    found = _divided({j: frame[j] for j in range(width)})
    if found is None or any(map(_is_number, first)):
        return found
    return replace(found, names=tuple(first))


def _is_number(cell: str) -> bool:
    try:
        return bool(float(cell) or True)
    except ValueError:
        return False


def _width(lines: Sequence[str], separator: str) -> int:
    """Return the number of fields that nearly all lines have; 0 if they differ."""
    try:
        widths = [len(row) for row in csv.reader(lines, delimiter=separator)]
    except csv.Error:
        return 0
    usual = max(set(widths), key=widths.count, default=0)
    return usual if widths.count(usual) >= LEAST_SHARE * len(widths) else 0


def columns_of_records(items: Sequence[Any]) -> Columns | None:
    """Return the columns of dictionaries with the same keys; None if they are something else."""
    if len(items) < LEAST_LINES or not isinstance(items[0], Mapping):
        return None
    keys = items[0].keys()
    if len(keys) < 2 or not all(
        isinstance(item, Mapping) and item.keys() == keys for item in items
    ):
        return None
    return _of_plain({k: [item[k] for item in items] for k in keys})


def columns_of_lists(lists: Mapping[Any, Any]) -> Columns | None:
    """Return the columns of a dictionary of lists, or of dictionaries by row, of one length; None if it is something else."""
    values = {
        k: [*v.values()] if isinstance(v, Mapping) else v
        for k, v in lists.items()
        if isinstance(v, Mapping | list)
    }
    lengths = {len(v) for v in values.values()}
    if len(values) < 2 or len(lengths) != 1 or min(lengths) < LEAST_LINES:
        return None
    return _of_plain(values)


def _of_plain(values: Mapping[Any, Sequence[Any]]) -> Columns | None:
    plain = (str, int, float, type(None))
    if not all(isinstance(v, plain) for column in values.values() for v in column):
        return None
    # A list: a Series of texts alone would be given a type that some versions lack.
    return _divided({k: pd.Series(v, dtype=object) for k, v in values.items()})


def _divided(columns: Mapping[Any, "pd.Series[Any]"]) -> Columns | None:
    """Return columns by what they hold; one of numbers may have a header and a few missing values."""
    matrix: list[NDArray[np.float64]] = []
    texts: list[tuple[str, ...]] = []
    for cells in columns.values():
        if pd.api.types.is_numeric_dtype(cells):
            matrix.append(cells.to_numpy(dtype=np.float64))
            continue
        column = cells.astype(object).where(cells.notna(), "")
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
        is_text = all(isinstance(cell, str) for cell in column)
        if np.isfinite(numbers).mean() < LEAST_SHARE and is_text:
            # As half of the world writes fractions.
            fractions = pd.to_numeric(column.str.replace(",", "."), errors="coerce")
            numbers = fractions.to_numpy(dtype=np.float64)
            if np.isfinite(numbers).mean() < LEAST_SHARE:
                # Or with a unit behind them.
                found = [_NUMBER.findall(cell) for cell in column]
                numbers = np.array([float(f[0]) if len(f) == 1 else np.nan for f in found])  # fmt: skip
        filled = column.map(lambda cell: cell not in ("", None)).to_numpy()
        known = np.isfinite(numbers)
        # One cell may be a header that has a number in it.
        is_number = known.sum() >= LEAST_SHARE * filled.sum() - 1 and known.sum() > 1
        if is_number:
            matrix.append(numbers)
        if not is_number or pd.to_numeric(column, errors="coerce").notna().sum() <= 1:
            texts.append(tuple(map(str, column)))
    if not matrix and len(texts) < 2:
        return None
    rows = len(next(iter(columns.values())))
    stacked = np.column_stack(matrix) if matrix else np.empty((rows, 0))
    return Columns(numbers=stacked, texts=tuple(texts))


def numbers_in(text: str) -> NDArray[np.float64]:
    """Return all numbers that stand in a text, in their order.

    Examples
    --------
    >>> numbers_in("<row><age>63</age><dose>1.5e0</dose></row> b2")
    array([63. ,  1.5])
    """
    return np.array([float(word) for word in _NUMBER.findall(text)])
