"""Who is looked at: a sample of the people on either side, their records as numbers, and two halves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.data import Split, Table, as_numbers

__all__ = ["People", "sample_people"]

MOST_ROWS = 80_000  # 40,000 to learn from in each half; the test is exact for any number, more records only add power
MOST_CELLS = 40_000_000  # rows times columns that are held as numbers: 320 MB
FOLDS = 2


@dataclass(frozen=True, kw_only=True)
class People:
    """Records of both sides without what is told by their order.

    Parameters
    ----------
    matrix : array of float, shape (n, d + 1)
        The records as numbers; the target is the last column.
    categorical : array of bool, shape (d + 1,)
        Which columns are categories.
    names : tuple of str
        What each column is called in a sentence.
    tags : array of bool, shape (n,)
        Whose records are members.
    units : array of int, shape (n,)
        The person of each record, numbered from 0.
    fold : array of int, shape (n,)
        The half that the person belongs to, 0 or 1.
    total : int
        Records in the whole table.
    """

    matrix: NDArray[np.float64]
    categorical: NDArray[np.bool_]
    names: tuple[str, ...]
    tags: NDArray[np.bool_]
    units: NDArray[np.int64]
    fold: NDArray[np.int64]
    total: int

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def unit_tags(self) -> NDArray[np.bool_]:
        """Whether each person is a member."""
        tags = np.zeros(self.units.max() + 1, dtype=bool)
        tags[self.units] = self.tags
        return tags


def sample_people(split: Split, *, rng: np.random.Generator) -> People:
    """Return the people of both sides, as many as can be looked at in seconds, in two random halves.

    Given who was chosen and who is in which half, the tags within a half are exchangeable if the two sides are alike: people are drawn by side
    and without looking at their records.

    Parameters
    ----------
    split : Split
        The divided table.
    rng : numpy.random.Generator
        Stream of the sample and of the halves.
    """
    columns = split.defender.features.shape[1] + 1
    most = min(MOST_ROWS, max(MOST_CELLS // columns, 1))
    total = len(split.defender) + len(split.reserved)
    parts = [split.defender, split.reserved]
    if total > most:
        # The smaller side is kept whole as far as possible: it decides what can be seen.
        few = min(most // 2, *(len(part) for part in parts))
        parts = [_some(part, max(most // 2, most - few), rng) for part in parts]
    both = parts[0].join(parts[1])
    tags = np.repeat([True, False], [len(part) for part in parts])
    matrix, categorical = as_numbers(both)
    _, units = np.unique(both.units, return_inverse=True)
    fold_of_unit = np.empty(units.max() + 1, dtype=np.int64)
    for tag in (False, True):
        people = rng.permutation(np.unique(units[tags == tag]))
        fold_of_unit[people] = np.arange(len(people)) % FOLDS
    return People(
        matrix=matrix,
        categorical=categorical,
        names=(*(f"column {name!r}" for name in both.features.columns), "the target"),
        tags=tags,
        units=units,
        fold=fold_of_unit[units],
        total=total,
    )


def _some(part: Table, most: int, rng: np.random.Generator) -> Table:
    """Return the records of random people, about so many; if one person has more, some of that person's."""
    if len(part) <= most:
        return part
    names, unit = np.unique(part.units, return_inverse=True)
    rows = np.bincount(unit)
    order = rng.permutation(len(names))
    # People are added until the number is reached, two at least, so that both halves have somebody.
    chosen = order[: max(2, int(np.searchsorted(np.cumsum(rows[order]), most)))]
    kept = np.flatnonzero(np.isin(unit, chosen))
    if len(kept) > most:
        kept = np.sort(rng.choice(kept, most, replace=False))
    return part.take(kept)
