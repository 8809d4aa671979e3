r"""A lower bound on epsilon from one training with canaries, each included by an independent coin.

Of m canaries, about half are in the training table. Whoever sees the product guesses for some of them whether they are in. Let
:math:`p_i` be the probability of exactly i right ones among c' guesses, and let no attack on a single record exceed the
true-positive rate t(f) at the false-positive rate f, in either direction. For a canary and an event E that does not depend on its
coin, concavity of t gives P(right and E) :math:`\le` t(P(wrong and E)). With "at least j - 1 of the other guesses are right" for E,
averaged over the canaries, this gives for every j

.. math:: \sum_{i \ge j} \frac{i}{m} p_i \le t\Big(\sum_{i \ge j - 1} \frac{c' - i}{m} p_i\Big)

(Theorem 3.1 of [1]_, for sets that contain all larger counts). If c or more are right with probability :math:`\tau`, this gives a
lower bound on the probability of c - 1, then of c - 2, and so on; if all these probabilities add up to more than 1, the probability of c
or more is below :math:`\tau` (Algorithm 3 and Theorem 3.2 of [1]_). Canaries may interfere with each other in any way.

If all guesses are of one kind, say "in", P(right and E) is half of P(guess and E | in), and likewise for wrong guesses: both sides of the
inequality may be doubled, which makes it stronger. Such guesses therefore enter with m/2 in place of m.

Four looks are fixed by m alone, each with a share of the error. :math:`6 \sqrt m` guesses about the highest ("in") and the lowest
scores ("out") have a share of 0.7; their number is close to the best one for any epsilon from 1 to 12 and 200 to 20,000 canaries. Guesses
about all canaries have 0.1, for trainings that leak nearly everything. Guesses about the highest quarter alone, and about the lowest quarter
alone, have 0.1 each, for trainings that reveal only who is in, or only who is out.

Why this form: Theorem 5.2 of [2]_ (:func:`reticent.evidence.epsilon_lower_bound`) uses one epsilon and one delta of a claim, and pays
about 2 m delta for what may happen with probability delta; here the whole curve is used. The table in docs/reference/statistics.md shows
the gain. What remains between the bound and the truth is not slack in the arithmetic: a training that leaks only in one run out of twenty
can have the same privacy, and looks the same in that one run.

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

GUESSES_PER_ROOT = 6  # times the root of the number of canaries; see above
ERROR_OF_OTHER_LOOKS = 0.1  # share of the error of each look but the first; see above
UNFAIR = 1e-9  # coins less likely than this are refused; hardly any correct audit is
MU_TOLERANCE = 1e-5  # of a bound on mu: finer than any printed digit
LARGEST_MU = 64.0  # beyond it the trade-off curve is a corner in floating point


class Ends(StrEnum):
    """The canaries about which guesses are made."""

    BOTH = "both ends"  # "in" for the highest scores, "out" for as many of the lowest
    HIGHEST = "highest scores"
    LOWEST = "lowest scores"


@dataclass(frozen=True, kw_only=True)
class GuessCount:
    """The number of guesses about canaries in one look, and how many were right.

    Parameters
    ----------
    ends : Ends
        The canaries about which guesses were made.
    made, right : int
        Number of guesses, and of right guesses.
    error : float
        Share of the error spent on this look.
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
        """Number of kinds of guesses, "in" and "out", that the look contains."""
        return 2 if self.ends is Ends.BOTH else 1


def guess_counts(scores: ArrayLike, included: ArrayLike) -> tuple[GuessCount, ...]:
    """Return the number of right guesses in each look.

    Tied scores are taken in the order of the canaries, which must not depend on the coins.

    Parameters
    ----------
    scores : array-like of float
        One score per canary; larger means more like a canary that is in.
    included : array-like of bool
        Whether each canary is in, decided by independent fair coins.

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
            f"there are {len(s)} scores but answers of shape {coins.shape} and type {coins.dtype}; pass one boolean per canary."
        )
    heads = int(coins.sum())
    # The theorem holds for independent fair coins alone, so chosen or sorted tags are refused.
    if binom.cdf(min(heads, len(s) - heads), len(s), 0.5) < UNFAIR:
        raise InvalidInput(
            f"{heads} of {len(s)} canaries are in, which fair coins hardly ever give, so the bound would not hold; include each "
            "canary by an independent fair coin."
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
    r"""Return an upper bound on the probability of ``right`` or more right guesses if the training is :math:`\mu`-GDP.

    Parameters
    ----------
    right, made, canaries : int
        Number of right guesses, of guesses, and of canaries.
    mu : float
        Parameter of Gaussian differential privacy, at least 0.
    ends : Ends
        Whether the guesses are of both kinds or of one.

    Examples
    --------
    >>> round(one_run_p_value(60, 64, 1000, mu=0.5), 4), round(one_run_p_value(60, 64, 1000, mu=0.5, ends=Ends.HIGHEST), 4)
    (0.0065, 0.0036)
    """
    if not 0 <= right <= made <= canaries or made < 1:
        raise InvalidInput(
            f"{right} right guesses of {made} about {canaries} canaries are not possible; count them again."
        )
    weight = _weight(canaries, ends)
    if not _unlikely(mu, right, made, weight, 1.0):
        return 1.0
    # Logarithms of the probability, down to about the smallest number; at `high` the guesses are always too unlikely.
    low, high = -700.0, 0.0
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

    With this confidence the training is not :math:`\mu`-GDP for any :math:`\mu` whose epsilon at
    ``delta`` is smaller. To read the bound as an epsilon is to assume that the trade-off curve of the training has that
    form; :func:`reticent.evidence.epsilon_lower_bound` holds without this assumption.

    Parameters
    ----------
    scores, included
        As in :func:`guess_counts`.
    level : float
        Confidence, in (0, 1).
    delta : float
        The delta at which epsilon is stated, in (0, 1).

    Returns
    -------
    Estimate
        ``value`` and ``low`` are the bound (0 if the guesses show nothing), ``high`` is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(1000) < 0.5
    >>> bound = one_run_lower_bound(rng.normal(coins, 1.0), coins, level=0.95, delta=1e-5)
    >>> 1.5 < bound.low < 4.377
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
    r"""Return the lower bound on epsilon that this many canaries can show.

    Parameters
    ----------
    canaries : int
        Number of canaries.
    level, delta : float
        As in :func:`one_run_lower_bound`.
    truth : float
        The true :math:`\mu`: the result is then about what an optimal attacker shows in a typical audit, if canaries do not
        interfere with each other. Infinite, the default, is an attacker that is never wrong.

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
            f"canaries must be at least 1 and truth at least 0, got {canaries} and {truth}."
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
    """Return the looks, which depend on the number of canaries alone and so need no correction for a choice."""
    # An even number, so that both ends have the same share.
    few = 2 * int(GUESSES_PER_ROOT / 2 * math.sqrt(canaries))
    quarter = max(1, canaries // 4)
    others = [
        _Look(ends=Ends.HIGHEST, made=quarter, error=ERROR_OF_OTHER_LOOKS),
        _Look(ends=Ends.LOWEST, made=quarter, error=ERROR_OF_OTHER_LOOKS),
    ]
    if few < canaries:
        others.insert(
            0, _Look(ends=Ends.BOTH, made=canaries, error=ERROR_OF_OTHER_LOOKS)
        )
    first = _Look(
        ends=Ends.BOTH,
        made=min(few, canaries),
        error=1 - ERROR_OF_OTHER_LOOKS * len(others),
    )
    return (first, *others)


def _weight(canaries: int, ends: Ends) -> float:
    """Return the m of the theorem, which is halved if all guesses are of one kind."""
    return float(canaries) if ends is Ends.BOTH else canaries / 2


def _right(ordered: NDArray[np.bool_], look: _Look) -> int:
    """Return the number of right guesses about canaries in ascending order: the last are guessed in, the first out."""
    if look.ends is Ends.BOTH:
        out = look.made // 2
    else:
        out = look.made if look.ends is Ends.LOWEST else 0
    guessed_in = ordered[len(ordered) - (look.made - out) :]
    return int(guessed_in.sum() + (~ordered[:out]).sum())


def _typical(look: _Look, canaries: int, truth: float) -> int:
    """Return the expected number of right guesses of an optimal attacker against the Gaussian mechanism."""
    if math.isinf(truth):
        return look.made
    share = look.made / look.halves / canaries

    def beyond(threshold: float) -> float:
        return float(ndtr(-threshold) + ndtr(truth - threshold)) / 2 - share

    # By symmetry both ends have the same number of right guesses.
    threshold = brentq(beyond, -40.0, 40.0 + truth)
    return round(look.halves * canaries / 2 * float(ndtr(truth - threshold)))


def _mu(right: int, made: int, weight: float, miss: float) -> float:
    """Return the largest mu under which ``right`` or more right guesses have at most the probability ``miss``."""
    if not _unlikely(0.0, right, made, weight, miss):
        return 0.0
    low, high = 0.0, 1.0
    while _unlikely(high, right, made, weight, miss):
        low, high = high, 2 * high
        if low >= LARGEST_MU:
            return low
    while high - low > MU_TOLERANCE:
        middle = (low + high) / 2
        if _unlikely(middle, right, made, weight, miss):
            low = middle
        else:
            high = middle
    return low


def _unlikely(mu: float, right: int, made: int, weight: float, chance: float) -> bool:
    r"""Return whether ``right`` or more right guesses have at most the probability ``chance`` under mu.

    This is Algorithm 3 of [1]_. ``above`` and ``below`` are the sums of the theorem at one j, of right and of wrong
    guesses. Both are lower bounds that follow from ``chance``, and grow as j falls. Since
    :math:`t^{-1}(y) = \Phi(\Phi^{-1}(y) - \mu)`, a step costs two evaluations of the normal distribution.
    """
    above, below = chance * right / weight, chance * (made - right) / weight
    # The sums must exceed the whole by more than rounding can, so that rounding alone never refutes a claim.
    whole = made / weight * (1 + 1e-10)
    for i in range(right - 1, -1, -1):
        if above > 1:
            return True  # no probability exceeds 1
        needed = float(ndtr(ndtri(above) - mu))
        if needed <= below:
            return False  # no further bound follows, here or for smaller j
        above += i / (made - i) * (needed - below)
        below = needed
        if above + below > whole:
            return True
    return False
