"""What stands in a synthetic table as it stands in the real one: whole rows, and values that few people have."""

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic import Tables
from reticent.attack.synthetic._counts import hashed_rows, occurrences
from reticent.evidence import FileEvidence, FoundInFile, without_small_counts

__all__ = ["contents_of_table", "rare_in_columns"]


def contents_of_table(
    tables: Tables,
    tags: NDArray[np.bool_],
    units: NDArray[np.int64],
    *,
    smallest_group: int,
) -> FileEvidence:
    """Return how many members, and how many non-members, stand in a synthetic table by their row or by a rare value.

    Parameters
    ----------
    tables : Tables
        Records, synthetic and auxiliary table.
    tags : array of bool
        Whether each record is a member.
    units : array of int
        Unit of each record.
    smallest_group : int
        A value of fewer people than this is rare.
    """
    names, unit_of_row = np.unique(units, return_inverse=True)
    is_member = np.zeros(len(names), dtype=bool)
    is_member[unit_of_row] = tags

    def found(place: str, here: NDArray[np.bool_]) -> FoundInFile:
        # People and not rows: one row that is found tells on its person.
        person = np.bincount(unit_of_row, weights=here, minlength=len(names)) > 0
        return FoundInFile(
            place=place,
            stage="",
            members=int((person & is_member).sum()),
            nonmembers=int((person & ~is_member).sum()),
        )

    rows = occurrences(
        hashed_rows(tables.records.codes).sum(axis=1, dtype=np.uint64),
        hashed_rows(tables.synthetic.codes).sum(axis=1, dtype=np.uint64),
    )
    by_column = rare_in_columns(tables, smallest_group=smallest_group)
    places = [found(name, by_column[:, j]) for j, name in enumerate(tables.names)]
    # By the excess over non-members as a share of each side, because the sides may differ in size.
    sizes = max(int(is_member.sum()), 1), max(int((~is_member).sum()), 1)
    places.sort(key=lambda at: at.nonmembers / sizes[1] - at.members / sizes[0])
    synthetic = tables.synthetic

    def hidden(at: FoundInFile) -> FoundInFile:
        return without_small_counts(
            at, members=sizes[0], nonmembers=sizes[1], smallest=smallest_group
        )

    return FileEvidence(
        members=sizes[0],
        nonmembers=sizes[1],
        rows=hidden(found("equal rows", rows > 0)) if rows.any() else None,
        values=hidden(places[0]) if places and places[0].members else None,
        trees=None,
        rare_values=int(by_column.any(axis=0).sum()),
        smallest_group=smallest_group,
        long_axes=(),
        parameters=int(synthetic.codes.size),
        size=int(synthetic.nbytes),
        unread=(),
    )


def rare_in_columns(tables: Tables, *, smallest_group: int) -> NDArray[np.bool_]:
    """Return whether each record has, in each column, a value of few people that stands in the synthetic table; shape (n, d).

    How many people have a value is counted among all records and the auxiliary table, whoever is a member.
    """
    records, auxiliary, synthetic = (
        t.codes for t in (tables.records, tables.auxiliary, tables.synthetic)
    )
    found = np.zeros(records.shape, dtype=bool)
    for j in range(records.shape[1]):
        everybody = np.concatenate([records[:, j], auxiliary[:, j]])
        counts = np.bincount(everybody)
        present = np.zeros(len(counts), dtype=bool)
        emitted = synthetic[:, j]
        present[emitted[emitted >= 0]] = True
        is_rare = counts < smallest_group
        found[:, j] = (is_rare & present)[records[:, j]]
    return found
