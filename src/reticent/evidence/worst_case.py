r"""The worst case: how well the best adversary that sees certain features can do, whatever its method.

The vulnerability of the best adversary is the total variation distance between the features of
members and of non-members, :math:`V^* = \tfrac12\int|f_1 - f_0|` ([1]_, chapter 5; [2]_). Plugging estimates of
the two distributions into this formula is biased **upwards**: two samples of one distribution never look
quite alike. Each estimate here therefore measures, by permuting the tags, what it shows when there is no
difference, and corrects for that; it comes with the p-value of the permutation test, and with an interval whose low end
comes from a rule learned on other records, which a chance difference cannot raise.

References
----------
.. [1] O'Dell, "Estimating privacy leakage of machine learning models", thesis, 2023, chapters 5 and 8.
.. [2] Yaghini, Kulynych & Troncoso, "Disparate vulnerability to membership inference attacks",
   arXiv:1906.00389.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.special import ndtri

from reticent._check import as_scores, in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._cells import (
    CELLS,
    Cells,
    cells_of_numbers,
    cells_of_values,
    common_values,
)
from reticent.evidence._estimate import Estimate
from reticent.evidence.vulnerability import vulnerability

__all__ = [
    "WorstCase",
    "subgroup_aware",
    "worst_case_density",
    "worst_case_discrete",
    "worst_case_vectors",
]

PERMUTATIONS = 199  # the smallest possible p-value is 1/200; more cost time
MOST_VECTORS = 4_000  # per side: nearest neighbours of more take long and add little


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """The vulnerability to the best adversary that sees certain features.

    Parameters
    ----------
    feature : str
        What the adversary sees of each record.
    estimate : Estimate
        The worst case, corrected for its upward bias; 0 to 1.
    plug_in : float
        The plug-in estimate before the correction, which is biased upwards.
    bias : float
        The mean of the plug-in estimate when tags are permuted and mean nothing.
    p_value : float
        Permutation p-value of "the features of members and non-members are alike".
    """

    feature: str
    estimate: Estimate
    plug_in: float
    bias: float
    p_value: float


def worst_case_discrete(
    members: ArrayLike,
    nonmembers: ArrayLike,
    *,
    feature: str,
    level: float,
    rng: np.random.Generator,
) -> WorstCase:
    """Return the worst case for a feature with few values, such as the 0-1 loss.

    For the 0-1 loss it is the gap between the error rates on members and on non-members ([1]_, Corollary 1).

    Parameters
    ----------
    members, nonmembers : array-like
        Value of the feature for each member and non-member.
    feature : str
        Name of the feature.
    level : float
        Confidence, in (0, 1).
    rng : numpy.random.Generator
        For permutations and halves.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> w = worst_case_discrete([0] * 90 + [1] * 10, [0] * 70 + [1] * 30, feature="0-1 loss", level=0.95, rng=rng)
    >>> round(w.plug_in, 3), w.p_value < 0.01
    (0.2, True)
    """
    d, r = as_scores(members, "members"), as_scores(nonmembers, "non-members")
    cells = cells_of_values(d, r)
    if cells.counted > CELLS:
        raise InvalidInput(
            f"the feature {feature!r} has {cells.counted} values, too many to count each separately; use worst_case_density."
        )
    return _by_cells(cells, feature, level, rng)


def worst_case_density(
    members: ArrayLike,
    nonmembers: ArrayLike,
    *,
    feature: str,
    level: float,
    rng: np.random.Generator,
) -> WorstCase:
    """Return the worst case for one number per record, such as the loss or an attack's score.

    Values that at least ten records have are counted one by one: the best adversary tells them apart, however
    close they lie. Of all others, densities are estimated with a Gaussian kernel on their pooled ranks: a monotone
    transformation does not change the total variation, and on ranks the bandwidth need not be chosen from
    the data. Both densities are reflected at the ends. If records that share a rarer value are on the same side more often than such densities explain, all values that
    occur twice are counted. The high end takes for granted that the densities of values that occur once do not alternate within the kernel.

    Parameters
    ----------
    members, nonmembers : array-like of float
        The feature of each member and non-member.
    feature, level, rng
        As in :func:`worst_case_discrete`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> w = worst_case_density(rng.normal(1, 1, 2000), rng.normal(0, 1, 2000), feature="loss", level=0.95, rng=rng)
    >>> w.estimate.low < 0.383 < w.estimate.high  # 2 Phi(1/2) - 1
    True
    """
    d, r = as_scores(members, "members"), as_scores(nonmembers, "non-members")
    return _by_cells(cells_of_numbers(d, r, rng), feature, level, rng)


def worst_case_vectors(
    members: ArrayLike,
    nonmembers: ArrayLike,
    *,
    feature: str,
    level: float,
    rng: np.random.Generator,
) -> WorstCase:
    r"""Return the worst case for several numbers per record, by nearest neighbours.

    With :math:`\eta(x)` the probability that a record with features x is a member, :math:`V^* = E|2\eta(X) - 1|` for
    equal shares of members and non-members. It is estimated from the tags of the nearest neighbours of each record,
    without the record itself; if at least ten records have the same features, from the tags of those. The more columns there are, the farther apart neighbours lie; the estimate is then biased
    downwards, and its high end is not a bound.

    Parameters
    ----------
    members, nonmembers : array-like of float, shape (n, d)
        The features; each column is replaced by its ranks, so that units of measurement do not matter.
    feature, level, rng
        As in :func:`worst_case_discrete`. At most 4,000 records per side, drawn at random, are used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(1, 1, (900, 2)), rng.normal(0, 1, (900, 2))
    >>> w = worst_case_vectors(x, y, feature="outputs", level=0.95, rng=rng)
    >>> w.estimate.low < 0.520 < w.estimate.high  # 2 Phi(sqrt(2)/2) - 1
    True
    """
    sides = []
    for values, name in ((members, "members"), (nonmembers, "non-members")):
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 2 or len(array) < 10 or not np.isfinite(array).all():
            raise InvalidInput(
                f"the features of {name} must be at least ten rows of finite numbers, got shape {array.shape}; "
                "pass one row per record."
            )
        sides.append(
            rng.permutation(array)[:MOST_VECTORS]
            if len(array) > MOST_VECTORS
            else array
        )
    d, r = sides
    if d.shape[1] != r.shape[1]:
        raise InvalidInput(
            f"members have {d.shape[1]} features and non-members {r.shape[1]}; pass the same features of both."
        )
    x = np.concatenate([d, r])
    ranks = np.column_stack([_middle_ranks(column) for column in x.T])
    # Ties too rare to be counted: tiny noise picks neighbours among them at random.
    noisy = ranks + rng.uniform(-1e-6, 1e-6, ranks.shape)
    # The number of neighbours grows more slowly than the records, so that neighbours come closer as records are added.
    k = max(5, round(len(x) ** 0.4))
    # The nearest is the record itself, whose tag must not count.
    near = np.asarray(cKDTree(noisy).query(noisy, k=k + 1)[1])[:, 1:]
    tags = np.arange(len(x)) < len(d)
    _, alike, counts = np.unique(ranks, axis=0, return_inverse=True, return_counts=True)
    alike = alike.reshape(-1)  # some versions of NumPy keep a second axis
    common = common_values(counts)[alike]

    def shown(tags: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return 2 eta - 1 for each record; each side counts as one half, whatever its size."""
        others = np.bincount(alike, weights=tags)[alike] - tags
        members = np.where(common, others, tags[near].sum(axis=1))
        inside = members / len(d)
        outside = (np.where(common, counts[alike] - 1, k) - members) / len(r)
        return np.asarray((inside - outside) / (inside + outside))

    def total(tags: NDArray[np.bool_]) -> float:
        gap = np.abs(shown(tags))
        return float((gap[tags].mean() + gap[~tags].mean()) / 2)

    null = np.array([total(rng.permutation(tags)) for _ in range(PERMUTATIONS)])
    # No record is judged by its own tag, so this rule is learned on other records.
    called = shown(tags) > 0
    sides_called = called[tags], called[~tags]
    return _corrected(
        feature, total(tags), null, sides_called, threshold=0.0, level=level
    )


def subgroup_aware(
    groups: Sequence[tuple[float, Estimate]], *, level: float
) -> Estimate:
    r"""Return the worst case of an adversary that knows each record's group as well.

    If the probability of membership is the same in all groups, :math:`V^*(W, Z) = \sum_z P(z)\, V^*_z(W)`, which is
    never below :math:`V^*(W)` (Theorem 4 of [2]_).

    Parameters
    ----------
    groups : sequence of (share, Estimate)
        Share of records in each group, and the worst case within it; the intervals must hold jointly.
    level : float
        The joint confidence of the intervals.

    Examples
    --------
    >>> e = Estimate(value=0.2, low=0.1, high=0.3, level=0.95, method="x")
    >>> print(subgroup_aware([(0.5, e), (0.5, e)], level=0.95))
    0.20 [0.10, 0.30]
    """
    whole = sum(share for share, _ in groups)
    if not groups or whole <= 0:
        raise InvalidInput(
            "there are no groups with a positive share to add up; pass the share and the worst case of each group."
        )

    def over(end: str) -> float:
        return float(
            sum(share * getattr(worst, end) for share, worst in groups) / whole
        )

    return Estimate(
        value=over("value"),
        low=over("low"),
        high=over("high"),
        level=in_open_unit(level, "level"),
        method=f"sum over {len(groups)} groups of {groups[0][1].method}",
    )


def _by_cells(
    cells: Cells, feature: str, level: float, rng: np.random.Generator
) -> WorstCase:
    """Compare members and non-members cell by cell."""
    d, r = cells.members, cells.nonmembers
    if min(len(d), len(r)) < 4:
        raise InvalidInput(
            f"at least four members and four non-members are needed for a comparison, got {len(d)} and {len(r)}."
        )
    counts = cells.counts()
    plug_in = float(cells.distance(*counts))
    # A permutation of the tags draws the members from the pooled cells without replacement.
    drawn = rng.multivariate_hypergeometric(
        counts[0] + counts[1], len(d), size=PERMUTATIONS, method="marginals"
    )
    null = cells.distance(drawn, counts[0] + counts[1] - drawn)
    corrected = _corrected(
        feature,
        plug_in,
        null,
        cells.cross_fitted(rng),
        threshold=cells.threshold,
        level=level,
    )
    if cells.total > 2:
        return corrected
    # With two values the only rules are one value and the other: the worst case is the gap itself, folded at 0.
    last = cells.total - 1
    gap = vulnerability(d == last, r == last, level=level)
    # If the interval of the gap contains 0, so does that of its absolute value.
    low = max(0.0, gap.low, -gap.high)
    value = corrected.estimate.value
    return WorstCase(
        feature=feature,
        plug_in=plug_in,
        bias=corrected.bias,
        p_value=corrected.p_value,
        estimate=Estimate(
            value=value,
            low=min(low, value),
            high=max(abs(gap.low), abs(gap.high), value),
            level=level,
            method="difference of two rates, Clopper-Pearson, folded at 0",
        ),
    )


def _corrected(
    feature: str,
    plug_in: float,
    null: NDArray[np.float64],
    called: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    *,
    threshold: float,
    level: float,
) -> WorstCase:
    """Correct the plug-in estimate for its bias, and compute an interval.

    A true difference and a chance difference add up like independent errors: the square of the plug-in is
    about the square of the truth plus that of the bias, whatever the size of the truth (the tests measure
    what remains). The low end is that of decisions by a rule learned on other records. If there is no difference, the
    two halves, each judged by the rule of the other, are right or wrong together, so the error of their mean is up
    to that of one half. The high end is that of the largest of plug-in, best single threshold and rule.
    """
    bias = float(null.mean())
    rule = vulnerability(*called, level=level)
    low = max(0.0, rule.value - float(np.sqrt(2)) * (rule.value - rule.low))
    value = max(low, float(np.sqrt(max(0.0, plug_in**2 - bias**2))))
    p, q = called[0].mean(), called[1].mean()
    error = float(np.sqrt(p * (1 - p) / len(called[0]) + q * (1 - q) / len(called[1])))
    reach = float(ndtri(1 - (1 - in_open_unit(level, "level")) / 2))
    return WorstCase(
        feature=feature,
        plug_in=plug_in,
        bias=bias,
        # The observed order counts as one of the permutations, so that the test is exact; ties differ by rounding
        # only.
        p_value=float((1 + np.sum(null >= plug_in - 1e-12)) / (1 + len(null))),
        estimate=Estimate(
            value=value,
            low=low,
            high=min(
                1.0, max(max(plug_in, threshold) + reach * error, rule.high, value)
            ),
            level=level,
            method="total variation less its permutation bias; below a cross-fitted rule, above the plug-in",
        ),
    )


def _middle_ranks(column: NDArray[np.float64]) -> NDArray[np.float64]:
    _, tied, counts = np.unique(column, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - (counts - 1) / 2) / len(column)
    return np.asarray(middle[tied], dtype=np.float64)
