"""Who teaches whom: parts of the records, by person, each of which some teacher never sees."""

import numpy as np
from numpy.typing import NDArray

from reticent.data import Table
from reticent.errors import InvalidInput

__all__ = ["folds_of", "teaching_masks"]


def folds_of(
    table: Table, folds: int, *, rng: np.random.Generator, stratified: bool
) -> NDArray[np.int64]:
    """Return the part of each record, shape (n,); all rows of a person are in one part.

    Parts differ by at most one person. Stratified ones have each class in equal numbers as well, a person counting for the class of
    their first row: otherwise the classes of the other parts would betray a record's own class.

    Parameters
    ----------
    table : Table
        The records.
    folds : int
        Number of parts.
    rng : Generator
        Random order of the people.
    stratified : bool
        Whether classes are spread evenly. Private training must not: the part of a record would depend on the labels of others.

    Raises
    ------
    InvalidInput
        If there are fewer people than parts.
    """
    _, first, person = np.unique(table.units, return_index=True, return_inverse=True)
    people = len(first)
    if people < folds:
        raise InvalidInput(
            f"{people} people cannot be divided into {folds} parts, so that each record has a teacher that never saw it; use more records "
            "or fewer folds."
        )
    order = rng.permutation(people)
    if stratified and not table.is_quantity:
        order = order[np.argsort(table.target[first[order]], kind="stable")]
    part = np.empty(people, dtype=np.int64)
    part[order] = np.arange(people) % folds
    return np.asarray(part[person])


def teaching_masks(
    table: Table,
    folds: int,
    repeats: int,
    *,
    rng: np.random.Generator,
    stratified: bool,
) -> NDArray[np.bool_]:
    """Return which records each teacher is trained on, shape (folds * repeats, n).

    Parameters
    ----------
    table : Table
        The records of one model.
    folds, repeats : int
        Parts of each division, and divisions.
    rng, stratified
        As in :func:`folds_of`.
    """
    divisions = [
        folds_of(table, folds, rng=rng, stratified=stratified) for _ in range(repeats)
    ]
    return np.concatenate(
        [division[None] != np.arange(folds)[:, None] for division in divisions]
    )
