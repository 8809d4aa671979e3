"""The likelihood-ratio attack on a pool.

References
----------
.. [1] Carlini, Chien, Nasr, Song, Terzis & Tramer, "Membership inference attacks from first
   principles", arXiv:2112.03570, Algorithm 1 and Section VI-C.
.. [2] Smyth, "Linear models and empirical Bayes methods for assessing differential expression
   in microarray experiments", Stat. Appl. Genet. Mol. Biol. 3, 2004, Section 6.2.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, polygamma

from reticent.attack._base import Challenge, Knowledge, Need, Scores
from reticent.pool import Pool, logit_of_truth, record_blocks

__all__ = [
    "LikelihoodRatio",
    "LikelihoodRatioOffline",
    "Moments",
    "mean_and_variance",
    "pool_moments",
    "shrunken",
]

# A variance of zero has no logarithm: it counts as this share of the mean variance.
FLOOR_SHARE = 1e-3
# Where even the mean variance is zero, as of a product that answers with constants.
LEAST_MEAN = 1e-6
# If the log-variances differ by no more than this beyond chance, one variance serves all records: the prior
# gets so many degrees of freedom that the records' own hardly count.
LEAST_SPREAD = 1e-3
COMMON_VARIANCE = 1e6
# Newton's method takes a handful of steps from Smyth's starting point; the rest is a safeguard against a loop.
MOST_NEWTON_STEPS = 50
NEWTON_PRECISION = 1e-8


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Mean and variance of each record's logit over models with it and without it.

    Variances are shrunk: with few models the estimated variance of one record is mostly noise, so it is
    drawn towards the variance of all records; the less the variances differ, the closer [2]_.
    """

    mean_in: NDArray[np.float64]
    mean_out: NDArray[np.float64]
    variance_in: NDArray[np.float64]
    variance_out: NDArray[np.float64]


def pool_moments(pool: Pool) -> Moments:
    """Return the moments of every record's logit, variances shrunk."""
    inside = pool.masks
    mean_in, raw_in, count_in = mean_and_variance(pool.logits, inside)
    mean_out, raw_out, count_out = mean_and_variance(pool.logits, ~inside)
    return Moments(
        mean_in=mean_in,
        mean_out=mean_out,
        variance_in=shrunken(raw_in, count_in - 1),
        variance_out=shrunken(raw_out, count_out - 1),
    )


def mean_and_variance(
    values: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the mean, variance and number of each record's chosen values, which have the shape (M, n)."""
    count = chosen.sum(axis=0)
    mean, squares = np.empty(len(count)), np.empty(len(count))
    for its in record_blocks(len(count)):
        picked, where = values[:, its], chosen[:, its]
        mean[its] = np.where(where, picked, 0.0).sum(axis=0) / count[its]
        squares[its] = np.where(where, (picked - mean[its]) ** 2, 0.0).sum(axis=0)
    return mean, squares / np.maximum(count - 1, 1), count


def shrunken(
    variance: NDArray[np.float64], freedom: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Draw variances towards their common value by empirical Bayes (Section 6.2 of [2]_).

    The prior is a scaled inverse chi-square with d0 degrees of freedom and scale s0; both are
    estimated from the mean and variance of the log-variances. With one model per side there is
    no variance to estimate, and all records get the same one.
    """
    floor = FLOOR_SHARE * max(float(variance.mean()), LEAST_MEAN)
    if int(freedom.max(initial=0)) < 1:
        return np.full(len(variance), max(floor, 1.0))
    # One model on a side leaves no degree of freedom; one is assumed, because the formulas below need a positive number.
    d = np.maximum(freedom, 1).astype(np.float64)
    z = np.log(np.maximum(variance, floor))
    # The expectation of the logarithm of a chi-square variance differs from that of the true one by these two terms.
    e = z - polygamma(0, d / 2) + np.log(d / 2)
    spread = float(e.var(ddof=1)) - float(polygamma(1, d / 2).mean())
    prior = 2 * _trigamma_inverse(spread) if spread > LEAST_SPREAD else COMMON_VARIANCE
    scale = float(np.exp(e.mean() + polygamma(0, prior / 2) - np.log(prior / 2)))
    return np.asarray((prior * scale + d * variance) / (prior + d))


def _trigamma_inverse(value: float) -> float:
    """Solve trigamma(x) = value by Newton's method on 1/trigamma (appendix of [2]_)."""
    # Smyth's starting point, from which Newton's method converges monotonically.
    x = 0.5 + 1 / value
    for _ in range(MOST_NEWTON_STEPS):
        tri = float(polygamma(1, x))
        step = tri * (1 - tri / value) / float(polygamma(2, x))
        x += step
        if -step / x < NEWTON_PRECISION:
            break
    return x


def _log_normal(
    x: NDArray[np.float64], mean: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    return -0.5 * ((x - mean) ** 2 / variance + np.log(variance))


@dataclass(frozen=True, kw_only=True)
class LikelihoodRatio:
    """LiRA online: ask how much likelier the answer is with the record than without it (Alg. 1 of [1]_).

    Parameters
    ----------
    shared_variance : bool
        Use one variance for both sides, as Section VI-C of [1]_ does with few models; the
        score is then linear in the logit and cannot be misled by a wrong ratio of variances.
    """

    name: str = "lira"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.POOL})
    shared_variance: bool = True

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the log-likelihood ratio of each record."""
        pool = knowledge.need_pool(self.name)
        return Scores(
            values=likelihood_ratio(
                logit_of_truth(challenge.probabilities, challenge.labels),
                pool_moments(pool),
                shared_variance=self.shared_variance,
            )
        )


def likelihood_ratio(
    observed: NDArray[np.float64], moments: Moments, *, shared_variance: bool
) -> NDArray[np.float64]:
    """Return log N(observed; in) - log N(observed; out) per record."""
    v_in, v_out = moments.variance_in, moments.variance_out
    if shared_variance:
        v_in = v_out = (v_in + v_out) / 2
    return _log_normal(observed, moments.mean_in, v_in) - _log_normal(
        observed, moments.mean_out, v_out
    )


@dataclass(frozen=True, kw_only=True)
class LikelihoodRatioOffline:
    """LiRA offline: ask how unusual the answer is for models without the record (Eq. 4 of [1]_)."""

    name: str = "lira_offline"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.POOL})

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return minus the log-probability that a model without the record answers higher."""
        moments = pool_moments(knowledge.need_pool(self.name))
        observed = logit_of_truth(challenge.probabilities, challenge.labels)
        z = (observed - moments.mean_out) / np.sqrt(moments.variance_out)
        # -log P(Z > z) keeps its order far beyond where 1 - P is rounded to 0.
        return Scores(values=-np.asarray(log_ndtr(-z)))
