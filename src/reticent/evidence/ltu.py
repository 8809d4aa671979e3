"""The Leave-Two-Unlabeled (LTU) evaluation: accuracy over all pairs, privacy, utility.

Notation of the LTU paper [1]_: D, the defender's (training) records; R, reserved records of
the same distribution; a round picks one of each and asks an attacker which is which.
An attacker that scores records one by one (larger: more like a member) wins the round if the
member has the larger score; ties are decided by a fair coin. Over all |D| |R| pairs its
accuracy is therefore the area under the ROC curve, with ties counted as one half. It is computed
here exactly, by ranks: no rounds are drawn and no matrix of pairs is built.

References
----------
.. [1] Pedersen et al., "LTU attacker for membership inference", arXiv:2202.02278.
.. [2] DeLong, DeLong & Clarke-Pearson, "Comparing the areas under two or more correlated
   receiver operating characteristic curves: a nonparametric approach", Biometrics 44, 1988.
.. [3] Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a
   nonnegative variable", Mathematical Methods of Statistics 14, 2005.
.. [4] Learned-Miller & Thomas, "A new confidence interval for the mean of a bounded random
   variable", arXiv:1905.06208.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from reticent._check import as_scores, in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence.proportion import clopper_pearson

__all__ = [
    "PairWins",
    "individual_privacy",
    "ltu_accuracy",
    "pair_wins",
    "privacy_from_accuracy",
    "privacy_from_rounds",
    "theorem_1",
    "theorem_2",
    "utility",
]


@dataclass(frozen=True, kw_only=True)
class PairWins:
    """For each record, the share of its pairs that the attacker wins.

    These are the placement values of DeLong et al. [2]_.

    Parameters
    ----------
    members : array of float, shape (|D|,)
        For each d, the share of R scored below d, with ties counted as one half.
    nonmembers : array of float, shape (|R|,)
        For each r, the share of D scored above r, with ties counted as one half.
    """

    members: NDArray[np.float64]
    nonmembers: NDArray[np.float64]

    @property
    def accuracy(self) -> float:
        """The LTU accuracy over all pairs."""
        return float(self.members.mean())


def pair_wins(members: ArrayLike, nonmembers: ArrayLike) -> PairWins:
    """Play every pair of one member and one non-member, in O(n log n).

    Parameters
    ----------
    members, nonmembers : array-like of float
        Scores, larger meaning more like a member.

    Returns
    -------
    PairWins
        Individual accuracies of members and of non-members; the mean of either is the
        LTU accuracy.

    Examples
    --------
    Appendix C of the LTU paper, with c = 0.6 (its f is large for reserved records):

    >>> wins = pair_wins([-0.1, -0.3, -0.6], [-0.4, -0.7, -0.9])
    >>> round(9 * wins.accuracy, 12)
    8.0
    >>> wins.members.round(3)
    array([1.   , 1.   , 0.667])
    """
    d = as_scores(members, "members")
    r = as_scores(nonmembers, "non-members")
    d_order, r_order = np.argsort(d), np.argsort(r)
    d_sorted, r_sorted = d[d_order], r[r_order]
    # Sorted queries read memory in order, which is several times faster than unsorted ones.
    below = np.searchsorted(r_sorted, d_sorted, side="left")
    not_above = np.searchsorted(r_sorted, d_sorted, side="right")
    d_wins = np.empty(len(d))
    # The mean of both ends counts a tie as half a win.
    d_wins[d_order] = (below + not_above) / (2 * len(r))
    below = np.searchsorted(d_sorted, r_sorted, side="left")
    not_above = np.searchsorted(d_sorted, r_sorted, side="right")
    r_wins = np.empty(len(r))
    r_wins[r_order] = 1 - (below + not_above) / (2 * len(d))
    return PairWins(members=d_wins, nonmembers=r_wins)


def ltu_accuracy(
    members: ArrayLike | PairWins,
    nonmembers: ArrayLike | None = None,
    *,
    level: float,
) -> Estimate:
    r"""Return the exact LTU accuracy over all pairs, with an interval for the draw of records.

    The accuracy :math:`A` is the ROC AUC. Its variance (Eq. 5 of [2]_) is
    :math:`S_{10}/|D| + S_{01}/|R|`, the sample variances of the individual accuracies;
    the pairs themselves are dependent and must not be counted as independent trials.

    Few records on one side, or an accuracy near 1, make that variance too small just when the accuracy is too
    large: the rare records that the attack gets wrong are then missing from both. Each end therefore
    adds to either side one record that is as bad for it as a record can be (for the low end a member below all others and a
    non-member above all others), gives all records random Dirichlet weights, and takes a quantile of the
    weighted accuracy: Gaffke's bound on a mean ([3]_, [4]_) for the two sides. Its distribution is taken to be a beta with
    the same mean and variance. If one side is so large that it counts as known, and the individual accuracies
    are 0 and 1, the ends are those of Clopper and Pearson.

    Parameters
    ----------
    members, nonmembers : array-like of float
        Scores, larger meaning more like a member; or one :class:`PairWins` alone.
    level : float
        Confidence, in (0, 1).

    Examples
    --------
    >>> print(ltu_accuracy([3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.5, 4.5], level=0.95))
    0.81 [0.18, 1.00]
    """
    if isinstance(members, PairWins):
        wins = members
    elif nonmembers is None:
        raise InvalidInput(
            "there are scores of members only, so no pair can be formed; pass the scores of non-members too."
        )
    else:
        wins = pair_wins(members, nonmembers)
    error = (1 - in_open_unit(level, "level")) / 2
    accuracy = min(max(wins.accuracy, 0.0), 1.0)
    sides = (
        (len(wins.members), float(wins.members.var())),
        (len(wins.nonmembers), float(wins.nonmembers.var())),
    )
    return Estimate(
        value=accuracy,
        low=min(accuracy, _lower_end(accuracy, sides, error)),
        # The high end is the low end of the attack that answers the other way round.
        high=max(accuracy, 1 - _lower_end(1 - accuracy, sides, error)),
        level=level,
        method="DeLong's variance with a worst record on each side, beta",
    )


def _lower_end(
    accuracy: float, sides: tuple[tuple[int, float], tuple[int, float]], error: float
) -> float:
    """Return the accuracy that the true one is below with a probability of at most about ``error``.

    Each side is its number of records and the variance of their individual accuracies, divided by that number.
    """
    if accuracy <= 0:
        return 0.0
    (m, _), (n, _) = sides
    kept = m / (m + 1), n / (n + 1)  # expected weight of the records at hand
    mean = accuracy * kept[0] * kept[1]
    variance = 0.0
    for own, (count, spread) in enumerate(sides):
        # Moments of the individual accuracies with the added record, whose own is 0; the other side's added record
        # lowers all of them.
        first = kept[1 - own] * accuracy * kept[own]
        second = kept[1 - own] ** 2 * (accuracy**2 + spread) * kept[own]
        variance += (second - first**2) / (count + 2)
    size = mean * (1 - mean) / variance - 1
    return float(betaincinv(mean * size, (1 - mean) * size, error))


def privacy_from_accuracy(accuracy: Estimate) -> Estimate:
    """Return the privacy score ``min(2 (1 - A), 1)`` of an LTU accuracy.

    A score of 1 means that the attacker does no better than a coin, 0 that it is never wrong.
    (Eq. 1 of the LTU paper prints ``max``, which would make every score at least 1.)

    Examples
    --------
    >>> a = Estimate(value=0.75, low=0.7, high=0.8, level=0.95, method="DeLong")
    >>> print(privacy_from_accuracy(a))
    0.50 [0.40, 0.60]
    """
    return replace(
        accuracy,
        value=min(2 * (1 - accuracy.value), 1.0),
        low=min(2 * (1 - accuracy.high), 1.0),
        high=min(2 * (1 - accuracy.low), 1.0),
    )


def privacy_from_rounds(wins: float, rounds: int, *, level: float) -> Estimate:
    """Return the privacy score from independent LTU rounds, with ties counted as one half.

    This is for attackers that retrain for each pair, where not every pair can be played. The
    error bar of the paper is ``2 sqrt(A (1 - A) / N)``, which is zero when every round is won;
    the interval here is exact.

    Examples
    --------
    >>> print(privacy_from_rounds(100, 100, level=0.95))
    0 [0, 0.08]
    """
    return privacy_from_accuracy(clopper_pearson(wins, rounds, level=level))


def individual_privacy(wins: PairWins) -> NDArray[np.float64]:
    """Return the privacy score of each member, over its pairs with all of R.

    Examples
    --------
    >>> individual_privacy(pair_wins([0.9, 0.2], [0.1, 0.3]))
    array([0., 1.])
    """
    return np.minimum(2 * (1 - wins.members), 1.0)


def utility(
    correct: int,
    total: int,
    *,
    classes: int,
    level: float,
    independent: int | None = None,
) -> Estimate:
    r"""Return the utility score :math:`(c\,a - 1)/(c - 1)` of an accuracy :math:`a`.

    A score of 0 is no better than a uniform guess among the c classes, 1 is never wrong, and it
    is negative below chance. (Eq. 2 of the LTU paper; its error bar lacks the factor 1/(c - 1).)

    Parameters
    ----------
    correct, total : int
        Number of reserved records predicted correctly, and of all reserved records.
    classes : int
        Number of classes c, at least 2.
    level : float
        Confidence, in (0, 1).
    independent : int, optional
        Number of independent units if people have several records; the interval is
        then as wide as if each person counted once, which leans to the safe side.

    Examples
    --------
    >>> print(utility(90, 100, classes=10, level=0.95))
    0.89 [0.80, 0.95]
    """
    if classes < 2:
        raise InvalidInput(
            f"utility needs at least 2 classes, got {classes}; check the target."
        )
    # Records of one person may all be right or wrong together.
    trials = total if independent is None else min(independent, total)
    accuracy = clopper_pearson(correct / total * trials, trials, level=level)

    def score(a: float) -> float:
        return (classes * a - 1) / (classes - 1)

    return replace(
        accuracy,
        value=score(accuracy.value),
        low=score(accuracy.low),
        high=score(accuracy.high),
    )


def theorem_1(members: ArrayLike, nonmembers: ArrayLike) -> tuple[float, float, float]:
    """Return pR, pD and the LTU accuracy that a discriminant function achieves.

    Theorem 1 of the LTU paper: if f is larger for reserved records, pR = P(f(r) > f(d)) and
    pD = P(f(r) < f(d)), the attacker reaches A = 1/2 + (pR - pD)/2.

    Parameters
    ----------
    members, nonmembers : array-like of float
        Values of f on D and on R, for example losses.

    Returns
    -------
    p_reserved, p_defender, accuracy : float

    Examples
    --------
    Example 1 of Appendix B, where this strategy detects nothing:

    >>> theorem_1([0.0, 0.5], [0.3, 0.4])
    (0.5, 0.5, 0.5)
    """
    d, r = as_scores(members, "members"), np.sort(as_scores(nonmembers, "non-members"))
    p_reserved = float((len(r) - np.searchsorted(r, d, side="right")).mean() / len(r))
    p_defender = float(np.searchsorted(r, d, side="left").mean() / len(r))
    return p_reserved, p_defender, 0.5 + (p_reserved - p_defender) / 2


def theorem_2(members: ArrayLike, nonmembers: ArrayLike) -> tuple[float, float, float]:
    """Return eR, eD and the LTU accuracy that a bounded loss achieves.

    Theorem 2 of the LTU paper: with losses in [0, 1] and means eR on R and eD on D, an
    attacker that guesses "reserved" with probability equal to the loss reaches
    A = 1/2 + (eR - eD)/2. Neither theorem's strategy is always the better one.

    Examples
    --------
    Example 1 of Appendix B, where this strategy detects a gap of 0.1:

    >>> e_r, e_d, accuracy = theorem_2([0.0, 0.5], [0.3, 0.4])
    >>> round(e_r - e_d, 12), round(accuracy, 12)
    (0.1, 0.55)
    """
    d, r = as_scores(members, "members"), as_scores(nonmembers, "non-members")
    smallest, largest = min(d.min(), r.min()), max(d.max(), r.max())
    if smallest < 0 or largest > 1:
        raise InvalidInput(
            f"losses span [{smallest:.3g}, {largest:.3g}] but Theorem 2 holds for losses in "
            "[0, 1]; rescale them."
        )
    e_reserved, e_defender = float(r.mean()), float(d.mean())
    return e_reserved, e_defender, 0.5 + (e_reserved - e_defender) / 2
