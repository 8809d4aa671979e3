"""The likelihood-ratio attack on a pool.

References
----------
.. [1] Carlini, Chien, Nasr, Song, Terzis & Tramer, "Membership inference attacks from first
   principles", arXiv:2112.03570, Algorithm 1 and Section VI-C.
.. [2] Smyth, "Linear models and empirical Bayes methods for assessing differential expression
   in microarray experiments", Stat. Appl. Genet. Mol. Biol. 3, 2004, Section 6.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    "common_variance_wins",
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
# Games by which the variance is chosen: on so many records and models the rates differ by about a hundredth by chance.
MOST_JUDGED = 3_000
MOST_REHEARSALS = 6
FEWEST_FOR_PAIRS = 6  # so that four shadows are left without the target's pair
JUDGED_RATES = (0.001, 0.003, 0.01, 0.03, 0.1)  # even on a logarithmic axis


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

    def with_common_variance(self) -> "Moments":
        """Return the same means, with one variance for all records."""
        mean = float((self.variance_in.mean() + self.variance_out.mean()) / 2)
        common = np.full(len(self.variance_in), mean)
        return replace(self, variance_in=common, variance_out=common)


def common_variance_wins(pool: Pool) -> bool:
    """Say whether one variance for all records finds more members than one for each, in games between models of the pool.

    Where variances differ for reasons of the record, as with forests, dividing by a common one loses most of the
    members; where a model fits its records closely, small variances are chance, and dividing by them raises
    non-members above all others. No rule from the variances alone tells the two apart, but the models do:
    each plays the target, the others are its shadows, and the share of its members that is found, averaged over
    false-positive rates between 0.1 % and 10 %, decides (docs/decisions/0036). Whose members the product's are plays no part.

    Parameters
    ----------
    pool : Pool
        The models.
    """
    n = pool.masks.shape[1]
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_JUDGED)).astype(np.int64))
    part = pool.take(rows)
    own, common = 0.0, 0.0
    for model, shadows in _rehearsals(part):
        inside = part.masks[shadows]
        known = np.flatnonzero(inside.any(axis=0) & ~inside.all(axis=0))
        tags = part.masks[model, known]
        if tags.all() or not tags.any():
            continue
        moments = pool_moments(part.take(known).of_models(shadows), shared=True)
        observed = part.logits[model, known]
        own += _mean_rate(likelihood_ratio(observed, moments), tags)
        moments = moments.with_common_variance()
        common += _mean_rate(likelihood_ratio(observed, moments), tags)
    return common > own


def _rehearsals(pool: Pool) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Yield models as targets, with their shadows."""
    if len(pool) >= FEWEST_FOR_PAIRS:
        yield from pool.shadows(most=MOST_REHEARSALS)
        return
    # Few models: without the target's complement no variance would be left. It favours neither way of dividing.
    for model in range(len(pool) if len(pool) > 2 else 0):
        yield model, np.arange(len(pool)) != model


def _mean_rate(scores: NDArray[np.float64], tags: NDArray[np.bool_]) -> float:
    """Return the true-positive rate, averaged over low false-positive rates."""
    descending = tags[np.argsort(-scores, kind="stable")]
    found, wrong = np.cumsum(descending), np.cumsum(~descending)
    allowed = np.floor(np.array(JUDGED_RATES) * wrong[-1])
    last = np.searchsorted(wrong, allowed, side="right") - 1
    return float(np.where(last >= 0, found[last], 0).mean() / found[-1])


def pool_moments(pool: Pool, *, shared: bool = False) -> Moments:
    """Return the moments of every record's logit, variances shrunk.

    Parameters
    ----------
    pool : Pool
        The models.
    shared : bool
        Whether a record has one variance for models with it and without it. The squares of both sides are then added up
        before they are shrunk, so that the variance rests on M - 2 degrees of freedom: with four models that is twice as
        many as on either side.
    """
    inside = pool.masks
    mean_in, raw_in, count_in = mean_and_variance(pool.logits, inside)
    mean_out, raw_out, count_out = mean_and_variance(pool.logits, ~inside)
    if shared:
        freedom = count_in + count_out - 2
        squares = raw_in * (count_in - 1) + raw_out * (count_out - 1)
        variance_in = variance_out = shrunken(squares / np.maximum(freedom, 1), freedom)
    else:
        variance_in = shrunken(raw_in, count_in - 1)
        variance_out = shrunken(raw_out, count_out - 1)
    return Moments(
        mean_in=mean_in,
        mean_out=mean_out,
        variance_in=variance_in,
        variance_out=variance_out,
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
        Use one variance for both sides; the score is then linear in the logit and cannot be misled by a
        wrong ratio of variances. Whether each record has its own or all have one, as in Section VI-C of [1]_, is chosen by
        games between the models of the pool.
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
        moments = pool_moments(pool, shared=self.shared_variance)
        if self.shared_variance and common_variance_wins(pool):
            moments = moments.with_common_variance()
        observed = logit_of_truth(challenge.probabilities, challenge.labels)
        return Scores(values=likelihood_ratio(observed, moments))


def likelihood_ratio(
    observed: NDArray[np.float64], moments: Moments
) -> NDArray[np.float64]:
    """Return log N(observed; in) - log N(observed; out) per record."""
    inside = _log_normal(observed, moments.mean_in, moments.variance_in)
    return inside - _log_normal(observed, moments.mean_out, moments.variance_out)


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
