"""True-positive rates at chosen false-positive rates, with intervals that allow for the error of both."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from reticent._check import as_scores, in_open_unit
from reticent.evidence._estimate import Estimate
from reticent.evidence.proportion import lower_limit, upper_limit

__all__ = ["RocPoint", "exposed_share", "roc_points", "tpr_at_fpr"]


@dataclass(frozen=True, kw_only=True)
class RocPoint:
    """One point of a ROC curve: a requested false-positive rate and the true-positive rate there.

    Parameters
    ----------
    fpr : float
        The requested false-positive rate.
    tpr : Estimate
        The true-positive rate at that rate.
    resolved : bool
        Whether there are enough non-members to observe that rate at all (n * fpr >= 1).
    """

    fpr: float
    tpr: Estimate
    resolved: bool


def tpr_at_fpr(
    members: ArrayLike, nonmembers: ArrayLike, *, fpr: float, level: float
) -> Estimate:
    """Return the true-positive rate of an attack at a fixed false-positive rate.

    The threshold that has this rate among all non-members is not known: only n of them were
    observed. The number of these above the true threshold is binomial(n, fpr), so the
    threshold lies between two order statistics with known confidence; Clopper-Pearson limits
    of the members' share above those complete the interval. Half of the error is spent on
    each of the two. Ties count as if they were broken at random: the expected count is used.
    When n * fpr < 1 the rate cannot be observed; the value is then the share of members above
    every non-member, and the wide interval shows how little that means.

    Parameters
    ----------
    members, nonmembers : array-like of float
        Scores, larger meaning more like a member.
    fpr : float
        False-positive rate, in (0, 1); 0.001 is 0.1 %.
    level : float
        Confidence, in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> nonmembers = np.arange(1000.0)
    >>> print(tpr_at_fpr(nonmembers + 100, nonmembers, fpr=0.01, level=0.95))
    0.11 [0.08, 0.15]
    """
    return roc_points(members, nonmembers, fprs=[fpr], level=level)[0].tpr


def exposed_share(
    members: ArrayLike, nonmembers: ArrayLike, *, below: float, level: float
) -> Estimate:
    """Return the share of members whose individual privacy score is below a value.

    A member d has individual privacy below ``b`` when it outranks more than ``1 - b/2`` of
    the non-members: this is the true-positive rate at the false-positive rate ``b/2``.
    A product that leaks nothing has a share of ``b/2``, not 0.

    Examples
    --------
    >>> import numpy as np
    >>> nonmembers = np.arange(1000.0)
    >>> print(exposed_share(nonmembers, nonmembers, below=0.1, level=0.95))
    0.05 [0.02, 0.09]
    """
    return tpr_at_fpr(
        members, nonmembers, fpr=in_open_unit(below, "below") / 2, level=level
    )


def roc_points(
    members: ArrayLike, nonmembers: ArrayLike, *, fprs: Sequence[float], level: float
) -> list[RocPoint]:
    """Return several points of the ROC curve; each interval holds at ``level`` on its own.

    Examples
    --------
    >>> [p.resolved for p in roc_points([1.0, 2.0], [0.0, 1.0], fprs=[0.01, 0.5], level=0.9)]
    [False, True]
    """
    d = np.sort(as_scores(members, "members"))
    r = np.sort(as_scores(nonmembers, "non-members"))
    for fpr in fprs:
        in_open_unit(fpr, "fpr")
    in_open_unit(level, "level")
    rates = np.asarray(fprs, dtype=np.float64)
    m, n = len(d), len(r)
    miss = (1 - level) / 4  # two sides, each with a threshold and a count
    fewest = np.asarray(binom.ppf(miss, n, rates))  # P(N < fewest) <= miss
    most = np.asarray(binom.isf(miss, n, rates))  # P(N > most) <= miss
    # A whole false positive that rounding turned into 0.9999999 still counts as one.
    at_most = np.floor(rates * n + 1e-9)
    hits = _members_above(d, r, at_most + 1)
    # Expected counts of ties are no whole numbers: rounded outwards, they widen the interval.
    low = lower_limit(np.floor(_members_above(d, r, fewest)), m, miss)
    high = upper_limit(np.ceil(_members_above(d, r, most + 1)), m, miss)
    return [
        RocPoint(
            fpr=float(rate),
            tpr=Estimate(
                value=float(value),
                low=float(min(lo, value)),
                high=float(max(hi, value)),
                level=level,
                method="order statistics and Clopper-Pearson",
            ),
            resolved=bool(rate * n >= 1 - 1e-9),
        )
        for rate, value, lo, hi in zip(rates, hits / m, low, high, strict=True)
    ]


def _members_above(
    d: NDArray[np.float64], r: NDArray[np.float64], rank: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the expected number of members above the rank-th largest non-member.

    Rank 0 is above everything, rank n + 1 below everything. Inside a block of tied scores
    with a members and b non-members in random order, a q / (b + 1) members are expected
    above the q-th non-member.
    """
    m, n = len(d), len(r)
    # Ranks beyond the ends are handled in the last line; here they only need a valid index.
    inner = np.clip(rank, 1, n).astype(np.int64)
    at = r[n - inner]
    strictly = m - np.searchsorted(d, at, side="right")
    tied = np.searchsorted(d, at, side="right") - np.searchsorted(d, at, side="left")
    above = n - np.searchsorted(r, at, side="right")
    block = np.searchsorted(r, at, side="right") - np.searchsorted(r, at, side="left")
    expected = strictly + tied * (inner - above) / (block + 1)
    return np.where(rank <= 0, 0.0, np.where(rank > n, float(m), expected))
