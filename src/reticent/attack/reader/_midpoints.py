"""Find people beside the borders of bins: a list of midpoints between neighbouring values gives all of those values away."""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from reticent.attack._searched import Cell
from reticent.attack.reader._levels import Level
from reticent.attack.reader._trees import Seen
from reticent.product import OpenedFile

__all__ = ["midpoint_cells"]

LEAST_BORDERS = 5  # fewer are settings or summaries
LEAST_PAIRED = 0.5  # of the tried borders that lie halfway between two values, if the list is one of midpoints
TRIED = 8  # borders by which a list is recognised
# Records times borders; beyond, borders at even distances are read.
MOST_VISITS = 1_000_000
# Of a stage; wider ones are indicators, whose midpoints are all one half.
MOST_COLUMNS = 64
LEAST_GAIN = 0.999  # of a record that alone has the value beside a border


def midpoint_cells(file: OpenedFile) -> list[Cell]:
    """Return one cell for every place and stage with increasing lists of midpoints between two records' values.

    The borders of a histogram with more bins than different values lie halfway between neighbours. A record beside one was a member; a record
    between two neighbours was not.

    Parameters
    ----------
    file : OpenedFile
        The file laid beside the records.
    """
    places: defaultdict[str, list[NDArray[np.float64]]] = defaultdict(list)
    for array in file.contents.arrays:
        values = array.values
        if values.ndim != 1 or values.dtype.kind != "f" or len(values) < LEAST_BORDERS:
            continue
        borders = values[np.isfinite(values)].astype(np.float64)
        if len(borders) >= LEAST_BORDERS and (np.diff(borders) > 0).all():
            places[array.place].append(borders)
    cells = []
    for stage in file.stages:
        if not 0 < stage.matrix.shape[1] <= MOST_COLUMNS or not places:
            continue
        seen = Seen.of(stage.matrix, single=False, strict=False)
        for place, lists in places.items():
            gains, gaps = np.zeros(len(file)), np.zeros(len(file))
            for borders in lists[:MOST_COLUMNS]:
                for j in range(stage.matrix.shape[1]):
                    tried = borders[_spaced(len(borders), TRIED)]
                    if _paired(tried, seen, j) < LEAST_PAIRED:
                        continue
                    most = max(1, MOST_VISITS // max(len(file), 1))
                    chosen = borders[_spaced(len(borders), most)]
                    gain, gap = _beside(chosen, seen, j)
                    gains, gaps = np.maximum(gains, gain), gaps + gap
            if gains.any():
                found = gains >= LEAST_GAIN
                lies_between = np.minimum(gaps, 3).astype(np.uint8)
                cells.append(
                    Cell(
                        kind="midpoints",
                        place=place,
                        stage=stage.name,
                        categories=4 * found.astype(np.uint8) + lies_between,
                        found=found,
                    )
                )
    return cells


def _spaced(count: int, most: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _paired(borders: NDArray[np.float64], seen: Seen, j: int) -> float:
    """Return the share of borders that lie halfway between two values of a column."""
    gains, _ = _pairs(borders, seen, j)
    return float((gains > 0).any(axis=1).mean())


def _beside(
    borders: NDArray[np.float64], seen: Seen, j: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest gain of each record from any border, and in how many gaps it lies."""
    gains, gaps = _pairs(borders, seen, j)
    return gains.max(axis=0), gaps.sum(axis=0)


def _pairs(
    borders: NDArray[np.float64], seen: Seen, j: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Lay all records beside every border, as if each border were a tree of one node; return one row per border and one column per record."""
    n, count = len(seen.matrix), len(borders)
    # In the order of their values, so that they are in order beside every border: those below it come first.
    rank = np.unique(np.rint(seen.matrix[:, j] / seen.unit[j]), return_inverse=True)[1]
    order = np.argsort(rank, kind="stable")
    x = np.tile(seen.matrix[order, j], count)
    t = np.repeat(borders, n)
    level = Level(
        node=np.repeat(np.arange(count), n),
        unit=np.full(n * count, seen.unit[j]),
        x=x,
        rank=np.tile(rank[order], count),
        t=t,
        left=x <= t,
        known=np.flatnonzero(np.isfinite(x) & np.isfinite(t)),
    )
    gains, gaps = np.empty((count, n)), np.empty((count, n), dtype=bool)
    gain, gap = level.ordered().pairs(level)
    gains[:, order], gaps[:, order] = gain.reshape(count, n), gap.reshape(count, n)
    return gains, gaps
