"""What a preparation may learn: nothing that fewer people hold than a group must have to be shown.

A list of categories is part of the file, and a town in it in which a single member lives says that this person was in the table. So do an
exact smallest value, largest value or median. A preparation of ours learns the categories that enough people have, and of numbers
the mean and the variance over enough people.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import ColumnKind, Table, number_of_people

__all__ = [
    "MISSING_CATEGORY",
    "SMALLEST_GROUP",
    "frequent_categories",
    "people_with",
    "rare_in",
]

MISSING_CATEGORY = "(missing)"  # a missing value is a separate category
SMALLEST_GROUP = 20  # people; as in the policies that ship


def frequent_categories(
    values: pd.Series, units: NDArray[np.int64], *, most: int | None = None
) -> list[object]:
    """Return the categories that at least :data:`SMALLEST_GROUP` people have, sorted.

    Parameters
    ----------
    values : Series
        A column of texts, or of numbers that stand for them; a missing value counts as a category.
    units : array of int
        The person each value belongs to.
    most : int, optional
        Largest number of categories; the most frequent are taken.

    Examples
    --------
    >>> towns = pd.Series(["Bonn"] * 20 + ["Ulm"] * 19 + [None])
    >>> frequent_categories(towns, np.arange(40))
    ['Bonn']
    """
    known = values.fillna(MISSING_CATEGORY) if values.dtype == object else values
    pairs = pd.DataFrame({"category": known.to_numpy(), "unit": units})
    people = pairs.drop_duplicates()["category"].value_counts(sort=False)
    frequent = people[people >= SMALLEST_GROUP]
    if most is not None and len(frequent) > most:
        # Of equally frequent ones the first in the alphabet, whatever the order of the rows.
        frequent = frequent.sort_index().sort_values(ascending=False, kind="stable")
        frequent = frequent.iloc[:most]
    return sorted(frequent.index)


def people_with(values: pd.Series, units: NDArray[np.int64]) -> int:
    """Return how many people have a value."""
    return number_of_people(units[values.notna().to_numpy()])


def rare_in(table: Table) -> tuple[str, ...]:
    """Return what a preparation does not learn of a table, in words: categories by their number, since a name would tell.

    Examples
    --------
    >>> from reticent.data import table_from_frame
    >>> towns = pd.DataFrame({"town": ["Bonn"] * 30 + ["Ulm", "Jena"]})
    >>> rare_in(table_from_frame(towns, target=np.arange(32) % 2))
    ("2 categories of 'town'",)
    """
    words = []
    for name in table.schema.names(ColumnKind.NUMERIC):
        if people_with(table.features[name], table.units) < SMALLEST_GROUP:
            words.append(f"a value of {str(name)!r}")
    for name in table.schema.names(ColumnKind.CATEGORICAL):
        column = table.features[name]
        known = frequent_categories(column, table.units)
        rare = column.fillna(MISSING_CATEGORY).nunique() - len(known)
        if rare:
            plural = "category" if rare == 1 else "categories"
            words.append(f"{rare:,} {plural} of {str(name)!r}")
    return tuple(words)
