"""Count what a file contains, for people who decide: how many members it shows, and how much of it could not be read."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.attack._searched import Cell, Searched
from reticent.errors import InvalidInput
from reticent.product import OpenedFile

__all__ = ["FileCounts", "FoundAt", "count_file"]

# A place where non-members are found nearly as often as members shows coincidences of the table and not the product: zeros among weights
# are zeros among records. Rare towns of members, of which strangers live in half, are beyond doubt not that.
COINCIDENCE = 1.0


@dataclass(frozen=True, kw_only=True)
class FoundAt:
    """How many records are found at one place of a file.

    Members and non-members are found alike where records coincide; only the difference is due to the product.

    Parameters
    ----------
    place : str
        Where in the file; it quotes nothing but names of attributes.
    stage : str
        As which step of the product sees the records, or which column.
    members, nonmembers : int
        How many of them are found there.
    """

    place: str
    stage: str
    members: int
    nonmembers: int


@dataclass(frozen=True, kw_only=True)
class FileCounts:
    """What a file contains, in numbers.

    Each ``FoundAt`` is the place that shows most members beyond as many non-members, never a union of places; places where non-members are
    found nearly as often are coincidences, and left out. No interval belongs to
    them: they are counts of this file and these records. What they mean for privacy is for the attack's scores to say.

    Parameters
    ----------
    members, nonmembers : int
        Records beside the file.
    rows : FoundAt or None
        Where whole records stand; None if nowhere.
    values : FoundAt or None
        Where values, texts or tokens stand that few people share.
    trees : FoundAt or None
        Where thresholds and leaves point to single records.
    rare_values : int
        Different values and texts of the records, each shared by fewer people than ``smallest_group``, that stand in the file.
    smallest_group : int
        That number of people.
    long_axes : tuple of str
        Places of arrays with an axis as long as the number of members.
    parameters : int
        Numbers in arrays of floats.
    size : int
        Bytes of the file.
    unread : tuple of str
        What could not be read, and why; also steps of the product's preparation that could not be followed.
    """

    members: int
    nonmembers: int
    rows: FoundAt | None
    values: FoundAt | None
    trees: FoundAt | None
    rare_values: int
    smallest_group: int
    long_axes: tuple[str, ...]
    parameters: int
    size: int
    unread: tuple[str, ...]

    @property
    def records_per_parameter(self) -> float:
        """How many records were trained on for each number of the file; infinite if it has none."""
        return self.members / self.parameters if self.parameters else float("inf")


def count_file(
    file: OpenedFile, searched: Searched, tags: NDArray[np.bool_]
) -> FileCounts:
    """Count what a file shows of members and of non-members.

    Parameters
    ----------
    file : OpenedFile
        The file laid beside the records.
    searched : Searched
        What was found of them in it.
    tags : array of bool, shape (n,)
        Whether each record is a member.

    Raises
    ------
    InvalidInput
        If there is not one tag per record.
    """
    if tags.shape != (len(file),):
        raise InvalidInput(
            f"there are {tags.size} tags for {len(file)} records; pass one per record."
        )
    cells = searched.cells

    def best(*kinds: str) -> FoundAt | None:
        counted = [
            FoundAt(
                place=cell.place,
                stage=cell.stage,
                members=int((cell.found & tags).sum()),
                nonmembers=int((cell.found & ~tags).sum()),
            )
            for cell in cells
            if cell.kind in kinds and cell.found.any()
        ]
        members, nonmembers = max(int(tags.sum()), 1), max(int((~tags).sum()), 1)
        telling = [
            at
            for at in counted
            if at.nonmembers / nonmembers < COINCIDENCE * at.members / members
        ]
        return max(
            telling,
            key=lambda at: at.members / members - at.nonmembers / nonmembers,
            default=None,
        )

    contents = file.contents
    placed = {trees.place for trees in searched.trees}
    unplaced = dict.fromkeys(
        tree.place for tree in contents.trees if tree.width and tree.place not in placed
    )
    return FileCounts(
        members=int(tags.sum()),
        nonmembers=int((~tags).sum()),
        rows=best("rows"),
        values=best("values", "texts", "tokens", "positions"),
        trees=best("trees", "midpoints"),
        rare_values=_rare_values(file, cells),
        smallest_group=searched.smallest_group,
        long_axes=_lists_of_members(file, tags),
        parameters=contents.parameters,
        size=contents.size,
        unread=(
            *(f"{part.place}: {part.why}" for part in contents.unread),
            *(f"{step}: its output could not be made" for step in file.unseen),
            *(f"{place}: its trees fit no form of the records" for place in unplaced),
        ),
    )


def _lists_of_members(file: OpenedFile, tags: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the places of arrays with an entry for each member, or for each of their people; one for each column of the records is something else."""
    lengths = {int(tags.sum()), len(np.unique(file.people[tags]))}
    lengths -= {stage.matrix.shape[1] for stage in file.stages}
    return file.contents.with_axis(*lengths)


def _rare_values(file: OpenedFile, cells: Iterable[Cell]) -> int:
    """Return how many different values of few people stand anywhere in the file, counted once per column."""
    found: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for cell in cells:
        if cell.kind in ("values", "texts"):
            at = (cell.kind, cell.stage)
            found[at] = found.get(at, np.zeros(len(file), dtype=bool)) | cell.found
    records = file.stages[0]
    columns = {
        ("values", f"{records.name}, column {j + 1}"): column
        for j, column in enumerate(records.matrix.T)
    }
    columns |= {("values", "target, column 1"): file.target}
    columns |= {("texts", words.name): words.codes for words in file.words}
    return sum(
        len(np.unique(columns[at][mask])) for at, mask in found.items() if at in columns
    )
