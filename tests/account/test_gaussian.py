"""The Gaussian mechanism made from epsilon and delta, exactly and by the textbook."""

import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from reticent.account import (
    Gaussian,
    Relation,
    analytic_noise,
    classical_noise,
    gaussian_delta,
    trade_off,
)
from reticent.errors import InvalidInput

epsilons = st.floats(1e-3, 50)
deltas = st.floats(-12, -0.5).map(lambda power: 10**power)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 6.0])
def test_the_closed_form_against_a_library_and_a_naive_form(mu, epsilon):
    found = gaussian_delta(mu, epsilon)
    theirs = pld.from_gaussian_mechanism(1 / mu).get_delta_for_epsilon(epsilon)
    assert found == pytest.approx(theirs, rel=1e-6, abs=1e-14)
    naive = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(
        -mu / 2 - epsilon / mu
    )
    assert found == pytest.approx(naive, rel=1e-9, abs=1e-15)


def test_the_closed_form_where_the_naive_one_fails():
    """A delta of 1e-5 at an epsilon of 1,000: e^1000 is no number."""
    noise = analytic_noise(1_000.0, 1e-5)
    # For large epsilon the loss is about normal with mean mu^2/2 and standard deviation mu.
    mu = 1 / noise
    above = norm.sf((1_000 - mu**2 / 2) / mu)
    assert gaussian_delta(mu, 1_000.0) == pytest.approx(1e-5, rel=1e-6)
    assert 1e-5 < above < 2e-4


def test_the_check_values_of_the_theory():
    """30 full-batch steps, belief .9 at delta .01: mu .9610, noise 5.700 and advantage .3691."""
    found = Gaussian.analytic(epsilon=math.log(9), delta=0.01)
    assert found.mu == pytest.approx(0.9610, abs=5e-5)
    assert found.noise_multiplier * math.sqrt(30) == pytest.approx(5.700, abs=5e-4)
    assert trade_off(found).advantage == pytest.approx(0.3691, abs=5e-5)


@given(epsilons, deltas)
@settings(max_examples=200, deadline=None)
def test_the_noise_meets_the_target_and_a_thousandth_less_misses(epsilon, delta):
    noise = analytic_noise(epsilon, delta)
    assert gaussian_delta(1 / noise, epsilon) <= delta
    assert gaussian_delta(1 / (0.999 * noise), epsilon) > delta


@given(st.floats(0.01, 0.999), deltas)
@settings(max_examples=100, deadline=None)
def test_the_classical_noise_is_always_more(epsilon, delta):
    exact = Gaussian.analytic(epsilon=epsilon, delta=delta)
    classical = Gaussian.classical(epsilon=epsilon, delta=delta)
    assert classical.noise_multiplier > exact.noise_multiplier
    assert gaussian_delta(classical.mu, epsilon) <= delta


def test_the_classical_formula_does_not_protect_at_a_large_epsilon():
    """Which is why it is refused from 1 on, where its proof ends."""
    assert gaussian_delta(1 / classical_noise(10.0, 1e-5), 10.0) > 1e-5
    with pytest.raises(InvalidInput, match=r"must be below 1.*Gaussian\.analytic"):
        Gaussian.classical(epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize("make", [Gaussian.analytic, Gaussian.classical])
def test_replacing_a_record_needs_twice_the_noise(make):
    one = make(epsilon=0.7, delta=1e-6)
    two = make(epsilon=0.7, delta=1e-6, relation=Relation.REPLACE)
    assert two.noise_multiplier == pytest.approx(2 * one.noise_multiplier)
    assert two.mu == pytest.approx(one.mu)
    assert trade_off(two).epsilon(1e-6) <= 0.7 * (1 + 1e-6)


@pytest.mark.parametrize("make", [Gaussian.analytic, Gaussian.classical])
@pytest.mark.parametrize(
    ("epsilon", "delta", "words"),
    [
        (0.5, 0.0, "no pure epsilon"),
        (0.5, 1.0, "inside"),
        (0.5, math.nan, "inside"),
        (-1.0, 1e-5, "at least 0 and finite, got -1"),
        (math.nan, 1e-5, "at least 0 and finite, got nan"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(make, epsilon, delta, words):
    with pytest.raises(InvalidInput, match=words):
        make(epsilon=epsilon, delta=delta)


def test_absurd_noise_is_refused():
    with pytest.raises(InvalidInput, match="drowns every answer"):
        analytic_noise(0.0, 1e-12)
