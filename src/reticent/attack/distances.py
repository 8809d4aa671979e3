"""How unlike two records are: mixed columns, numbers, images.

References
----------
.. [1] Gower, "A general coefficient of similarity and some of its properties", Biometrics 27, 1971, Section 2.
.. [2] Kaufman & Rousseeuw, "Finding groups in data", Wiley, 1990, Section 2.6 (the program DAISY).
.. [3] Dixon, "Pattern recognition with partly missing data", IEEE Trans. Syst. Man Cybern. 9, 1979.
.. [4] Wang, Bovik, Sheikh & Simoncelli, "Image quality assessment: from error visibility to structural
   similarity", IEEE Trans. Image Process. 13, 2004, Section III.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from reticent.data import ColumnKind, Table
from reticent.errors import InvalidInput, InvalidTable

__all__ = [
    "Dissimilarity",
    "Euclidean",
    "Gower",
    "Records",
    "StructuralSimilarity",
]

Records = Table | pd.DataFrame | NDArray[Any]

ROUNDING = 1e-12  # the sums over an image and over its copy may differ by this much
BLOCK = 2**16  # pairs of images at once: half a megabyte per matrix stays in the cache
CLASS = "\0class"  # no column of a table can have this name


@runtime_checkable
class Dissimilarity(Protocol):
    """A distance between records; to add one, write this one verb."""

    def between(self, first: Records, second: Records) -> NDArray[np.float64]:
        """Return the distance of row i of ``first`` from row j of ``second`` as a matrix; it is 0 for equal records and never negative."""
        ...


@dataclass(frozen=True, kw_only=True)
class Gower:
    r"""The mean difference over the columns that are known for both records, in [0, 1].

    A number differs by :math:`|x - y| / R`, where :math:`R` is the column's range in both tables together; a category or
    truth value differs by 0 or 1. A column counts for a pair only where both values are known, and a constant
    column counts as equal (Gower's coefficient [1]_ with equal weights, as dissimilarity [2]_).

    The target counts as one more column, because it is part of the record; pass ``table.features`` to leave it out.
    The type of a data frame's column decides whether it holds numbers or categories.

    References
    ----------
    .. [1] Gower, Biometrics 27, 1971, Section 2.
    .. [2] Kaufman & Rousseeuw, "Finding groups in data", 1990, Section 2.6.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30, 50, None], "sex": ["f", "m", "f"]})
    >>> Gower().between(frame, frame).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """

    def between(self, first: Records, second: Records) -> NDArray[np.float64]:
        """Return the mean difference of each record of ``first`` from each of ``second``.

        Raises
        ------
        InvalidTable
            If the columns disagree, cannot be compared, or some pair has no column that is known for both.
        """
        pair = _side_by_side(first, second)
        total = _apart(*pair.numbers, metric="cityblock") + _unequal(*pair.codes)
        return np.asarray(total / pair.known)


@dataclass(frozen=True, kw_only=True)
class Euclidean:
    r"""The length of the difference of two records, their numbers standardised.

    Numbers are divided by their standard deviation in both tables together. A category or truth value becomes one
    indicator per value, so that unequal values add 2 to the square, as two standardised numbers do on average.
    Where some of the :math:`p` columns are missing in one of the two records, the square over the :math:`k` known ones is
    multiplied by :math:`p / k` [1]_. A constant column adds nothing.

    The target counts as one more column; pass ``table.features`` to leave it out.

    References
    ----------
    .. [1] Dixon, IEEE Trans. Syst. Man Cybern. 9, 1979.

    Examples
    --------
    >>> Euclidean().between(np.array([[0.0, 7.0]]), np.array([[2.0, 7.0]])).tolist()
    [[2.0]]
    """

    def between(self, first: Records, second: Records) -> NDArray[np.float64]:
        """Return the distance of each record of ``first`` from each of ``second``.

        Raises
        ------
        InvalidTable
            If the columns disagree, cannot be compared, or some pair has no column that is known for both.
        """
        pair = _side_by_side(first, second)
        x, y = pair.numbers
        scale = _deviation(np.concatenate([x, y]))
        squares = _apart(x / scale, y / scale, metric="sqeuclidean")
        # Two different categories, one-hot coded, lie sqrt(2) apart.
        squares += 2 * _unequal(*pair.codes)
        # Scaled up as if the unknown columns differed as much as the known ones.
        return np.asarray(np.sqrt(squares * (pair.columns / pair.known)))


@dataclass(frozen=True, kw_only=True)
class StructuralSimilarity:
    r"""One minus the mean structural similarity (SSIM) of two grey images, in [0, 2].

    At every place where a window fits, local means :math:`\mu`, variances and the covariance :math:`\sigma_{xy}`,
    with Gaussian weights of sum 1, give (Eq. 13 of [1]_)

    .. math:: \frac{(2\mu_x\mu_y + C_1)(2\sigma_{xy} + C_2)}{(\mu_x^2 + \mu_y^2 + C_1)(\sigma_x^2 + \sigma_y^2 + C_2)},
       \qquad C_i = (K_i L)^2,

    whose mean over the places is the similarity. Images keep their size: some programs halve large images
    first, which is left to the caller. The class of a record does not count.

    Parameters
    ----------
    shape : tuple of int
        Height and width in pixels. In a table, an image is one row of height x width columns, one pixel row after another.
    dynamic_range : float
        The largest possible pixel value :math:`L` (255 for bytes); the smallest is 0.
    window : int
        Side of the square window in pixels, odd.
    sigma : float
        Standard deviation of the Gaussian weights in pixels.
    k1, k2 : float
        The constants :math:`K_1` and :math:`K_2` that keep the ratio stable where an image is dark or flat.

    References
    ----------
    .. [1] Wang, Bovik, Sheikh & Simoncelli, IEEE Trans. Image Process. 13, 2004, Section III.

    Examples
    --------
    >>> dark, light = np.full((1, 28, 28), 50), np.full((1, 28, 28), 200)
    >>> distance = StructuralSimilarity(shape=(28, 28), dynamic_range=255)
    >>> distance.between(dark, np.concatenate([dark, light])).round(4).tolist()
    [[0.0, 0.5293]]
    """

    shape: tuple[int, int]
    dynamic_range: float
    window: int = 11
    sigma: float = 1.5
    k1: float = 0.01
    k2: float = 0.03

    def __post_init__(self) -> None:
        if len(self.shape) != 2:
            raise InvalidInput(
                f"shape must be the height and width of a grey image, got {self.shape!r}; "
                "turn colours into luminance and write, for example, (28, 28)."
            )
        if self.window < 3 or self.window % 2 == 0 or self.window > min(self.shape):
            raise InvalidInput(
                f"the window is {self.window!r} pixels wide and the images are {self.shape[0]} x {self.shape[1]}, so no centred window "
                "fits; choose an odd number from 3 to the shorter side."
            )
        for name in ("dynamic_range", "sigma", "k1", "k2"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise InvalidInput(
                    f"{name} must be a finite number above 0, got {value!r}; otherwise the similarity is undefined."
                )

    def between(self, first: Records, second: Records) -> NDArray[np.float64]:
        """Return the dissimilarity of each image of ``first`` from each of ``second``.

        The moments of an image are computed once, and the covariances of all pairs are one matrix product per place.

        Raises
        ------
        InvalidTable
            If the pixels are not numbers, do not fill the shape or lie outside 0 to ``dynamic_range``.
        """
        x, y = self._images(first), self._images(second)
        c1, c2 = (
            (self.k1 * self.dynamic_range) ** 2,
            (self.k2 * self.dynamic_range) ** 2,
        )
        total = np.zeros((len(x), len(y)))
        rows = max(1, BLOCK // len(y))
        places = [size - self.window + 1 for size in self.shape]
        weights = self._weights()
        for top, left in np.ndindex(*places):
            window = np.s_[:, top : top + self.window, left : left + self.window]
            mean_x, off_x = _moments(x[window], weights)
            mean_y, off_y = _moments(y[window], weights)
            variance_x = np.einsum("ij,ij->i", off_x, off_x) + c2
            variance_y = np.einsum("ij,ij->i", off_y, off_y)
            for start in range(0, len(x), rows):
                block = slice(start, start + rows)
                similarity = (2 * off_x[block]) @ off_y.T
                similarity += c2
                similarity *= np.multiply.outer(2 * mean_x[block], mean_y) + c1
                similarity /= np.add.outer(mean_x[block] ** 2 + c1, mean_y**2)
                similarity /= np.add.outer(variance_x[block], variance_y)
                total[block] += similarity
        unlike = 1 - total / math.prod(places)
        unlike[unlike < ROUNDING] = 0
        return unlike

    def _weights(self) -> NDArray[np.float64]:
        """Return the Gaussian weights of a window, of sum 1, row by row."""
        offsets = np.arange(self.window) - self.window // 2
        side = np.exp(-0.5 * (offsets / self.sigma) ** 2)
        return np.asarray(np.outer(side, side).ravel() / side.sum() ** 2)

    def _images(self, records: Records) -> NDArray[np.float64]:
        """Return the images as an array of records x height x width."""
        frame = records.features if isinstance(records, Table) else records
        try:
            pixels = np.asarray(frame, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidTable(
                f"the pixels are not numbers ({error}), so they are no image; pass only the columns of pixels."
            ) from error
        height, width = self.shape
        if len(pixels) == 0 or pixels.shape[1:] not in {
            (height, width),
            (height * width,),
        }:
            raise InvalidTable(
                f"the images have the shape {pixels.shape}, not (records, {height}, {width}) or (records, {height * width}) with at least one record; "
                "set shape to the height and width of one image."
            )
        if np.isnan(pixels).any():
            raise InvalidTable(
                f"{np.isnan(pixels).sum()} pixels are missing, so no window over them has a mean; fill them in or leave out those images."
            )
        if pixels.min() < 0 or pixels.max() > self.dynamic_range:
            raise InvalidTable(
                f"the pixels lie between {pixels.min():g} and {pixels.max():g}, outside 0 to {self.dynamic_range:g}, so the constants would not fit "
                "them; set dynamic_range to the largest possible value, and shift the pixels so that the smallest is 0."
            )
        return pixels.reshape(-1, height, width)


@dataclass(frozen=True, kw_only=True)
class _SideBySide:
    """The columns of two tables, made comparable: numbers from 0 to 1 (NaN if missing) and codes of categories (-1 if missing)."""

    numbers: tuple[NDArray[np.float64], NDArray[np.float64]]
    codes: tuple[NDArray[np.int64], NDArray[np.int64]]
    known: NDArray[np.float64]  # for each pair, the number of columns known for both
    columns: int


def _side_by_side(first: Records, second: Records) -> _SideBySide:
    (upper, kinds), (lower, others) = _described(first), _described(second)
    if kinds != others:
        odd = sorted({name for name, _ in kinds.items() ^ others.items()}, key=str)
        shown = ", ".join("the target" if n == CLASS else repr(n) for n in odd[:5])
        raise InvalidTable(
            f"the two tables differ in {shown}: only one has it, or it holds numbers in one and categories in the other, so the records cannot be "
            "compared; give both the same columns of the same kinds."
        )
    both = pd.concat([upper, lower], ignore_index=True)
    numbers = _as_floats(both[[name for name in both if kinds[name]]])
    codes = _as_codes(both[[name for name in both if not kinds[name]]])
    is_known = np.concatenate([~np.isnan(numbers), codes >= 0], axis=1).astype(float)
    known = is_known[: len(upper)] @ is_known[len(upper) :].T
    if not known.all():
        raise InvalidTable(
            f"{np.count_nonzero(known == 0)} of {known.size} pairs of records have no column that is known for both, so nothing says how unlike "
            "they are; leave out the records with the most missing values or fill them in."
        )
    return _SideBySide(
        numbers=(numbers[: len(upper)], numbers[len(upper) :]),
        codes=(codes[: len(upper)], codes[len(upper) :]),
        known=known,
        columns=len(kinds),
    )


def _described(records: Records) -> tuple[pd.DataFrame, dict[Any, bool]]:
    """Return records as a frame, and for each column whether it holds numbers."""
    if isinstance(records, Table):
        numeric = records.schema.names(ColumnKind.NUMERIC)
        answers: NDArray[Any] = records.target
        if records.is_quantity:
            numeric = [*numeric, CLASS]
        else:
            answers = np.array(records.classes, dtype=object)[records.target]
        frame = records.features.assign(**{CLASS: answers})
        kinds: dict[Any, bool] = {name: name in numeric for name in frame.columns}
    else:
        if isinstance(records, np.ndarray) and records.ndim != 2:
            raise InvalidTable(
                f"the records have the shape {records.shape}, which has no columns to compare; pass one row per record."
            )
        frame = pd.DataFrame(records)
        kinds = {}
        for name, kind in frame.dtypes.items():
            if kind.kind not in "iufbO":
                raise InvalidTable(
                    f"column {name!r} is of the type {kind}, neither number nor category; turn the frame into a table with table_from_frame()."
                )
            kinds[name] = kind.kind in "iuf"
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InvalidTable(
            f"two columns are called {twice!r} and cannot be told apart; rename one."
        )
    if frame.empty:
        raise InvalidTable(
            f"one of the tables has {len(frame)} records and {frame.shape[1]} columns, so there is nothing to compare; pass at least one of each."
        )
    return frame, kinds


def _as_floats(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Return the numbers, scaled to reach from 0 to 1 in each column, and NaN where they are missing."""
    numbers = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(numbers).any():
        name = frame.columns[np.isinf(numbers).any(axis=0)][0]
        raise InvalidTable(
            f"column {name!r} holds infinite values, which are infinitely far from all other values; replace them or mark them as missing."
        )
    # Numbers are halved so that no difference overflows; fmin and fmax skip missing values.
    low = np.fmin.reduce(numbers / 2, axis=0)
    spread = np.fmax.reduce(numbers / 2, axis=0) - low
    return np.asarray((numbers / 2 - low) / np.where(spread > 0, spread, 1))


def _as_codes(frame: pd.DataFrame) -> NDArray[np.int64]:
    """Return one number for each different value of a column, and -1 where it is missing."""
    codes = np.empty(frame.shape, dtype=np.int64)
    for j, name in enumerate(frame.columns):
        codes[:, j] = pd.factorize(frame[name].to_numpy(dtype=object))[0]
    return codes


def _deviation(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation of the known values of each column, and 1 for constant columns."""
    known = ~np.isnan(numbers)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, numbers, 0).sum(axis=0) / count
    variance = (np.where(known, numbers - mean, 0) ** 2).sum(axis=0) / count
    return np.asarray(np.sqrt(np.where(variance > 0, variance, 1)))


def _apart(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    *,
    metric: Literal["cityblock", "sqeuclidean"],
) -> NDArray[np.float64]:
    """Return the differences of numbers, summed over the columns that are known for both records."""
    whole = ~(np.isnan(x).any(axis=0) | np.isnan(y).any(axis=0))
    total = np.zeros((len(x), len(y)))
    if whole.any():
        total += cdist(x[:, whole], y[:, whole], metric)
    # Column by column, because a missing value would make the whole sum unknown.
    for j in np.flatnonzero(~whole):
        total += np.nan_to_num(cdist(x[:, [j]], y[:, [j]], metric), copy=False)
    return total


def _unequal(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the number of categories that are known for both records and differ."""
    total = np.zeros((len(x), len(y)))
    for a, b in zip(x.T, y.T, strict=True):
        total += (a[:, None] != b) & (a[:, None] >= 0) & (b >= 0)
    return total


def _moments(
    patches: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted means of patches, and their deviations from the mean times the root of the weights."""
    flat = patches.reshape(len(patches), -1)
    means = flat @ weights
    return means, (flat - means[:, None]) * np.sqrt(weights)
