"""A lower bound from the noise of every step: exceeds the truth seldom, and comes near it soon."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reticent.account import (
    PrivateTraining,
    Relation,
    gaussian_epsilon,
    trade_off,
)
from reticent.errors import InvalidInput
from reticent.evidence import (
    ceiling_of_steps,
    epsilon_of_steps,
    noise_level,
    normality,
)
from reticent.run import stream

ALARM = 1e-6
STATED = PrivateTraining(noise_multiplier=5.0, sampling_rate=1.0, steps=20)
HOW = {"stated": STATED, "delta": 1e-5, "level": 0.95}


def test_over_many_audits_the_bound_exceeds_the_truth_in_at_most_five_per_cent(seed):
    """2,000 audits of honest noise, 10 runs of 20 steps; the twin without a confidence limit fails."""
    rng, audits, lengths = stream(seed, "audits"), 2_000, np.full((10, 20), 0.2)
    truth = gaussian_epsilon(0.2 * math.sqrt(20), 1e-5)
    most = stats.binom.ppf(1 - ALARM, audits, 0.05)
    above = careless = 0
    for _ in range(audits):
        noise = rng.standard_normal((10, 20))
        above += epsilon_of_steps(lengths, noise, **HOW).low > truth
        guess = 0.2 * math.sqrt(20) / noise_level(noise, level=0.95).value
        careless += gaussian_epsilon(guess, 1e-5) > truth
    assert above <= most
    assert careless > most


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_the_bound_comes_near_the_truth_with_few_runs(epsilon, seed):
    """60 runs of 30 steps: the middle bound of 50 audits is within 10 %, and grows with runs."""
    from scipy.optimize import brentq

    mu = brentq(lambda m: gaussian_epsilon(m, 1e-5) - epsilon, 1e-3, 20)
    rng = stream(seed, "near")

    def middle(runs):
        lengths = np.full((runs, 30), mu / math.sqrt(30))
        return np.median(
            [
                epsilon_of_steps(lengths, rng.standard_normal((runs, 30)), **HOW).low
                for _ in range(50)
            ]
        )

    few, many = middle(6), middle(60)
    assert few < many
    assert 0.9 * epsilon < many < epsilon


def test_less_noise_than_stated_shows(seed):
    rng = stream(seed, "less")
    lengths = np.full((20, 30), 0.2)
    truth = gaussian_epsilon(0.2 * math.sqrt(30), 1e-5)
    weak = 0.8 * rng.standard_normal((20, 30))
    assert epsilon_of_steps(lengths, weak, **HOW).low > truth
    assert noise_level(weak, level=0.95).high < 0.9


def test_the_run_in_the_middle_counts():
    """Half of the runs far apart: delta over the share of such runs; one far run among many counts for nothing."""
    noise = np.tile([1.0, -1.0], (40, 15))
    half = np.full((40, 30), 0.1)
    half[:20] = 0.3
    one = np.full((40, 30), 0.1)
    one[0] = 3.0
    same = np.full((40, 30), 0.1)
    bounds = [epsilon_of_steps(each, noise, **HOW).low for each in (half, one, same)]
    assert bounds[1] <= bounds[2]
    far = np.full((40, 30), 0.3)
    assert bounds[0] < epsilon_of_steps(far, noise, **HOW).low


@pytest.mark.parametrize("relation", list(Relation))
def test_sampled_steps_have_the_form_of_sampled_steps(relation, seed):
    rng, reach = stream(seed, "sampled"), 2.0 if relation == Relation.REPLACE else 1.0
    lengths = np.full((40, 50), reach / 0.8)
    stated = PrivateTraining(
        noise_multiplier=0.8, sampling_rate=0.1, steps=50, relation=relation
    )
    how = {**HOW, "stated": stated}
    found = epsilon_of_steps(lengths, rng.standard_normal((40, 50)), **how)
    truth = trade_off(stated).epsilon(1e-5)
    assert 0.8 * truth < found.low < truth
    ceiling = ceiling_of_steps(runs=40, samples=2_000, **how)
    assert 0.85 * truth < ceiling < truth


def test_a_delta_larger_than_the_share_of_runs_allows_everything(seed):
    """With two runs a lower limit on the share is about .02: a larger delta proves nothing, whatever the distance.

    A delta cut at one half, as a careless twin has it, would show an epsilon all the same.
    """
    noise = stream(seed, "delta").standard_normal((2, 20))
    lengths = np.full((2, 20), 3.0)
    bounds = [
        epsilon_of_steps(lengths, noise, STATED, delta=delta, level=0.95).low
        for delta in (1e-6, 1e-3, 1e-2, 0.02, 0.3)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > 10
    assert bounds[-1] == 0
    assert gaussian_epsilon(3.0 * math.sqrt(20), 0.5) > 10
    assert ceiling_of_steps(STATED, runs=2, samples=40, delta=0.3, level=0.95) == 0


def test_steps_that_tell_nothing_count_for_nothing():
    noise = np.tile([1.0, -1.0], (10, 10))
    lengths = np.full((10, 20), 1e-9)
    how = {**HOW, "stated": replace(STATED, sampling_rate=0.1)}
    lengths[:, :5] = 1.0
    some = epsilon_of_steps(lengths, noise, **how).low
    assert some > 0
    assert epsilon_of_steps(np.zeros((10, 20)), noise, **how).low == 0
    assert epsilon_of_steps(np.zeros((10, 20)), noise, **HOW).low == 0


def test_a_scale_tells_at_every_step():
    """With sampling a shift tells only when the record takes part; a scale always."""
    noise = np.tile([1.0, -1.0], (10, 10))
    none, some = np.zeros((10, 20)), np.full((10, 20), 0.3)
    how = {**HOW, "stated": replace(STATED, sampling_rate=0.1)}
    by_scale = epsilon_of_steps(none, noise, scales=some, **how).low
    full = epsilon_of_steps(none, noise, scales=some, **HOW).low
    assert by_scale == full > epsilon_of_steps(some, noise, **how).low
    both = epsilon_of_steps(some, noise, scales=some, **how).low
    assert both > by_scale
    assert epsilon_of_steps(some, noise, scales=10 * some, **how).low > both


def test_noise_that_is_not_normal_is_noticed(seed):
    rng = stream(seed, "shape")
    assert normality(rng.standard_normal(3_000)) > ALARM
    assert normality(rng.laplace(size=3_000)) < ALARM
    assert normality(1.0 + rng.standard_normal(3_000)) < ALARM


@given(st.integers(10, 200), st.floats(0.1, 10.0), st.integers(0, 2**32 - 1))
def test_the_level_scales_with_the_noise(size, factor, seed):
    noise = np.random.default_rng(seed).standard_normal(size)
    one, other = noise_level(noise, level=0.9), noise_level(factor * noise, level=0.9)
    assert other.value == pytest.approx(factor * one.value)
    assert other.high == pytest.approx(factor * one.high)


def test_too_few_numbers_are_refused():
    with pytest.raises(InvalidInput, match="at least 2 numbers are needed"):
        noise_level(np.ones(1), level=0.95)
