r"""How many members could be named, and how often a person who is pointed out is a member.

A true-positive rate says how many members an attacker points out; whether a name can be believed depends on how many
other people there are. With m members among N people and the attacker's rates TPR and FPR, a person who is pointed out is a
member with probability :math:`m\,TPR / (m\,TPR + (N - m)\,FPR)`: the positive predictive value.

An attacker who wants at most a share q of false names chooses the threshold accordingly. With non-members of his own he
can: :math:`p(t) = (1 + \#\{\text{his non-members at or above } t\}) / (1 + \text{his non-members})` is a conformal p-value [1]_, and
Benjamini and Hochberg [2]_ name all people at or above the smallest t with :math:`N p(t) \le q R(t)`, where R(t) people lie at or above
t. That keeps the expected share of false names at or below q [1]_.

References
----------
.. [1] Bates, Candes, Lei, Romano & Sesia, "Testing for outliers with conformal p-values", arXiv:2104.08279.
.. [2] Benjamini & Hochberg, "Controlling the false discovery rate", J. R. Stat. Soc. B 57, 1995.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent._check import as_scores, in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate

__all__ = ["Naming", "can_be_told", "name_members", "predictive_value"]

# Enough for the ends of a 95 % interval to move by less than a tenth of its width between runs.
REPLICATES = 400


@dataclass(frozen=True, kw_only=True)
class Naming:
    """What the strongest attack is good for when names must be right.

    Parameters
    ----------
    false_names : float
        Share of false names that is accepted.
    people : int
        People among whom the members are sought.
    named : Estimate or None
        Share of the members that can be named; None if there are too few non-members to tell among so many people.
    population : int or None
        The size of the population, if it was stated.
    fpr : float
        False-positive rate of the predictive value.
    predictive_value : Estimate or None
        Probability that a person who is pointed out at that rate is a member; None if no population was stated.
    """

    false_names: float
    people: int
    named: Estimate | None
    population: int | None = None
    fpr: float
    predictive_value: Estimate | None = None


def predictive_value(
    tpr: Estimate, *, fpr: float, members: int, population: int
) -> Estimate:
    """Return the probability that a person who is pointed out is a member.

    Parameters
    ----------
    tpr : Estimate
        True-positive rate at the rate ``fpr``; its interval carries over, because the value grows with it.
    fpr : float
        False-positive rate, in (0, 1).
    members, population : int
        Members, and all people the attacker could point at, members included.

    Raises
    ------
    InvalidInput
        If the population is not larger than the number of members.

    Examples
    --------
    >>> tpr = Estimate(value=0.01, low=0.002, high=0.03, level=0.95, method="exact")
    >>> print(predictive_value(tpr, fpr=0.001, members=1_000, population=11_000))
    0.50 [0.16, 0.75]
    """
    in_open_unit(fpr, "fpr")
    if not population > members > 0:
        raise InvalidInput(
            f"the population has {population:,} people, but {members:,} of them are members; state how many people an attacker could "
            "point at, members included."
        )
    odds = members / ((population - members) * fpr)

    def value(rate: float) -> float:
        return rate * odds / (1 + rate * odds)

    return Estimate(
        value=value(tpr.value),
        low=value(tpr.low),
        high=value(tpr.high),
        level=tpr.level,
        method=f"Bayes' rule with {members:,} members of {population:,} people; {tpr.method}",
        covers=tpr.covers,
    )


def can_be_told(
    members: int, nonmembers: int, *, others: int, false_names: float
) -> bool:
    """Whether an attacker with perfect scores could name members: with few non-members no p-value is small enough.

    Examples
    --------
    >>> can_be_told(200, 200, others=200, false_names=0.1), can_be_told(200, 200, others=100_000, false_names=0.1)
    (True, False)
    """
    smallest = 1 / (1 + nonmembers // 2)
    return (members + others) * smallest <= false_names * members


def name_members(
    members: ArrayLike,
    nonmembers: ArrayLike,
    *,
    others: int,
    false_names: float = 0.1,
    level: float,
    rng: np.random.Generator,
    replicates: int = REPLICATES,
) -> Estimate:
    """Return the share of members who can be named while at most some share of the names is expected to be false.

    One half of the non-members is the attacker's own and sets the p-values; the other half stands for the people among whom the
    members are sought, weighted to ``others`` of them. Both halves change roles, and the mean is returned. The interval is that of a
    bootstrap that draws people anew.

    Parameters
    ----------
    members, nonmembers : array-like of float
        Scores, larger meaning more like a member.
    others : int
        Non-members among whom the members are sought.
    false_names : float
        Share of false names that is accepted, in (0, 1).
    level : float
        Confidence, in (0, 1).
    rng : numpy.random.Generator
        For the halves and the bootstrap.
    replicates : int
        Draws of the bootstrap.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> share = name_members(rng.normal(4, 1, 500), rng.normal(0, 1, 500), others=500, level=0.95, rng=rng)
    >>> 0.9 < share.value < 1
    True
    """
    inside = as_scores(members, "members")
    outside = as_scores(nonmembers, "nonmembers")
    in_open_unit(false_names, "false_names")
    in_open_unit(level, "level")
    if others < 1:
        raise InvalidInput(
            f"others must be at least 1, got {others}: among members alone every name is right."
        )
    half = np.zeros(len(outside), dtype=bool)
    half[rng.permutation(len(outside))[: len(outside) // 2]] = True
    scores = np.concatenate([inside, outside])
    order = np.argsort(-scores, kind="stable")
    sides = [np.ones(len(inside)), np.zeros(len(outside))]
    is_member = np.concatenate(sides)[order]
    in_half = np.concatenate([np.zeros(len(inside)), half])[order]
    # A threshold lies below the last of equal scores: nobody can tell them apart.
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    draw = _Draw(is_member=is_member, in_half=in_half, ends=ends)
    value = draw.share(np.ones(len(order)), others=others, q=false_names)
    shares = [
        draw.share(rng.poisson(1.0, len(order)), others=others, q=false_names)
        for _ in range(replicates)
    ]
    low, high = np.quantile(shares, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(
        value=value,
        low=min(float(low), value),
        high=max(float(high), value),
        level=level,
        method=f"Benjamini-Hochberg on conformal p-values, bootstrap of {replicates} draws",
    )


@dataclass(frozen=True, kw_only=True)
class _Draw:
    """People in the order of their scores, the highest first."""

    is_member: NDArray[np.float64]
    in_half: NDArray[np.float64]
    ends: NDArray[np.int64]

    def share(self, weights: NDArray[np.number], *, others: int, q: float) -> float:
        """Return the mean share of named members over both roles of the halves, people counted by their weights."""
        named = np.cumsum(weights * self.is_member)
        first = np.cumsum(weights * self.in_half)
        second = np.cumsum(weights * (1 - self.is_member - self.in_half))
        total = float(named[-1])
        if total == 0 or first[-1] == 0 or second[-1] == 0:
            return 0.0
        named, first, second = (c[self.ends] for c in (named, first, second))
        shares = []
        for known, sought in ((first, second), (second, first)):
            p = (1 + known) / (1 + known[-1])
            pointed_at = named + sought * others / sought[-1]
            is_kept = (total + others) * p <= q * pointed_at
            shares.append(float(named[is_kept][-1]) / total if is_kept.any() else 0.0)
        return sum(shares) / 2
