"""A lower bound on epsilon from the scores of one product, which pays for the choice of its threshold.

References
----------
.. [1] Steinke, Nasr & Jagielski, "Privacy auditing with one (1) training run",
   arXiv:2305.08846, Theorem 5.2 and Appendix D.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binom

from reticent._check import as_scores, in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence.proportion import lower_limit

__all__ = ["epsilon_ceiling", "epsilon_from_guesses", "epsilon_lower_bound"]


def epsilon_lower_bound(
    members: ArrayLike,
    nonmembers: ArrayLike,
    *,
    level: float,
    rng: np.random.Generator,
    delta: float = 0.0,
    prior: float | None = None,
) -> Estimate:
    r"""Return an epsilon that the training exceeds with confidence ``level``.

    If training is :math:`(\varepsilon, \delta)`-differentially private (add/remove one
    record) and an independent coin decided for every record whether it is a member, then
    whatever the product shows, the number of right guesses among r is stochastically smaller than
    binomial(r, :math:`\pi e^\varepsilon/(\pi e^\varepsilon + 1 - \pi)`), up to a term in
    :math:`\delta` (Theorem 5.2 of [1]_); :math:`\pi` is the share of the guessed side among all
    records. The attack may guess "member" for its r highest scores or "non-member" for its
    r lowest, where r is a power of two; each of these choices gets an equal part of the error
    (Bonferroni), so the choice is paid for. Among tied scores the attack chooses at random, without knowing who is a member,
    as an attacker would.

    The bound treats the records of this audit as members by chance: it holds for a
    product trained on a random part of the table. ``high`` is always infinite, because an attack
    cannot bound a leak from above.

    Parameters
    ----------
    members, nonmembers : array-like of float
        Scores, larger meaning more like a member.
    level : float
        Confidence, in (0, 1).
    rng : numpy.random.Generator
        For the order of tied scores; without ties it changes nothing.
    delta : float
        The delta of the claim, in [0, 1).
    prior : float, optional
        Probability with which a record was made a member; the share of members if not given.

    Returns
    -------
    Estimate
        ``value`` and ``low`` are the bound (0 if the attack showed nothing), ``high`` is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(epsilon_lower_bound(np.arange(100) + 100.0, np.arange(100.0), level=0.95, rng=rng).low, 2)
    2.41
    >>> epsilon_lower_bound(np.arange(100.0), np.arange(100.0), level=0.95, rng=rng).low
    0.0
    """
    d, r = as_scores(members, "members"), as_scores(nonmembers, "non-members")
    in_open_unit(level, "level")
    if not 0 <= delta < 1:
        raise InvalidInput(f"delta must lie in [0, 1), got {delta!r}.")
    total = len(d) + len(r)
    prior = len(d) / total if prior is None else in_open_unit(prior, "prior")
    counts = _guess_counts(total)
    miss = (1 - level) / (2 * len(counts))
    is_member = np.repeat([True, False], [len(d), len(r)])
    shuffled = rng.permutation(total)
    # A stable sort of shuffled records leaves ties in random order.
    order = np.argsort(-np.concatenate([d, r])[shuffled], kind="stable")
    descending = is_member[shuffled[order]]
    sides = ((descending, prior), (~descending[::-1], 1 - prior))
    best = 0.0
    for guessed_right, share in sides:
        right = np.cumsum(guessed_right)
        for count in counts:
            epsilon = epsilon_from_guesses(
                int(right[count - 1]), count, total, share, miss, delta
            )
            best = max(best, epsilon)
    return Estimate(
        value=best,
        low=best,
        high=np.inf,
        level=level,
        method=f"one run, {2 * len(counts)} thresholds paid for",
    )


def epsilon_ceiling(members: int, nonmembers: int, *, level: float) -> float:
    """Return the largest lower bound on epsilon that any attack on this many records could have shown.

    If this ceiling is below a claimed epsilon, no attack on these records could have refuted the claim.

    Examples
    --------
    >>> round(epsilon_ceiling(100, 100, level=0.95), 2)
    2.41
    """
    total = members + nonmembers
    prior = members / total
    counts = _guess_counts(total)
    miss = (1 - level) / (2 * len(counts))
    return max(
        epsilon_from_guesses(min(count, size), count, total, share, miss, 0.0)
        for size, share in ((members, prior), (nonmembers, 1 - prior))
        for count in counts
    )


def _guess_counts(total: int) -> list[int]:
    # Powers of two from 4 on: fewer guesses show hardly anything, and each further count costs part of the error.
    return [2**k for k in range(2, int(np.log2(total)) + 1)] or [total]


def epsilon_from_guesses(
    right: int, count: int, total: int, share: float, miss: float, delta: float
) -> float:
    """Return the epsilon at which ``right`` or more right guesses have the probability ``miss``."""
    floor = lower_limit(float(right), count, miss)
    if floor <= share:
        return 0.0
    epsilon = float(logit(floor) - logit(share))
    if delta == 0:
        return max(0.0, epsilon)

    def excess(e: float) -> float:
        return _p_value(right, count, total, share, e, delta) - miss

    if excess(0.0) > 0:
        return 0.0
    return float(brentq(excess, 0.0, epsilon)) if excess(epsilon) > 0 else epsilon


def _p_value(
    right: int, count: int, total: int, share: float, epsilon: float, delta: float
) -> float:
    """Bound the probability of this many right guesses under (epsilon, delta): Theorem 5.2 of [1]_."""
    success = float(expit(logit(share) + epsilon))
    tail = float(binom.sf(right - 1, count, success))
    steps = np.arange(1, right + 1)
    mass = np.cumsum(binom.pmf(right - steps, count, success))
    return tail + 2 * total * delta * float(np.max(mass / steps, initial=0.0))
