"""Count what a file contains, for people who decide: how many members it shows, and how much of it could not be read."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom

from reticent.attack._searched import Cell, Searched
from reticent.attack.reader._columns import row_hashes
from reticent.attack.reader._rows import equal_rows
from reticent.attack.synthetic._counts import unlike_all_others
from reticent.errors import InvalidInput
from reticent.product import OpenedFile

__all__ = ["FileCounts", "FoundAt", "HeldOutCounts", "count_file", "first_alone"]

# A place where non-members are found nearly as often as members shows coincidences of the table and not the product: zeros among weights
# are zeros among records. Rare towns of members, of which strangers live in half, are beyond doubt not that.
# Columns of records that are compared with each other by all columns but one.
MOST_COMPARED = 256
FINE = 2.0**-50  # of a column's largest number


@dataclass(frozen=True, kw_only=True)
class FoundAt:
    """How many people's records are found at one place of a file.

    Members and non-members are found alike where records coincide; only the difference is due to the product.

    Parameters
    ----------
    place : str
        Where in the file; it quotes nothing but names of attributes.
    stage : str
        As which step of the product sees the records, or which column.
    members, nonmembers : int
        How many of them are found there.
    among : int
        Places of the same family at which anybody is found: this one was chosen among them.
    rows : int
        Of whole records: how many different rows stand there.
    coincidence : float
        Of whole records: the largest chance that a row of nobody in question equals one of them.
    """

    place: str
    stage: str
    members: int
    nonmembers: int
    among: int = 1
    rows: int = 0
    coincidence: float = 1.0

    def chance(self, members: int, nonmembers: int) -> float:
        """Return how likely coincidence alone finds as many members or more: given how many are found of both (Fisher), or given the rows that stand there."""
        found = self.members + self.nonmembers
        among_people = hypergeom.sf(self.members - 1, members + nonmembers, members, found)  # fmt: skip
        among_rows = binom.sf(min(self.members, self.rows) - 1, self.rows, self.coincidence)  # fmt: skip
        return float(min(among_people, among_rows))


@dataclass(frozen=True, kw_only=True)
class HeldOutCounts:
    """Non-members at a place of whole rows: different records that stand there and equal no member's, and the other way round; and how many rows stand there."""

    place: str
    found: int
    alike: int
    rows: int
    among: int


@dataclass(frozen=True, kw_only=True)
class FileCounts:
    """What a file contains, in numbers.

    Each ``FoundAt`` is the place that coincidence explains least, never a union of places; places where non-members are found nearly as often
    are left out. They count people, of whom one record that is found is enough. No interval belongs to them: what they mean for privacy is for
    statements to say.

    Parameters
    ----------
    members, nonmembers : int
        People beside the file.
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
    held_out : HeldOutCounts or None
        The place at which most non-members stand who equal no member; None if no whole rows are found.
    lone : tuple of str and int, or None
        A place where the whole row of a member stands, and of nobody else whom nobody resembles, and how many these others are.
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
    held_out: HeldOutCounts | None = None
    lone: tuple[str, int] | None = None

    @property
    def records_per_parameter(self) -> float:
        """How many members there are for each number of the file; infinite if it has none."""
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
    names, person = np.unique(file.people, return_inverse=True)
    is_member = np.zeros(len(names), dtype=bool)
    is_member[person] = tags
    members, nonmembers = int(is_member.sum()), int((~is_member).sum())

    def best(*kinds: str) -> FoundAt | None:
        anybody = [cell for cell in cells if cell.kind in kinds and cell.found.any()]
        counted = []
        for cell in anybody:
            # People and not records: one that is found tells on its person, and those of one person are found together.
            found = np.bincount(person, weights=cell.found, minlength=len(names)) > 0
            counted.append(
                FoundAt(
                    place=cell.place,
                    stage=cell.stage,
                    members=int((found & is_member).sum()),
                    nonmembers=int((found & ~is_member).sum()),
                    among=len(anybody),
                    rows=cell.rows,
                    coincidence=cell.coincidence,
                )
            )
        telling = [
            at
            for at in counted
            if at.nonmembers * members < at.members * max(nonmembers, 1)
        ]
        return min(
            telling,
            # Where chances are too small for a number, by the members who are found.
            key=lambda at: (at.chance(members, nonmembers), -at.members),
            default=None,
        )

    contents = file.contents
    placed = {trees.place for trees in searched.trees}
    unplaced = dict.fromkeys(
        tree.place for tree in contents.trees if tree.width and tree.place not in placed
    )
    return FileCounts(
        members=members,
        nonmembers=nonmembers,
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
        held_out=_held_out(file, cells, tags),
        lone=_lone(file, cells, tags),
    )


def _lists_of_members(file: OpenedFile, tags: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the places of arrays with an entry for each member, or for each of their people; one for each column of the records is something else."""
    lengths = {int(tags.sum()), len(np.unique(file.people[tags]))}
    lengths -= {stage.matrix.shape[1] for stage in file.stages}
    return file.contents.with_axis(*lengths)


def _held_out(
    file: OpenedFile, cells: Iterable[Cell], tags: NDArray[np.bool_]
) -> HeldOutCounts | None:
    """Return at which place most different records of non-members stand that equal no member's; None if no place holds whole rows."""
    places = [
        cell for cell in cells if cell.kind == "rows" and cell.found.any() and cell.rows
    ]
    if not places:
        return None
    matrix = file.stages[0].matrix
    # A grid so fine that numbers share a cell only if they are one, in doubles.
    largest = np.abs(np.nan_to_num(matrix)).max(axis=0, initial=1e-300)
    hashes = row_hashes(matrix, largest * FINE, 0.0)
    alone = first_alone(file.people, hashes, ~tags)
    counts = []
    for cell in places:
        equal = equal_rows(file, cell, tags)
        counts.append(
            HeldOutCounts(
                place=cell.place,
                found=int((alone & cell.found & ~equal).sum()),
                alike=int((alone & equal & ~cell.found).sum()),
                rows=cell.rows,
                among=len(places),
            )
        )
    return max(counts, key=lambda at: at.found - at.alike, default=None)


def _lone(
    file: OpenedFile, cells: Iterable[Cell], tags: NDArray[np.bool_]
) -> tuple[str, int] | None:
    """Return a place where members stand whom nobody resembles and no such non-member does, and how many these are; None if there is none."""
    matrix = file.stages[0].matrix
    width = matrix.shape[1]
    whole = [
        cell
        for cell in cells
        if cell.kind == "rows" and cell.found[tags].any() and len(cell.columns) >= width
    ]
    if not whole or width > MOST_COMPARED:
        return None
    codes = np.column_stack([np.unique(c, return_inverse=True)[1] for c in matrix.T])
    alone = unlike_all_others(codes.astype(np.int32))
    for cell in whole:
        found = alone & cell.found
        if found[tags].any() and not found[~tags].any():
            return cell.place, int((alone & ~tags).sum())
    return None


def first_alone(
    people: NDArray[np.int64], rows: NDArray[np.uint64], asked: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the first records of the people asked about whose row is no other first record's: such records are found independently of each other.

    Examples
    --------
    >>> first_alone(np.array([0, 0, 1, 2]), np.array([5, 6, 7, 7], dtype=np.uint64), np.array([True] * 4)).tolist()
    [True, False, False, False]
    """
    chosen = np.zeros(len(people), dtype=bool)
    at = np.flatnonzero(asked)
    _, first = np.unique(people[at], return_index=True)
    at = at[first]
    _, place, counts = np.unique(rows[at], return_inverse=True, return_counts=True)
    chosen[at[counts[place] == 1]] = True
    return chosen


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
