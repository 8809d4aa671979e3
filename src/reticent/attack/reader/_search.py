"""Look for every record in the product's file, in every way that the reader knows."""

import numpy as np

from reticent.attack._searched import Searched
from reticent.attack.reader._columns import Columns
from reticent.attack.reader._midpoints import midpoint_cells
from reticent.attack.reader._positions import position_cells
from reticent.attack.reader._rows import row_cells
from reticent.attack.reader._trees import tree_evidence
from reticent.attack.reader._values import value_cells, word_cells
from reticent.product import OpenedFile

__all__ = ["search_file"]


def search_file(file: OpenedFile, *, smallest_group: int = 20) -> Searched:
    """Return everything that a file says about the records beside it.

    Parameters
    ----------
    file : OpenedFile
        The file laid beside the records.
    smallest_group : int
        A value that as many people share is nobody's own.
    """
    # The numbers are a stranger's. What overflows is no record, and needs no warning.
    with np.errstate(all="ignore"):
        # Sorted once for all arrays that they are compared with.
        stages = [
            (stage.name, Columns.beside(stage.matrix, file.target, file.people))
            for stage in file.stages
        ]
        rows, copies = row_cells(file, stages)
        values = value_cells(
            file, stages, smallest_group=smallest_group, without=copies
        )
        words = word_cells(file, smallest_group=smallest_group)
        positions = position_cells(file, smallest_group=smallest_group)
        midpoints = midpoint_cells(file)
        trees = tree_evidence(file)
    in_trees = (cell for entry in trees for cell in entry.cells)
    return Searched(
        cells=(*rows, *values, *words, *positions, *midpoints, *in_trees),
        trees=tuple(trees),
        records=len(file),
        smallest_group=smallest_group,
    )
