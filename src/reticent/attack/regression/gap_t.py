r"""The likelihood ratio of a regression model's prediction, with gaps shrunk over records and heavy tails.

The prediction itself is closer to normal over models than any transform of its error. When a record is trained on,
its mean moves towards the truth by a share :math:`h_i` of the way :math:`u_i = y_i - m_{out,i}`. With few models that
share is mostly noise, so it is drawn towards the share of all records. Models with the record vary less than models
without it, so each side has a variance, and a t density allows for the error of an estimated variance.

References
----------
.. [1] Carlini, Chien, Nasr, Song, Terzis & Tramer, "Membership inference attacks from first
   principles", arXiv:2112.03570, Algorithm 1.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Need, Scores
from reticent.attack.lira import mean_and_variance, shrunken
from reticent.attack.regression._base import RegressionChallenge, RegressionKnowledge
from reticent.pool import PredictionPool

__all__ = ["GapT", "PredictionMoments", "gap_log_ratio", "prediction_moments"]

# Least deviation with the record, as a share of that without it: interpolating models that were trained on a
# record all predict it exactly, and a variance of 0 has no density.
LEAST_SHARE = 0.03
# Share of the records farthest from the truth that are left out of the common share, which they would decide alone.
LARGEST_LEFT_OUT = 0.01
# Least variance in units of the targets' variance, for pools whose models all agree.
LEAST_VARIANCE = 1e-12
# Degrees of freedom of the t density are this plus half the number of models: 3 is the fewest whole number with a
# finite variance, and half of the models are on each side.
LEAST_FREEDOM = 3


@dataclass(frozen=True, kw_only=True)
class PredictionMoments:
    """Mean and variance of each record's prediction over models with it and without it.

    All are measured from ``origin`` in units of ``unit``, so that floors mean the same for every quantity.

    Parameters
    ----------
    origin, unit : float
        Mean and standard deviation of the targets.
    models : int
        Number of models.
    mean_in, mean_out : array of float
        Means, with the gap between them shrunk.
    variance_in, variance_out : array of float
        Variances, shrunk towards the one of all records; never 0.
    """

    origin: float
    unit: float
    models: int
    mean_in: NDArray[np.float64]
    mean_out: NDArray[np.float64]
    variance_in: NDArray[np.float64]
    variance_out: NDArray[np.float64]

    def standardised(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return predictions or targets in these units."""
        return np.asarray((values.astype(np.float64) - self.origin) / self.unit)


def prediction_moments(pool: PredictionPool) -> PredictionMoments:
    r"""Return the moments of every record's prediction, gaps and variances shrunk.

    With :math:`d = m_{in} - m_{out}`, the common share is :math:`h = \sum u d / \sum u^2`, the share of a record
    :math:`h_i = d_i / u_i` has the noise :math:`n_i = v_i (1/k_{in} + 1/k_{out}) / u_i^2`, and the variance of true shares
    is the mean of :math:`(h_i - h)^2 - n_i`, weighted by :math:`u_i^2`. So a record's share is drawn to
    :math:`h + \tau^2 / (\tau^2 + n_i)\,(h_i - h)`, kept in [0, 1].
    """
    origin = float(pool.targets.mean())
    values = (pool.predictions.astype(np.float64) - origin) / pool.spread
    mean_in, raw_in, count_in = mean_and_variance(values, pool.masks)
    mean_out, raw_out, count_out = mean_and_variance(values, ~pool.masks)
    way = (pool.targets - origin) / pool.spread - mean_out
    gap = mean_in - mean_out
    # A few targets far out would decide the common share by themselves.
    usual = np.abs(way) <= np.quantile(np.abs(way), 1 - LARGEST_LEFT_OUT)
    squares = float((way[usual] ** 2).sum())
    share = float((way * gap)[usual].sum()) / squares if squares > 0 else 0.0
    left = gap - share * way
    if int(min(count_in.max(), count_out.max())) < 2:
        # One model per side has no variance. What the common share leaves is the difference of two models,
        # whose variance is twice that of one.
        alone = np.full(len(gap), float((left[usual] ** 2).mean()) / 2)
        variance_in, variance_out = alone, alone
    else:
        variance_in = shrunken(raw_in, count_in - 1)
        variance_out = shrunken(raw_out, count_out - 1)
    least = max(LEAST_SHARE**2 * float(variance_out.mean()), LEAST_VARIANCE)
    variance_out = variance_out + least
    variance_in = variance_in + LEAST_SHARE**2 * variance_out
    noise = (variance_in + variance_out) / 2 * (1 / count_in + 1 / count_out)
    true = float((left**2 - noise)[usual].sum()) / squares if squares > 0 else 0.0
    true = max(true, 0.0)
    # Numerator and denominator are multiplied by u^2, so that nothing is divided by zero where u is 0.
    drawn = share + true * way * left / (true * way**2 + noise)
    moved = np.clip(drawn, 0.0, 1.0) * way
    centre = values.mean(axis=0)
    return PredictionMoments(
        origin=origin,
        unit=pool.spread,
        models=len(pool),
        # So that the mean over all models stays where it was measured.
        mean_in=centre + moved * count_out / len(pool),
        mean_out=centre - moved * count_in / len(pool),
        variance_in=variance_in,
        variance_out=variance_out,
    )


def gap_log_ratio(
    predictions: NDArray[np.floating], moments: PredictionMoments
) -> NDArray[np.float64]:
    """Return log t(f; in) - log t(f; out) per record, with 3 + M/2 degrees of freedom."""
    freedom = LEAST_FREEDOM + moments.models / 2
    f = moments.standardised(predictions)
    return _log_t(f, moments.mean_in, moments.variance_in, freedom) - _log_t(
        f, moments.mean_out, moments.variance_out, freedom
    )


def _log_t(
    x: NDArray[np.float64],
    mean: NDArray[np.float64],
    variance: NDArray[np.float64],
    freedom: float,
) -> NDArray[np.float64]:
    """Return the logarithm of a t density, up to a constant."""
    squares = (x - mean) ** 2 / variance
    return np.asarray(
        -0.5 * np.log(variance) - (freedom + 1) / 2 * np.log1p(squares / freedom)
    )


@dataclass(frozen=True, kw_only=True)
class GapT:
    """Ask how much likelier the prediction is with the record than without it, as LiRA does for classifiers [1]_."""

    name: str = "gap_t"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.POOL})

    def score(
        self,
        challenge: RegressionChallenge,
        *,
        knowledge: RegressionKnowledge,
        rng: np.random.Generator,
    ) -> Scores:
        """Return the log-likelihood ratio of each record."""
        moments = prediction_moments(knowledge.need_pool(self.name))
        return Scores(values=gap_log_ratio(challenge.predictions, moments))
