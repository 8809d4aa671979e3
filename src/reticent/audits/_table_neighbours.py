"""Neighbouring tables that differ in one person and are as easy to tell apart as a generator of synthetic tables allows.

References
----------
.. [1] Annamalai, Ganev & De Cristofaro, "'What do you want from theory alone?' Experimenting with tight auditing of differentially private synthetic
   data generation", arXiv:2405.10994, Section 4 (worst-case neighbouring tables for generators that are run again).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.account import Relation
from reticent.data import ColumnKind, Table

__all__ = ["NeighbouringTables", "ordinary_neighbours", "worst_neighbours"]

# Records of the smaller table: as many as the members, so that a generator finds what it needs, but no more, so that it can be run often.
MOST_RECORDS = 1_000
# Records like the one in question that both tables have. With none, a value that only one person has is seen; with some, counts are large enough
# that a generator which cuts off negative counts does not cut off what is to be seen.
ALIKE = (0, 10)


@dataclass(frozen=True, kw_only=True)
class NeighbouringTables:
    """Two tables that differ in one person, and how a made table is scored: by how much it resembles that person.

    Parameters
    ----------
    name : str
        What kind of neighbours they are.
    first, second : Table
        With the person and without.
    usual, asked : tuple
        The values of all others, and those of the person, in the order of the columns; NaN for missing.
    """

    name: str
    first: Table
    second: Table
    usual: tuple[object, ...]
    asked: tuple[object, ...]

    def score(self, frame: pd.DataFrame) -> float:
        """Return how many records' worth of cells of a made table lie on the person's side, on average over the columns.

        A number lies on the side of the value that is nearer, any other value on the person's side if it is not the usual one.
        """
        shares = [
            float(_on_side(frame[name], usual, asked).mean())
            for name, usual, asked in zip(
                self.first.schema.columns, self.usual, self.asked, strict=True
            )
            if not _same(usual, asked)
        ]
        return len(self.second) * float(np.mean(shares)) if shares else 0.0


def worst_neighbours(
    members: Table, others: Sequence[Table], relation: Relation
) -> tuple[NeighbouringTables, ...]:
    """Return pairs of tables: one person who differs from everybody else in every column, with and without some who are like that person.

    Everybody else is alike. Values are taken from the table itself, so that generators of such tables take them.

    Parameters
    ----------
    members : Table
        The records that the audited table was made from.
    others : sequence of Table
        Further people of the same source: extreme values may be theirs.
    relation : Relation
        Whether the second table lacks the person, or has a usual one in their place.
    """
    usual, asked = _two_people(members, others)
    count = min(len(members), MOST_RECORDS)
    found = []
    for alike in ALIKE:
        rows = [usual] * (count - alike) + [asked] * (alike + 1)
        found.append(
            NeighbouringTables(
                name="the person alone"
                if alike == 0
                else f"{alike} people like the person",
                first=_table_of(rows, members),
                second=_table_of(_without_last(rows, usual, relation), members),
                usual=usual,
                asked=asked,
            )
        )
    return tuple(found)


def ordinary_neighbours(
    members: Table, others: Sequence[Table], relation: Relation
) -> tuple[NeighbouringTables, ...]:
    """Return members with and without one person who is unusual in every column, for generators that fail where everybody else is alike.

    Parameters
    ----------
    members, others, relation
        As in :func:`worst_neighbours`.
    """
    usual, asked = _two_people(members, others)
    count = min(len(members), MOST_RECORDS)
    names = list(members.schema.columns)
    people = members.features[names].iloc[:count].itertuples(index=False, name=None)
    rows = [*people, asked]
    return (
        NeighbouringTables(
            name="the person among members",
            first=_table_of(rows, members),
            second=_table_of(_without_last(rows, usual, relation), members),
            usual=usual,
            asked=asked,
        ),
    )


def _without_last(
    rows: list[tuple[object, ...]], usual: tuple[object, ...], relation: Relation
) -> list[tuple[object, ...]]:
    return rows[:-1] + ([usual] if relation == Relation.REPLACE else [])


def _two_people(
    members: Table, others: Sequence[Table]
) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Return a usual person, and one who differs from that one in every column."""
    everybody = pd.concat(
        [members.features, *(table.features for table in others)], ignore_index=True
    )
    pairs = [
        _two_values(everybody[name], kind)
        for name, kind in members.schema.columns.items()
    ]
    return tuple(usual for usual, _ in pairs), tuple(asked for _, asked in pairs)


def _two_values(column: "pd.Series[Any]", kind: ColumnKind) -> tuple[object, object]:
    """Return the value of everybody and that of one person: the most frequent and the next, or the median and the value farthest from it."""
    values = column.dropna()
    if not len(values):
        return np.nan, np.nan
    if kind == ColumnKind.NUMERIC:
        numbers = values.to_numpy(dtype=np.float64)
        middle = float(np.sort(numbers)[len(numbers) // 2])
        ends = float(numbers.min()), float(numbers.max())
        return middle, max(ends, key=lambda end: abs(end - middle))
    if kind == ColumnKind.BOOLEAN:
        usual = float(values.astype(np.float64).mean() > 0.5)
        return usual, 1.0 - usual
    frequent = values.value_counts().index
    return frequent[0], frequent[min(1, len(frequent) - 1)]


def _table_of(rows: list[tuple[object, ...]], members: Table) -> Table:
    names = list(members.schema.columns)
    frame = pd.DataFrame(rows, columns=names)
    for name in names:
        frame[name] = frame[name].astype(members.features[name].dtype)
    count = np.arange(len(rows), dtype=np.int64)
    return replace(
        members,
        features=frame,
        target=np.zeros(len(rows), dtype=members.target.dtype),
        units=count,
        ids=count,
        groups=None,
        parts=None,
    )


def _on_side(
    column: "pd.Series[Any]", usual: object, asked: object
) -> NDArray[np.bool_]:
    if isinstance(usual, float) and isinstance(asked, float):
        numbers = column.to_numpy(dtype=np.float64)
        return np.asarray(np.abs(numbers - asked) < np.abs(numbers - usual))
    return np.asarray(column.notna() & (column != usual))


def _same(usual: object, asked: object) -> bool:
    # Texts and numbers; missing values are NaN.
    return str(usual) == str(asked)
