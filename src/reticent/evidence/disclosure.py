r"""What a release discloses about people: linkability and attribute inference, as differences between members and non-members.

European guidance [1]_ asks of anonymous data that nobody can be singled out, linked or inferred about. A guess that succeeds is no
disclosure if it would have succeeded for a person who is not in the data: that smoking goes with cancer is knowledge about everybody. Each attack is
therefore run alike on members and on non-members [2]_, and what counts is the difference of their success. A baseline that does not see the release says
how far a guess gets anyhow.

References
----------
.. [1] Article 29 Data Protection Working Party, Opinion 05/2014 on anonymisation techniques (WP216).
.. [2] Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", arXiv:2211.10459.
.. [3] Fredrikson et al., "Privacy in pharmacogenetics", USENIX Security 2014; Yeom et al., arXiv:1709.01604, section 4.
.. [4] Korn and Graubard, "Confidence intervals for proportions with small expected number of positive counts estimated from survey data",
   Survey Methodology 24, 1998.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import hypergeom

from reticent._check import in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._distances import nearest_rows
from reticent.evidence._estimate import Estimate
from reticent.evidence._resampling import permutation_p_value, require_rows
from reticent.evidence.columns import Columns
from reticent.evidence.proportion import clopper_pearson, rate_difference

__all__ = [
    "Disclosure",
    "GuessedAttribute",
    "Success",
    "compare_success",
    "guess_attribute",
    "infer_attribute",
    "link_halves",
]

KNOWN = 1e9  # as many people as tell a rate beyond doubt, and as few as the limits can be computed for

POWER = 0.8  # with which a visible difference would have been seen, as elsewhere in an audit
PERMUTATIONS = 999  # of people, where success is not 0 or 1 for each
TOLERANCE = 0.05  # of a column's range: a guess of a number this close is right, as in anonymeter


@dataclass(frozen=True, kw_only=True)
class Disclosure:
    """Success of one kind of attack on members, on non-members, and without the release.

    Parameters
    ----------
    members, nonmembers : Estimate
        Share of attempts that succeed.
    baseline : Estimate
        Share of attempts on members that succeed without the release.
    excess : Estimate
        Members minus non-members: what the release tells about its own people in particular.
    over_baseline : Estimate
        Members minus baseline. It contains what the release tells about everybody, which is its purpose.
    p_value : float
        That members and non-members fare alike, against members faring worse.
    visible : float
        The smallest excess that would have been seen with a probability of 80 %.
    """

    members: Estimate
    nonmembers: Estimate
    baseline: Estimate
    excess: Estimate
    over_baseline: Estimate
    p_value: float
    visible: float


@dataclass(frozen=True, kw_only=True)
class GuessedAttribute:
    """How well one column is guessed from a classifier's answers.

    Parameters
    ----------
    column : str
        The column.
    success : Disclosure
        Of members, of non-members, and of a guess that does not see the classifier.
    control : Disclosure
        The same of one half of the non-members, against the other.
    """

    column: str
    success: Disclosure
    control: Disclosure


@dataclass(frozen=True, kw_only=True, eq=False)
class Success:
    """How well an attack did on each row of a set.

    Parameters
    ----------
    attack, baseline : array of float, shape (n,)
        Success in [0, 1] with the release and without it.
    units : array of int, shape (n,), optional
        The person of each row; every row is a person if there are none.
    """

    attack: NDArray[np.float64]
    baseline: NDArray[np.float64]
    units: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        attack, baseline = (
            np.asarray(v, dtype=np.float64) for v in (self.attack, self.baseline)
        )
        units = np.arange(len(attack)) if self.units is None else np.asarray(self.units)
        if not len(attack) == len(baseline) == len(units) or len(attack) == 0:
            raise InvalidInput(
                f"there are {len(attack)} attempts, {len(baseline)} of the baseline and {len(units)} units; pass one of each per row, and at least one row."
            )
        if not (
            ((attack >= 0) & (attack <= 1)).all()
            and ((baseline >= 0) & (baseline <= 1)).all()
        ):
            raise InvalidInput(
                "a success must lie between 0 and 1; pass 1 for a guess that is right and 0 for one that is wrong."
            )
        for name, value in (
            ("attack", attack),
            ("baseline", baseline),
            ("units", units),
        ):
            object.__setattr__(self, name, value)

    def by_unit(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean success of each person, with the release and without it."""
        _, person = np.unique(np.asarray(self.units), return_inverse=True)
        rows = np.bincount(person)
        return (
            np.bincount(person, self.attack) / rows,
            np.bincount(person, self.baseline) / rows,
        )


def compare_success(
    members: Success, nonmembers: Success, *, level: float, rng: np.random.Generator
) -> Disclosure:
    """Return the success of an attack on members beside its success on non-members.

    Success is averaged over the rows of a person first. The differences have the intervals of
    :func:`reticent.evidence.rate_difference`; if people's
    averages vary less than 0 and 1 would, the number of people counts for more by the same ratio [4]_. The p-value is Fisher's if all averages are 0 or 1, else that
    of a permutation of people.

    Parameters
    ----------
    members, nonmembers : Success
        The same attack on both.
    level : float
        Confidence of each interval, in (0, 1).
    rng : numpy.random.Generator
        Permutes people.

    Examples
    --------
    >>> hit, miss = np.ones(50), np.zeros(50)
    >>> found = compare_success(Success(attack=hit, baseline=miss), Success(attack=miss, baseline=miss),
    ...                         level=0.95, rng=np.random.default_rng(0))
    >>> print(found.excess, found.p_value < 1e-10)
    1 [0.85, 1] True
    """
    in_open_unit(level, "level")
    d, d_blind = members.by_unit()
    r, _ = nonmembers.by_unit()
    both = np.concatenate([d, r])
    if np.isin(both, (0, 1)).all():
        p_value = float(hypergeom.sf(d.sum() - 1, len(both), int(both.sum()), len(d)))
    else:
        permuted = np.array(
            [rng.permutation(both)[: len(d)].mean() for _ in range(PERMUTATIONS)]
        )
        p_value = permutation_p_value(permuted >= d.mean() - 1e-12)
    error = both.std(ddof=1) * math.sqrt(1 / len(d) + 1 / len(r))
    reach = float(ndtri(1 - (1 - level) / 2) + ndtri(POWER))
    return Disclosure(
        members=_share(d, level),
        nonmembers=_share(r, level),
        baseline=_share(d_blind, level),
        excess=_difference(d, r, level),
        over_baseline=_paired(d, d_blind, level),
        p_value=min(1.0, p_value),
        visible=min(1.0, reach * max(error, 1 / min(len(d), len(r)))),
    )


def infer_attribute(
    members: Columns,
    nonmembers: Columns,
    synthetic: Columns,
    *,
    secret: int,
    level: float,
    rng: np.random.Generator,
    neighbours: int = 1,
) -> Disclosure:
    """Guess one column of each person from the others, by the nearest synthetic rows.

    A category is guessed by the vote of the neighbours, a number by their median; a number is right within 5 % of its range. The
    baseline is the best constant guess from the non-members.

    Parameters
    ----------
    members, nonmembers, synthetic : Columns
        Rows coded alike. With several rows per person, use :func:`one_row_per_unit` first.
    secret : int
        The column to guess: numeric columns first, then categorical ones.
    level : float
        Confidence of each interval, in (0, 1).
    rng : numpy.random.Generator
        Decides ties.
    neighbours : int
        Number of synthetic rows that are asked.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def rows(n):
    ...     return Columns(numbers=rng.random((n, 2)), codes=rng.integers(0, 2, (n, 1)), ranges=[[0, 1]] * 2)
    >>> a, b = rows(200), rows(200)
    >>> found = infer_attribute(a, b, a, secret=2, level=0.95, rng=rng)
    >>> found.members.value, found.excess.low > 0.3
    (1.0, True)
    """
    require_rows(
        {"members'": members, "non-members'": nonmembers, "synthetic": synthetic}
    )
    numeric = members.numbers.shape[1]
    if not 0 <= secret < members.width or members.width < 2:
        raise InvalidInput(
            f"column {secret} cannot be guessed from the others of {members.width} columns; name one of at least two, from 0."
        )
    known = np.arange(members.width) != secret

    def success(people: Columns) -> NDArray[np.float64]:
        near = nearest_rows(
            people.keep(known),
            synthetic.keep(known),
            neighbours,
            distance="mixed",
            rng=rng,
        )
        votes = values(synthetic)[near]
        return right(
            _vote(votes) if secret >= numeric else np.median(votes, axis=1),
            values(people),
        )

    def values(people: Columns) -> NDArray[np.float64]:
        if secret >= numeric:
            return people.codes[:, secret - numeric].astype(np.float64)
        return people.numbers[:, secret]

    width = (
        0.0 if secret >= numeric else TOLERANCE * float(np.ptp(members.ranges[secret]))
    )

    def right(
        guess: NDArray[np.float64], truth: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        same = np.abs(guess - truth) <= width
        return np.where(np.isnan(truth), np.isnan(guess), same).astype(np.float64)

    constant = np.full(len(members), _best_constant(values(nonmembers), width))
    return compare_success(
        Success(attack=success(members), baseline=right(constant, values(members))),
        Success(attack=success(nonmembers), baseline=np.zeros(len(nonmembers))),
        level=level,
        rng=rng,
    )


def guess_attribute(
    likelihood: ArrayLike, prior: ArrayLike, *, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Guess a secret attribute of people from a classifier's answers [3]_.

    The classifier is asked about each person once with every value of the attribute; the guess is the value with the largest
    likelihood of the person's known label times the value's prior share. Compare the success on members and on non-members with
    :func:`compare_success`, with the most frequent value as the baseline.

    Parameters
    ----------
    likelihood : array-like of float, shape (n, values)
        Probability that the classifier gives the known label if the attribute has each value.
    prior : array-like of float, shape (values,)
        Share of each value in the population, from public knowledge.
    rng : numpy.random.Generator
        Decides ties.

    Examples
    --------
    >>> guess_attribute([[0.9, 0.2], [0.3, 0.9]], [0.5, 0.5], rng=np.random.default_rng(0)).tolist()
    [0, 1]
    """
    chances = np.asarray(likelihood, dtype=np.float64)
    shares = np.asarray(prior, dtype=np.float64)
    if chances.ndim != 2 or shares.shape != chances.shape[1:] or (shares < 0).any():
        raise InvalidInput(
            f"likelihoods of shape {chances.shape} do not fit priors of shape {shares.shape}; pass one column and one share per value of the attribute."
        )
    if not (np.isfinite(chances).all() and (chances >= 0).all()):
        raise InvalidInput(
            "a likelihood is negative or not finite, so no value can be called the most likely; repair the model's answers."
        )
    weight = chances * shares
    best = weight >= weight.max(axis=1, keepdims=True) * (1 - 1e-12)
    return np.asarray(np.where(best, rng.random(weight.shape), -1.0).argmax(axis=1))


def link_halves(
    members: Columns,
    nonmembers: Columns,
    synthetic: Columns,
    *,
    first: ArrayLike,
    level: float,
    rng: np.random.Generator,
    neighbours: int = 1,
) -> Disclosure:
    """Link two halves of a person's columns, known from different sources, through the synthetic table.

    The attacker looks up the synthetic rows nearest to the one half and those nearest to the other, and says that both belong to one
    person if a synthetic row is among both [2]_. The baseline draws the rows at random.

    Parameters
    ----------
    members, nonmembers, synthetic : Columns
        Rows coded alike. With several rows per person, use :func:`one_row_per_unit` first.
    first : array-like of bool, shape (columns,)
        Which columns are in the first half: numeric columns first, then categorical ones.
    level : float
        Confidence of each interval, in (0, 1).
    rng : numpy.random.Generator
        Decides ties.
    neighbours : int
        Number of synthetic rows that are looked up for each half.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def rows(n):
    ...     return Columns(numbers=rng.random((n, 4)), codes=np.empty((n, 0)), ranges=[[0, 1]] * 4)
    >>> a, b = rows(200), rows(200)
    >>> found = link_halves(a, b, a, first=[True, True, False, False], level=0.95, rng=rng)
    >>> found.members.value, found.excess.low > 0.8
    (1.0, True)
    """
    require_rows(
        {"members'": members, "non-members'": nonmembers, "synthetic": synthetic}
    )
    half = np.asarray(first, dtype=bool)
    if half.shape != (members.width,) or half.all() or not half.any():
        raise InvalidInput(
            f"{half.sum()} of {members.width} columns are in the first half; put at least one column into each half, and name all columns."
        )
    k = min(neighbours, len(synthetic))
    chance = float(hypergeom.sf(0, len(synthetic), k, k))

    def success(people: Columns) -> Success:
        near = [
            nearest_rows(
                people.keep(side), synthetic.keep(side), k, distance="mixed", rng=rng
            )
            for side in (half, ~half)
        ]
        linked = (near[0][:, :, None] == near[1][:, None, :]).any(axis=(1, 2))
        return Success(
            attack=linked.astype(np.float64), baseline=np.full(len(linked), chance)
        )

    return compare_success(success(members), success(nonmembers), level=level, rng=rng)


def _share(values: NDArray[np.float64], level: float) -> Estimate:
    hits, people = _counted(values)
    share = clopper_pearson(min(hits, people), people, level=level)
    return replace(share, method="Clopper-Pearson, people")


def _difference(
    d: NDArray[np.float64], r: NDArray[np.float64], level: float
) -> Estimate:
    """Return the difference of two means, as that of two rates of the effective numbers of people."""
    low, high = rate_difference(_counted(d), _counted(r), level=level)
    value = float(d.mean() - r.mean())
    return Estimate(
        value=value,
        # Rounding may put an end beyond the value itself.
        low=min(value, float(low)),
        high=max(value, float(high)),
        level=level,
        method="difference of two rates, Clopper-Pearson, people",
    )


def _paired(a: NDArray[np.float64], b: NDArray[np.float64], level: float) -> Estimate:
    """Return the mean difference within people, as a proportion between -1 and 1."""
    hits, people = _counted((a - b + 1) / 2)
    share = clopper_pearson(min(hits, people), people, level=level)
    return Estimate(
        value=2 * share.value - 1,
        low=2 * share.low - 1,
        high=2 * share.high - 1,
        level=level,
        method="Clopper-Pearson, paired within people",
    )


def _counted(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return successes and trials with the mean of values in [0, 1], and with so many trials that they vary as much."""
    mean, spread = float(values.mean()), float(values.var())
    single = mean * (1 - mean)  # how much values of 0 and 1 with this mean vary
    if single == 0:
        return mean * len(values), float(len(values))
    # A chance that is known and the same for everybody does not vary at all.
    people = min(len(values) * single / max(spread, 1e-300), KNOWN)
    return mean * people, people


def _vote(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the most frequent value of each row; the nearest neighbour decides ties."""
    same = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    return np.asarray(votes[np.arange(len(votes)), same.argmax(axis=1)])


def _best_constant(values: NDArray[np.float64], width: float) -> float:
    """Return the value that most of the values are near to."""
    present = np.sort(values[~np.isnan(values)])
    if len(present) <= len(values) / 2:
        return math.nan
    near = np.searchsorted(present, present + width, side="right") - np.searchsorted(
        present, present - width
    )
    return float(present[near.argmax()])
