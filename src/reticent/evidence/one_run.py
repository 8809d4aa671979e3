r"""A lower bound on epsilon from one training with canaries in it, each put in by a coin of its own.

Of m canaries about half are in the training table. Whoever sees the product guesses for some of them whether they are in. Let
:math:`p_i` be the chance of exactly i right ones among c' guesses, and let no attack on a single record reach more than the
true-positive rate t(f) at the false-positive rate f, in either direction. For a canary and an event E that does not depend on its
coin, concavity of t gives P(right and E) :math:`\le` t(P(wrong and E)). With "at least j - 1 of the other guesses are right" for E,
averaged over the canaries, for every j

.. math:: \sum_{i \ge j} \frac{i}{m} p_i \le t\Big(\sum_{i \ge j - 1} \frac{c' - i}{m} p_i\Big)

(Theorem 3.1 of [1]_, for sets that reach to the top). If c or more are right with probability :math:`\tau`, this says how
likely c - 1 must be at least, then c - 2, and so on; if in the end all probabilities add up to more than 1, the chance of c or more is
below :math:`\tau` (Algorithm 3 and Theorem 3.2 of [1]_). Nothing is assumed about how canaries get into each other's way.

If all guesses are of one kind, say "in", P(right and E) is half of P(guess and E | in), and the same for wrong ones: both sides of the
inequality may be doubled, which is stronger. So m counts half.

Four looks are fixed by m alone, each with a part of the error. Guesses about the highest ("in") and the lowest scores ("out"),
:math:`6 \sqrt m` of them, have 0.7: that is close to the best number for any epsilon from 1 to 12 and 200 to 20,000 canaries. Guesses about all
canaries have 0.1, for trainings that leak nearly everything; and those about the highest quarter alone, and the lowest, 0.1 each, for
trainings that betray only who is in, or who is out.

Why this form. Theorem 5.2 of [2]_ (:func:`reticent.evidence.epsilon_lower_bound`) knows of a claim one epsilon and one delta, and pays
about 2 m delta for what may happen with probability delta; the whole curve is known here. How much that gives: the table in
docs/reference/statistics.md. What remains between bound and truth is no slack of the arithmetic: a training that leaks only
once in twenty times can be as private, and looks just so in that one run.

References
----------
.. [1] Mahloujifar, Melis & Chaudhuri, "Auditing f-differential privacy in one run", arXiv:2410.22235.
.. [2] Steinke, Nasr & Jagielski, "Privacy auditing with one (1) training run", arXiv:2305.08846.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from reticent._check import as_scores, in_open_unit
from reticent.account import gaussian_epsilon
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate

__all__ = [
    "Ends",
    "GuessCount",
    "guess_counts",
    "one_run_ceiling",
    "one_run_lower_bound",
    "one_run_p_value",
]

REACH = 6  # guesses per root of the number of canaries
OTHERS = 0.1  # share of the error of each look but the first
UNFAIR = 1e-9  # coins less likely than this are no fair coins
CLOSE = 1e-5  # to which a bound on mu is found
LARGEST_MU = 64.0


class Ends(StrEnum):
    """For which canaries a guess is made."""

    BOTH = "both ends"  # "in" for the highest scores, "out" for as many of the lowest
    HIGHEST = "highest scores"
    LOWEST = "lowest scores"


@dataclass(frozen=True, kw_only=True)
class GuessCount:
    """How many guesses were made about canaries, and how many were right.

    Parameters
    ----------
    ends : Ends
        For which canaries.
    made, right : int
        Guesses, and right ones.
    error : float
        Share of the error that this look has.
    """

    ends: Ends
    made: int
    right: int
    error: float


@dataclass(frozen=True, kw_only=True)
class _Look:
    ends: Ends
    made: int
    error: float

    @property
    def halves(self) -> int:
        """How many of the two kinds of guesses there are."""
        return 2 if self.ends is Ends.BOTH else 1


def guess_counts(scores: ArrayLike, included: ArrayLike) -> tuple[GuessCount, ...]:
    """Return how many guesses are right, in each look.

    Tied scores are taken in the order of the canaries, which the coins must not know.

    Parameters
    ----------
    scores : array-like of float
        One a canary; larger means more like a canary that is in.
    included : array-like of bool
        Whether it is in, by a fair coin of its own.

    Examples
    --------
    >>> for look in guess_counts([0.1, 0.9, 0.8, 0.2], [False, True, True, False]):
    ...     print(look.ends, look.made, look.right)
    both ends 4 4
    highest scores 1 1
    lowest scores 1 1
    """
    s = as_scores(scores, "canaries")
    coins = np.asarray(included)
    if coins.shape != s.shape or coins.dtype != bool:
        raise InvalidInput(
            f"there are {len(s)} scores but {coins.shape} answers of type {coins.dtype}; pass one yes or no a canary."
        )
    heads = int(coins.sum())
    if binom.cdf(min(heads, len(s) - heads), len(s), 0.5) < UNFAIR:
        raise InvalidInput(
            f"{heads} of {len(s)} canaries are in, which fair coins hardly ever give; the bound needs fair coins, drawn one by one."
        )
    ordered = coins[np.argsort(s, kind="stable")]
    return tuple(
        GuessCount(
            ends=look.ends,
            made=look.made,
            right=_right(ordered, look),
            error=look.error,
        )
        for look in _looks(len(s))
    )


def one_run_p_value(
    right: int, made: int, canaries: int, *, mu: float, ends: Ends = Ends.BOTH
) -> float:
    r"""Return the chance, at most, of so many right guesses or more if the training is :math:`\mu`-Gaussian private.

    Parameters
    ----------
    right, made, canaries : int
        Right guesses, guesses, canaries.
    mu : float
        Parameter of Gaussian differential privacy, at least 0.
    ends : Ends
        Whether guesses are of both kinds or of one.

    Examples
    --------
    >>> round(one_run_p_value(60, 64, 1000, mu=0.5), 4), round(one_run_p_value(60, 64, 1000, mu=0.5, ends=Ends.HIGHEST), 4)
    (0.0065, 0.0036)
    """
    if not 0 <= right <= made <= canaries or made < 1:
        raise InvalidInput(
            f"{right} right guesses of {made} about {canaries} canaries cannot be; count them again."
        )
    weight = _weight(canaries, ends)
    if not _unlikely(mu, right, made, weight, 1.0):
        return 1.0
    low, high = -700.0, 0.0  # logarithms; unlikely at the upper end
    while high - low > 1e-9:
        middle = (low + high) / 2
        if _unlikely(mu, right, made, weight, math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


def one_run_lower_bound(
    scores: ArrayLike, included: ArrayLike, *, level: float, delta: float
) -> Estimate:
    r"""Return an epsilon that the training exceeds with confidence ``level``, in the form of Gaussian differential privacy.

    With this confidence the training is not :math:`\mu`-Gaussian private for any :math:`\mu` whose epsilon at
    ``delta`` is smaller. As an epsilon the bound takes the training's curve to have that form; without it,
    :func:`reticent.evidence.epsilon_lower_bound` holds.

    Parameters
    ----------
    scores, included
        As in :func:`guess_counts`.
    level : float
        Confidence, in (0, 1).
    delta : float
        At which epsilon is stated, in (0, 1).

    Returns
    -------
    Estimate
        ``value`` and ``low`` are the bound (0 if nothing was shown), ``high`` is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(1000) < 0.5
    >>> found = one_run_lower_bound(rng.normal(coins, 1.0), coins, level=0.95, delta=1e-5)
    >>> 1.5 < found.low < 4.377
    True
    """
    miss = 1 - in_open_unit(level, "level")
    counts = guess_counts(scores, included)
    canaries = len(np.asarray(included))
    mu = max(
        _mu(c.right, c.made, _weight(canaries, c.ends), miss * c.error) for c in counts
    )
    bound = gaussian_epsilon(mu, delta)
    return Estimate(
        value=bound,
        low=bound,
        high=math.inf,
        level=level,
        method=f"one run, {canaries:,} canaries, Gaussian form, {len(counts)} looks paid for",
        covers="trainer",
    )


def one_run_ceiling(
    canaries: int, *, level: float, delta: float, truth: float = math.inf
) -> float:
    r"""Return the epsilon that so many canaries can show: of a guesser that is never wrong, or of a perfect one.

    Parameters
    ----------
    canaries : int
        Their number.
    level, delta : float
        As in :func:`one_run_lower_bound`.
    truth : float
        The true :math:`\mu`, of which a perfect guesser shows about so much in a typical audit, if canaries do not get into each
        other's way; infinite for a guesser that is never wrong.

    Examples
    --------
    >>> round(one_run_ceiling(1000, level=0.95, delta=1e-5), 1)
    9.0
    >>> round(one_run_ceiling(1000, level=0.95, delta=1e-5, truth=1.0), 2)
    2.36
    """
    miss = 1 - in_open_unit(level, "level")
    if canaries < 1 or not truth >= 0:
        raise InvalidInput(
            f"{canaries} canaries at a mu of {truth} show nothing; pass at least one canary and a mu from 0 on."
        )
    mu = max(
        _mu(
            _typical(look, canaries, truth),
            look.made,
            _weight(canaries, look.ends),
            miss * look.error,
        )
        for look in _looks(canaries)
    )
    return gaussian_epsilon(mu, delta)


def _looks(canaries: int) -> tuple[_Look, ...]:
    """Return for which canaries guesses are made, fixed by their number alone."""
    few = 2 * int(REACH / 2 * math.sqrt(canaries))
    quarter = max(1, canaries // 4)
    others = [
        _Look(ends=Ends.HIGHEST, made=quarter, error=OTHERS),
        _Look(ends=Ends.LOWEST, made=quarter, error=OTHERS),
    ]
    if few < canaries:
        others.insert(0, _Look(ends=Ends.BOTH, made=canaries, error=OTHERS))
    first = _Look(
        ends=Ends.BOTH, made=min(few, canaries), error=1 - OTHERS * len(others)
    )
    return (first, *others)


def _weight(canaries: int, ends: Ends) -> float:
    """Return m of the theorem; with guesses of one kind it counts half."""
    return float(canaries) if ends is Ends.BOTH else canaries / 2


def _right(ordered: NDArray[np.bool_], look: _Look) -> int:
    """Return the right guesses about canaries in rising order: the last are said to be in, the first to be out."""
    if look.ends is Ends.BOTH:
        out = look.made // 2
    else:
        out = look.made if look.ends is Ends.LOWEST else 0
    said_in = ordered[len(ordered) - (look.made - out) :]
    return int(said_in.sum() + (~ordered[:out]).sum())


def _typical(look: _Look, canaries: int, truth: float) -> int:
    """Return how many guesses a perfect guesser has right whose scores are normal, apart by the truth."""
    if math.isinf(truth):
        return look.made
    share = look.made / look.halves / canaries

    def beyond(threshold: float) -> float:
        return float(ndtr(-threshold) + ndtr(truth - threshold)) / 2 - share

    # By symmetry both ends have as many right.
    threshold = brentq(beyond, -40.0, 40.0 + truth)
    return round(look.halves * canaries / 2 * float(ndtr(truth - threshold)))


def _mu(right: int, made: int, weight: float, miss: float) -> float:
    """Return the largest mu under which so many right guesses have at most the probability ``miss``."""
    if not _unlikely(0.0, right, made, weight, miss):
        return 0.0
    low, high = 0.0, 1.0
    while _unlikely(high, right, made, weight, miss):
        low, high = high, 2 * high
        if low >= LARGEST_MU:
            return low
    while high - low > CLOSE:
        middle = (low + high) / 2
        if _unlikely(middle, right, made, weight, miss):
            low = middle
        else:
            high = middle
    return low


def _unlikely(mu: float, right: int, made: int, weight: float, chance: float) -> bool:
    r"""Return whether so many right guesses have at most this chance under mu: Algorithm 3 of [1]_.

    ``above`` and ``below`` are the sums of the theorem at one j, of right and of wrong guesses. Both are
    lower bounds on what the chance entails, and grow as j falls. Since :math:`t^{-1}(y) = \Phi(\Phi^{-1}(y) - \mu)`, a
    step costs two functions.
    """
    above, below = chance * right / weight, chance * (made - right) / weight
    # Rounding must not refute: the sums have to exceed the whole by more than it can amount to.
    whole = made / weight * (1 + 1e-10)
    for i in range(right - 1, -1, -1):
        if above > 1:
            return True  # no chance is
        needed = float(ndtr(ndtri(above) - mu))
        if needed <= below:
            return False  # nothing more is entailed, here or further down
        above += i / (made - i) * (needed - below)
        below = needed
        if above + below > whole:
            return True
    return False
