"""The evidence that a pool of models adds: effective privacy loss, convergence, and spread over models.

References
----------
.. [1] Pedersen, "Privacy preservation and evaluation in machine learning", thesis, 2022, Section 5.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from reticent._check import as_scores, in_open_unit
from reticent.evidence._estimate import Estimate, split_level
from reticent.evidence.disparity import Correction, Crossed, PairDifference
from reticent.evidence.histogram import Histogram
from reticent.evidence.targets import TargetsEvidence

__all__ = [
    "Box",
    "Convergence",
    "DisparityEvidence",
    "GroupSpread",
    "LossQuantile",
    "PoolEvidence",
    "PoolForecast",
    "disparity_of",
    "loss_quantiles",
]


@dataclass(frozen=True, kw_only=True)
class LossQuantile:
    """A quantile of the effective privacy loss over people.

    Parameters
    ----------
    share : float
        Share of people with a smaller loss.
    loss : Estimate
        The absolute log-odds of membership that the attack reaches at this quantile.
    """

    share: float
    loss: Estimate


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """The AUC that an attack reaches with part of the pool."""

    attack: str
    models: int
    auc: Estimate


@dataclass(frozen=True, kw_only=True)
class Box:
    """Five numbers that describe a spread over models: ends, quartiles and median."""

    low: float
    lower: float
    median: float
    upper: float
    high: float


@dataclass(frozen=True, kw_only=True)
class GroupSpread:
    """Vulnerability of one group over the models of a pool."""

    name: str
    vulnerability: Estimate
    box: Box


@dataclass(frozen=True, kw_only=True)
class DisparityEvidence:
    """Whether groups differ in vulnerability, over the models of a pool.

    Parameters
    ----------
    attack : str
        The attack whose decisions are counted.
    groups : tuple of GroupSpread
        Vulnerability of each group.
    p_value : float
        P-value of "no group differs".
    pairs : tuple of PairDifference
        Every pair of groups, with p-values adjusted by ``correction``.
    correction : str
        How the p-values of the pairs are adjusted.
    """

    attack: str
    groups: tuple[GroupSpread, ...]
    p_value: float
    pairs: tuple[PairDifference, ...]
    correction: str


@dataclass(frozen=True, kw_only=True)
class PoolForecast:
    """A forecast of the time and the memory that a pool of a given size would take.

    Parameters
    ----------
    models : int
        Number of models.
    seconds : float
        Time to train them.
    gigabytes : float
        Memory while attacks read the pool.
    """

    models: int
    seconds: float
    gigabytes: float


@dataclass(frozen=True, kw_only=True)
class PoolEvidence:
    """The evidence from many models that were trained like the product.

    Parameters
    ----------
    models : int
        Number of models in the pool.
    chosen : str
        ``"asked for"``, or ``"by time"`` if the time budget set their number.
    forecasts : tuple of PoolForecast
        Forecasts for pools of several sizes, if the time budget set their number.
    targets : tuple of TargetsEvidence
        Attacks with every model as the target; intervals cover the trainer.
    convergence : tuple of Convergence
        What attacks on the product reach with parts of the pool.
    losses : tuple of LossQuantile
        Quantiles of the effective privacy loss over people.
    posterior : Histogram or None
        Predicted probabilities of membership of members and non-members.
    disparity : DisparityEvidence or None
        The comparison of groups over models, if there are groups.
    """

    models: int
    chosen: str
    forecasts: tuple[PoolForecast, ...] = ()
    targets: tuple[TargetsEvidence, ...]
    convergence: tuple[Convergence, ...]
    losses: tuple[LossQuantile, ...]
    posterior: Histogram | None
    disparity: DisparityEvidence | None


def loss_quantiles(
    log_odds: ArrayLike, *, shares: Sequence[float], level: float
) -> tuple[LossQuantile, ...]:
    r"""Return quantiles of the effective privacy loss :math:`|\gamma(u)|` over people.

    :math:`\gamma(u) = \log P(\text{answers} \mid u\ \text{in}) / P(\text{answers} \mid u\ \text{out})` is the log-odds of
    membership at even prior odds ([1]_, Eq. 5.8 and 5.11, with the product seen through its answers); epsilon-differential
    privacy bounds it by epsilon for everybody (Eq. 5.10). The intervals are those of order statistics, exact whatever the
    distribution, and hold together.

    Parameters
    ----------
    log_odds : array-like of float
        Calibrated log-odds of membership, one per person.
    shares : sequence of float
        The quantiles to return, in (0, 1).
    level : float
        Confidence of all intervals together, in (0, 1).

    Examples
    --------
    >>> (half,) = loss_quantiles(np.linspace(-1, 1, 1001), shares=[0.5], level=0.95)
    >>> print(half.loss)
    0.50 [0.47, 0.54]
    """
    loss = np.sort(np.abs(as_scores(log_odds, "log-odds")))
    n = len(loss)
    miss = (1 - split_level(level, len(shares))) / 2
    quantiles = []
    for share in shares:
        in_open_unit(share, "share")
        # The number of losses below the true quantile is binomial(n, share).
        below = int(binom.ppf(miss, n, share)) - 1
        above = int(binom.isf(miss, n, share))
        value = float(np.quantile(loss, share))
        quantiles.append(
            LossQuantile(
                share=float(share),
                loss=Estimate(
                    value=value,
                    low=float(min(value, loss[below])) if below >= 0 else 0.0,
                    high=float(max(value, loss[above])) if above < n else np.inf,
                    level=level,
                    method=f"order statistics, joint over {len(shares)} quantiles",
                ),
            )
        )
    return tuple(quantiles)


def disparity_of(
    found: Crossed, *, attack: str, correction: Correction = Correction.HOLM
) -> DisparityEvidence:
    """Return the result of a crossed test, with the spread over models as five numbers per group."""
    by_model = np.array(found.by_model)
    return DisparityEvidence(
        attack=attack,
        groups=tuple(
            GroupSpread(
                name=name,
                vulnerability=estimate,
                box=Box(
                    **dict(
                        zip(
                            ("low", "lower", "median", "upper", "high"),
                            (
                                float(q)
                                for q in np.quantile(column, [0, 0.25, 0.5, 0.75, 1])
                            ),
                            strict=True,
                        )
                    )
                ),
            )
            for name, estimate, column in zip(
                found.names, found.vulnerability, by_model.T, strict=True
            )
        ),
        p_value=found.p_value,
        pairs=found.pairs,
        correction=str(correction),
    )
