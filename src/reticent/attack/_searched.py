"""What a search of the product's file found of every record: the values that the reader scores and counts."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cell", "Searched", "TreeEvidence"]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What one place of the file says about every record.

    Parameters
    ----------
    kind : str
        What is compared: ``"rows"``, ``"near rows"``, ``"values"``, ``"texts"``, ``"tokens"``, ``"midpoints"`` or ``"trees"``.
    place : str
        Where in the file.
    stage : str
        As which step of the product sees the records, or which column.
    categories : array of int, shape (n,)
        The category of each record, from 0.
    found : array of bool, shape (n,)
        Which records count as found at this place.
    columns : tuple of int
        For whole rows, the columns of the stage, its target last, that stand at this place.
    tolerance : tuple of float
        For whole rows, by how much numbers of each of these columns may differ there and still be one.
    rows : int
        For whole rows, how many different ones stand there.
    coincidence : float
        For whole rows, the largest chance that a row of nobody in question equals one of the records.
    """

    kind: str
    place: str
    stage: str
    categories: NDArray[np.uint8]
    found: NDArray[np.bool_]
    columns: tuple[int, ...] = ()
    tolerance: tuple[float, ...] = ()
    rows: int = 0
    coincidence: float = 1.0

    def take(self, rows: NDArray[np.int64]) -> "Cell":
        """Return the same for only some of the records."""
        return replace(self, categories=self.categories[rows], found=self.found[rows])


@dataclass(frozen=True, kw_only=True)
class TreeEvidence:
    """What the trees at one place say about each record.

    Parameters
    ----------
    place : str
        Where in the file.
    inputs : array of float, shape (n, 11)
        Mean and largest gain from pairs, share of trees with a gap, mean and smallest share of a leaf's room, share of leaves that
        answer the record's own target; mean and spread over trees of the distance to the nearest threshold on the way, mean of the
        distances to all of them, and how often and how far from the middle thresholds have the record as their neighbour.
    cells : tuple of Cell
        The same in bins.
    """

    place: str
    inputs: NDArray[np.float64]
    cells: tuple[Cell, ...]

    def take(self, rows: NDArray[np.int64]) -> "TreeEvidence":
        """Return the same for only some of the records."""
        cells = tuple(cell.take(rows) for cell in self.cells)
        return replace(self, inputs=self.inputs[rows], cells=cells)


@dataclass(frozen=True, kw_only=True)
class Searched:
    """Everything that a file says about the records beside it.

    Parameters
    ----------
    cells : tuple of Cell
        One per place and stage, those of the trees included.
    trees : tuple of TreeEvidence
        One per place with trees.
    records : int
        Number of records.
    smallest_group : int
        A value that as many people share was nobody's own in this search.
    """

    cells: tuple[Cell, ...]
    trees: tuple[TreeEvidence, ...]
    records: int
    smallest_group: int

    def take(self, rows: NDArray[np.int64]) -> "Searched":
        """Return what the search among all records found of some of them."""
        return replace(
            self,
            cells=tuple(cell.take(rows) for cell in self.cells),
            trees=tuple(entry.take(rows) for entry in self.trees),
            records=len(rows),
        )

    @property
    def nbytes(self) -> int:
        """Size of its arrays."""
        cells = (c.categories.nbytes + c.found.nbytes for c in self.cells)
        return sum(cells) + sum(entry.inputs.nbytes for entry in self.trees)
