"""The loss of a sampled step against a library, an integral and itself; how few steps a calibration takes."""

import sys

import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, norm

from reticent.account import (
    Budget,
    Composition,
    Course,
    ErrorRates,
    Gaussian,
    MaxAdvantage,
    MaxPosterior,
    PrivateTraining,
    SubsampledGaussian,
    Terms,
    gaussian_delta,
    make_plan,
    trade_off,
)
from reticent.account.composed import composed
from reticent.account.sampled import group_sampled_loss, sampled_loss
from reticent.account.tradeoff import GRID, fitting

calibrate_module = sys.modules["reticent.account.calibrate"]
EPSILONS = np.array([0.0, 0.01, 0.1, 0.5, 1.0, 3.0])
STEPS = [(1.25, 0.0043), (0.5, 0.01), (3.0, 0.3), (1.0, 1e-4), (0.3, 0.002), (20.0, 0.01)]  # fmt: skip


@pytest.mark.parametrize(("noise", "rate"), STEPS)
@pytest.mark.parametrize("replace", [False, True])
def test_one_step_and_a_hundred_against_a_library(noise, rate, replace):
    ours = sampled_loss(noise, rate, 1e-3, replace=replace)
    relation = NeighboringRelation.REPLACE_ONE if replace else NeighboringRelation.ADD_OR_REMOVE_ONE  # fmt: skip
    theirs = pld.from_gaussian_mechanism(
        noise,
        sampling_prob=rate,
        value_discretization_interval=1e-3,
        neighboring_relation=relation,
    )
    for times, off in ((1, 1e-14), (100, 1e-8)):
        mine, other = (x.self_compose(times) if times > 1 else x for x in (ours, theirs))  # fmt: skip
        gap = mine.get_delta_for_epsilon(EPSILONS) - other.get_delta_for_epsilon(EPSILONS)  # fmt: skip
        assert np.abs(gap).max() < off


@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("replace", [False, True])
def test_one_step_against_an_integral(epsilon, replace):
    noise, rate = 0.8, 0.05

    def density(x, mean):
        return (1 - rate) * norm.pdf(x, scale=noise) + rate * norm.pdf(x, mean, noise)

    def other(x):
        return density(x, 1.0) if replace else norm.pdf(x, scale=noise)

    def gain(x):
        return max(0.0, density(x, -1.0) - np.exp(epsilon) * other(x))

    exact = quad(gain, -10, 10, limit=500, epsabs=1e-12, points=[-2, -1, 0, 1])[0]
    loss = sampled_loss(noise, rate, 1e-3, replace=replace)
    assert loss.get_delta_for_epsilon(epsilon) == pytest.approx(exact, abs=1e-8)


def test_without_sampling_it_is_the_gaussian_mechanism():
    loss = sampled_loss(0.7, 1.0, 1e-3, replace=False)
    closed = [gaussian_delta(1 / 0.7, e) for e in EPSILONS]
    assert loss.get_delta_for_epsilon(EPSILONS) == pytest.approx(closed, rel=1e-10)


@given(st.floats(0.6, 20), st.floats(-5, 0), st.booleans())
@settings(max_examples=15, deadline=None)
def test_no_probability_is_lost_or_made_and_a_finer_grid_is_tighter(
    noise, power, replace
):
    rate = 10**power
    coarse, fine = (sampled_loss(noise, rate, grid, replace=replace) for grid in (4e-3, 1e-3))  # fmt: skip
    for loss in (coarse, fine):
        whole = loss._pmf_remove._probs.sum() + loss._pmf_remove._infinity_mass
        assert whole == pytest.approx(1, abs=1e-13)
        assert loss._pmf_remove._probs.min() >= 0
    many = [composed(x, 50).get_delta_for_epsilon(EPSILONS) for x in (coarse, fine)]
    assert np.all(many[1] <= many[0] + 1e-12)


def test_rounding_does_not_add_up():
    """A finer grid gave a larger advantage when empty cells erred as much as full ones."""
    run = PrivateTraining(noise_multiplier=1.0, sampling_rate=0.001, steps=100_000)
    coarse, fine = (trade_off(run, grid=grid).advantage for grid in (1e-4, 1e-5))
    assert 0 < coarse - fine < 1e-4


@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1.0, 1e-4, 100_000), (2.0, 1e-3, 100_000)]
)
def test_the_grid_fits_a_small_rate(noise, rate, steps):
    run = PrivateTraining(noise_multiplier=noise, sampling_rate=rate, steps=steps)
    chosen = fitting(run)
    epsilon = trade_off(run).epsilon(1e-5)
    finer = trade_off(run, grid=chosen / 2).epsilon(1e-5)
    assert finer <= epsilon < 1.002 * finer
    # Twin: the grid that is right for a usual rate asks for too much here.
    assert trade_off(run, grid=2 * GRID).epsilon(1e-5) > 1.005 * finer


def test_mechanisms_together_take_the_finest_grid():
    rare = SubsampledGaussian(noise_multiplier=1.0, sampling_rate=1e-4)
    plain = Gaussian(noise_multiplier=10.0)
    assert fitting(plain) == GRID
    assert fitting(Composition(parts=((plain, 1), (rare, 10)))) == fitting(rare) < GRID


TARGETS = [
    MaxPosterior(belief=0.9, failure=1e-5),
    MaxAdvantage(advantage=0.1),
    ErrorRates(tpr=0.01, fpr=0.001),
    Budget(epsilon=1.0, delta=1e-5),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: type(t).__name__)
def test_a_plan_tries_little_and_prints_what_it_tried(target, monkeypatch):
    tried = []

    def counted(mechanism, *, grid):
        found = trade_off(mechanism, grid=grid)
        tried.append((mechanism.noise_multiplier, grid, target.excess(found)))
        return found

    monkeypatch.setattr(calibrate_module, "trade_off", counted)
    plan = make_plan(target, Course(steps=300, sampling_rate=0.02), Terms(delta=1e-5))
    fine = [(noise, excess) for noise, grid, excess in tried if grid == GRID]
    assert len(fine) <= 5
    assert len(tried) <= 15
    kept = [noise for noise, excess in fine if excess <= 0]
    broken = [noise for noise, excess in fine if excess > 0]
    assert plan.noise_multiplier == min(kept)
    assert (
        max(broken) > plan.noise_multiplier / 1.0012
    )  # a tenth of a per cent, rounded


def test_hardly_any_noise_betrays_whoever_took_part():
    """Losses of a hundred thousand overflow nothing."""
    found = trade_off(
        PrivateTraining(noise_multiplier=0.0015, sampling_rate=0.004, steps=1)
    )
    assert found.advantage == pytest.approx(0.004, rel=1e-3)


@pytest.mark.parametrize("noise", [0.03, 0.05])
def test_losses_that_no_exponential_holds_are_stated_all_the_same(noise):
    """Seven hundred steps with next to no noise: epsilon in the ten thousands, and everybody is found."""
    training = PrivateTraining(noise_multiplier=noise, sampling_rate=0.04, steps=700)
    found = trade_off(training, grid=0.05)
    assert 700 < found.epsilon(1e-5) < 0.5 * 700 / noise**2
    assert found.advantage == pytest.approx(1.0)
    assert found.belief(1e-5) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("noise", "rate", "size", "steps"),
    [(1.0, 0.1, 2, 50), (0.5, 0.3, 3, 5), (5.0, 0.01, 8, 100), (1.2, 0.2, 1, 20)],
)
def test_a_group_equals_the_mixture_of_the_library(noise, rate, size, steps):
    """`dp_accounting` finds the place of each loss by a search of its own, which takes a hundred times as long."""
    counts = np.arange(size + 1)
    theirs = pld.from_mixture_gaussian_mechanism(
        noise,
        sensitivities=counts.astype(float).tolist(),
        sampling_probs=binom.pmf(counts, size, rate).tolist(),
        value_discretization_interval=0.02,
    ).self_compose(steps)
    ours = group_sampled_loss(noise, rate, size, 0.02).self_compose(steps)
    # Twin: a group that always takes part together has another loss, and so has a smaller group.
    smaller = group_sampled_loss(noise, rate, size - 1 or 2, 0.02).self_compose(steps)
    for delta in (1e-2, 1e-5, 1e-8):
        truth = theirs.get_epsilon_for_delta(delta)
        assert ours.get_epsilon_for_delta(delta) == pytest.approx(truth, rel=1e-6)
        assert smaller.get_epsilon_for_delta(delta) != pytest.approx(truth, rel=1e-3)
