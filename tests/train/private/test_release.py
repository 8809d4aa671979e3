"""Releases on a grid: exact probabilities, the right scale, nothing that floating point betrays.

The noise is the system's, so no seed repeats a failure; each test fails once in a million runs.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, norm

from reticent.account import (
    Exponential,
    Gaussian,
    Laplace,
    NonSphericalGaussian,
    PrivateTraining,
    RandomisedResponse,
    Relation,
)
from reticent.errors import InvalidInput
from reticent.evidence import estimate_share
from reticent.run import stream
from reticent.train import (
    release_answers,
    release_choice,
    release_coordinates,
    release_numbers,
)
from reticent.train.private import release as release_module
from reticent.train.private.exact import (
    bernoulli_exp,
    choice_by_weight,
    exp_successes,
    rounded_laplace,
)
from reticent.train.private.noise import secure_generator

FALSE_ALARM = 1e-6
N = 100_000


def probability_of_rounded_laplace(x, halves):
    """Of Laplace noise of scale halves/2, rounded: the integral over a cell."""
    x = np.abs(np.asarray(x))
    tail = np.exp(-(2 * x - 1) / halves) - np.exp(-(2 * x + 1) / halves)
    return np.where(x == 0, -np.expm1(-1 / halves), tail / 2)


# Whole numbers


@pytest.mark.parametrize(("u", "n"), [(0, 7), (1, 7), (4, 7), (7, 7), (10**12, 10**13)])
def test_coins_of_an_exponential_are_fair(u, n):
    heads = bernoulli_exp(np.full(N, u), n, secure_generator()).sum()
    p = math.exp(-u / n)
    if u == 0:
        assert heads == N
        return
    z = (heads - N * p) / math.sqrt(N * p * (1 - p))
    assert abs(z) < norm.isf(FALSE_ALARM / 2)
    # Twin: the first two terms of the series, a common short cut.
    short = (heads - N * (1 - u / n)) / math.sqrt(N * p * (1 - p))
    assert u / n < 0.2 or abs(short) > norm.isf(FALSE_ALARM / 2)


def test_heads_before_tails_are_geometric():
    counts = np.bincount(exp_successes(N, secure_generator()).clip(max=6), minlength=7)
    expected = np.exp(-np.arange(8.0))
    p = np.append(expected[:6] - expected[1:7], expected[6])
    assert chisquare(counts, N * p).pvalue > FALSE_ALARM


@pytest.mark.parametrize("halves", [1, 3, 8])
def test_laplace_noise_is_the_rounded_one_exactly(halves):
    most = 2 * halves + 1
    drawn = rounded_laplace(halves, N, secure_generator()).clip(-most, most)
    x = np.arange(-most, most + 1)
    p = probability_of_rounded_laplace(x, halves)
    p[[0, -1]] += (1 - p.sum()) / 2
    counts = np.bincount(drawn + most, minlength=len(x))
    assert chisquare(counts, N * p).pvalue > FALSE_ALARM
    # Twins: half a step more of scale, and the discrete Laplace distribution, likelier to be 0.
    wider = probability_of_rounded_laplace(x, halves + 1)
    wider[[0, -1]] += (1 - wider.sum()) / 2
    assert chisquare(counts, N * wider).pvalue < FALSE_ALARM
    discrete = np.exp(-np.abs(x) / (halves / 2))
    discrete[[0, -1]] /= -np.expm1(-2 / halves)
    pvalue = chisquare(counts, N * discrete / discrete.sum()).pvalue
    assert pvalue < FALSE_ALARM or halves == 8  # there the two are too near


@given(st.integers(1, 40), st.integers(-30, 30), st.integers(1, 5))
def test_the_ratio_of_its_probabilities_is_epsilon_at_most_and_is_reached(
    halves, x, shift
):
    here, there = probability_of_rounded_laplace([x, x + shift], halves)
    epsilon = shift / (halves / 2)
    assert abs(math.log(here / there)) <= epsilon * (1 + 1e-9)
    if x >= 1:
        assert math.log(here / there) == pytest.approx(epsilon)


def test_the_ratio_of_what_is_released_is_epsilon():
    """Two neighbouring counts, 0 and 1, released often; the sign of what comes out gives most away."""
    mechanism = Laplace(noise_multiplier=0.8)
    some, more = (
        np.mean([release_numbers(mechanism, [v], sensitivity=1)[0] > 1 for _ in range(4_000)])
        for v in (0.0, 1.0)
    )  # fmt: skip
    error = math.sqrt((1 - some) / some / 4_000 + (1 - more) / more / 4_000)
    distance = abs(math.log(more / some) - 1 / 0.8) / error
    assert distance < norm.isf(FALSE_ALARM / 2)


def test_a_choice_has_exactly_its_weight():
    deficits, n = np.array([0, 3, 10, 30]), 7
    rng, runs = secure_generator(), 6_000
    counts = np.bincount(
        [choice_by_weight(deficits, n, rng) for _ in range(runs)], minlength=4
    )
    weights = np.exp(-deficits / n)
    assert chisquare(counts, runs * weights / weights.sum()).pvalue > FALSE_ALARM
    twice = np.exp(-2 * deficits / n)  # twin: epsilon instead of epsilon / 2
    assert chisquare(counts, runs * twice / twice.sum()).pvalue < FALSE_ALARM


# Numbers


def scale_of(mechanism, size, sensitivity):
    """Of the noise, by hand: what the mechanism says of the sensitivity after rounding."""
    rounding = math.sqrt(size) if isinstance(mechanism, Gaussian) else size
    least = min(sensitivity / rounding, mechanism.noise_multiplier * sensitivity)
    step = 2.0 ** math.floor(math.log2(least / 2**12))
    return step, mechanism.noise_multiplier * (sensitivity + rounding * step)


@pytest.mark.parametrize("sensitivity", [1.0, 0.03, 7e5])
@pytest.mark.parametrize("noise", [0.05, 1.7])
@pytest.mark.parametrize(
    ("kind", "law"), [(Gaussian, "norm"), (Laplace, "laplace")], ids=["normal", "laplace"]
)  # fmt: skip
def test_the_noise_has_the_law_and_the_scale(kind, law, noise, sensitivity, seed):
    mechanism = kind(noise_multiplier=noise)
    values = stream(seed, "release").uniform(-50, 50, size=(100, N // 100))
    values *= sensitivity
    out = release_numbers(mechanism, values, sensitivity=sensitivity)
    step, scale = scale_of(mechanism, N, sensitivity)
    assert out.shape == values.shape
    steps = out / step
    assert np.array_equal(steps, np.rint(steps))
    assert not np.array_equal(steps % 2, 0 * steps)  # and no coarser grid
    assert noise * sensitivity < scale < 1.0003 * noise * sensitivity
    noise_drawn = (out - np.rint(values / step) * step).ravel() / scale
    assert kstest(noise_drawn, law).pvalue > FALSE_ALARM
    assert kstest(noise_drawn / 1.1, law).pvalue < FALSE_ALARM  # twin
    error = np.var(noise_drawn**2) ** 0.5 / math.sqrt(N)
    true = 1.0 if kind is Gaussian else 2.0
    assert abs(np.mean(noise_drawn**2) - true) < 5.5 * error


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.sampled_from([Gaussian, Laplace]))  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_the_grid_does_not_depend_on_the_values(values, kind):
    mechanism = kind(noise_multiplier=1.0)
    step, _ = scale_of(mechanism, len(values), 1.0)
    out = release_numbers(mechanism, values, sensitivity=1.0) / step
    assert np.array_equal(out, np.rint(out))


def test_the_same_release_is_never_drawn_twice():
    mechanism = Gaussian(noise_multiplier=1.0)
    outs = [release_numbers(mechanism, np.zeros(50), sensitivity=1.0) for _ in range(3)]
    assert len({tuple(out) for out in outs}) == 3


def test_rounding_neighbours_stays_within_what_the_noise_is_scaled_to(seed):
    """The worst that rounding does to a distance, tried out; the twin forgets it."""
    rng = stream(seed, "rounding")
    k, sensitivity = 64, 1.0 + 1e-6  # a little more than a whole number of steps
    step, scale = scale_of(Gaussian(noise_multiplier=1.0), k, sensitivity)
    base = rng.integers(-100, 100, size=(2_000, k)) + 0.5 - 1e-9  # just below a tie
    move = np.full(k, sensitivity / math.sqrt(k))
    moved = np.rint((base * step + move) / step) - np.rint(base * step / step)
    farthest = float(np.linalg.norm(moved, axis=1).max()) * step
    assert sensitivity < farthest <= scale


def test_coordinates_have_their_own_scales_and_grids(seed):
    ranges, deviations = (1.0, 0.004, 900.0, 0.0), (2.0, 0.1, 50.0, 3.0)
    mechanism = NonSphericalGaussian(deviations=deviations, ranges=ranges)
    values = np.array([10.0, -0.3, 1e5, 7.0])
    outs = np.array([release_coordinates(mechanism, values) for _ in range(4_000)])
    for k, (r, s) in enumerate(zip(ranges, deviations, strict=True)):
        step = 2.0 ** math.floor(math.log2((min(r, s) if r else max(deviations)) / 2**12))  # fmt: skip
        steps = outs[:, k] / step
        assert np.array_equal(steps, np.rint(steps))
        # Rounding and blurring of a grid too coarse for the deviation widen the noise of the last.
        wide = math.hypot(s, 33 * step)
        z = (outs[:, k] - values[k]) / (wide if r == 0 else s)
        assert kstest(z, "norm").pvalue > FALSE_ALARM
        assert kstest(z / 1.5, "norm").pvalue < FALSE_ALARM  # twin


# Answers


@pytest.mark.parametrize(("truth", "answers"), [(0.5, 2), (0.25, 5), (0.0, 3)])
def test_answers_are_true_as_often_as_said(truth, answers):
    mechanism = RandomisedResponse(truth=truth, answers=answers)
    said = release_answers(mechanism, np.full(N, answers - 1))
    p = np.full(answers, (1 - truth) / answers)
    p[-1] += truth
    counts = np.bincount(said, minlength=answers)
    assert chisquare(counts, N * p).pvalue > FALSE_ALARM
    if truth:  # twin: the draw leaves the true answer out
        q = np.full(answers, (1 - truth) / (answers - 1))
        q[-1] = truth
        assert chisquare(counts, N * q).pvalue < FALSE_ALARM
        assert math.log(p[-1] / p[0]) == pytest.approx(mechanism.epsilon)


def test_shares_are_found_again():
    mechanism = RandomisedResponse(truth=0.5)
    true = np.arange(N) < 0.3 * N
    said = release_answers(mechanism, true)
    found = estimate_share(mechanism, said, level=1 - FALSE_ALARM)
    assert found.low < 0.3 < found.high
    assert found.high - found.low < 0.05
    assert found.value == pytest.approx(2 * said.mean() - 0.5)


# Choices


def test_good_outcomes_are_chosen_by_the_exponential_law():
    mechanism, qualities, runs = Exponential(epsilon=1.2), [3.0, 5.0, 0.5, 5.0], 5_000
    chosen = [release_choice(mechanism, qualities, sensitivity=2.0) for _ in range(runs)]  # fmt: skip
    counts = np.bincount(chosen, minlength=4)
    weights = np.exp(1.2 * np.array(qualities) / 4)
    assert chisquare(counts, runs * weights / weights.sum()).pvalue > FALSE_ALARM
    twice = weights**2  # twin: epsilon instead of epsilon / 2
    assert chisquare(counts, runs * twice / twice.sum()).pvalue < FALSE_ALARM


def test_far_qualities_and_many_outcomes_are_no_trouble():
    many = np.arange(20_000.0)
    place = release_choice(Exponential(epsilon=2.0), many, sensitivity=1.0)
    assert place > 19_900
    far = [-1e9, 0.0, -1e9]
    assert release_choice(Exponential(epsilon=0.5), far, sensitivity=1.0) == 1


# Refusals

NUMBERS = Gaussian(noise_multiplier=1.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: release_numbers(NUMBERS, [1.0, math.nan], sensitivity=1), "1 of 2 values are NaN"),
        (lambda: release_numbers(NUMBERS, [math.inf], sensitivity=1), "no noise hides"),
        (lambda: release_numbers(NUMBERS, [1e30], sensitivity=1), "cannot be represented exactly .*; clip"),
        (lambda: release_numbers(NUMBERS, [-1e300], sensitivity=1e-5), "cannot be represented exactly .*; clip"),
        (lambda: release_numbers(NUMBERS, [], sensitivity=1), "at least one"),
        (lambda: release_numbers(NUMBERS, ["a"], sensitivity=1), "not an array of numbers"),
        (lambda: release_numbers(NUMBERS, [[1], [1, 2]], sensitivity=1), "not an array of numbers"),
        (lambda: release_numbers(NUMBERS, [1j], sensitivity=1), "not an array of numbers"),
        (lambda: release_numbers(NUMBERS, [1.0], sensitivity=0), "sensitivity must be positive .* got 0"),
        (lambda: release_numbers(NUMBERS, [1.0], sensitivity=math.nan), "sensitivity must be positive .* got nan"),
        (lambda: release_numbers(NUMBERS, [1.0], sensitivity=1e-300), "smaller unit"),
        (lambda: release_numbers(Gaussian(noise_multiplier=1e12), [1.0], sensitivity=1), "less noise"),
        (lambda: release_numbers(RandomisedResponse(truth=0.5), [1], sensitivity=1), "RandomisedResponse does not add"),
        (
            lambda: release_numbers(PrivateTraining(noise_multiplier=1.0, sampling_rate=0.1, steps=2), [1], sensitivity=1),
            "PrivateTraining does not add",
        ),
        (
            lambda: release_coordinates(NonSphericalGaussian(deviations=(1.0,), ranges=(1.0,)), [1.0, 2.0]),
            "1 coordinates",
        ),
        (lambda: release_answers(RandomisedResponse(truth=0.5), [0, 2]), "1 of 2 answers are not integers from 0 to 1"),
        (lambda: release_answers(RandomisedResponse(truth=0.5), [0.5]), "number the answers"),
        (lambda: release_choice(Exponential(epsilon=1.0), [[1.0]], sensitivity=1), "one quality per outcome"),
        (lambda: release_choice(Exponential(epsilon=1.0), [math.nan], sensitivity=1), "qualities are NaN"),
    ],
)  # fmt: skip
def test_what_cannot_be_released_is_refused_in_a_sentence(make, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_every_release_takes_a_fresh_secret_key(monkeypatch):
    made = []

    def counted():
        made.append(secure_generator())
        return made[-1]

    monkeypatch.setattr(release_module, "secure_generator", counted)
    replaced = Gaussian(noise_multiplier=1.0, relation=Relation.REPLACE)
    release_numbers(replaced, [1.0], sensitivity=1.0)
    release_coordinates(NonSphericalGaussian(deviations=(1.0,), ranges=(1.0,)), [1.0])
    release_answers(RandomisedResponse(truth=0.5), [1])
    release_choice(Exponential(epsilon=1.0), [1.0], sensitivity=1.0)
    assert len(made) == len({id(generator) for generator in made}) == 4
