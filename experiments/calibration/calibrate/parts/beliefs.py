"""Predicted probabilities of membership, beliefs of an adversary that watches, and rounds of the retraining insider."""

import numpy as np
from scipy.special import ndtr

from calibrate.rows import MISSED, Case, alarm_case, interval_case
from calibrate.settings import INSTANT, LEVEL, SHORT
from reticent.evidence import (
    calibration,
    clopper_pearson,
    loss_quantiles,
    measure_beliefs,
    privacy_from_rounds,
    split_level,
)
from reticent.pipeline import LOOKS


def spiegelhalter(name: str, a: float, b: float, n: int) -> Case:
    """Predictions are drawn from a beta law, and come true as often as they say."""

    def alarm(rng: np.random.Generator) -> bool:
        p = rng.beta(a, b, n).clip(1e-6, 1 - 1e-6)
        return calibration(p, rng.random(n) < p, level=LEVEL).p_value < 0.05

    return alarm_case(
        "calibrated predictions rejected (`calibration`, p < 0.05)",
        f"{name}; {n} people",
        alarm,
        nominal=0.05,
        repeats=SHORT,
    )


def bins(a: float, b: float, n: int) -> Case:
    def alarm(rng: np.random.Generator) -> bool:
        p = rng.beta(a, b, n)
        curve = calibration(p, rng.random(n) < p, level=LEVEL)
        return any(
            not x.observed.low <= x.predicted <= x.observed.high for x in curve.bins
        )

    return alarm_case(
        "calibration curve, all bins together (`calibration`)",
        f"beta({a:g}, {b:g}); {n} people",
        alarm,
        nominal=1 - LEVEL,
        repeats=SHORT,
        error=MISSED,
    )


def watching(mu: float, runs: int) -> list[Case]:
    """Log-odds of the Gaussian mechanism: N(mu^2 / 2, mu^2) under the first table, minus that under the second."""

    def beliefs(rng: np.random.Generator):
        first = rng.random(runs) < 0.5
        sign = np.where(first, 1.0, -1.0)
        odds = sign * mu**2 / 2 + mu * rng.normal(size=runs)
        return measure_beliefs(odds[:, None], first, belief=0.9, level=LEVEL)

    # The belief in the truth exceeds 0.9 if the log-odds, N(mu^2/2, mu^2), exceed log 9.
    share = float(ndtr((mu**2 / 2 - np.log(9)) / mu))
    data = f"Gaussian, mu {mu:g}; {runs} runs"
    return [
        interval_case(
            "advantage of the watching adversary (`measure_beliefs`)",
            data,
            lambda rng: beliefs(rng).advantage,
            truth=float(2 * ndtr(mu / 2) - 1),
            repeats=SHORT,
        ),
        interval_case(
            "share of beliefs above 0.9 (`measure_beliefs`)",
            data,
            lambda rng: beliefs(rng).exceeded,
            truth=share,
            repeats=SHORT,
        ),
        alarm_case(
            "true beliefs called not calibrated (`measure_beliefs`, p < 0.05)",
            data,
            lambda rng: beliefs(rng).calibration.p_value < 0.05,
            nominal=0.05,
            repeats=SHORT,
        ),
    ]


def rounds(win: float, tie: float, count: int) -> Case:
    """Independent rounds; a tie counts one half."""
    accuracy = win + tie / 2

    def estimate(rng: np.random.Generator) -> object:
        won, tied, _ = rng.multinomial(count, [win, tie, 1 - win - tie])
        return privacy_from_rounds(float(won + tied / 2), count, level=LEVEL)

    ties = f", {100 * tie:g} % ties" if tie else ""
    return interval_case(
        "privacy against the insider (`privacy_from_rounds`)",
        f"accuracy {accuracy:g}{ties}; {count} rounds",
        estimate,
        truth=min(1.0, 2 * (1 - accuracy)),
        repeats=INSTANT,
    )


def looks(accuracy: float) -> Case:
    """Stopping as soon as an interval lies on one side of the limit, every look paid for."""

    def alarm(rng: np.random.Generator) -> bool:
        wins = rng.random(LOOKS[-1]) < accuracy
        for look in LOOKS:
            made = clopper_pearson(
                int(wins[:look].sum()), look, level=split_level(LEVEL, len(LOOKS))
            )
            if made.low > accuracy or made.high < accuracy:
                return True
        return False

    return alarm_case(
        "insider's interval at any look (`clopper_pearson`, `LOOKS`)",
        f"accuracy {accuracy:g}; up to {LOOKS[-1]} rounds",
        alarm,
        nominal=1 - LEVEL,
        repeats=SHORT,
        error=MISSED,
    )


def losses(n: int) -> Case:
    """Log-odds that are logistic: the quantile p of their absolute value is log((1 + p) / (1 - p))."""
    shares = (0.5, 0.9, 0.99)
    truth = [float(np.log((1 + p) / (1 - p))) for p in shares]

    def alarm(rng: np.random.Generator) -> bool:
        odds = rng.logistic(size=n)
        made = loss_quantiles(odds, shares=shares, level=LEVEL)
        return any(
            not q.loss.low <= t <= q.loss.high for q, t in zip(made, truth, strict=True)
        )

    return alarm_case(
        "effective privacy loss, three quantiles together (`loss_quantiles`)",
        f"logistic; {n} people",
        alarm,
        nominal=1 - LEVEL,
        repeats=SHORT,
        error=MISSED,
    )


def losses_with_ties(n: int) -> Case:
    """Log-odds that are -2, 0 or 2: the median of their absolute value is 2 if most are not 0."""

    def alarm(rng: np.random.Generator) -> bool:
        odds = rng.choice([-2.0, 0.0, 2.0], n, p=[0.3, 0.45, 0.25])
        (half,) = loss_quantiles(odds, shares=(0.5,), level=LEVEL)
        return not half.loss.low <= 2.0 <= half.loss.high

    return alarm_case(
        "effective privacy loss, median (`loss_quantiles`)",
        f"three values; {n} people",
        alarm,
        nominal=1 - LEVEL,
        repeats=SHORT,
        error=MISSED,
    )


def cases() -> list[Case]:
    return [
        spiegelhalter("in the middle, beta(2, 2)", 2, 2, 400),
        spiegelhalter("hardly any leak, beta(200, 200)", 200, 200, 400),
        spiegelhalter("near 0 and 1, beta(0.1, 0.1)", 0.1, 0.1, 100),
        spiegelhalter("few members, beta(1, 20)", 1, 20, 200),
        bins(2, 2, 400),
        bins(0.5, 0.5, 1_000),
        *watching(1.0, 100),
        *watching(3.0, 100),
        rounds(0.5, 0.0, 64),
        rounds(0.95, 0.0, 100),
        rounds(0.3, 0.4, 64),
        looks(0.5),
        looks(0.9),
        losses(400),
        losses_with_ties(200),
    ]
