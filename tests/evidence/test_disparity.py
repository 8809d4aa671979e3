"""Differences between groups over repeats that share records: size, power, names."""

import numpy as np
import pytest
from scipy.stats import binom, f_oneway, false_discovery_control, ttest_rel

from reticent._random import stream
from reticent.errors import InvalidInput
from reticent.evidence.disparity import (
    Correction,
    adjust,
    anova,
    pairwise,
    vulnerability_bound,
)

FALSE_ALARM = 1e-6


def test_two_groups_without_overlap_are_the_paired_t_test(seed):
    v = stream(seed, "paired").normal(size=(20, 2))
    theirs = ttest_rel(v[:, 0], v[:, 1])
    (ours,) = pairwise(v, ["a", "b"], overlap=0.0, level=0.95)
    assert ours.p_value == pytest.approx(theirs.pvalue)
    low, high = theirs.confidence_interval(0.95)
    assert (ours.difference.low, ours.difference.high) == pytest.approx((low, high))
    assert anova(v, overlap=0.0).f == pytest.approx(theirs.statistic**2)
    assert anova(v, overlap=0.0).p_value == pytest.approx(theirs.pvalue)


def test_anova_on_numbers_worked_by_hand():
    """Three repeats, three groups; sums of squares by hand: 14 between, 2/3 error."""
    v = np.array([[1.0, 2.0, 4.0], [2.0, 3.0, 5.0], [3.0, 4.0, 5.0]])
    result = anova(v, overlap=0.0)
    grand = v.mean()
    between = 3 * ((v.mean(axis=0) - grand) ** 2).sum()
    error = ((v - v.mean(axis=0) - v.mean(axis=1)[:, None] + grand) ** 2).sum()
    assert result.f == pytest.approx((between / 2) / (error / 4))
    assert result.f != pytest.approx(f_oneway(*v.T).statistic)  # repeats are matched
    assert result.eta_squared == pytest.approx(between / (between + error))
    assert 0.5 <= result.epsilon <= 1


def test_sphericity_is_one_when_differences_vary_alike_and_least_when_one_does(seed):
    rng = stream(seed, "sphericity")
    alike = rng.normal(size=(5000, 4))
    assert anova(alike, overlap=0.0).epsilon == pytest.approx(1, abs=0.02)
    one = np.column_stack([100 * rng.normal(size=5000), *rng.normal(size=(3, 5000))])
    assert anova(one, overlap=0.0).epsilon == pytest.approx(1 / 3, abs=0.02)


def repeats(rng, shift, n=600, groups=3, r=30):
    """Groups of one table, each repeat judging a random half of it."""
    group = np.arange(n) % groups
    x = rng.normal(size=n) + shift * (group == 0)
    rows = [rng.permutation(n)[: n // 2] for _ in range(r)]
    return np.array([[x[i][group[i] == g].mean() for g in range(groups)] for i in rows])


def alarms(rng, shift, overlap, runs):
    found = [
        (
            anova(v, overlap=overlap).p_value < 0.05,
            min(
                p.adjusted
                for p in pairwise(v, list("abc"), overlap=overlap, level=0.95)
            )
            < 0.05,
        )
        for v in (repeats(rng, shift) for _ in range(runs))
    ]
    return np.sum(found, axis=0)


def test_false_alarms_are_as_rare_as_stated(seed):
    runs = 300
    by_anova, by_pairs = alarms(stream(seed, "null"), 0.0, 0.5, runs)
    assert by_anova <= binom.isf(FALSE_ALARM, runs, 0.06)
    assert by_pairs <= binom.isf(FALSE_ALARM, runs, 0.06)


def test_twin_the_ordinary_tests_cry_wolf(seed):
    runs = 100
    by_anova, by_pairs = alarms(stream(seed, "twin"), 0.0, 0.0, runs)
    assert by_anova > 0.5 * runs
    assert by_pairs > 0.5 * runs


def test_a_difference_is_seen(seed):
    runs = 60
    by_anova, by_pairs = alarms(stream(seed, "power"), 0.6, 0.5, runs)
    assert by_anova > 0.9 * runs
    assert by_pairs > 0.9 * runs


def test_intervals_cover_the_truth_together(seed):
    rng = stream(seed, "coverage")
    runs, missed = 200, 0
    for _ in range(runs):
        pairs = pairwise(repeats(rng, 0.3), list("abc"), overlap=0.5, level=0.95)
        truth = [0.3, 0.3, 0.0]
        missed += any(
            not p.difference.low <= t <= p.difference.high
            for p, t in zip(pairs, truth, strict=True)
        )
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.06)


def test_corrections_go_by_their_names():
    """The thesis calls 0.0318 -> 0.0455 with 10 tests Bonferroni; it is Benjamini-Hochberg."""
    p = [0.0318] * 7 + [0.5, 0.6, 0.7]
    assert adjust(p, Correction.BENJAMINI_HOCHBERG)[0] == pytest.approx(
        0.0454, abs=2e-4
    )
    assert adjust(p, Correction.BONFERRONI)[0] == pytest.approx(0.318)
    rng = np.random.default_rng(0)
    p = rng.random(12)
    assert adjust(p, Correction.BENJAMINI_HOCHBERG) == pytest.approx(
        false_discovery_control(p)
    )
    holm = adjust(p, Correction.HOLM)
    assert (holm <= adjust(p, Correction.BONFERRONI) + 1e-12).all()
    assert (holm >= adjust(p, Correction.BENJAMINI_HOCHBERG) - 1e-12).all()
    assert adjust(p, Correction.NONE) == pytest.approx(p)


def test_holm_bounds_any_false_alarm(seed):
    rng = stream(seed, "holm")
    runs = 2000
    wrong = sum(
        adjust(rng.random(10), Correction.HOLM).min() < 0.05 for _ in range(runs)
    )
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.05)
    twin = sum(rng.random(10).min() < 0.05 for _ in range(runs))
    assert twin > binom.isf(FALSE_ALARM, runs, 0.05)


def test_what_privacy_allows():
    assert vulnerability_bound(0.0) == 0
    assert vulnerability_bound(0.0, 0.1) == pytest.approx(0.1)
    assert vulnerability_bound(50.0) == pytest.approx(1)
    assert vulnerability_bound(1.0) < np.exp(1.0) - 1
    e, delta = np.exp(2.0), 0.01
    assert vulnerability_bound(2.0, delta) == pytest.approx(
        (e - 1 + 2 * delta) / (e + 1)
    )
    with pytest.raises(InvalidInput, match="at least 0"):
        vulnerability_bound(-1.0)


def test_bad_tables_are_refused():
    with pytest.raises(InvalidInput, match="one row a repeat"):
        anova([[1.0, 2.0]], overlap=0.0)
    with pytest.raises(InvalidInput, match="do not differ at all"):
        anova([[1.0, 2.0]] * 4, overlap=0.0)
    with pytest.raises(InvalidInput, match="one name per column"):
        pairwise(
            np.random.default_rng(0).normal(size=(5, 2)), ["a"], overlap=0.0, level=0.9
        )
    with pytest.raises(InvalidInput, match="overlap"):
        anova(np.random.default_rng(0).normal(size=(5, 2)), overlap=1.0)
