r"""Estimate the share of people with a certain true answer from randomised answers.

With c possible answers, and the truth told with probability t, an answer is released with probability
:math:`y = t p + (1 - t)/c` if it is the true answer of a share p, so :math:`p = (y - (1 - t)/c)/t`; for two fair coins
:math:`p = 2y - 1/2`.

References
----------
.. [1] Warner, "Randomized response: a survey technique for eliminating evasive answer bias", JASA 60 (1965).
.. [2] Hoeffding, "On the distribution of the number of successes in independent trials", Ann. Math. Statist. 27 (1956).
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate
from reticent.evidence.proportion import clopper_pearson

if TYPE_CHECKING:
    from reticent.account import RandomisedResponse

__all__ = ["estimate_share"]


def estimate_share(
    mechanism: "RandomisedResponse",
    answers: ArrayLike,
    *,
    answer: int = 1,
    level: float,
) -> Estimate:
    """Return the share of people whose true answer is ``answer``, with an interval.

    The value is unbiased, so it may lie a little outside [0, 1], as may the interval. The interval is that of Clopper and
    Pearson, mapped to true answers; it holds both for the people who were asked and for the population they were drawn
    from, since fixed true answers only make the count vary less [2]_.

    Parameters
    ----------
    mechanism : RandomisedResponse
        How the answers were randomised.
    answers : array of int
        The released answers, numbered from 0.
    answer : int
        The answer whose share is wanted.
    level : float
        Confidence, in (0, 1).

    Examples
    --------
    >>> from reticent.account import RandomisedResponse
    >>> coins = RandomisedResponse(truth=0.5)
    >>> estimate_share(coins, [1] * 60 + [0] * 40, level=0.95).value
    0.7
    """
    released = np.asarray(answers)
    if released.size == 0 or not np.isin(released, np.arange(mechanism.answers)).all():
        raise InvalidInput(
            f"there must be at least one answer, and all must be numbers from 0 to {mechanism.answers - 1}; check that this mechanism "
            "released them."
        )
    if answer not in range(mechanism.answers):
        raise InvalidInput(
            f"answer must be a number from 0 to {mechanism.answers - 1}, got {answer}."
        )
    if mechanism.truth == 0:
        raise InvalidInput(
            "the truth was never told, so the answers say nothing about it; randomise with a truth above 0."
        )
    chance = (1 - mechanism.truth) / mechanism.answers

    def true_share(share: float) -> float:
        return (share - chance) / mechanism.truth

    hits = int(np.count_nonzero(released == answer))
    observed = clopper_pearson(hits, released.size, level=level)
    return replace(
        observed,
        value=true_share(observed.value),
        low=true_share(observed.low),
        high=true_share(observed.high),
        method="Clopper-Pearson, randomised response",
    )
