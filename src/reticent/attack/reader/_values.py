"""Find single values, texts and tokens of few people in a file."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reticent.attack._searched import Cell
from reticent.attack.reader._columns import (
    Columns,
    coarseness,
    contained,
    people_sharing,
)
from reticent.product import OpenedFile, Words

__all__ = ["ABSENT", "COMMON", "FOUND", "tells", "value_cells", "word_cells"]

LEAST_FOUND = 5  # records; fewer are no evidence that any test could use
# Different ones at a place; a threshold or a mean of one column is a summary.
LEAST_NUMBERS = 3
MOST_NUMBERS = 4_000_000  # of one place
MOST_COLUMNS = 256  # of a stage; wider ones are indicators and counts of words, whose values are nobody's own
SAMPLED = 2_048  # numbers of a place that show whether it holds values of a column
MANY = 50_000  # records from which a place is looked at only if its sample holds values of the column
# Words of half of a column's texts from which on its tokens are compared.
LEAST_WORDS = 3
LEAST_TOKENS = 20  # texts at a place that may be a vocabulary
COMMON, ABSENT, FOUND = (
    0,
    1,
    2,
)  # categories of values; only those of few people tell anything
_TOKEN = re.compile(r"(?u)\b\w\w+\b")  # as scikit-learn's vectorizers divide texts


def value_cells(
    file: OpenedFile,
    stages: Sequence[tuple[str, Columns]],
    *,
    smallest_group: int,
    without: frozenset[str],
) -> list[Cell]:
    """Return one cell for every place and column where values that fewer people share than a group has are found.

    Places that hold nothing but whole rows, which say more than their values, are left out.
    """
    numbers: defaultdict[str, list[NDArray[np.float64]]] = defaultdict(list)
    for array in file.contents.arrays:
        if array.place not in without and array.values.dtype.kind in "iuf":
            numbers[array.place].append(array.values.ravel().astype(np.float64))
    # The target is the last column of every stage.
    columns = [
        *(
            (f"{name}, column {j + 1}", stage, j)
            for name, stage in stages
            if stage.width - 1 <= MOST_COLUMNS
            for j in range(stage.width - 1)
        ),
        ("target, column 1", stages[0][1], stages[0][1].width - 1),
    ]
    cells = []
    for place, parts in numbers.items():
        known = _distinct(parts)
        if len(known) < LEAST_NUMBERS:
            continue
        precision = coarseness(known)
        _, _, only = place.partition("#")
        for name, stage, j in columns:
            at = "leaves" if name.startswith("target") else str(j)
            if only not in ("", at):
                continue
            tolerance = float(stage.tolerance(precision, rows=False)[j])
            found = _found(known, stage, j, tolerance)
            if found is None:
                continue
            rare = stage.holders(j) < smallest_group
            categories = np.where(rare, np.where(found, FOUND, ABSENT), COMMON)
            cells.append(
                Cell(
                    kind="values",
                    place=place,
                    stage=name,
                    categories=categories.astype(np.uint8),
                    found=categories == FOUND,
                )
            )
    return [cell for cell in _together(cells) if tells(cell.categories)]


def _together(cells: list[Cell]) -> list[Cell]:
    """Return one cell for those of one name: each fold of a calibrated model keeps a few people's scores, and a file has all of them."""
    named: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        other = named.setdefault((cell.place, cell.stage), cell)
        if other is not cell:
            named[cell.place, cell.stage] = replace(
                other,
                categories=np.maximum(other.categories, cell.categories),
                found=other.found | cell.found,
            )
    return list(named.values())


def tells(categories: NDArray[np.integer]) -> bool:
    """Whether some rare values are found and others are not; if all are, the place is not about these records."""
    counts = np.bincount(categories, minlength=FOUND + 1)
    return bool(counts[FOUND] >= LEAST_FOUND and counts[ABSENT] > 0)


def _distinct(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    values = np.concatenate(parts)
    if len(values) > MOST_NUMBERS:
        values = values[np.linspace(0, len(values) - 1, MOST_NUMBERS).astype(np.int64)]
    return np.unique(values[np.isfinite(values)])


def _found(
    known: NDArray[np.float64], stage: Columns, j: int, tolerance: float
) -> NDArray[np.bool_] | None:
    """Return which records have a value that stands at a place; None if too few do."""
    values = stage.values(j)
    if len(values) < LEAST_NUMBERS or values[-1] < known[0] or known[-1] < values[0]:
        return None
    if len(stage.matrix) > MANY:
        sample = known[
            np.linspace(0, len(known) - 1, min(SAMPLED, len(known))).astype(np.int64)
        ]
        if not contained(sample, values, tolerance).any():
            return None
    found = contained(stage.matrix[:, j], known, tolerance)
    return found if found.sum() >= LEAST_FOUND else None


def word_cells(file: OpenedFile, *, smallest_group: int) -> list[Cell]:
    """Return one cell for every place and column where texts, or tokens of texts, of few people are found."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for texts in file.contents.texts:
        places[texts.place].update(texts.values)
    cells = []
    for words in file.words:
        if not words.values:
            continue
        rare = people_sharing(words.codes + 1, file.people) < smallest_group
        rare &= words.codes >= 0
        tokens = _tokens_of(words, file.people, smallest_group)
        for place, known in places.items():
            inside = np.array([value in known for value in words.values])
            found = inside[words.codes] & (words.codes >= 0)
            categories = np.where(rare, np.where(found, FOUND, ABSENT), COMMON)
            if tells(categories):
                cells.append(
                    Cell(
                        kind="texts",
                        place=place,
                        stage=words.name,
                        categories=categories.astype(np.uint8),
                        found=categories == FOUND,
                    )
                )
            if tokens is not None and len(known) >= LEAST_TOKENS:
                lowered = {text.lower() for text in known}
                cell = _token_cell(place, words, tokens, lowered)
                cells += [cell] if cell is not None else []
    return cells


def _tokens_of(
    words: Words, people: NDArray[np.int64], smallest_group: int
) -> Mapping[int, frozenset[str]] | None:
    """Return the tokens of few people in each text of a column; None if the column holds names and not texts."""
    tokens = {
        code: frozenset(_TOKEN.findall(text.lower()))
        for code, text in enumerate(words.values)
    }
    lengths = [len(tokens[code]) for code in words.codes if code >= 0]
    if not lengths or np.median(lengths) < LEAST_WORDS:
        return None
    holders: defaultdict[str, set[int]] = defaultdict(set)
    for code, person in zip(words.codes.tolist(), people.tolist(), strict=True):
        for token in tokens.get(code, ()):
            if len(holders[token]) < smallest_group:
                holders[token].add(person)
    rare = {token for token, holding in holders.items() if len(holding) < smallest_group}  # fmt: skip
    return {code: inside & rare for code, inside in tokens.items()}


def _token_cell(
    place: str, words: Words, tokens: Mapping[int, frozenset[str]], known: set[str]
) -> Cell | None:
    """Return which share of each record's rare tokens stands at a place: there are none, none of them, some, most, all."""
    by_code = np.zeros(len(words.values) + 1, dtype=np.uint8)
    for code, inside in tokens.items():
        share = len(inside & known) / len(inside) if inside else -1.0
        by_code[code] = np.searchsorted([0.0, 1e-9, 0.5, 1.0], share, side="right")
    categories = by_code[words.codes]
    if (categories > 1).sum() < LEAST_FOUND:
        return None
    return Cell(
        kind="tokens",
        place=place,
        stage=words.name,
        categories=categories,
        found=categories == 4,
    )
