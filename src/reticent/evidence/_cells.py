"""Cells in which members and non-members are compared: values that occur often are counted, all others smoothed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

__all__ = ["CELLS", "Cells", "cells_of_numbers", "cells_of_values", "common_values"]

CELLS = 512  # of the grid on which densities are compared: finer than the kernel
# Records, of both sides together, that make a value a cell of its own. Fewer are compared by smoothing: counting values
# of ten records each shows about 0.8 / sqrt(10) = 0.25 where nothing is, and that is as much as a useful bound can bear.
COMMON = 10
DRAWS = 100  # of what smooth densities would show; mean and deviation of a sum over many values need no more
BEYOND_CHANCE = 6.0  # deviations: densities are estimated, so that a little more than chance is no sign
MOST_COMMON = 4096  # cells of their own; bounds time and memory of the permutations


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The cell of every record, and how differences between cells are smoothed.

    Parameters
    ----------
    members, nonmembers : array of int
        The cell of each record. The first ``counted`` cells are compared as they are, the others after smoothing.
    counted, smoothed : int
        Numbers of cells.
    width : float
        Standard deviation of the Gaussian kernel on the smoothed cells, in cells.
    threshold : float
        The vulnerability of the best single threshold on the values, which is 0 if they have no order. It is computed without smoothing,
        which would flatten a sharp edge.
    """

    members: NDArray[np.int64]
    nonmembers: NDArray[np.int64]
    counted: int
    smoothed: int = 0
    width: float = 0.0
    threshold: float = 0.0

    @property
    def total(self) -> int:
        """Number of all cells."""
        return self.counted + self.smoothed

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of members and of non-members in each cell."""
        members, nonmembers = (
            np.bincount(codes, minlength=self.total)
            for codes in (self.members, self.nonmembers)
        )
        return members, nonmembers

    def distance(
        self, a: NDArray[np.int64], b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the total variation between counts of the members and of the non-members, over the last axis."""
        gap = self._smooth(a / len(self.members) - b / len(self.nonmembers), 1.0)
        return np.asarray(np.abs(gap).sum(axis=-1) / 2)

    def cross_fitted(
        self, rng: np.random.Generator
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Call a record a member if the other half of the records has relatively more members in its cell."""
        d, r = self.members, self.nonmembers
        d_half = rng.permutation(len(d)) % 2 == 0
        r_half = rng.permutation(len(r)) % 2 == 0
        d_called, r_called = np.zeros(len(d), bool), np.zeros(len(r), bool)
        for d_here, r_here in ((d_half, r_half), (~d_half, ~r_half)):
            a = np.bincount(d[~d_here], minlength=self.total) / max(1, (~d_here).sum())
            b = np.bincount(r[~r_here], minlength=self.total) / max(1, (~r_here).sum())
            # Half of the records need a kernel wider by 2^(1/4), by the rule of cells_of_numbers.
            gap = self._smooth(a - b, 2**0.25)
            d_called[d_here] = gap[d[d_here]] > 0
            r_called[r_here] = gap[r[r_here]] > 0
        return d_called, r_called

    def _smooth(self, gap: NDArray[np.float64], wider: float) -> NDArray[np.float64]:
        if self.smoothed and self.width > 0:
            part = gap[..., self.counted :]
            gap[..., self.counted :] = gaussian_filter1d(
                part, self.width * wider, axis=-1, mode="reflect"
            )
        return gap


def cells_of_values(d: NDArray[np.float64], r: NDArray[np.float64]) -> Cells:
    """Return one cell for each value."""
    values, codes = np.unique(np.concatenate([d, r]), return_inverse=True)
    sides = codes[: len(d)], codes[len(d) :]
    return Cells(
        members=sides[0],
        nonmembers=sides[1],
        counted=len(values),
        threshold=_best_threshold(*sides, len(values)),
    )


def cells_of_numbers(
    d: NDArray[np.float64], r: NDArray[np.float64], rng: np.random.Generator
) -> Cells:
    """Return a cell for each value that occurs often, and a grid on the ranks of all other values.

    Total variation adds up over parts that do not overlap, so the two kinds of values can be compared each in its own way. If records with the same value are on the same side
    far more often than smooth densities would have it, every value that occurs twice has a cell of its own: smoothing would hide what sets them apart.

    Parameters
    ----------
    d, r : array of float
        The values of members and of non-members.
    rng : numpy.random.Generator
        Draws what smooth densities would show.
    """
    cells, tied = _cells(d, r, COMMON), _cells(d, r, 2)
    if tied.counted > cells.counted and _alternate(cells, tied, rng):
        return tied
    return cells


def _alternate(cells: Cells, tied: Cells, rng: np.random.Generator) -> bool:
    """Return whether sides agree within rare values beyond what the smoothed densities of both sides explain."""
    sides = zip(cells.counts(), (cells.members, cells.nonmembers), strict=True)
    smooth = [cells._smooth(counts.astype(np.float64), 1.0) for counts, _ in sides]
    with np.errstate(invalid="ignore"):
        chance = np.nan_to_num(smooth[0] / (smooth[0] + smooth[1]))
    cell = np.concatenate([cells.members, cells.nonmembers])
    value = np.concatenate([tied.members, tied.nonmembers])
    rare = (cell >= cells.counted) & (value < tied.counted)
    names, places, counts = np.unique(value[rare], return_inverse=True, return_counts=True)  # fmt: skip
    expected = np.zeros(len(names))
    expected[places] = np.clip(chance[cell[rare]], 0.0, 1.0)
    members = np.arange(len(value))[rare] < len(tied.members)
    seen = np.bincount(places, weights=members)
    drawn = rng.binomial(counts, expected, size=(DRAWS, len(names)))
    spread, usual = ((x - counts * expected) ** 2 for x in (seen, drawn))
    total = usual.sum(axis=1)
    return bool(spread.sum() > total.mean() + BEYOND_CHANCE * total.std())


def _cells(d: NDArray[np.float64], r: NDArray[np.float64], least: int) -> Cells:
    """Return a cell for each value that so many records have, and a grid on the ranks of all other values."""
    both = np.concatenate([d, r])
    values, tied, counts = np.unique(both, return_inverse=True, return_counts=True)
    common = common_values(counts, least)
    counted = int(common.sum())
    cell_of_value = np.cumsum(common) - 1
    others = int(counts[~common].sum())
    if others:
        # Ranks among the other values; tied values share the middle of their ranks.
        below = np.cumsum(np.where(common, 0, counts))
        rank = (below - counts / 2) / others
        place = np.clip((rank * CELLS).astype(np.int64), 0, CELLS - 1)
        cell_of_value = np.where(common, cell_of_value, counted + place)
    codes = cell_of_value[tied]
    sides = codes[: len(d)], codes[len(d) :]
    fewer = min(int((side >= counted).sum()) for side in sides)
    return Cells(
        members=sides[0],
        nonmembers=sides[1],
        counted=counted,
        smoothed=CELLS if others else 0,
        # The kernel narrows slowly with the number of records: a narrower one raises the bias, a wider one flattens edges.
        width=CELLS * 0.2 * max(1, fewer) ** -0.25,
        threshold=_best_threshold(tied[: len(d)], tied[len(d) :], len(values)),
    )


def common_values(counts: NDArray[np.int64], least: int = COMMON) -> NDArray[np.bool_]:
    """Say which values occur often enough to be counted, given how often each occurs."""
    return np.asarray(counts >= max(least, counts.sum() / MOST_COMMON))


def _best_threshold(d: NDArray[np.int64], r: NDArray[np.int64], values: int) -> float:
    gap = np.bincount(d, minlength=values) / len(d)
    gap -= np.bincount(r, minlength=values) / len(r)
    return float(np.abs(np.cumsum(gap)).max())
