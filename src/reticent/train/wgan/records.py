"""The records of a training as cells, of which only those that take part in a step become coordinates; and what a training and its rows take of the memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.data import ColumnKind, Table
from reticent.train.wgan.coding import MOST_LEVELS, Coding

__all__ = ["CodedRecords", "WorkingSet"]

Array = NDArray[np.float64]
CELL, NUMBER = 4, 8  # bytes of a cell of a record, and of a coordinate or value
# Coordinates of a column that is not one of categories: two levels or a rank, and whether there is a value.
MOST_OF_NUMBERS = 3
# Of the column whose rows are turned into cells: probabilities, shifted ones, the step of shifting and their sums.
COPIES = 4
# Numbers per record while a column of the table is turned into cells: its values, present ones, places, and where they are missing.
READING = 6
NETWORKS = 0.05  # gigabytes of both networks, what their optimisers remember, and the layers of the rows that are made at once


@dataclass(frozen=True)
class CodedRecords:
    """Coordinates of records, made when they are asked for.

    The coordinates of a million records with some categories take a gigabyte; their cells take a tenth of it, and a step asks for a few thousand records.

    Parameters
    ----------
    cells : array of int, shape (n, columns)
        The cell of each record and column.
    coding : Coding
        How cells become coordinates.
    """

    cells: NDArray[np.int32]
    coding: Coding

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, rows: NDArray[np.int64], /) -> Array:
        return self.coding.code(self.cells[rows].astype(np.int64))


@dataclass(frozen=True, kw_only=True)
class WorkingSet:
    """The gigabytes that a training and its rows take at most, beside the table itself.

    How many coordinates there are follows from noisy histograms; the most that there can be are counted, so that the answer is known before any of the budget is spent.

    Parameters
    ----------
    training : float
        While the generator is trained.
    sampling : float
        While rows are drawn from it.
    """

    training: float
    sampling: float

    @classmethod
    def of(cls, table: Table, *, rows: int, sampling_rate: float) -> "WorkingSet":
        """Return what a table takes.

        Parameters
        ----------
        table : Table
            The records.
        rows : int
            Rows that are made.
        sampling_rate : float
            Share of the records that are coordinates at the same time.
        """
        kinds = list(table.schema.columns.values())
        most = [
            MOST_LEVELS if kind == ColumnKind.CATEGORICAL else MOST_OF_NUMBERS
            for kind in kinds
        ]
        cells = CELL * len(kinds) * len(table)
        reading = NUMBER * READING * len(table)
        # Coordinates of the records of a step, beside the parts that they are put together from.
        step = 2 * NUMBER * sum(most) * sampling_rate * len(table)
        # Coordinates, cells and values of a synthetic row, and what its widest column takes while it is turned into cells.
        row = NUMBER * (sum(most) + 2 * len(kinds) + COPIES * max(most))
        return cls(
            training=NETWORKS + (cells + max(reading, step)) / 1e9,
            sampling=NETWORKS + row * rows / 1e9,
        )
