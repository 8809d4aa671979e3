"""Lower bounds on epsilon: from one product, from canaries, from runs on two tables, from the noise of watched steps."""

import math

import numpy as np
from scipy.special import expit, ndtr, ndtri
from scipy.stats import norm

from calibrate.rows import Case, alarm_case, interval_case
from calibrate.settings import LEVEL, LONG, MEDIUM, QUICK, SHORT, SLOW
from reticent.account import PrivateTraining
from reticent.evidence import (
    epsilon_lower_bound,
    epsilon_of_steps,
    mu_lower_bound,
    noise_level,
    noise_upper_bound,
    normality,
    one_run_lower_bound,
    refutes,
)

DELTA = 1e-5


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of mu-Gaussian privacy at a delta: Equation 6 of Balle & Wang, arXiv:1805.06530, by bisection."""

    def delta_at(epsilon: float) -> float:
        a, b = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
        return float(ndtr(a) - np.exp(epsilon + norm.logcdf(b)))

    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


def told(
    rng: np.random.Generator, n: int, epsilon: float, *, coins: bool, digits: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of the best attack on randomised response: the tag, told or lied; ``digits`` leaves no ties."""
    members = int(rng.binomial(2 * n, 0.5)) if coins else n
    truth = float(expit(epsilon))
    d = (rng.random(members) < truth).astype(float)
    r = (rng.random(2 * n - members) >= truth).astype(float)
    if digits:
        d, r = d + 1e-3 * rng.random(len(d)), r + 1e-3 * rng.random(len(r))
    return d, r


def one_product(
    epsilon: float, n: int, *, coins: bool = False, ties: bool = False
) -> Case:
    how = "tags by coins" if coins else "tags by a random half"
    return interval_case(
        "lower bound on epsilon (`epsilon_lower_bound`)",
        f"randomised response, epsilon {epsilon:g}, {how}{', ties' if ties else ''}; {2 * n} people",
        lambda rng: epsilon_lower_bound(
            *told(rng, n, epsilon, coins=coins, digits=not ties), level=LEVEL, rng=rng
        ),
        truth=epsilon,
        repeats=QUICK,
        sides="low",
    )


def with_delta(epsilon: float, delta: float, n: int) -> Case:
    """With probability delta each tag is told for certain, else by randomised response."""

    def estimate(rng: np.random.Generator) -> object:
        d, r = told(rng, n, epsilon, coins=True, digits=True)
        d[rng.random(len(d)) < delta] = 2.0
        r[rng.random(len(r)) < delta] = -2.0
        return epsilon_lower_bound(d, r, level=LEVEL, rng=rng, delta=delta, prior=0.5)

    return interval_case(
        "lower bound on epsilon (`epsilon_lower_bound`)",
        f"epsilon {epsilon:g} and delta {delta:g}, coins; {2 * n} people",
        estimate,
        truth=epsilon,
        repeats=MEDIUM,
        sides="low",
    )


def unequal(members: int, nonmembers: int) -> Case:
    return interval_case(
        "lower bound on epsilon (`epsilon_lower_bound`)",
        f"no leak; {members} against {nonmembers}",
        lambda rng: epsilon_lower_bound(
            rng.normal(size=members), rng.normal(size=nonmembers), level=LEVEL, rng=rng
        ),
        truth=0.0,
        repeats=QUICK,
        sides="low",
    )


def canaries(mu: float, count: int) -> Case:
    truth = gaussian_epsilon(mu, DELTA) if mu else 0.0

    def estimate(rng: np.random.Generator) -> object:
        coins = rng.random(count) < 0.5
        scores = rng.normal(mu * coins, 1.0)
        return one_run_lower_bound(scores, coins, level=LEVEL, delta=DELTA)

    return interval_case(
        "lower bound from canaries (`one_run_lower_bound`)",
        f"Gaussian, mu {mu:g}; {count} canaries",
        estimate,
        truth=truth,
        repeats=LONG,
        sides="low",
    )


def betrayed_together(chance: float, accuracy: float, count: int) -> Case:
    """Canaries that depend on each other: told with some accuracy in a share of the trainings, not at all in the others."""
    mu = float(ndtri(chance * accuracy) - ndtri(chance * (1 - accuracy)))

    def estimate(rng: np.random.Generator) -> object:
        coins = rng.random(count) < 0.5
        if rng.random() < chance:
            right = rng.random(count) < accuracy
            scores = np.where(right, coins, ~coins) + 0.1 * rng.random(count)
        else:
            scores = rng.normal(size=count)
        return one_run_lower_bound(scores, coins, level=LEVEL, delta=DELTA)

    return interval_case(
        "lower bound from canaries (`one_run_lower_bound`)",
        f"betrayed together in {100 * chance:g} % of trainings; {count} canaries",
        estimate,
        truth=gaussian_epsilon(mu, DELTA),
        repeats=LONG,
        sides="low",
    )


def two_tables(mu: float, first: int, second: int, digits: int | None = None) -> Case:
    def scores(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        a, b = rng.normal(mu, 1.0, first), rng.normal(size=second)
        return (a, b) if digits is None else (a.round(digits), b.round(digits))

    ties = "" if digits is None else ", ties"
    return interval_case(
        "lower bound on mu (`mu_lower_bound`)",
        f"Gaussian, mu {mu:g}{ties}; {first} and {second} runs",
        lambda rng: mu_lower_bound(*scores(rng), level=LEVEL),
        truth=mu,
        repeats=MEDIUM,
        sides="low",
    )


def refuted(mu: float, runs: int) -> Case:
    def tprs(rates: list[float]) -> np.ndarray:
        return ndtr(ndtri(np.asarray(rates)) + mu)

    return alarm_case(
        "a true claim refuted (`refutes`)",
        f"Gaussian, mu {mu:g}; {runs} and {runs} runs",
        lambda rng: refutes(
            rng.normal(mu, 1.0, runs), rng.normal(size=runs), tprs=tprs, level=LEVEL
        ),
        nominal=1 - LEVEL,
        repeats=SHORT,
    )


def family(noise: float, runs: int) -> Case:
    def tprs_of(z: float):
        return lambda rates: ndtr(ndtri(np.asarray(rates)) + 2 / z)

    return interval_case(
        "upper bound on the noise (`noise_upper_bound`)",
        f"Gaussian, noise {noise:g}; {runs} and {runs} runs",
        lambda rng: noise_upper_bound(
            rng.normal(2 / noise, 1.0, runs),
            rng.normal(size=runs),
            tprs_of=tprs_of,
            between=(0.05, 200.0),
            level=LEVEL,
        ),
        truth=noise,
        repeats=MEDIUM,
        sides="high",
    )


def watched(runs: int, steps: int, *, varied: bool = False, rate: float = 1.0) -> Case:
    """Noise exactly as stated. ``varied``: in half of the runs the record is twice as far away, up to the stated bound."""
    noise = 5.0
    stated = PrivateTraining(noise_multiplier=noise, sampling_rate=rate, steps=steps)

    def estimate(rng: np.random.Generator) -> object:
        lengths = np.full((runs, steps), 1 / noise)
        if varied:
            lengths[rng.random(runs) < 0.5] /= 2
        return epsilon_of_steps(
            lengths,
            rng.standard_normal((runs, steps)),
            stated,
            delta=DELTA,
            level=LEVEL,
        )

    truth = gaussian_epsilon(math.sqrt(steps) / noise, DELTA)
    if rate < 1:
        truth = sampled_epsilon(noise, rate, steps)
    what = ", distances that vary" if varied else ""
    sampling = f", sampled at {rate:g}" if rate < 1 else ""
    return interval_case(
        "lower bound from watched steps (`epsilon_of_steps`)",
        f"noise as stated{what}{sampling}; {runs} runs of {steps} steps",
        estimate,
        truth=truth,
        repeats=QUICK if rate == 1 else SLOW,
        sides="low",
    )


def sampled_epsilon(noise: float, rate: float, steps: int) -> float:
    """Return the epsilon of Poisson-sampled steps, by another accountant than the library's exact one."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), steps)
    return float(accountant.get_epsilon(DELTA))


def scale_of_noise(factor: float, count: int) -> Case:
    return interval_case(
        "deviation of the noise (`noise_level`)",
        f"{factor:g} times the stated one; {count} steps",
        lambda rng: noise_level(factor * rng.standard_normal(count), level=LEVEL),
        truth=factor,
        repeats=QUICK,
    )


def normal_noise(count: int) -> Case:
    return alarm_case(
        "noise called not normal (`normality`, p < 0.05)",
        f"normal; {count} steps",
        lambda rng: normality(1.3 * rng.standard_normal(count)) < 0.05,
        nominal=0.05,
        repeats=SHORT,
    )


def cases() -> list[Case]:
    return [
        one_product(0.0, 250),
        one_product(1.0, 250),
        one_product(3.0, 250),
        one_product(1.0, 250, coins=True),
        one_product(1.0, 30, coins=True),
        one_product(1.0, 250, ties=True),
        one_product(3.0, 250, ties=True),
        with_delta(1.0, 1e-3, 250),
        unequal(450, 50),
        unequal(30, 600),
        canaries(0.0, 300),
        canaries(1.0, 300),
        canaries(2.5, 100),
        betrayed_together(0.2, 0.9, 400),
        betrayed_together(0.04, 0.95, 400),
        two_tables(0.0, 60, 60),
        two_tables(1.0, 60, 60),
        two_tables(1.0, 30, 600),
        two_tables(1.0, 60, 60, digits=0),
        refuted(0.0, 50),
        refuted(1.5, 50),
        family(2.0, 100),
        watched(10, 20),
        watched(40, 10, varied=True),
        watched(10, 20, rate=0.2),
        scale_of_noise(1.0, 200),
        scale_of_noise(0.8, 20),
        normal_noise(200),
    ]
