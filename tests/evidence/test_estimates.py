"""Proportions, best-of, vulnerability, epsilon, calibration, power."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom, binomtest

from reticent.errors import InvalidInput
from reticent.evidence import (
    Estimate,
    best_of,
    calibration,
    clopper_pearson,
    epsilon_ceiling,
    epsilon_lower_bound,
    guesses,
    ltu_accuracy,
    records_to_resolve,
    records_to_settle,
    smallest_visible_leak,
    split_level,
    tpr_at_fpr,
    vulnerability,
)
from reticent.run import stream

FALSE_ALARM = 1e-6


@given(st.integers(1, 200), st.data(), st.sampled_from([0.8, 0.95, 0.999]))
@settings(max_examples=60, deadline=None)
def test_clopper_pearson_equals_scipy(trials, data, level):
    hits = data.draw(st.integers(0, trials))
    theirs = binomtest(hits, trials).proportion_ci(level, method="exact")
    ours = clopper_pearson(hits, trials, level=level)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_an_estimate_must_lie_in_its_interval():
    with pytest.raises(InvalidInput, match="outside its interval"):
        Estimate(value=0.5, low=0.6, high=0.7, level=0.9, method="x")
    with pytest.raises(InvalidInput, match="not a proportion"):
        clopper_pearson(11, 10, level=0.9)


def best_of_coverage(seed, pay):
    """Share of runs in which the interval of the best of 15 null attacks misses 1/2."""
    rng = stream(seed, "best of")
    runs, attacks, missed = 1_000 if pay else 100, 15, 0
    for _ in range(runs):
        level = split_level(0.95, attacks) if pay else 0.95
        made = [
            ltu_accuracy(rng.normal(size=80), rng.normal(size=80), level=level)
            for _ in range(attacks)
        ]
        best = best_of(made, level=0.95)
        missed += not best.low <= 0.5 <= best.high
    return missed, binom.isf(FALSE_ALARM, runs, 0.05)


def test_the_best_of_several_attacks_pays_for_the_choice(seed):
    missed, most = best_of_coverage(seed, pay=True)
    assert missed <= most


def test_twin_the_best_of_several_attacks_without_paying_misses(seed):
    missed, most = best_of_coverage(seed, pay=False)
    assert missed > most


def test_best_of_nothing_is_refused():
    with pytest.raises(InvalidInput, match="no estimate"):
        best_of([], level=0.9)


def test_vulnerability_is_tpr_plus_tnr_minus_one_and_at_most_one():
    perfect = vulnerability([True] * 50, [False] * 50, level=0.95)
    assert perfect.value == 1  # with the factors 2/n of the source it would be 3
    assert perfect.low > 0.85
    tpr, tnr = 0.8, 0.7
    made = vulnerability([True] * 8 + [False] * 2, [True] * 3 + [False] * 7, level=0.95)
    assert made.value == pytest.approx(tpr + tnr - 1)


def test_vulnerability_interval_covers(seed):
    rng = stream(seed, "newcombe")
    runs, missed = 8_000, 0  # 6.2 % would be noticed
    for _ in range(runs):
        e = vulnerability(rng.random(60) < 0.6, rng.random(60) < 0.4, level=0.95)
        missed += not e.low <= 0.2 <= e.high
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.05)


def test_learned_thresholds_do_not_flatter_noise(seed):
    """Cross-fitted guesses on noise have vulnerability 0; on the same records they would not."""
    rng = stream(seed, "guesses")
    honest, flattered = [], []
    for _ in range(300):
        d, r = rng.normal(size=40), rng.normal(size=40)
        a, b = guesses(d, r, rng=rng)
        honest.append(a.mean() - b.mean())
        cuts = np.concatenate([d, r])
        flattered.append(max((d >= c).mean() - (r >= c).mean() for c in cuts))
    error = np.std(honest) / np.sqrt(300)
    assert abs(np.mean(honest)) < 4.9 * error  # two-sided, one false alarm in a million
    assert np.mean(flattered) > 0.1
    with pytest.raises(InvalidInput, match="cannot be halved"):
        guesses([1.0], [0.0, 1.0], rng=rng)


def randomised_response(rng, n, epsilon):
    """Scores of an attack on pure epsilon-DP randomised response: the tag, told or lied."""
    truth = expit(epsilon)
    d = np.where(rng.random(n) < truth, 1.0, 0.0) + 1e-9 * rng.random(n)
    r = np.where(rng.random(n) < truth, 0.0, 1.0) + 1e-9 * rng.random(n)
    return d, r


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_the_epsilon_bound_exceeds_the_truth_at_most_as_often_as_it_says(epsilon, seed):
    rng = stream(seed, f"epsilon {epsilon}")
    runs, exceeded, shown = 1_500, 0, []
    for _ in range(runs):
        bound = epsilon_lower_bound(*randomised_response(rng, 500, epsilon), level=0.95)
        exceeded += bound.low > epsilon
        shown.append(bound.low)
    assert exceeded <= binom.isf(FALSE_ALARM, runs, 0.05)
    if epsilon:  # power: most of the truth is shown
        assert np.median(shown) > 0.6 * epsilon


def test_twin_the_largest_ratio_over_thresholds_exceeds_zero_on_noise(seed):
    """Maximising log(TPR/FPR) without paying finds an epsilon in pure noise nearly always."""
    rng = stream(seed, "unpaid epsilon")
    runs, positive = 100, 0
    for _ in range(runs):
        d, r = rng.normal(size=200), rng.normal(size=200)
        hits = np.array([(d > cut).sum() for cut in np.sort(r)[:-1]])
        false = np.arange(len(r) - 1, 0, -1)
        # Katz's 95 % limit below log(TPR / FPR) at one threshold fixed beforehand.
        spread = np.sqrt(np.maximum(1 / np.maximum(hits, 1) + 1 / false - 2 / 200, 0))
        best = np.max(np.log(np.maximum(hits, 1) / false) - 1.645 * spread)
        positive += best > 0
    assert positive > binom.isf(FALSE_ALARM, runs, 0.05)


def test_a_delta_only_lowers_the_bound():
    d, r = np.arange(200) + 200.0, np.arange(200.0)
    pure = epsilon_lower_bound(d, r, level=0.95).low
    some = epsilon_lower_bound(d, r, level=0.95, delta=1e-5).low
    more = epsilon_lower_bound(d, r, level=0.95, delta=1e-3).low
    assert pure > some > more >= 0
    assert pure == pytest.approx(epsilon_ceiling(200, 200, level=0.95))
    with pytest.raises(InvalidInput, match="delta"):
        epsilon_lower_bound(d, r, level=0.95, delta=1.0)


def test_the_bound_knows_unequal_sides(seed):
    """Nine members to one non-member: guessing 'member' is right often without any leak."""
    rng = stream(seed, "unequal")
    runs = 1_500
    exceeded = sum(
        epsilon_lower_bound(rng.normal(size=450), rng.normal(size=50), level=0.95).low
        > 0
        for _ in range(runs)
    )
    assert exceeded <= binom.isf(FALSE_ALARM, runs, 0.05)


def calibrated(rng, n):
    p = rng.beta(2, 2, n)
    return p, rng.random(n) < p


def test_calibration_test_has_its_size_and_power(seed):
    rng = stream(seed, "calibration")
    runs = 2_000  # 8 % would be noticed
    rejected = sum(
        calibration(*calibrated(rng, 400), level=0.95).p_value < 0.05
        for _ in range(runs)
    )
    assert rejected <= binom.isf(FALSE_ALARM, runs, 0.055)
    seen = 0
    for _ in range(100):  # overconfident predictions: the plausible wrong answer
        p, y = calibrated(rng, 400)
        odds = np.log(p / (1 - p))
        seen += calibration(expit(2 * odds), y, level=0.95).p_value < 0.05
    assert seen > 90


def test_calibration_bins_cover_the_diagonal_together(seed):
    rng = stream(seed, "bins")
    runs, missed = 1_000, 0
    for _ in range(runs):
        curve = calibration(*calibrated(rng, 1000), level=0.95)
        missed += any(
            not b.observed.low <= b.predicted <= b.observed.high for b in curve.bins
        )
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.05)
    with pytest.raises(InvalidInput, match=r"must lie in \[0, 1\]"):
        calibration([2.0, 0.1], [True, False], level=0.9)


def test_the_smallest_visible_leak_is_seen_with_its_power(seed):
    n, level = 200, 0.95
    leak = smallest_visible_leak(n, n, level=level)
    shift = np.sqrt(2) * _ppf(leak)
    rng = stream(seed, "power")
    runs = 500
    seen = sum(
        ltu_accuracy(rng.normal(shift, 1, n), rng.normal(0, 1, n), level=level).low
        > 0.5
        for _ in range(runs)
    )
    assert (
        binom.ppf(FALSE_ALARM, runs, 0.77) <= seen <= binom.isf(FALSE_ALARM, runs, 0.83)
    )


def _ppf(p):
    from scipy.special import ndtri

    return ndtri(p)


def test_so_many_records_settle_a_limit(seed):
    rng = stream(seed, "settle")
    first = ltu_accuracy(rng.normal(0.5, 1, 100), rng.normal(0, 1, 100), level=0.95)
    needed = records_to_settle(first, 0.5, 100)
    assert needed is not None
    again = ltu_accuracy(
        rng.normal(0.5, 1, 4 * needed), rng.normal(0, 1, 4 * needed), level=0.95
    )
    assert again.low > 0.5
    flat = Estimate(value=0.5, low=0.4, high=0.6, level=0.95, method="x")
    assert records_to_settle(flat, 0.5, 100) is None


def test_so_many_records_resolve_a_low_rate(seed):
    n = records_to_resolve(0.001, 0.01, level=0.95)
    rng = stream(seed, "resolve")
    enough = tpr_at_fpr(
        rng.normal(size=4 * n), rng.normal(size=4 * n), fpr=0.001, level=0.95
    )
    too_few = tpr_at_fpr(
        rng.normal(size=n // 5), rng.normal(size=n // 5), fpr=0.001, level=0.95
    )
    assert enough.high <= 0.01 < too_few.high
