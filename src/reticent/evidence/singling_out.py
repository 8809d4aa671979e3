r"""Singling out: predicates learned from a synthetic table that are true of exactly one person.

Predicates are those of anonymeter [1]_: a value that occurs once in the synthetic table, a number beyond all others, or several columns of one synthetic
row; for the last a number must be within 1 % of its range, where anonymeter asks for a direction. Each is tried on the members and on the non-members; the sets are reduced to equal size, as the mean over all subsamples: of c
people who match among N, exactly one is in a subsample of n with chance :math:`c \binom{N - c}{n - 1} / \binom{N}{n}`. The baseline has the same predicates with
values drawn from the declared ranges.

References
----------
.. [1] Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", arXiv:2211.10459, section 4.1.
.. [2] Cohen and Nissim, "Towards formalizing the GDPR's notion of singling out", arXiv:1904.06009.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from scipy.special import ndtri
from scipy.stats import hypergeom

from reticent._check import in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence._resampling import permutation_p_value, require_rows
from reticent.evidence.columns import Columns
from reticent.evidence.disclosure import POWER, Disclosure
from reticent.evidence.proportion import clopper_pearson

__all__ = ["SinglingOut", "single_out"]

ATTEMPTS = 500  # predicates of each kind, as in anonymeter's evaluation
PERMUTATIONS = 199  # of people
TRIES = 10  # synthetic rows that are tried for each predicate of several columns
# Of a number's range, on either side of its value. A direction ("at least") in place of a window makes most predicates point at the few
# people with extreme values, and the success then depends on which side has them.
WIDTH = 0.01
COLUMNS = 3  # of a predicate of several columns: fewer rarely isolate, more are rarely true of a person who was not copied
# People who match, beyond which a predicate does not isolate: about half of them are in either set, and that all but one are in the other
# has a chance of 64 / 2^64.
MOST_MATCHES = 64


@dataclass(frozen=True, kw_only=True)
class SinglingOut:
    """Success of predicates in isolating exactly one person.

    Parameters
    ----------
    values : Disclosure or None
        Predicates of one column; None if the table has no value that occurs once.
    rows : Disclosure or None
        Predicates of several columns; None if the table has one column, or no such predicate isolates a synthetic row.
    """

    values: Disclosure | None
    rows: Disclosure | None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Predicate:
    """Conditions on columns: within a width of a value (sign 0), at most (-1) or at least the value (1)."""

    columns: NDArray[np.int64]
    signs: NDArray[np.int64]
    values: NDArray[np.float64]
    widths: NDArray[np.float64]

    def true_of(self, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
        held = np.ones(len(rows), dtype=bool)
        for column, sign, value, width in zip(
            self.columns, self.signs, self.values, self.widths, strict=True
        ):
            shown = rows[:, column]
            if sign == 0:
                held &= np.abs(shown - value) <= width
            else:
                held &= sign * shown >= sign * value
        return held


def single_out(
    members: Columns,
    nonmembers: Columns,
    synthetic: Columns,
    *,
    units: tuple[ArrayLike, ArrayLike] | None = None,
    level: float,
    rng: np.random.Generator,
) -> SinglingOut:
    """Try predicates learned from a synthetic table on members and on non-members.

    The interval of the excess rests on permutations of people between members and non-members, since several predicates may
    isolate the same person, or on the spread over predicates if that is larger.

    Parameters
    ----------
    members, nonmembers, synthetic : Columns
        Rows coded alike.
    units : pair of array-like of int, optional
        The person of each member's and of each non-member's row. A predicate isolates a person if only rows of this person match.
    level : float
        Confidence of each interval, in (0, 1).
    rng : numpy.random.Generator
        Draws predicates and permutations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def rows(n):
    ...     return Columns(numbers=rng.random((n, 3)), codes=np.empty((n, 0)), ranges=[[0, 1]] * 3)
    >>> a, b = rows(300), rows(300)
    >>> copied = single_out(a, b, a, level=0.95, rng=rng)
    >>> copied.values.members.value, copied.values.excess.low > 0.9
    (1.0, True)
    """
    in_open_unit(level, "level")
    require_rows(
        {"members'": members, "non-members'": nonmembers, "synthetic": synthetic}
    )
    targets, made = (
        np.hstack([c.numbers, c.codes])
        for c in (Columns.stack([members, nonmembers]), synthetic)
    )
    numeric = members.numbers.shape[1]
    widths = np.zeros(members.width)
    widths[:numeric] = WIDTH * np.ptp(members.ranges, axis=1)
    people, first = _people(units, (len(members), len(nonmembers)))
    levels = [np.unique(members.codes[:, j]) for j in range(members.codes.shape[1])]

    def blind(predicate: _Predicate) -> _Predicate:
        values = [
            rng.uniform(*members.ranges[j])
            if j < numeric
            else float(rng.choice(levels[j - numeric]))
            for j in predicate.columns
        ]
        return replace(predicate, values=np.array(values))

    def judged(predicates: list[_Predicate]) -> Disclosure | None:
        if not predicates:
            return None
        return _judge(
            _matches(predicates, targets, people, len(first)),
            _matches([blind(p) for p in predicates], targets, people, len(first)),
            first,
            level=level,
            rng=rng,
        )

    return SinglingOut(
        values=judged(_of_values(made, numeric, rng)),
        rows=judged(_of_rows(made, widths, rng)),
    )


def _people(
    units: tuple[ArrayLike, ArrayLike] | None, sizes: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the person of each row, and which persons are members."""
    named = (
        [np.arange(n) for n in sizes]
        if units is None
        else [np.unique(np.asarray(u), return_inverse=True)[1] for u in units]
    )
    if tuple(len(n) for n in named) != sizes:
        raise InvalidInput(
            f"there are {[len(n) for n in named]} units for {list(sizes)} rows; pass one unit per row."
        )
    count = int(named[0].max()) + 1
    people = np.concatenate([named[0], named[1] + count])
    return people, np.arange(int(people.max()) + 1) < count


def _of_values(
    made: NDArray[np.float64], numeric: int, rng: np.random.Generator
) -> list[_Predicate]:
    """Return predicates of one column: values that occur once, and numbers that no other exceeds."""
    found: list[tuple[int, int, float]] = []
    for j, column in enumerate(made.T):
        present = column[~np.isnan(column)]
        values, counts = np.unique(present, return_counts=True)
        found += [(j, 0, float(v)) for v in values[counts == 1]]
        if j < numeric and len(values):
            found += [(j, -1, float(values[0])), (j, 1, float(values[-1]))]
    chosen = rng.permutation(len(found))[:ATTEMPTS]
    return [
        _Predicate(
            columns=np.array([found[i][0]]),
            signs=np.array([found[i][1]]),
            values=np.array([found[i][2]]),
            widths=np.zeros(1),
        )
        for i in chosen
    ]


def _of_rows(
    made: NDArray[np.float64], widths: NDArray[np.float64], rng: np.random.Generator
) -> list[_Predicate]:
    """Return predicates of several columns, numbers to 1 % of their range, that are true of one synthetic row only."""
    if made.shape[1] < 2:
        return []
    found: list[_Predicate] = []
    for _ in range(TRIES * ATTEMPTS):
        if len(found) == ATTEMPTS:
            break
        row = made[rng.integers(len(made))]
        columns = rng.permutation(made.shape[1])[:COLUMNS]
        columns = columns[~np.isnan(row[columns])]
        if len(columns) < 2:
            continue
        predicate = _Predicate(
            columns=columns,
            signs=np.zeros(len(columns), dtype=np.int64),
            values=row[columns],
            widths=widths[columns],
        )
        if predicate.true_of(made).sum() == 1:
            found.append(predicate)
    return found


def _matches(
    predicates: list[_Predicate],
    targets: NDArray[np.float64],
    people: NDArray[np.int64],
    count: int,
) -> csr_matrix:
    """Return which people each predicate is true of; a row of zeros if they are too many to isolate anybody."""
    rows, columns = [], []
    for number, predicate in enumerate(predicates):
        held = np.unique(people[predicate.true_of(targets)])
        if len(held) <= MOST_MATCHES:
            rows.append(np.full(len(held), number))
            columns.append(held)
    where = (
        np.concatenate(rows) if rows else np.empty(0, int),
        np.concatenate(columns) if columns else np.empty(0, int),
    )
    return csr_matrix((np.ones(len(where[0])), where), shape=(len(predicates), count))


def _judge(
    learned: csr_matrix,
    blind: csr_matrix,
    members: NDArray[np.bool_],
    *,
    level: float,
    rng: np.random.Generator,
) -> Disclosure:
    total = int(members.sum())
    others = len(members) - total
    size = min(total, others)
    isolates = _chance_of_one(total, size), _chance_of_one(others, size)
    everybody = np.asarray(learned.sum(axis=1)).ravel().astype(int)

    def success(tags: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        inside = np.asarray(learned @ tags).astype(int)
        outside = everybody.reshape(-1, *[1] * (inside.ndim - 1)) - inside
        return isolates[0](inside), isolates[1](outside)

    tag = members.astype(np.float64)
    d, r = success(tag)
    tags = np.stack([rng.permutation(tag) for _ in range(PERMUTATIONS)], axis=1)
    permuted_d, permuted_r = success(tags)
    permuted = (permuted_d - permuted_r).mean(axis=0)
    without = isolates[0](np.asarray(blind @ tag).astype(int))
    attempts = len(d)
    excess = float((d - r).mean())
    error = max(
        float(permuted.std(ddof=1)),
        float((d - r).std(ddof=1)) / math.sqrt(attempts) if attempts > 1 else 1.0,
        1 / attempts,  # one predicate more or less
    )
    quantile = float(ndtri(1 - (1 - level) / 2))

    def share(values: NDArray[np.float64]) -> Estimate:
        return clopper_pearson(float(values.sum()), attempts, level=level)

    def around(value: float, spread: float, method: str) -> Estimate:
        return Estimate(
            value=value,
            low=max(-1.0, value - quantile * spread),
            high=min(1.0, value + quantile * spread),
            level=level,
            method=method,
        )

    gain = d - without
    return Disclosure(
        members=share(d),
        nonmembers=share(r),
        baseline=share(without),
        excess=around(excess, error, "permutations of people"),
        over_baseline=around(
            float(gain.mean()),
            max(float(gain.std()) / math.sqrt(attempts), 1 / attempts),
            "normal, over predicates",
        ),
        p_value=permutation_p_value(permuted >= excess - 1e-12),
        visible=min(1.0, (quantile + float(ndtri(POWER))) * error),
    )


def _chance_of_one(
    total: int, size: int
) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    """Return the chance that exactly one of c people of a set is in a subsample, for c up to the most that count."""
    table = hypergeom.pmf(
        1, total, np.minimum(np.arange(MOST_MATCHES + 1), total), size
    )
    chances = np.where(np.arange(MOST_MATCHES + 1) <= total, table, 0.0)
    return lambda counts: chances[counts]
