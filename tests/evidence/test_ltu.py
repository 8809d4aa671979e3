"""LTU accuracy, privacy, utility: identities, the paper's examples, coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.metrics import roc_auc_score

from reticent.errors import InvalidInput
from reticent.evidence import (
    Estimate,
    individual_privacy,
    ltu_accuracy,
    pair_wins,
    privacy_from_accuracy,
    privacy_from_rounds,
    theorem_1,
    theorem_2,
    utility,
)
from reticent.run import stream

FALSE_ALARM = 1e-6
scores = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=25)


def all_pairs(d, r):
    """Play every pair, one by one: the naive second implementation."""
    wins = np.array([[1.0 if a > b else 0.5 if a == b else 0.0 for b in r] for a in d])
    return wins.mean(), wins.mean(axis=1), wins.mean(axis=0)


@given(scores, scores)
@settings(max_examples=100, deadline=None)
def test_equals_playing_every_pair_with_ties(d, r):
    wins = pair_wins(d, r)
    accuracy, members, nonmembers = all_pairs(d, r)
    assert wins.accuracy == pytest.approx(accuracy)
    assert wins.members == pytest.approx(members)
    assert wins.nonmembers == pytest.approx(nonmembers)
    tags = np.repeat([1, 0], [len(d), len(r)])
    assert wins.accuracy == pytest.approx(roc_auc_score(tags, [*d, *r]))


def test_delong_variance_equals_the_definition(seed):
    rng = stream(seed, "delong")
    d, r = rng.normal(0.5, 1, 30), rng.normal(0, 1, 40)
    _, v10, v01 = all_pairs(d, r)
    variance = v10.var(ddof=1) / 30 + v01.var(ddof=1) / 40
    estimate = ltu_accuracy(d, r, level=0.95)
    a = estimate.value
    half = np.log(estimate.high / (1 - estimate.high)) - np.log(a / (1 - a))
    assert half == pytest.approx(1.959964 * np.sqrt(variance) / (a * (1 - a)), rel=1e-5)


@pytest.mark.parametrize(("c", "ninths"), [(0.6, 8), (0.8, 7), (0.95, 6)])
def test_the_three_by_three_example_of_appendix_c(c, ninths):
    f_d, f_r = [0.1, 0.3, c], [0.4, 0.7, 0.9]
    accuracy = ltu_accuracy([-v for v in f_d], [-v for v in f_r], level=0.95).value
    assert 9 * accuracy == pytest.approx(ninths)
    # Per-record accuracy at the threshold 0.5 is 2/3 in all three cases.
    right = sum(v < 0.5 for v in f_d) + sum(v > 0.5 for v in f_r)
    assert right / 6 == pytest.approx(2 / 3)


def test_example_1_of_appendix_b_theorem_2_sees_what_theorem_1_does_not():
    d, r = [0.0, 0.5], [0.3, 0.4]
    p_r, p_d, first = theorem_1(d, r)
    e_r, e_d, second = theorem_2(d, r)
    assert p_r - p_d == 0
    assert first == 0.5
    assert e_r - e_d == pytest.approx(0.1)
    assert second == pytest.approx(0.55)


def test_example_2_of_appendix_b_the_other_way_round():
    # Margins of Table 3; loss of r and of d are independent there.
    d = np.repeat([0.0, 0.5, 1.0], [60, 30, 10])
    r = np.repeat([0.0, 0.5, 1.0], [40, 40, 20])
    p_r, p_d, _ = theorem_1(d, r)
    e_r, e_d, _ = theorem_2(d, r)
    assert p_r - p_d == pytest.approx(0.22)
    assert e_r - e_d == pytest.approx(0.15)


def test_theorem_1_is_the_accuracy_over_all_pairs(seed):
    rng = stream(seed, "theorem 1")
    loss_d, loss_r = rng.integers(4, size=50), rng.integers(5, size=60)
    _, _, accuracy = theorem_1(loss_d, loss_r)
    assert accuracy == pytest.approx(ltu_accuracy(-loss_d, -loss_r, level=0.9).value)


def test_theorems_agree_for_the_zero_one_loss(seed):
    rng = stream(seed, "zero one")
    d, r = rng.random(200) < 0.1, rng.random(300) < 0.3
    assert theorem_1(d, r)[2] == pytest.approx(theorem_2(d, r)[2])


def test_theorem_2_needs_bounded_losses():
    with pytest.raises(InvalidInput, match=r"losses in \[0, 1\]"):
        theorem_2([0.0, 2.0], [0.5])


def test_privacy_is_the_smaller_of_the_two_not_the_larger():
    worse = Estimate(value=0.4, low=0.3, high=0.45, level=0.9, method="x")
    assert privacy_from_accuracy(worse).value == 1
    certain = Estimate(value=1.0, low=0.9, high=1.0, level=0.9, method="x")
    assert privacy_from_accuracy(certain).value == 0
    assert privacy_from_accuracy(certain).high == pytest.approx(0.2)


def test_utility_and_its_error_bar():
    made = utility(900, 1000, classes=10, level=0.95)
    assert made.value == pytest.approx((10 * 0.9 - 1) / 9)
    # Half-width near c/(c-1) * 1.96 * sqrt(acc (1-acc) / n); the paper lacks the 1/(c-1).
    bar = 10 / 9 * 1.96 * np.sqrt(0.9 * 0.1 / 1000)
    assert (made.high - made.low) / 2 == pytest.approx(bar, rel=0.06)
    assert utility(500, 1000, classes=2, level=0.95).value == 0
    assert utility(0, 10, classes=2, level=0.95).value == -1


def test_utility_counts_people_when_rows_repeat():
    wide = utility(900, 1000, classes=2, level=0.95, independent=100)
    narrow = utility(900, 1000, classes=2, level=0.95)
    assert wide.value == narrow.value
    assert wide.high - wide.low > 2.5 * (narrow.high - narrow.low)


def test_individual_privacy_of_the_most_exposed_is_zero():
    wins = pair_wins([9.0, 0.0], [1.0, 2.0, 3.0])
    assert individual_privacy(wins).tolist() == [0.0, 1.0]


def test_a_perfect_attack_still_has_an_interval():
    estimate = ltu_accuracy(np.arange(10) + 10, np.arange(10), level=0.95)
    assert estimate.value == 1
    assert estimate.low == pytest.approx(0.025**0.1)
    assert privacy_from_rounds(10, 10, level=0.95).high == pytest.approx(
        2 * (1 - 0.025**0.1)
    )


def coverage(make, truth, runs, level):
    missed = 0
    for k in range(runs):
        d, r = make(k)
        estimate = ltu_accuracy(d, r, level=level)
        missed += not estimate.low <= truth <= estimate.high
    return missed


@pytest.mark.parametrize(
    ("shift", "sizes"), [(0.0, (60, 60)), (1.0, (60, 80)), (2.5, (150, 150))]
)
def test_the_interval_covers_the_truth(shift, sizes, seed):
    from scipy.special import ndtr

    runs, level = 4000, 0.95
    truth = ndtr(shift / np.sqrt(2))
    rng = stream(seed, f"coverage {shift}")
    missed = coverage(
        lambda _: (rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1])),
        truth,
        runs,
        level,
    )
    # One false alarm in a million at a true miss rate of at most 6 %; 8 % would be noticed.
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.06)


def test_twin_pairs_counted_as_independent_do_not_cover(seed):
    """The error bars of counting |D||R| pairs as trials miss far too often."""
    runs, m = 300, 60
    rng = stream(seed, "twin")
    missed = 0
    for _ in range(runs):
        wins = pair_wins(rng.normal(0, 1, m), rng.normal(0, 1, m))
        naive = 1.96 * np.sqrt(0.25 / m**2)
        missed += abs(wins.accuracy - 0.5) > naive
    assert missed > binom.ppf(1 - FALSE_ALARM, runs, 0.07)


def test_scores_that_cannot_be_ranked_are_refused():
    with pytest.raises(InvalidInput, match="1 of 2 scores of members are NaN"):
        pair_wins([np.nan, 1.0], [0.0])
    with pytest.raises(InvalidInput, match="nothing to compare"):
        pair_wins([], [0.0])
    with pytest.raises(InvalidInput, match="pass the scores of non-members too"):
        ltu_accuracy([1.0], level=0.9)


def test_a_million_against_a_million_fits_into_a_gigabyte(seed):
    import tracemalloc

    rng = stream(seed, "million")
    d, r = rng.normal(0.1, 1, 1_000_000), rng.normal(0, 1, 1_000_000)
    tracemalloc.start()
    wins = pair_wins(d, r)
    estimate = ltu_accuracy(wins, level=0.95)
    individual_privacy(wins)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6
    assert estimate.low < 0.5282 < estimate.high  # Phi(0.1 / sqrt 2)
