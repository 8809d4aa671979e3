"""Mechanisms and what they guarantee: closed forms, errata of the source, the safe side."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from reticent.account import (
    Budget,
    Composition,
    Course,
    ErrorRates,
    Exponential,
    Gaussian,
    Group,
    Laplace,
    MaxAdvantage,
    MaxPosterior,
    NonSphericalGaussian,
    PrivateTraining,
    RandomisedResponse,
    Relation,
    SubsampledGaussian,
    Terms,
    advantage_of_source,
    belief_of_source,
    calibrate,
    classical_noise,
    epsilon_of_source,
    make_plan,
    renyi_epsilon,
    renyi_of_source,
    trade_off,
)
from reticent.errors import InvalidInput
from reticent.run import stream

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(
    ("mu", "advantage", "tpr", "epsilon", "belief"),
    [
        (0.5, 0.197413, 0.004796, 1.99309, 0.9053),
        (1.0, 0.382925, 0.018298, 4.37718, 0.9915),
        (2.0, 0.682689, 0.137805, 9.99726, 0.99997),
    ],
)
def test_the_gaussian_mechanism_against_its_closed_forms(
    mu, advantage, tpr, epsilon, belief
):
    found = trade_off(Gaussian(noise_multiplier=1 / mu))
    assert found.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1, abs=1e-6)
    assert found.advantage == pytest.approx(advantage, abs=1e-6)
    assert found.tpr(1e-3) == pytest.approx(norm.cdf(norm.ppf(1e-3) + mu), abs=1e-5)
    assert found.tpr(1e-3) == pytest.approx(tpr, abs=1e-5)
    assert found.epsilon(1e-5) == pytest.approx(epsilon, abs=1e-4)
    exact = 1 / (1 + math.exp(-(mu**2 / 2 + mu * norm.isf(1e-5))))
    assert found.belief(1e-5) == pytest.approx(exact, abs=2e-4)
    assert found.belief(1e-5) >= exact - 1e-9  # leans to the safe side
    assert found.belief(1e-5) == pytest.approx(belief, abs=3e-4)
    above = norm.sf((math.log(9) - mu**2 / 2) / mu)
    assert found.probability_of_belief(0.9) == pytest.approx(above, rel=2e-3)
    assert found.accuracy() == pytest.approx(norm.cdf(mu / 2), abs=1e-5)


@given(st.floats(0.3, 3), st.floats(0.05, 0.95), st.floats(1e-4, 0.5))
@settings(max_examples=20, deadline=None)
def test_statements_about_one_mechanism_agree(noise, prior, fpr):
    found = trade_off(Gaussian(noise_multiplier=noise), grid=1e-3)
    assert found.tpr(fpr) - fpr <= found.advantage + 1e-9
    assert found.accuracy(prior=prior) >= max(prior, 1 - prior) - 1e-9
    delta = found.delta(1.0)
    if 0 < delta < 1:
        assert found.epsilon(delta) == pytest.approx(1.0, abs=1e-6)
    # Any (epsilon, delta) bounds the trade-off curve: TPR <= e^epsilon FPR + delta.
    assert found.tpr(fpr) <= math.e * fpr + delta + 1e-9


def test_pure_mechanisms_have_their_epsilon():
    coins = RandomisedResponse(truth=0.5)
    assert coins.epsilon == pytest.approx(math.log(3))
    assert trade_off(coins).epsilon(0.0) == pytest.approx(math.log(3), abs=2e-4)
    assert trade_off(coins).advantage == pytest.approx(0.5, abs=1e-4)
    assert trade_off(Laplace(noise_multiplier=0.5)).epsilon(0.0) == pytest.approx(2.0)
    laplace = trade_off(Laplace(noise_multiplier=1.0))
    assert laplace.advantage == pytest.approx(1 - math.exp(-0.5), abs=1e-5)
    assert trade_off(Exponential(epsilon=1.5)).epsilon(0.0) == pytest.approx(1.5)
    assert trade_off(Exponential(epsilon=1.5)).advantage == pytest.approx(
        math.tanh(0.75), abs=1e-4
    )


def test_the_relation_changes_epsilon_and_travels_with_it():
    """The run of the tutorials: 2.38 under add/remove and 4.22 under replace-one."""
    run = {"noise_multiplier": 1.1, "sampling_rate": 256 / 60_000, "steps": 14_062}
    add = trade_off(PrivateTraining(**run))
    replace = trade_off(PrivateTraining(**run, relation=Relation.REPLACE))
    assert add.relation == "add/remove"
    assert replace.relation == "replace-one"
    assert add.epsilon(1e-5) == pytest.approx(2.3817, abs=2e-4)
    assert replace.epsilon(1e-5) == pytest.approx(4.2214, abs=1e-3)
    assert add.advantage == pytest.approx(0.22447, abs=1e-5)
    assert renyi_epsilon(PrivateTraining(**run), 1e-5) == pytest.approx(2.597, abs=2e-3)


def test_subsampled_steps_against_a_simulated_attacker(seed):
    """The exact true-positive rate is what the likelihood ratio reaches, and no less."""
    rate, steps, runs, fpr = 0.1, 3, 200_000, 0.01
    rng = stream(seed, "subsampled")
    out = rng.normal(size=(runs, steps))
    inside = rng.normal(size=(runs, steps)) + (rng.random((runs, steps)) < rate)

    def evidence(x):
        return np.log1p(rate * np.expm1(x - 0.5)).sum(axis=1)

    threshold = np.quantile(evidence(out), 1 - fpr)
    reached = float((evidence(inside) > threshold).mean())
    found = trade_off(
        PrivateTraining(noise_multiplier=1.0, sampling_rate=rate, steps=steps)
    ).tpr(fpr)
    error = math.sqrt(found / runs + (found / fpr) ** 2 * fpr / runs)
    assert abs(found - reached) < norm.isf(FALSE_ALARM / 2) * error
    # Twin: the same noise without the sampling would guarantee far less.
    plain = trade_off(Gaussian(noise_multiplier=1 / math.sqrt(steps))).tpr(fpr)
    assert abs(plain - reached) > norm.isf(FALSE_ALARM / 2) * error


def test_compositions_add_up():
    one, two = Gaussian(noise_multiplier=2.0), Gaussian(noise_multiplier=3.0)
    both = trade_off(Composition(parts=((one, 3), (two, 1))))
    mu = math.sqrt(3 / 4 + 1 / 9)
    assert both.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1, abs=1e-5)
    thirty = PrivateTraining(noise_multiplier=5.7, sampling_rate=1.0, steps=30)
    assert trade_off(thirty).advantage == pytest.approx(
        2 * norm.cdf(math.sqrt(30) / 5.7 / 2) - 1, abs=1e-6
    )
    with pytest.raises(InvalidInput, match="cannot be added"):
        Composition(parts=((one, 1), (RandomisedResponse(truth=0.5), 1)))


def test_groups_pay_more():
    one = Gaussian(noise_multiplier=3.0)
    three = trade_off(Group(mechanism=one, size=3))
    assert three.advantage == pytest.approx(2 * norm.cdf(0.5) - 1, abs=1e-5)
    step = SubsampledGaussian(noise_multiplier=1.0, sampling_rate=0.01)
    alone = trade_off(Group(mechanism=step, size=1), grid=1e-2)
    assert alone.advantage == pytest.approx(trade_off(step).advantage, rel=0.02)
    four = trade_off(Group(mechanism=step, size=4), grid=1e-2)
    assert four.advantage > 3 * alone.advantage


def test_noise_by_coordinate_is_one_gaussian_and_the_cheapest_is_cheaper():
    ranges = (1.0, 4.0, 0.25)
    plain = NonSphericalGaussian(deviations=(2.0, 2.0, 2.0), ranges=ranges)
    assert plain.mu == pytest.approx(math.sqrt(1 + 16 + 1 / 16) / 2)
    best = NonSphericalGaussian.cheapest(ranges, mu=plain.mu)
    assert best.mu == pytest.approx(plain.mu)
    assert sum(s**2 for s in best.deviations) < sum(s**2 for s in plain.deviations)
    assert trade_off(best).advantage == pytest.approx(
        2 * norm.cdf(plain.mu / 2) - 1, abs=1e-5
    )


RUN = {"sampling_rate": 0.01, "steps": 500}
TARGETS = [
    MaxPosterior(belief=0.9, failure=1e-5),
    MaxPosterior(belief=0.3, failure=1e-4, prior=0.1),
    MaxAdvantage(advantage=0.1),
    ErrorRates(tpr=0.01, fpr=0.001),
    Budget(epsilon=1.0, delta=1e-5),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: type(t).__name__)
def test_calibration_lands_on_the_safe_side_and_near_the_least_noise(target):
    noise = calibrate(target, lambda z: PrivateTraining(noise_multiplier=z, **RUN))
    kept = trade_off(PrivateTraining(noise_multiplier=noise, **RUN))
    less = trade_off(PrivateTraining(noise_multiplier=0.995 * noise, **RUN))
    assert target.excess(kept) <= 0
    assert target.excess(less) > 0


def test_the_errata_of_the_source():
    """D5.3: belief .9 at delta .01; exact 5.700 and .3691, by Rényi 8.380 and .2562."""
    epsilon = math.log(9)
    assert belief_of_source(epsilon) == pytest.approx(0.9)
    run = {"sampling_rate": 1.0, "steps": 30}
    exact = calibrate(
        Budget(epsilon=epsilon, delta=0.01),
        lambda z: PrivateTraining(noise_multiplier=z, **run),
    )
    assert exact == pytest.approx(5.700, rel=2e-3)
    at = trade_off(PrivateTraining(noise_multiplier=exact, **run)).advantage
    assert at == pytest.approx(0.3691, abs=1e-3)
    by_renyi = PrivateTraining(noise_multiplier=8.380, **run)
    assert renyi_of_source(math.sqrt(30) / 8.380, 0.01) == pytest.approx(
        epsilon, abs=2e-3
    )
    assert renyi_epsilon(by_renyi, 0.01) < epsilon  # a newer conversion
    assert trade_off(by_renyi).epsilon(0.01) < renyi_epsilon(by_renyi, 0.01)
    assert trade_off(by_renyi).advantage == pytest.approx(0.2562, abs=5e-4)
    # The inverse of Theorem 3, printed without its factor 2.
    there = advantage_of_source(2.0, 1e-5)
    assert epsilon_of_source(there, 1e-5) == pytest.approx(2.0)
    printed = math.sqrt(2 * math.log(1.25 / 1e-5)) * norm.ppf((there + 1) / 2)
    assert printed == pytest.approx(1.0)


def test_the_formulas_of_the_source_promise_too_much():
    """Which is why they stand beside the exact numbers and never in their place."""
    run = PrivateTraining(
        noise_multiplier=1.1, sampling_rate=256 / 60_000, steps=14_062
    )
    found = trade_off(run)
    epsilon = found.epsilon(1e-5)
    assert advantage_of_source(epsilon, 1e-5) < found.advantage
    assert found.probability_of_belief(belief_of_source(epsilon)) > 5e-5
    assert classical_noise(0.5, 1e-5) > calibrate(
        Budget(epsilon=0.5, delta=1e-5), lambda z: Gaussian(noise_multiplier=z)
    )


def test_a_plan_states_what_its_noise_gives():
    course = Course.of_epochs(rows=2_000, batch=100, epochs=5)
    assert course == Course(steps=100, sampling_rate=0.05)
    plan = make_plan(MaxAdvantage(advantage=0.2), course, Terms(delta=1e-4))
    found = trade_off(
        PrivateTraining(
            noise_multiplier=plan.noise_multiplier, sampling_rate=0.05, steps=100
        )
    )
    assert plan.advantage == found.advantage <= 0.2
    assert plan.epsilon == found.epsilon(1e-4)
    assert plan.epsilon_other > plan.epsilon
    assert plan.tpr == found.tpr(0.001)
    assert plan.comparison.renyi_epsilon >= plan.epsilon


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Budget(epsilon=1.0, delta=0.0), "Gaussian noise has no pure epsilon"),
        (
            lambda: Budget(epsilon=0.0, delta=1e-5),
            "epsilon must be positive and finite, got 0.0",
        ),
        (
            lambda: Budget(epsilon=math.inf, delta=1e-5),
            "epsilon must be positive and finite, got inf",
        ),
        (
            lambda: Budget(epsilon=math.nan, delta=1e-5),
            "epsilon must be positive and finite, got nan",
        ),
        (lambda: MaxPosterior(belief=0.4, failure=1e-5), "without a release"),
        (lambda: ErrorRates(tpr=0.001, fpr=0.01), "guessing reaches 0.01"),
        (lambda: MaxAdvantage(advantage=1.5), "inside"),
        (
            lambda: Course.of_epochs(rows=10, batch=20, epochs=1),
            "larger than the table",
        ),
        (lambda: Course(steps=0, sampling_rate=0.1), "at least 1, got 0"),
        (lambda: Course(steps=5, sampling_rate=1.5), r"\(0, 1\]"),
        (lambda: Gaussian(noise_multiplier=0.0), "no guarantee"),
        (lambda: RandomisedResponse(truth=1.0), "nothing is hidden"),
        (
            lambda: Group(mechanism=Gaussian(noise_multiplier=1.0), size=0),
            "at least 1, got 0",
        ),
        (
            lambda: calibrate(
                MaxAdvantage(advantage=1e-9), lambda z: Gaussian(noise_multiplier=z)
            ),
            "no amount of noise",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()
