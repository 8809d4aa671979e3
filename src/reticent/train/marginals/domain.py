r"""The cells of every column: declared by the owner, or learned with noise, never read off the records.

The ranges of numbers are learned in two looks, each a histogram with noise: first powers of the square root of two, which
say where the numbers lie; then finer pieces of that range, which say where to put the cells. Categories are
listed if their noisy count exceeds a threshold that a category of one single person passes with a stated, tiny probability
(Korolova et al., WWW 2009), which is part of the guarantee. These noisy counts are the column's histogram at the same time, so that nothing is paid for twice.
"""

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent.data import ColumnKind, Table
from reticent.errors import InvalidInput
from reticent.train.marginals.columns import Categories, Column, Numbers
from reticent.train.marginals.heard import heard_cells
from reticent.train.marginals.noise import Noise
from reticent.train.private.domain import declared_content, read_declared

__all__ = [
    "Cells",
    "Look",
    "declared_columns",
    "declared_constraints",
    "declared_ranges",
    "learned_columns",
    "lists",
    "looks",
]

HALF_OCTAVES = range(-40, 81)  # from 1e-6 to 1e12, in powers of the root of two
MOST_VALUES = 256  # whole numbers with a cell each; more would drown in the noise
FINE = 64  # cells of a column otherwise: several for each bin of a pair of columns
# Counts below so many standard deviations count as noise: an empty cell, or window of cells, exceeds it once in 30,000.
HEARD = 4.0
ALSO = frozenset({"constraints"})  # what a domain may declare beside its columns
CLOSER = 4.0  # the second look replaces the range only if it is so many times narrower
FIRST = 1_000  # values by which a column is told from one of 0 and 1
Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Look:
    """With how much noise columns are learned.

    Parameters
    ----------
    deviation : float
        Standard deviation of the noise on each count by which the cells of numbers are learned.
    of_categories : float
        Standard deviation of the noise on the count of each category.
    failure : float
        Probability that a category of a single person is listed.
    rows_per_person : int
        The most rows of one person.
    lenient : bool
        Whether a column of which nothing is heard keeps its loudest value, in place of being refused: for tables that nobody sees but an attacker who makes
        them with the recipe, from fewer people.
    """

    deviation: float
    of_categories: float
    failure: float
    rows_per_person: int = 1
    lenient: bool = False


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The cells of all columns, and what was counted while they were learned.

    Parameters
    ----------
    columns : tuple of Column
        The columns.
    counted : mapping of str to array
        Noisy counts of all cells of learned categories, by column; that of unlisted categories is NaN.
    total : float or None
        The noisy number of records, if no column has public cells that would tell it.
    """

    columns: tuple[Column, ...]
    counted: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    total: float | None = None


def looks(table: Table) -> int:
    """Return how many counts of each record it takes to learn the cells of numbers: the square of their joint L2 sensitivity.

    Two histograms for each column of numbers; and the number of records, if all columns are categories, of which the rare ones are not counted.
    """
    numbers = [
        name
        for name, kind in table.schema.columns.items()
        if kind == ColumnKind.NUMERIC and not _is_truth(kind, table.features[name])
    ]
    return 2 * len(numbers) + (lists(table) == len(table.schema.columns))


def lists(table: Table) -> int:
    """Return how many columns have categories to list."""
    return len(table.schema.names(ColumnKind.CATEGORICAL))


def learned_columns(table: Table, look: Look, noise: Noise) -> Cells:
    """Learn the cells of all columns from noisy histograms.

    Raises
    ------
    InvalidInput
        If nothing of a column is heard through the noise.
    """
    names = table.schema.names(ColumnKind.CATEGORICAL)
    # One person may have a category of their own in each of their rows and in each column.
    each = look.failure / max(len(names) * look.rows_per_person, 1)
    threshold = look.rows_per_person + look.of_categories * float(-ndtri(each))
    columns: list[Column] = []
    counted: dict[str, NDArray[np.float64]] = {}
    for name, kind in table.schema.columns.items():
        values = table.features[name]
        if _is_truth(kind, values):
            columns.append(_truth(name))
        elif kind == ColumnKind.NUMERIC:
            columns.append(_learned_numbers(name, values, look, noise))
        else:
            column, counted[name] = _learned_categories(
                name,
                values,
                (look.of_categories, threshold),
                noise,
                lenient=look.lenient,
            )
            columns.append(column)
    total = None
    if len(names) == len(columns):
        rows = np.array([len(table)], dtype=np.int64)
        total = float(noise.on_counts(rows, look.deviation)[0])
    return Cells(columns=tuple(columns), counted=counted, total=total)


def _truth(name: str) -> Column:
    return Numbers(name=name, low=(0.0, 1.0), high=(0.0, 1.0), whole=True)


def _learned_categories(
    name: str,
    values: "pd.Series[Any]",
    limits: tuple[float, float],
    noise: Noise,
    *,
    lenient: bool,
) -> tuple[Categories, NDArray[np.float64]]:
    """Return the categories whose noisy counts exceed a threshold, and the counts: of each, NaN for all others, and of missing values."""
    deviation, threshold = limits
    names, counts = np.unique(
        values.dropna().to_numpy(dtype=object).astype(str), return_counts=True
    )
    # A missing value is a cell that everybody knows of, so it is counted whether there is one or not.
    exact = np.append(counts, values.isna().sum()).astype(np.int64)
    noisy = noise.on_counts(exact, deviation)
    is_listed = noisy[:-1] > threshold
    if lenient and len(names) and not is_listed.any():
        is_listed[noisy[:-1].argmax()] = True
    if not is_listed.any():
        raise InvalidInput(
            f"no value of the column {name!r} is frequent enough to be heard through the noise, because it holds free text, names or numbers of "
            f"people, dates or quantities that were read as text, is empty, or the budget is too small for the table; leave it out with --drop, declare dates and quantities with "
            f"--schema, or declare its values with --domain."
        )
    listed = tuple(str(text) for text in names[is_listed])
    cells = np.concatenate([noisy[:-1][is_listed], [np.nan], noisy[-1:]])
    return Categories(name=name, values=listed), cells


def _learned_numbers(
    name: str, values: "pd.Series[Any]", look: Look, noise: Noise
) -> Column:
    deviation = look.deviation
    numbers = values.to_numpy(dtype=np.float64)
    present = numbers[~np.isnan(numbers)]
    whole = _is_whole(present)
    powers = 2.0 ** (np.arange(HALF_OCTAVES.start, HALF_OCTAVES.stop) / 2)
    coarse = _number_column(name, np.concatenate([-powers[::-1], [0.0], powers]), whole)
    noisy = _noisy(coarse, present, deviation, noise)
    heard = heard_cells(noisy, deviation, above=HEARD)
    if not len(heard) and look.lenient:
        heard = np.array([int(noisy.argmax())])
    if not len(heard):
        raise InvalidInput(
            f"no value of the column {name!r} is heard through the noise, because it is empty or the budget is too small for the table; leave it "
            "out with --drop, or declare its range with --domain."
        )
    # One more cell on either side, for tails that are too thin to be heard; numbers that begin at 0 have none below.
    first = max(int(heard[0]) - (coarse.low[heard[0]] != 0), 0)
    last = min(int(heard[-1]) + 1, len(noisy) - 1)
    split = max(1, FINE // (last - first + 1))
    pieces = [
        edge
        for a, b in zip(
            coarse.low[first : last + 1], coarse.high[first : last + 1], strict=True
        )
        for edge in np.linspace(a, b, split if b > a else 1, endpoint=False)
    ]
    closer = _number_column(name, np.unique([*pieces, coarse.high[last]]), whole)
    noisy = _noisy(closer, present, deviation, noise)
    # What the first look has heard stays, also if it is too thin for the finer pieces of the second one.
    between = (float(coarse.high[heard[0]]), float(coarse.low[heard[-1]]))
    return _cells(closer, noisy, deviation, between)


def _noisy(
    column: Numbers, present: NDArray[np.float64], deviation: float, noise: Noise
) -> NDArray[np.float64]:
    """Return noisy counts of the intervals of a column."""
    cells = column.code(pd.Series(present, dtype=np.float64))
    counts = np.bincount(cells, minlength=column.cells).astype(np.int64)
    return noise.on_counts(counts, deviation)[:-1]


def _is_whole(present: NDArray[np.float64]) -> bool:
    return bool((present == np.floor(present)).all())


def _is_truth(kind: ColumnKind, values: "pd.Series[Any]") -> bool:
    """Whether a column holds nothing but 0 and 1, which is part of its kind and taken as public as that is."""
    if kind != ColumnKind.NUMERIC:
        return kind == ColumnKind.BOOLEAN
    numbers = values.to_numpy(dtype=np.float64)
    # Most columns of other numbers are told by their first ones, in place of a pass through all rows each time.
    for part in (numbers[:FIRST], numbers):
        if not ((part == 0) | (part == 1) | np.isnan(part)).all():
            return False
    return not bool(np.isnan(numbers).all())


def _cells(
    pieces: Numbers,
    noisy: NDArray[np.float64],
    deviation: float,
    between: tuple[float, float],
) -> Numbers:
    """Return cells of about equal counts, given pieces of the range, their noisy counts, and a part of the range that must stay."""
    name, whole = pieces.name, pieces.whole
    low, high = np.array(pieces.low), np.array(pieces.high)
    first, last = _filled(noisy, deviation)
    first = min(first, int(np.searchsorted(low, between[0], side="right")) - 1)
    last = max(last, int(np.searchsorted(high, between[1], side="left")))
    first, last = max(first, 0), min(last, len(low) - 1)
    if (high[-1] - low[0]) > CLOSER * (high[last] - low[first]):
        low, high, noisy = (part[first : last + 1] for part in (low, high, noisy))
    bottom, top = float(low[0]), float(high[-1])
    if whole and top - bottom <= MOST_VALUES:
        return _each_value(name, math.ceil(bottom), math.ceil(top))
    shares = np.maximum(noisy, 0) / max(np.maximum(noisy, 0).sum(), 1.0)
    edges = [
        edge
        for a, b, share in zip(low, high, shares, strict=True)
        for edge in np.linspace(a, b, 1 + round(FINE * share), endpoint=False)
    ] + [top]
    return _number_column(name, np.unique(edges), whole)


def _filled(noisy: NDArray[np.float64], deviation: float) -> tuple[int, int]:
    """Return the first and the last piece before and after which nothing is heard."""

    def silent(counts: NDArray[np.float64]) -> int:
        sums = np.cumsum(counts)
        loud = sums > HEARD * deviation * np.sqrt(np.arange(1, len(sums) + 1))
        return int(np.argmax(loud)) if loud.any() else 0

    first, last = silent(noisy), len(noisy) - 1 - silent(noisy[::-1])
    return (first, last) if first <= last else (0, len(noisy) - 1)


def _each_value(name: str, bottom: int, top: int) -> Numbers:
    low = tuple(float(v) for v in range(bottom, max(top, bottom + 1)))
    return Numbers(name=name, low=low, high=tuple(v + 1 for v in low), whole=True)


def _number_column(name: str, edges: NDArray[np.float64], whole: bool) -> Numbers:
    if whole:
        # Away from 0 in both directions, so that negative cells mirror positive ones.
        edges = np.unique(np.where(edges > 0, np.ceil(edges), np.floor(edges)))
        # 0 alone, then the numbers from 1 on.
        if edges[0] <= 0 < edges[-1]:
            edges = np.unique(np.append(edges, [0.0, 1.0]))
        return Numbers(
            name=name, low=tuple(edges[:-1]), high=tuple(edges[1:]), whole=True
        )
    return Numbers(name=name, whole=False, **_with_spike(edges))


def _with_spike(edges: NDArray[np.float64]) -> dict[str, tuple[float, ...]]:
    """Return the ends of intervals, with one for 0 alone if 0 is among the edges or between them."""
    low, high = list(map(float, edges[:-1])), list(map(float, edges[1:]))
    if edges[0] <= 0 <= edges[-1]:
        inner = np.unique(np.append(edges, 0.0))
        at = int(np.searchsorted(inner, 0.0))
        low = [*map(float, inner[:at]), 0.0, *map(float, inner[at:-1])]
        high = [*map(float, inner[1 : at + 1]), 0.0, *map(float, inner[at + 1 :])]
    return {"low": tuple(low), "high": tuple(high)}


def declared_columns(path: Path | str, table: Table) -> tuple[Column, ...]:
    """Read the values of all columns from TOML: ``[numbers]`` with lowest and highest values, ``[categories]`` with names.

    Parameters
    ----------
    path : path
        The file. Columns of truth values need not be declared.
    table : Table
        The table, of whose records nothing is used but whether a column holds whole numbers.

    Raises
    ------
    InvalidInput
        If the file cannot be read or does not fit the columns.
    """
    path = Path(path)
    numbers, categories = read_declared(path, also=ALSO)
    kinds = table.schema.columns
    for name in {*numbers, *categories} - set(kinds):
        raise InvalidInput(
            f"the domain {path} declares the column {name!r}, which the table does not have; correct its name."
        )
    columns: list[Column] = []
    for name, kind in kinds.items():
        if name not in numbers and _is_truth(kind, table.features[name]):
            columns.append(_truth(name))
        elif kind == ColumnKind.NUMERIC:
            columns.append(
                _declared_numbers(path, numbers.get(name), table.features[name])
            )
        else:
            columns.append(_declared_categories(path, name, categories.get(name)))
    return tuple(columns)


def declared_constraints(path: Path | str) -> tuple[str, ...]:
    """Return the constraints of a declared domain: the list ``constraints`` before its tables.

    Raises
    ------
    InvalidInput
        If they are no list of texts.
    """
    texts = declared_content(Path(path)).get("constraints", [])
    if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
        raise InvalidInput(
            f'the domain {path} declares constraints as {texts!r}; write a list of texts, such as ["a <= b"], above the tables.'
        )
    return tuple(texts)


def declared_ranges(path: Path | str) -> dict[str, tuple[float, float]]:
    """Return the lowest and highest values of the columns of numbers that a domain declares, as far as they can be read."""
    numbers, _ = read_declared(Path(path), also=ALSO)
    ranges = {}
    for name, pair in numbers.items():
        # What is wrong with another one is said where columns are made of them.
        with contextlib.suppress(TypeError, ValueError):
            low, high = (float(x) for x in pair)
            ranges[name] = (low, high)
    return ranges


def _declared_numbers(path: Path, pair: Any, values: "pd.Series[Any]") -> Column:
    name = str(values.name)
    try:
        bottom, top = (float(x) for x in pair)
        fits = math.isfinite(bottom) and math.isfinite(top) and bottom < top
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InvalidInput(
            f"the domain {path} {_declares(pair)} the column {name!r}, but looking at its values would void the guarantee; write its lowest "
            "and highest value under [numbers], such as [0, 100]."
        )
    present = values.dropna().to_numpy(dtype=np.float64)
    whole = _is_whole(present)
    if whole and top - bottom < MOST_VALUES:
        return _each_value(name, math.ceil(bottom), math.floor(top) + 1)
    edges = np.linspace(bottom, top + (1 if whole else 0), FINE + 1)
    return _number_column(name, edges, whole)


def _declared_categories(path: Path, name: str, known: Any) -> Column:
    if not isinstance(known, list) or not known:
        raise InvalidInput(
            f"the domain {path} {_declares(known)} the column {name!r}, but looking at its values would void the guarantee; list its names "
            'under [categories], such as ["no", "yes"].'
        )
    return Categories(name=name, values=tuple(sorted({str(value) for value in known})))


def _declares(what: Any) -> str:
    """Return what a domain says of a column that cannot be used, in words."""
    return "does not declare" if what is None else f"declares {what!r} for"
