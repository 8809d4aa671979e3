"""Compare numbers with the columns of records: tolerances, containment, and hashes of rows."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Columns", "coarseness", "contained", "people_sharing", "row_hashes"]

# Two numbers are one if they differ by less than this part of the column's spread: far below what any measurement tells apart.
SHARE_OF_SPREAD = 1e-5
# For single values, where there is no second column to agree: rounding of doubles that went through a few operations.
SHARE_FOR_VALUES = 1e-9
# Differences between a number and itself in single precision are at most half of the last place; four places leave room for one
# operation done in it.
LAST_PLACES = 4
DOUBLE, SINGLE, HALF = (
    2.0**-52,
    2.0**-23,
    2.0**-10,
)  # relative distance of neighbouring numbers
# Records or numbers from which a spread or a precision is known well enough.
SAMPLED = 50_000
TENTHS = np.linspace(0.1, 0.9, 9)
MOST_SHAPED = 20_000  # records from which the shape of a column's distribution is known well enough
OFFSET = 2**62  # of codes that overflow, and of missing values
_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Columns:
    """The columns of a matrix of records, sorted once for all arrays that they are compared with.

    Parameters
    ----------
    matrix : array of float, shape (n, d)
        The records; missing values are NaN.
    people : array of int, shape (n,)
        The person each record belongs to.
    """

    def __init__(self, matrix: NDArray[np.float64], people: NDArray[np.int64]) -> None:
        # Stored column by column, because nearly all work is on columns.
        self.matrix = np.asfortranarray(matrix)
        self._people = people
        self._sorted: dict[int, NDArray[np.float64]] = {}
        self._holders: dict[int, NDArray[np.int64]] = {}

    @classmethod
    def beside(
        cls,
        matrix: NDArray[np.float64],
        target: NDArray[np.float64],
        people: NDArray[np.int64],
    ) -> "Columns":
        """Return the columns of records with the target as the last one."""
        both = np.empty((len(matrix), matrix.shape[1] + 1), order="F")
        both[:, :-1], both[:, -1] = matrix, target
        return cls(both, people)

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def values(self, column: int) -> NDArray[np.float64]:
        """Return the different finite values of a column, sorted."""
        if column not in self._sorted:
            numbers = self.matrix[:, column]
            self._sorted[column] = np.unique(numbers[np.isfinite(numbers)])
        return self._sorted[column]

    def holders(self, column: int) -> NDArray[np.int64]:
        """Return how many people share each record's value."""
        if column not in self._holders:
            _, codes = np.unique(self.matrix[:, column], return_inverse=True)
            self._holders[column] = people_sharing(codes, self._people)
        return self._holders[column]

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """Interquartile range of each column, or its standard deviation, or 1."""
        spreads = np.ones(self.width)
        step = -(-len(self.matrix) // SAMPLED)
        for j in range(self.width):
            values = self.matrix[::step, j]
            values = values[np.isfinite(values)]
            if len(values):
                low, high = np.quantile(values, [0.25, 0.75])
                spreads[j] = (high - low) or values.std() or 1.0
        return spreads

    @cached_property
    def tenths(self) -> NDArray[np.float64]:
        """The nine tenths of each column, shape (9, d); 0 where it has no values."""
        tenths = np.zeros((len(TENTHS), self.width))
        step = -(-len(self.matrix) // MOST_SHAPED)
        for j in range(self.width):
            values = self.matrix[::step, j]
            values = values[np.isfinite(values)]
            if len(values):
                tenths[:, j] = np.quantile(values, TENTHS)
        return tenths

    @cached_property
    def centre(self) -> NDArray[np.float64]:
        """Mean of each column without its missing values, or 0."""
        total = np.maximum(np.isfinite(self.matrix).sum(axis=0), 1)
        finite = np.where(np.isfinite(self.matrix), self.matrix, 0.0)
        return np.asarray(finite.sum(axis=0) / total)

    @cached_property
    def deviation(self) -> NDArray[np.float64]:
        """Standard deviation of each column without its missing values, or 1."""
        total = np.maximum(np.isfinite(self.matrix).sum(axis=0), 1)
        apart = np.where(np.isfinite(self.matrix), self.matrix - self.centre, 0.0)
        deviation = np.sqrt((apart**2).sum(axis=0) / total)
        return np.where(deviation > 0, deviation, 1.0)

    @cached_property
    def largest(self) -> NDArray[np.float64]:
        """Largest absolute value of each column."""
        ends = np.zeros((2, self.width))
        for j in range(self.width):
            values = self.values(j) if j in self._sorted else self.matrix[:, j]
            if len(values) and not np.isfinite(values.sum()):
                values = values[np.isfinite(values)]
            if len(values):
                ends[:, j] = values.min(), values.max()
        return np.asarray(np.abs(ends).max(axis=0))

    def tolerance(self, precision: float, *, rows: bool) -> NDArray[np.float64]:
        """Return by how much two numbers of each column may differ and still be one.

        Parameters
        ----------
        precision : float
            Relative precision of the numbers that the columns are compared with.
        rows : bool
            Whether whole rows are compared, which leaves room for a wider tolerance.
        """
        share = SHARE_OF_SPREAD if rows else SHARE_FOR_VALUES
        rounding = max(precision, SINGLE) if rows else precision
        return np.maximum(share * self.spread, LAST_PLACES * rounding * self.largest)


def people_sharing(
    codes: NDArray[np.int64], people: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many people have each record's code.

    Examples
    --------
    >>> people_sharing(np.array([0, 0, 0, 1]), np.array([7, 7, 8, 9])).tolist()
    [2, 2, 2, 1]
    """
    _, person = np.unique(people, return_inverse=True)
    pairs = np.unique(codes.astype(np.int64) * (person.max(initial=0) + 1) + person)
    counts = np.bincount(pairs // (person.max(initial=0) + 1))
    return np.asarray(counts[codes])


def coarseness(values: NDArray[np.floating]) -> float:
    """Return the relative precision of numbers: of halves, singles or doubles, whatever type they are kept in.

    Examples
    --------
    >>> coarseness(np.array([0.1, 0.2]).astype(np.float32).astype(np.float64)) == SINGLE
    True
    """
    flat = values.ravel(order="K")
    finite = flat[:: -(-flat.size // SAMPLED) or 1]
    finite = finite[np.isfinite(finite)]
    if np.array_equal(finite, np.round(finite)):
        return DOUBLE  # counts and codes are exact in any precision
    with np.errstate(over="ignore"):
        if np.array_equal(finite, finite.astype(np.float16)):
            return HALF
        if np.array_equal(finite, finite.astype(np.float32)):
            return SINGLE
    return DOUBLE


def contained(
    values: NDArray[np.float64], known: NDArray[np.float64], tolerance: float
) -> NDArray[np.bool_]:
    """Return which values are among sorted known ones, up to a tolerance.

    Examples
    --------
    >>> contained(np.array([1.0, 2.4]), np.array([1.1, 2.0]), 0.2).tolist()
    [True, False]
    """
    if not len(known):
        return np.zeros(len(values), dtype=bool)
    right = np.searchsorted(known, values).clip(0, len(known) - 1)
    near = np.minimum(
        np.abs(known[right] - values), np.abs(known[np.maximum(right - 1, 0)] - values)
    )
    return np.asarray(near <= tolerance)


def row_hashes(
    matrix: NDArray[np.float64], tolerance: NDArray[np.float64], phase: float
) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row, by the cell of a grid that it lies in.

    Rows closer than the tolerance may lie on two sides of a border of the grid; another phase moves the borders.

    Parameters
    ----------
    matrix : array of float, shape (n, d)
        The rows; missing values equal each other.
    tolerance : array of float, shape (d,)
        Width of a cell in each column.
    phase : float
        Shift of the grid, as a part of a cell.
    """
    hashes = np.zeros(len(matrix), dtype=np.uint64)
    for j in range(matrix.shape[1]):
        with np.errstate(over="ignore"):
            codes = matrix[:, j] / tolerance[j]
            codes += phase
            np.floor(codes, out=codes)
        if not (np.abs(codes).max(initial=0.0) < OFFSET):  # nor if one is NaN
            codes = np.nan_to_num(codes, nan=OFFSET, posinf=OFFSET, neginf=-OFFSET)
            codes = codes.clip(-OFFSET, OFFSET)
        cells = codes.astype(np.int64).view(np.uint64)
        hashes *= _ODD
        hashes += cells
        # One round of SplitMix64's finaliser, so that every bit of the sum moves many bits of the hash.
        hashes ^= hashes >> np.uint64(30)
        hashes *= _FIRST
        hashes ^= hashes >> np.uint64(27)
    hashes *= _SECOND
    hashes ^= hashes >> np.uint64(31)
    return hashes
