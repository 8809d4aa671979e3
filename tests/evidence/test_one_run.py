"""The bound from one training with canaries: the theorem by linear programming, size, power, and what goes wrong without it."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from reticent.account import analytic_noise, gaussian_epsilon
from reticent.errors import InvalidInput
from reticent.evidence import (
    Ends,
    epsilon_lower_bound,
    guess_counts,
    mu_lower_bound,
    one_run_ceiling,
    one_run_lower_bound,
    one_run_p_value,
)
from reticent.evidence.one_run import _Look, _typical
from reticent.run import stream

FALSE_ALARM = 1e-6
DELTA = 1e-5


def by_linear_programming(right, made, canaries, mu):
    """Maximise the chance of so many right guesses under the theorem's constraints, each concave curve by its tangents."""
    i = np.arange(made + 1)
    x = np.unique(np.concatenate([np.logspace(-9, 0, 400), np.linspace(0.001, 1, 400)]))
    x = x[x < 1]
    t, slope = ndtr(ndtri(x) + mu), np.exp(-mu * ndtri(x) - mu**2 / 2)
    rows, limits = [], []
    for j in range(1, made + 1):
        above = np.where(i >= j, i / canaries, 0.0)
        below = np.where(i >= j - 1, (made - i) / canaries, 0.0)
        for at, value, rise in zip(x, t, slope, strict=True):
            if rise < 1e6:  # steeper tangents are ill-conditioned and hardly bind
                rows.append(above - rise * below)
                limits.append(value - rise * at)
    found = linprog(
        -(i >= right).astype(float),
        A_ub=np.array(rows),
        b_ub=np.array(limits),
        A_eq=np.ones((1, made + 1)),
        b_eq=[1.0],
        method="highs",
    )
    return -found.fun


@pytest.mark.parametrize(
    ("right", "made", "canaries", "mu"),
    [(9, 10, 20, 0.5), (8, 10, 10, 0.8), (6, 6, 40, 0.3), (7, 8, 12, 0.0)],
)
@pytest.mark.parametrize("ends", [Ends.BOTH, Ends.HIGHEST])
def test_the_recursion_is_the_optimum_of_the_theorem(right, made, canaries, mu, ends):
    halved = canaries if ends is Ends.BOTH else canaries / 2
    exact = by_linear_programming(right, made, halved, mu)
    found = one_run_p_value(right, made, canaries, mu=mu, ends=ends)
    assert found == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("right", [36, 40, 45, 50])
def test_without_a_leak_guesses_are_coins(right):
    """With mu 0 the truth is binomial; the bound is above it, and not by much."""
    coins = binom.sf(right - 1, 64, 0.5)
    assert coins <= one_run_p_value(right, 64, 1000, mu=0.0) <= 1.4 * coins


@settings(max_examples=40, deadline=None)
@given(st.integers(20, 300), st.integers(0, 300), st.integers(0, 300), st.floats(0, 3))
def test_more_right_guesses_are_less_likely_and_more_leak_makes_them_likelier(
    canaries, some, others, mu
):
    made = 2 + some % (canaries - 1)
    right = others % made
    here = one_run_p_value(right, made, canaries, mu=mu)
    assert one_run_p_value(right + 1, made, canaries, mu=mu) <= here * (1 + 1e-6)
    assert here <= one_run_p_value(right, made, canaries, mu=mu + 0.1) * (1 + 1e-6)


def test_the_chance_holds_for_two_canaries_counted_by_hand():
    """Two canaries with independent noise, guesses by the sign: every outcome can be counted."""
    mu = 0.7
    a = ndtr(mu / 2)
    both, one = a**2, a**2 + 2 * a * (1 - a)
    assert both <= one_run_p_value(2, 2, 2, mu=mu)
    assert one <= one_run_p_value(1, 2, 2, mu=mu)
    # "In" for the higher score: right if both are in, or if one is and the noise does not turn them round.
    higher = 1 / 4 + ndtr(mu / math.sqrt(2)) / 2
    assert higher <= one_run_p_value(1, 1, 2, mu=mu, ends=Ends.HIGHEST)


def test_the_perfect_guesser_is_that_of_the_source():
    """Noise 1, 100,000 canaries, 1,500 guesses: 1,429 right ones (arXiv:2410.22235, appendix B)."""
    look = _Look(ends=Ends.BOTH, made=1500, error=1.0)
    assert _typical(look, 100_000, 1.0) == 1429


def audits(mu, canaries, number, rng):
    for _ in range(number):
        coins = rng.random(canaries) < 0.5
        yield rng.normal(mu * coins, 1.0), coins


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0])
def test_the_bound_seldom_exceeds_the_truth(epsilon, seed):
    mu = 1 / analytic_noise(epsilon, DELTA) if epsilon else 0.0
    runs = 500
    bounds = [
        one_run_lower_bound(scores, coins, level=0.95, delta=DELTA).low
        for scores, coins in audits(mu, 300, runs, stream(seed, f"one/{epsilon}"))
    ]
    above = int(np.sum(np.array(bounds) > epsilon + 1e-9))
    assert above <= binom.ppf(1 - FALSE_ALARM, runs, 0.05)


def flagged(chance, accuracy, canaries, rng):
    """A training that tells nothing most of the time, and else tells each coin with an accuracy."""
    coins = rng.random(canaries) < 0.5
    if rng.random() >= chance:
        return rng.normal(size=canaries), coins
    told = np.where(rng.random(canaries) < accuracy, coins, ~coins)
    return told + 0.1 * rng.random(canaries), coins


@pytest.mark.parametrize(("chance", "accuracy"), [(0.2, 0.9), (0.04, 0.95)])
def test_canaries_that_are_betrayed_together_do_not_deceive_it(chance, accuracy, seed):
    """The flagged training is exactly mu-Gaussian private at two points of its curve, and more private elsewhere."""
    mu = ndtri(chance * accuracy) - ndtri(chance * (1 - accuracy))
    truth, runs = gaussian_epsilon(mu, DELTA), 500
    rng = stream(seed, f"flagged/{chance}")
    made = [flagged(chance, accuracy, 400, rng) for _ in range(runs)]
    ours = [one_run_lower_bound(s, c, level=0.95, delta=DELTA).low for s, c in made]
    limit = binom.ppf(1 - FALSE_ALARM, runs, 0.05)
    assert np.sum(np.array(ours) > truth) <= limit
    if chance == 0.2:
        # The twin takes canaries of one run for independent runs.
        twin = [mu_lower_bound(s[c], s[~c], level=0.95).low for s, c in made]
        assert np.sum(np.array(twin) > mu) > limit


@pytest.mark.parametrize(
    ("epsilon", "canaries", "least"),
    # Medians of benchmarks/tightness.py are 2.2, 1.2 and 5.1; of Theorem 5.2, 1.1, 0.6 and 2.4.
    [(4.0, 1000, 1.5), (2.0, 5000, 0.85), (8.0, 5000, 4.5)],
)
def test_it_shows_more_than_theorem_5_2(epsilon, canaries, least, seed):
    mu, runs = 1 / analytic_noise(epsilon, DELTA), 15
    ours, theirs = [], []
    for scores, coins in audits(mu, canaries, runs, stream(seed, f"power/{epsilon}")):
        ours.append(one_run_lower_bound(scores, coins, level=0.95, delta=DELTA).low)
        plain = epsilon_lower_bound(
            scores[coins],
            scores[~coins],
            level=0.95,
            delta=DELTA,
            prior=0.5,
            rng=stream(seed, "ties"),
        )
        theirs.append(plain.low)
    assert least < np.median(ours) < epsilon
    assert np.median(ours) > 1.25 * np.median(theirs)
    typical = one_run_ceiling(canaries, level=0.95, delta=DELTA, truth=mu)
    spread = 3 * np.std(ours)
    assert abs(np.median(ours) - typical) < spread


def test_who_betrays_one_side_only_is_shown_by_guesses_of_one_kind(seed):
    """Of the canaries that are out every third one scores as those that are in: guesses "in" err, guesses "out" do not."""
    rng = stream(seed, "one side")
    coins = rng.random(1000) < 0.5
    scores = np.where(coins | (rng.random(1000) < 1 / 3), 1.0, 0.0)
    both, _, _, lowest = guess_counts(scores, coins)
    assert lowest.right == lowest.made
    assert both.right < both.made
    found = one_run_lower_bound(scores, coins, level=0.95, delta=DELTA).low
    few = one_run_p_value(
        both.right, both.made, 1000, mu=1 / analytic_noise(found, DELTA)
    )
    assert found > 5
    assert few > 0.05


def test_the_ceiling_is_reached_by_a_guesser_that_is_never_wrong(seed):
    coins = stream(seed, "ceiling").permutation(np.arange(1000) < 500)
    found = one_run_lower_bound(coins * 1.0, coins, level=0.95, delta=DELTA)
    assert found.low == pytest.approx(one_run_ceiling(1000, level=0.95, delta=DELTA))
    assert found.high == np.inf
    assert found.covers == "trainer"


def test_half_of_the_guesses_go_to_each_end():
    """Counted by hand: of 100 canaries 60 guesses, 30 at each end, then all, then a quarter at one end."""
    scores = np.arange(100.0)
    coins = np.arange(100) % 3 > 0
    looks = guess_counts(scores, coins)
    few, all_, highest, lowest = looks
    assert [look.made for look in looks] == [60, 100, 25, 25]
    assert few.right == coins[70:].sum() + (~coins[:30]).sum()
    assert all_.right == coins[50:].sum() + (~coins[:50]).sum()
    assert (highest.ends, highest.right) == (Ends.HIGHEST, coins[75:].sum())
    assert (lowest.ends, lowest.right) == (Ends.LOWEST, (~coins[:25]).sum())
    assert sum(look.error for look in looks) == pytest.approx(1.0)


def test_tied_scores_are_taken_in_the_order_of_canaries():
    coins = np.arange(100) >= 50
    for look in guess_counts(np.zeros(100), coins):
        assert look.right == look.made
    for look in guess_counts(np.zeros(100), ~coins):
        assert look.right == 0
    # A guesser with nothing but ties shows nothing on coins that do not know the order.
    rng = np.random.default_rng(0)
    found = one_run_lower_bound(
        np.zeros(1000), rng.random(1000) < 0.5, level=0.999, delta=DELTA
    )
    assert found.low == 0.0


@pytest.mark.parametrize(
    ("scores", "coins", "words"),
    [
        ([1.0, 2.0], [True], "one boolean per canary"),
        ([1.0, 2.0], [1, 0], "one boolean per canary"),
        (np.zeros(100), np.ones(100, dtype=bool), "fair coins hardly ever"),
        ([1.0, np.nan], [True, False], "are NaN"),
    ],
)
def test_what_it_refuses(scores, coins, words):
    with pytest.raises(InvalidInput, match=words):
        one_run_lower_bound(scores, coins, level=0.95, delta=DELTA)


def test_impossible_counts_are_refused():
    for counts in itertools.product((5, 3), (4,), (3,)):
        with pytest.raises(InvalidInput, match="are not possible"):
            one_run_p_value(*counts, mu=1.0)
    with pytest.raises(InvalidInput, match="at least 1 and truth at least 0"):
        one_run_ceiling(0, level=0.95, delta=DELTA)


def test_a_small_p_value_keeps_its_digits():
    p = one_run_p_value(64, 64, 64, mu=0.0)
    assert p == pytest.approx(0.5**64, rel=1e-3)
