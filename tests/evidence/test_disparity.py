"""Differences between groups over repeats that share records: size, power, names."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, f_oneway, false_discovery_control, ttest_rel

from reticent.errors import InvalidInput
from reticent.evidence.disparity import (
    Correction,
    adjust,
    anova,
    crossed,
    pairwise,
    vulnerability_bound,
)
from reticent.run import stream

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
    judged = np.argsort(rng.random((r, n)), axis=1) < n // 2
    inside = np.eye(groups)[group]
    return (judged * x) @ inside / (judged @ inside)


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
    runs = 2_000  # 8 % would be noticed
    by_anova, by_pairs = alarms(stream(seed, "null"), 0.0, 0.5, runs)
    assert by_anova <= binom.isf(FALSE_ALARM, runs, 0.055)
    assert by_pairs <= binom.isf(FALSE_ALARM, runs, 0.055)


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
    runs, missed = 2_000, 0
    for _ in range(runs):
        pairs = pairwise(repeats(rng, 0.3), list("abc"), overlap=0.5, level=0.95)
        truth = [0.3, 0.3, 0.0]
        missed += any(
            not p.difference.low <= t <= p.difference.high
            for p, t in zip(pairs, truth, strict=True)
        )
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.055)


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
    with pytest.raises(InvalidInput, match="one row per repeat"):
        anova([[1.0, 2.0]], overlap=0.0)
    with pytest.raises(InvalidInput, match="do not differ at all"):
        anova([[1.0, 2.0]] * 4, overlap=0.0)
    with pytest.raises(InvalidInput, match="one name per column"):
        pairwise(
            np.random.default_rng(0).normal(size=(5, 2)), ["a"], overlap=0.0, level=0.9
        )
    with pytest.raises(InvalidInput, match="overlap"):
        anova(np.random.default_rng(0).normal(size=(5, 2)), overlap=1.0)


def pool(rng, *, record=0.0, model=0.0, shift=0.0, models=16, n=240, groups=3):
    """Decisions of a pool in complementary pairs; vulnerability is .15, plus shift in group 0.

    Records differ by up to ``record``, and each pair of models by up to ``model`` in each group.
    """
    group = np.arange(n) % groups
    half = rng.random((models // 2, n)) < 0.5
    masks = np.stack([half, ~half], axis=1).reshape(models, n)
    each = 0.15 + shift * (group == 0) + record * rng.uniform(-0.5, 0.5, n)
    effect = model * rng.uniform(-0.5, 0.5, (models // 2, groups))
    rate = 0.4 + np.where(masks, each + effect[:, group].repeat(2, axis=0), 0.0)
    return rng.random(masks.shape) < rate, masks, group, np.arange(models) // 2


def ask(rng, **how):
    called, masks, group, clusters = pool(rng, **how)
    return crossed(called, masks, group, clusters=clusters, level=0.95)


def test_crossed_means_and_values_by_model_equal_counting(seed):
    rng = stream(seed, "counting")
    called, masks, group, clusters = pool(rng, record=0.4, n=60)
    judged = rng.random(masks.shape) < 0.8
    judged[:, 0] = masks[:, 0]  # nobody judged it from outside: it does not count
    found = crossed(called, masks, group, judged=judged, clusters=clusters, level=0.95)
    inside, outside = (judged & masks).sum(axis=0), (judged & ~masks).sum(axis=0)
    counts = [j for j in range(60) if inside[j] >= 2 and outside[j] >= 2]
    assert 0 not in counts
    for g, mean in enumerate(found.vulnerability):
        by_hand = []
        for k in range(16):
            its = [j for j in counts if group[j] == g and judged[k, j]]
            members = [called[k, j] for j in its if masks[k, j]]
            others = [called[k, j] for j in its if not masks[k, j]]
            by_hand.append(np.mean(members) - np.mean(others))
        assert np.array(found.by_model)[:, g] == pytest.approx(by_hand)
        assert mean.value == pytest.approx(np.mean(by_hand))
    gaps = [p.difference.value for p in found.pairs]
    a, b, c = (v.value for v in found.vulnerability)
    assert gaps == pytest.approx([a - b, a - c, b - c])


def test_two_crossed_groups_give_one_answer_twice(seed):
    """With two groups Wald's test is the square of the pair's."""
    found = ask(stream(seed, "two"), record=0.4, model=0.2, groups=2)
    (pair,) = found.pairs
    assert found.p_value == pytest.approx(pair.p_value, rel=1e-6)
    assert pair.adjusted == pair.p_value


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"record": 0.4}, marks=pytest.mark.slow),
        pytest.param({"model": 0.4}, marks=pytest.mark.slow),
        {"record": 0.4, "model": 0.4, "models": 32},
    ],
    ids=str,
)
def test_crossed_false_alarms_are_rare_and_intervals_hold(how, seed):
    """Records that differ, models that differ by group, complementary pairs: all at once."""
    rng, runs = stream(seed, f"crossed {how}"), 1_000
    alarms = missed = pairs = 0
    for _ in range(runs):
        found = ask(rng, **how)
        alarms += found.p_value < 0.05
        missed += any(not e.low <= 0.15 <= e.high for e in found.vulnerability)
        pairs += any(
            not p.difference.low <= 0 <= p.difference.high for p in found.pairs
        )
    most = binom.isf(FALSE_ALARM, runs, 0.055)  # 9.2 % would be noticed
    assert alarms <= most
    assert missed <= most
    assert pairs <= most


def test_twin_an_anova_over_models_cries_wolf(seed):
    """It takes the accidents of one table of records for a difference between groups."""
    rng, runs = stream(seed, "anova twin"), 400
    plain = honest = 0
    for _ in range(runs):
        found = ask(rng, record=0.8, models=64)
        plain += anova(found.by_model, overlap=0.0).p_value < 0.05
        honest += found.p_value < 0.05
    assert honest <= binom.isf(FALSE_ALARM, runs, 0.055)
    assert plain > binom.isf(FALSE_ALARM, runs, 0.055)


def test_twin_complements_counted_as_independent_cry_wolf(seed):
    rng, runs, alarms = stream(seed, "pairs twin"), 600, 0
    for _ in range(runs):
        called, masks, group, _ = pool(rng, model=0.6, n=250, groups=5)
        alarms += crossed(called, masks, group, level=0.95).p_value < 0.05
    assert alarms > binom.isf(FALSE_ALARM, runs, 0.05)


def test_crossed_sees_a_difference_that_the_correction_by_overlap_does_not(seed):
    rng, runs = stream(seed, "crossed power"), 400
    seen = given_up = covered = 0
    for _ in range(runs):
        found = ask(rng, record=0.4, model=0.1, shift=0.2, models=32)
        seen += found.p_value < 0.05
        given_up += anova(found.by_model, overlap=0.5).p_value < 0.05
        covered += all(p.difference.low <= truth <= p.difference.high for p, truth in zip(found.pairs, (0.2, 0.2, 0.0), strict=True))  # fmt: skip
    assert seen > 0.9 * runs
    assert given_up < 0.2 * runs
    assert runs - covered <= binom.isf(FALSE_ALARM, runs, 0.055)


@given(st.integers(0, 2**32 - 1), st.permutations(range(3)))
@settings(max_examples=20, deadline=None)
def test_crossed_does_not_depend_on_the_order_of_anything(key, names):
    rng = np.random.default_rng(key)
    called, masks, group, clusters = pool(rng, record=0.4, model=0.2, n=60, models=8)
    plain = crossed(called, masks, group, clusters=clusters, level=0.95)
    model, record = rng.permutation(8), rng.permutation(60)
    other = crossed(
        called[model][:, record], masks[model][:, record], np.array(names)[group][record],
        clusters=clusters[model], level=0.95,
    )  # fmt: skip
    assert other.p_value == pytest.approx(plain.p_value, rel=1e-6)
    for g, estimate in enumerate(plain.vulnerability):
        moved = other.vulnerability[names[g]]
        assert (moved.low, moved.high) == pytest.approx((estimate.low, estimate.high))


def test_attacks_that_are_always_right_or_say_nothing_have_an_answer(seed):
    """Nothing varies then: no difference, unless one group is caught and another is not."""
    _, masks, group, _ = pool(stream(seed, "certain"), n=60)
    for called in (masks, np.zeros_like(masks), np.ones_like(masks)):
        found = crossed(called, masks, group, level=0.95)
        assert found.p_value == 1
        assert all(p.adjusted == 1 for p in found.pairs)
    found = crossed(masks & (group == 0), masks, group, level=0.95)
    assert found.p_value < 1e-6
    assert [v.value for v in found.vulnerability] == pytest.approx([1, 0, 0])


def test_pools_that_cannot_be_crossed_are_refused():
    called, masks, group, clusters = pool(np.random.default_rng(0), n=60)
    with pytest.raises(InvalidInput, match="1 groups and 16 models are too few"):
        crossed(called, masks, np.zeros(60), level=0.95)
    with pytest.raises(InvalidInput, match="three models that do not depend"):
        crossed(called, masks, group, clusters=clusters % 2, level=0.95)
    with pytest.raises(InvalidInput, match="'9' has 1 records"):
        crossed(called, masks, np.where(np.arange(60) == 7, 9, group), level=0.95)
    with pytest.raises(InvalidInput, match="one column per record"):
        crossed(called, masks, group[:-1], level=0.95)
    with pytest.raises(InvalidInput, match="one row per model"):
        crossed(called[:-1], masks, group, level=0.95)
