"""Choose the neighbouring table by dissimilarity: which record to remove, or to replace by which.

An adversary that tells a table from its neighbour is strongest where the two differ most. The largest difference of a
table from its neighbours within a larger one, its dataset sensitivity (Definition 6 of [1]_), is that of one
pair of records, so no gradient is needed to choose it. It stands in for the local sensitivity of a training but does not
bound it, and noise scaled to it carries no guarantee, because the scale depends on the records.

References
----------
.. [1] Bernau et al., "D5.3: Final report on privacy metrics, risks, and utility", MOSAICrOWN, 2020, Section 5.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.attack.distances import Dissimilarity, Records
from reticent.data import Table
from reticent.errors import InvalidInput, InvalidTable

__all__ = ["Chosen", "ChosenPair", "most_dissimilar_pair", "most_dissimilar_record"]

MOST_ROWS = (
    2_000  # bounds time and memory, which grow with its square: 32 MB of distances
)
TIED = 1e-9  # values that differ from the largest by a smaller share of it differ by rounding


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The record that is least like the others.

    Parameters
    ----------
    row : int
        Its position in the table, from 0.
    dissimilarity : float
        Its mean dissimilarity to the other records that were compared.
    looked_at : int
        Number of records that were compared.
    out_of : int
        Number of records in the table; if it is larger, another record may be less like the others.
    """

    row: int
    dissimilarity: float
    looked_at: int
    out_of: int


@dataclass(frozen=True, kw_only=True)
class ChosenPair:
    """The record of a table and the candidate that are least like each other.

    Parameters
    ----------
    row : int
        Position of the record in the table, from 0.
    candidate : int
        Position, among the candidates, of the record that replaces it, from 0.
    dissimilarity : float
        How unlike the two are.
    looked_at : tuple of int
        Number of records of the table, and number of candidates, that were compared.
    out_of : tuple of int
        Number of records and candidates that there are; if it is larger, another pair may be less alike.
    """

    row: int
    candidate: int
    dissimilarity: float
    looked_at: tuple[int, int]
    out_of: tuple[int, int]


def most_dissimilar_record(
    table: Records,
    distance: Dissimilarity,
    *,
    most: int = MOST_ROWS,
    rng: np.random.Generator,
) -> Chosen:
    """Return the record with the largest mean dissimilarity to all others.

    The table without it is the neighbour to try when neighbouring tables differ by one added or removed record
    (Section 5 of [1]_, where the least similar image is removed).

    Parameters
    ----------
    table : Table, data frame or array
        One record per row, at least two.
    distance : Dissimilarity
        Which records are unlike: `Gower`, `Euclidean`, `StructuralSimilarity`, or one of your own.
    most : int
        Largest number of rows to compare with one another; of a longer table, a random sample is compared.
    rng : numpy.random.Generator
        Stream of that sample; a table that is not sampled takes nothing from it.

    Returns
    -------
    Chosen
        The first of them if several are equally unlike the others.

    Raises
    ------
    InvalidInput
        If there are fewer than two records, or the distance cannot compare them.

    References
    ----------
    .. [1] Bernau et al., "D5.3: Final report on privacy metrics, risks, and utility", MOSAICrOWN, 2020.

    Examples
    --------
    >>> from reticent.attack import Gower
    >>> ages = np.array([[31.0], [30.0], [90.0], [33.0]])
    >>> most_dissimilar_record(ages, Gower(), rng=np.random.default_rng(0)).row
    2
    """
    if len(table) < 2:
        raise InvalidTable(
            f"the table has {len(table)} records, so none can be unlike the others; pass at least two."
        )
    rows = _looked_at(len(table), most, rng)
    records = _take(table, rows)
    means = _between(records, records, distance).sum(axis=1) / (len(rows) - 1)
    best = _first_largest(means)
    return Chosen(
        row=int(rows[best]),
        dissimilarity=float(means[best]),
        looked_at=len(rows),
        out_of=len(table),
    )


def most_dissimilar_pair(
    table: Records,
    candidates: Records,
    distance: Dissimilarity,
    *,
    most: int = MOST_ROWS,
    rng: np.random.Generator,
) -> ChosenPair:
    """Return the record of a table and the candidate outside it that are least alike.

    The table in which the candidate replaces the record is the neighbour to try when neighbouring tables differ by the
    content of one record; their dissimilarity is the dataset sensitivity of Definition 6 of [1]_.

    Parameters
    ----------
    table : Table, data frame or array
        The records that were trained on.
    candidates : Table, data frame or array
        Records of the same source that were not.
    distance : Dissimilarity
        Which records are unlike: `Gower`, `Euclidean`, `StructuralSimilarity`, or one of your own.
    most : int
        Largest number of records, and of candidates, to compare; of more, a random sample is compared.
    rng : numpy.random.Generator
        Stream of those samples.

    Returns
    -------
    ChosenPair
        Of several pairs that are equally unlike, the one with the first record, then with the first candidate.

    Raises
    ------
    InvalidInput
        If one of the two is empty, or the distance cannot compare them.

    References
    ----------
    .. [1] Bernau et al., "D5.3: Final report on privacy metrics, risks, and utility", MOSAICrOWN, 2020.

    Examples
    --------
    >>> from reticent.attack import Gower
    >>> ages, others = np.array([[31.0], [30.0], [33.0]]), np.array([[35.0], [90.0]])
    >>> pair = most_dissimilar_pair(ages, others, Gower(), rng=np.random.default_rng(0))
    >>> pair.row, pair.candidate, pair.dissimilarity
    (1, 1, 1.0)
    """
    out_of = len(table), len(candidates)
    if min(out_of) == 0:
        raise InvalidTable(
            f"the table has {out_of[0]} records and there are {out_of[1]} candidates, so no record can be replaced; pass at least one of each."
        )
    rows, others = (_looked_at(count, most, rng) for count in out_of)
    matrix = _between(_take(table, rows), _take(candidates, others), distance)
    i, j = np.unravel_index(_first_largest(matrix.ravel()), matrix.shape)
    return ChosenPair(
        row=int(rows[i]),
        candidate=int(others[j]),
        dissimilarity=float(matrix[i, j]),
        looked_at=(len(rows), len(others)),
        out_of=out_of,
    )


def _looked_at(count: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return all rows, or a sample of them, in order."""
    if most < 2:
        raise InvalidInput(
            f"most must be at least 2, got {most!r}: fewer records cannot be compared with one another."
        )
    if count <= most:
        return np.arange(count)
    return np.sort(rng.choice(count, most, replace=False))


def _take(records: Records, rows: NDArray[np.int64]) -> Records:
    if isinstance(records, Table):
        return records.take(rows)
    return records[rows] if isinstance(records, np.ndarray) else records.iloc[rows]


def _between(
    first: Records, second: Records, distance: Dissimilarity
) -> NDArray[np.float64]:
    """Return the matrix of a distance that somebody else may have written, so its answer is checked."""
    matrix = np.asarray(distance.between(first, second), dtype=np.float64)
    expected = (len(first), len(second))
    if matrix.shape != expected:
        raise InvalidInput(
            f"{distance!r} returned a matrix of shape {matrix.shape} instead of {expected}; return one row per record of the first "
            "table and one column per record of the second."
        )
    wrong = ~(np.isfinite(matrix) & (matrix >= 0))
    if wrong.any():
        raise InvalidInput(
            f"{wrong.sum()} of {wrong.size} dissimilarities of {distance!r} are negative or not finite, so the largest is undefined; "
            "repair the distance."
        )
    return matrix


def _first_largest(values: NDArray[np.float64]) -> int:
    """Return the first position whose value is the largest, up to rounding."""
    return int(np.argmax(values >= values.max() * (1 - TIED)))
