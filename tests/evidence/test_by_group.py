"""Measures by group: identities with one group at a time, joint levels, small groups unnamed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from reticent.errors import InvalidInput
from reticent.evidence import (
    Joint,
    UnitGroups,
    UnitScores,
    by_group,
    clopper_pearson,
    guesses,
    ltu_accuracy,
    measure_groups,
    privacy_from_accuracy,
    split_level,
    vulnerability,
    worst_case,
)
from reticent.run import stream

FALSE_ALARM = 1e-6


def accuracy(d, r, level):
    return ltu_accuracy(d, r, level=level)


def table(rng, n=300, groups=3):
    group = rng.integers(groups, size=n)
    return rng.normal(0.5 * group), rng.normal(size=n), group, rng.permutation(group)


def test_each_group_is_what_it_is_alone_at_the_joint_level(seed):
    d, r, in_group, out_group = table(stream(seed, "alone"))
    found = by_group(accuracy, d, r, in_group, out_group, level=0.95)
    assert found.names == ("0", "1", "2")
    each = split_level(0.95, 3)
    for g, made in enumerate(found.estimates):
        alone = ltu_accuracy(d[in_group == g], r[out_group == g], level=each)
        assert (made.value, made.low, made.high) == (alone.value, alone.low, alone.high)
        assert made.level == 0.95
        assert "joint over 3 groups" in made.method
    assert found.members == tuple(np.bincount(in_group))
    assert found.nonmembers == tuple(np.bincount(out_group))


def test_columns_are_a_frame(seed):
    pandas = pytest.importorskip("pandas")
    found = by_group(accuracy, *table(stream(seed, "frame")), level=0.95)
    frame = pandas.DataFrame(found.columns())
    assert frame["group"].tolist() == ["0", "1", "2"]
    assert frame["value"].tolist() == [e.value for e in found.estimates]
    assert (frame["low"] <= frame["high"]).all()


@given(st.integers(0, 2**32 - 1), st.permutations(["b", "ä", "10"]))
@settings(max_examples=20, deadline=None)
def test_names_of_groups_do_not_change_the_difference(key, names):
    d, r, in_group, out_group = table(np.random.default_rng(key))
    plain = by_group(accuracy, d, r, in_group, out_group, level=0.9)
    names = np.array(names)
    other = by_group(accuracy, d, r, names[in_group], names[out_group], level=0.9)
    assert plain.difference() == other.difference()
    gap = plain.difference()
    values = [e.value for e in plain.estimates]
    assert gap.value == max(values) - min(values)
    assert 0 <= gap.low <= gap.value <= gap.high


def any_missed(seed, joint):
    """Runs in which some interval of eight groups misses; all members' rates are 0.3."""
    rng, runs, group = stream(seed, "joint"), 1_500, np.arange(320) % 8

    def rate(d, r, level):
        hits = int(d.sum())
        return clopper_pearson(hits, len(d), level=level if joint else 0.95)

    missed = differ = 0
    for _ in range(runs):
        d = rng.random(320) < 0.3
        found = by_group(rate, d, d, group, group, level=0.95)
        missed += any(not e.low <= 0.3 <= e.high for e in found.estimates)
        differ += found.difference().low > 0
    return missed, differ, binom.isf(FALSE_ALARM, runs, 0.05)


def test_intervals_hold_together_and_equal_groups_do_not_differ(seed):
    missed, differ, most = any_missed(seed, joint=True)
    assert missed <= most
    assert differ <= most


def test_twin_intervals_that_hold_alone_do_not_hold_together(seed):
    missed, _, most = any_missed(seed, joint=False)
    assert missed > most


def test_groups_that_differ_are_told_apart(seed):
    rng = stream(seed, "differ")
    group = np.arange(600) % 2
    found = by_group(
        accuracy, rng.normal(2.0 * group), rng.normal(size=600), group, group, level=0.999
    )  # fmt: skip
    assert found.difference().low > 0


def test_small_groups_are_not_named():
    group = np.array([0] * 30 + [1] * 30 + [2] * 19 + [3] * 30)
    other = np.array([0] * 30 + [1] * 5 + [2] * 40 + [4] * 30)
    d, r = np.arange(len(group)), np.arange(len(other))
    assert by_group(accuracy, d, r, group, other, level=0.9).names == ("0",)
    assert by_group(accuracy, d, r, group, other, level=0.9, smallest=5).names == ("0", "1", "2")  # fmt: skip
    with pytest.raises(InvalidInput, match="no group has 50 members"):
        by_group(accuracy, d, r, group, other, level=0.9, smallest=50)
    with pytest.raises(InvalidInput, match="pass one group per record"):
        by_group(accuracy, d[:-1], r, group, other, level=0.9)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(worst_case, "PERMUTATIONS", 1)


@pytest.mark.usefixtures("few")
def test_evidence_of_groups_is_that_of_each_alone(seed):
    d, r, in_group, out_group = table(stream(seed, "evidence"), groups=2)
    names = np.array(["old", "young"])
    found = measure_groups(
        UnitScores(members=d, nonmembers=r),
        UnitGroups(members=names[in_group], nonmembers=names[out_group]),
        smallest=20, joint=Joint(level=0.95, statements=4), rng=stream(seed, "measure"),
    )  # fmt: skip
    each = split_level(0.95, 4 * 2)
    # The threshold is learned over all groups, on the first draws of the same stream.
    called, called_out = guesses(d, r, rng=stream(seed, "measure"))
    assert [g.name for g in found] == ["old", "young"]
    for g, made in enumerate(found):
        inside, outside = in_group == g, out_group == g
        privacy = privacy_from_accuracy(ltu_accuracy(d[inside], r[outside], level=each))
        assert (made.privacy.low, made.privacy.high) == (privacy.low, privacy.high)
        alone = vulnerability(called[inside], called_out[outside], level=each)
        assert (made.vulnerability.low, made.vulnerability.high) == (alone.low, alone.high)  # fmt: skip
        assert (made.members, made.nonmembers) == (inside.sum(), outside.sum())
        for estimate in (made.privacy, made.vulnerability, made.worst_case):
            assert estimate.level == 0.95
            assert "joint over 2 groups" in estimate.method
        # No decision by the score does better than the worst case allows.
        assert made.vulnerability.low <= made.worst_case.high


@pytest.mark.usefixtures("few")
def test_groups_of_a_quiet_product_all_keep_their_privacy(seed):
    """Twin: with one statement's level for each of six groups some group is accused too often."""
    rng, runs = stream(seed, "quiet"), 300
    group = (np.arange(360) % 6).astype(str)
    accused = alone = 0
    for _ in range(runs):
        d, r = rng.normal(size=(2, 360))
        found = measure_groups(
            UnitScores(members=d, nonmembers=r),
            UnitGroups(members=group, nonmembers=group),
            smallest=20,
            joint=Joint(level=0.8),
            rng=rng,
        )
        accused += any(g.privacy.high < 1 for g in found)
        alone += any(
            ltu_accuracy(d[group == g], r[group == g], level=0.8).low > 0.5
            for g in np.unique(group)
        )
    # Privacy is below 1 on one side only, so half of 1 - level is at stake; twice that would be noticed.
    assert accused <= binom.isf(FALSE_ALARM, runs, 0.1)
    assert alone > binom.isf(FALSE_ALARM, runs, 0.1)


@pytest.mark.usefixtures("few")
def test_no_group_large_enough_leaves_nothing_to_say():
    rng = np.random.default_rng(0)
    group = np.array(["a"] * 10 + ["b"] * 10)
    asked = {"smallest": 11, "joint": Joint(level=0.9), "rng": rng}
    scores = UnitScores(members=np.arange(20.0), nonmembers=np.arange(20.0))
    groups = UnitGroups(members=group, nonmembers=group)
    assert measure_groups(scores, groups, **asked) == ()
