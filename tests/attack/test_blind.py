"""The blind baseline: valid under its null, able to see shifts of many kinds, and right about what it would have seen."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from reticent.attack import blind_baseline
from reticent.attack.blind._people import MOST_ROWS, People, sample_people
from reticent.attack.blind._permute import PERMUTATIONS, TESTS, permutation_tests
from reticent.attack.blind._properties import describe
from reticent.data import Severity, Split, table_from_frame
from reticent.run import stream
from reticent.testing import FALSE_ALARM

HALVES = (0.5, 0.5, 0.0)
ALARM = 0.01


def by_part(frame, target, reserved):
    parts = np.where(reserved, "reserved", "defender")
    return Split.by_part(table_from_frame(frame, target=target, part=parts))


# Size: random splits of one table.


def false_alarms(table, runs, seed, *, forget_units=False):
    """Return how many random splits of a table have a p-value of at most 0.05."""
    found = 0
    for run in range(runs):
        rng = stream(seed, f"blind/{run}")
        split = Split.by_unit(table, rng=rng, fractions=HALVES)
        if forget_units:
            count = len(split.defender)
            split = Split(
                defender=replace(split.defender, units=np.arange(count)),
                reserved=replace(
                    split.reserved, units=count + np.arange(len(split.reserved))
                ),
                auxiliary=None,
            )
        found += blind_baseline(split, rng=rng).p_value <= 0.05
    return found


def most(runs):
    return binom.ppf(1 - FALSE_ALARM, runs, 0.05)


def continuous(rng, n=160):
    frame = pd.DataFrame(rng.normal(size=(n, 5)), columns=[*"abcde"])
    return table_from_frame(frame, target=(frame["a"] + rng.normal(size=n) > 0) * 1)


def mixed(rng, n=120):
    frame = pd.DataFrame(
        {
            "x": np.round(rng.normal(size=n), 1),
            "town": rng.choice(["a", "b", "c", None], size=n),
        }
    )
    return table_from_frame(frame, target=rng.integers(2, size=n))


def coarse(rng, n=160):
    frame = pd.DataFrame(rng.integers(3, size=(n, 4)), columns=[*"abcd"])
    return table_from_frame(frame, target=rng.choice(3, size=n, p=[0.8, 0.15, 0.05]))


def quantity(rng, n=160):
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=[*"abc"])
    return table_from_frame(
        frame, target=frame["a"] + rng.standard_t(2, size=n), quantity=True
    )


def people_with_signatures(rng, people=40, each=4):
    """Return records by which a person is recognised: their own numbers, hardly any noise."""
    own = np.repeat(rng.normal(size=(people, 2)), each, axis=0)
    frame = pd.DataFrame(own + rng.normal(scale=1e-3, size=own.shape), columns=[*"ab"])
    units = np.repeat(np.arange(people), each)
    return table_from_frame(frame, target=units % 2, unit=units)


def uneven_people(rng):
    """Return people with one to nine records each."""
    each = rng.integers(1, 10, size=50)
    own = np.repeat(rng.normal(size=(50, 2)), each, axis=0)
    frame = pd.DataFrame(own + rng.normal(size=own.shape), columns=[*"ab"])
    units = np.repeat(np.arange(50), each)
    return table_from_frame(frame, target=units % 3, unit=units)


TABLES = (
    continuous, mixed, coarse, quantity, people_with_signatures, uneven_people,
)  # fmt: skip


@pytest.mark.parametrize("make", [mixed, people_with_signatures])
def test_random_splits_rarely_raise_an_alarm(make, seed):
    assert false_alarms(make(stream(seed, "table")), 40, seed) <= most(40)


@pytest.mark.slow
@pytest.mark.parametrize("make", TABLES)
def test_random_splits_of_every_kind_of_table_rarely_raise_an_alarm(make, seed):
    assert false_alarms(make(stream(seed, "table")), 400, seed) <= most(400)


def test_rows_taken_for_people_would_raise_too_many(seed):
    # The twin of the tests above: it fails if whole units are not kept together.
    table = people_with_signatures(stream(seed, "table"))
    assert false_alarms(table, 30, seed, forget_units=True) > most(30)


def test_properties_never_see_a_tag(seed):
    """The exactness of the test rests on this: other tags, the same properties."""
    rng = stream(seed, "tags")
    split = Split.by_unit(mixed(rng, 200), rng=rng, fractions=HALVES)
    people = sample_people(split, rng=stream(seed, "people"))
    other = replace(people, tags=rng.permutation(people.tags))
    first, second = (
        describe(these, rng=stream(seed, "properties")) for these in (people, other)
    )
    np.testing.assert_array_equal(first.values, second.values)
    assert len(first.names) == first.values.shape[1]


# Power: shifts of many kinds.


def cohort(rng, n):
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)
    return X, y, rng.choice([*"abcdefgh"], size=n)


def shifted(kind, rng, n=1500):
    """Return a split whose reserved part differs in one way.

    Each difference is at least 8 standard errors and the critical value about 4.3, so that one in ten thousand is missed at most.
    """
    X, y, town = cohort(rng, 2 * n)
    reserved = np.arange(2 * n) >= n
    some = rng.random(2 * n)
    if kind == "mean":
        X[reserved, 3] += 0.4
    elif kind == "variance":
        X[reserved, 3] *= 1.5
    elif kind == "wrong classes":
        y = np.where(reserved & (some < 0.2), 1 - y, y)
    elif kind == "interaction":
        sign = np.where(reserved, 1, -1)
        X[:, 4] = 0.3 * sign * X[:, 3] + np.sqrt(1 - 0.09) * X[:, 4]
    elif kind == "rare category":
        town = np.where(reserved & (some < 0.06), "z", town)
    elif kind == "class":
        y = np.where(reserved & (some < 0.3), 1, y)
    elif kind == "all columns a little":
        X[reserved] += 0.2
    frame = pd.DataFrame(X, columns=[*"abcde"])
    frame["town"] = town
    return by_part(frame, y, reserved)


KINDS = (
    "mean", "variance", "wrong classes", "interaction", "rare category", "class",
    "all columns a little",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_shift_of_any_kind_stops_the_audit(kind, seed):
    rng = stream(seed, f"shift/{kind}")
    split = shifted(kind, rng)
    found = blind_baseline(split, rng=rng)
    assert found.p_value <= ALARM
    finding = found.finding(at_random=False)
    assert (finding.name, finding.severity) == ("blind_baseline", Severity.STOP)
    assert "told apart" in finding.text


@pytest.mark.parametrize("kind", ["number", "category", "missing"])
def test_a_plain_shift_has_the_smallest_p_value(kind, seed):
    rng = stream(seed, f"shift/{kind}")
    n = 300
    reserved = np.arange(2 * n) >= n
    x = rng.normal(size=2 * n)
    if kind == "number":
        column = x + 1.5 * reserved
    elif kind == "category":
        column = np.where(rng.random(2 * n) < 0.2 + 0.6 * reserved, "new", "old")
    else:
        column = np.where(rng.random(2 * n) < 0.6 * reserved, np.nan, x)
    frame = pd.DataFrame({"c": column, "x": rng.normal(size=2 * n)})
    found = blind_baseline(
        by_part(frame, rng.integers(2, size=2 * n), reserved), rng=rng
    )
    assert found.p_value == TESTS / (1 + PERMUTATIONS)
    assert found.accuracy > 0.6


@pytest.mark.parametrize("kind", ["shift", "spread", "interaction"])
def test_a_quantity_that_differs_for_the_same_record_is_seen(kind, seed):
    rng = stream(seed, f"quantity/{kind}")
    n = 500
    reserved = np.arange(2 * n) >= n
    X = rng.normal(size=(2 * n, 3))
    noise = rng.normal(size=2 * n)
    y = 2 * X[:, 0] + X[:, 1] ** 2 + noise
    if kind == "shift":
        y = y + 0.6 * reserved
    elif kind == "spread":
        y = y + 1.5 * noise * reserved
    else:
        y = y + X[:, 2] * reserved
    frame = pd.DataFrame(X, columns=[*"abc"])
    parts = np.where(reserved, "reserved", "defender")
    table = table_from_frame(frame, target=y, part=parts, quantity=True)
    assert blind_baseline(Split.by_part(table), rng=rng).p_value <= ALARM


# What would have been seen.


def planted(kind, rng, size, n=300):
    """Return a split whose reserved part is shifted in a column, or has a share of wrong classes."""
    X, y, town = cohort(rng, 2 * n)
    reserved = np.arange(2 * n) >= n
    frame = pd.DataFrame(X, columns=[*"abcde"]).assign(town=town)
    if kind == "shift":
        frame["d"] += size * reserved
    else:
        y = np.where(reserved & (rng.random(2 * n) < size), 1 - y, y)
    return by_part(frame, y, reserved)


def times_seen(kind, seed, runs, *, part):
    """Return how often a part of what is stated for a table without a difference is noticed in others like it."""
    rng = stream(seed, f"alike/{kind}")
    alike = blind_baseline(planted(kind, rng, 0.0), rng=rng).visible
    stated = alike.shift if kind == "shift" else alike.wrong_classes
    seen = 0
    for run in range(runs):
        rng = stream(seed, f"planted/{kind}/{part}/{run}")
        found = blind_baseline(planted(kind, rng, part * stated), rng=rng)
        seen += found.p_value <= ALARM
    return seen


@pytest.mark.parametrize("kind", ["shift", "wrong classes"])
def test_what_is_stated_would_have_been_seen(kind, seed):
    """With a probability of 80 % or more; the tolerance allows one false alarm in a million."""
    runs = 20
    assert times_seen(kind, seed, runs, part=1.0) >= binom.ppf(FALSE_ALARM, runs, 0.8)


def test_a_third_of_what_is_stated_would_not_have_been_seen(seed):
    """The twin of the test above: the stated size is not so large that it says nothing."""
    runs = 20
    seen = times_seen("shift", seed, runs, part=1 / 3)
    assert seen < binom.ppf(FALSE_ALARM, runs, 0.8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shift", "wrong classes"])
def test_what_is_stated_would_have_been_seen_in_many_tables(kind, seed):
    runs = 200
    assert times_seen(kind, seed, runs, part=1.0) >= binom.ppf(FALSE_ALARM, runs, 0.8)
    assert times_seen(kind, seed, runs, part=0.5) < binom.ppf(FALSE_ALARM, runs, 0.8)


def test_more_people_see_smaller_differences():
    small, large = (
        blind_baseline(
            Split.by_unit(mixed(stream(0, "t"), n), rng=stream(0, "s"), fractions=HALVES),
            rng=stream(0, "b"),
        ).visible
        for n in (200, 1800)
    )  # fmt: skip
    # Nine times the people, a third of the difference; the critical value varies by its permutations.
    assert large.shift == pytest.approx(small.shift / 3, rel=0.15)
    assert large.learned_accuracy - 0.5 == pytest.approx(
        (small.learned_accuracy - 0.5) / 3, rel=0.25
    )


def test_too_few_people_see_nothing_and_say_so(monkeypatch):
    # Forty people whose records are too many to be looked at: five of either side are.
    monkeypatch.setattr("reticent.attack.blind._people.MOST_ROWS", 50)
    table = people_with_signatures(stream(0, "t"), people=40, each=5)
    split = Split.by_unit(table, rng=stream(0, "s"), fractions=HALVES)
    found = blind_baseline(split, rng=stream(0, "b"))
    assert (found.p_value, found.visible) == (1.0, None)
    assert "too few people" in found.finding(at_random=False).text


def test_the_sentence_is_as_strong_as_what_was_seen():
    table = mixed(stream(0, "t"), 200)
    split = Split.by_unit(table, rng=stream(0, "s"), fractions=HALVES)
    found = replace(blind_baseline(split, rng=stream(0, "b")), p_value=0.5)
    given, drawn = (found.finding(at_random=random).text for random in (False, True))
    assert f"{found.visible.learned_accuracy:.3f}" in given
    assert "cannot be ruled out" in given
    assert "drew the members at random" in drawn


# Its parts.


def test_same_stream_gives_the_same_answer():
    table = people_with_signatures(stream(0, "people"))
    split = Split.by_unit(table, rng=stream(0, "split"), fractions=HALVES)
    first, again = (blind_baseline(split, rng=stream(0, "blind")) for _ in range(2))
    assert first == again


def test_long_tail_of_categories_is_bearable():
    rng = stream(0, "tail")
    frame = pd.DataFrame({"code": [f"icd {k}" for k in range(800)]})
    table = table_from_frame(frame, target=rng.integers(2, size=800))
    split = Split.by_unit(table, rng=rng, fractions=HALVES)
    assert 0 < blind_baseline(split, rng=rng).p_value <= 1


def test_a_large_table_is_sampled_by_people_and_says_so():
    rng = stream(0, "large")
    people = 60_000
    units = np.repeat(np.arange(people), 2)
    frame = pd.DataFrame({"a": rng.normal(size=2 * people)})
    table = table_from_frame(frame, target=units % 2, unit=units)
    # Few non-members: all of them are kept.
    parts = np.where(units < 1000, "reserved", "defender")
    split = Split.by_part(replace(table, parts=parts))
    sample = sample_people(split, rng=rng)
    assert len(sample) <= MOST_ROWS
    assert (~sample.tags).sum() == 2000
    assert np.all(np.bincount(sample.units) == 2)
    found = blind_baseline(split, rng=rng)
    assert (found.rows, found.of_rows) == (len(sample), 2 * people)
    assert f"{len(sample):,} of 120,000 records" in found.finding(at_random=True).text


def test_one_person_with_most_of_the_records_is_cut():
    rng = stream(0, "one")
    units = np.where(np.arange(100_000) < 95_000, 0, np.arange(100_000))
    frame = pd.DataFrame({"a": rng.normal(size=100_000)})
    table = table_from_frame(frame, target=np.arange(100_000) % 2, unit=units)
    split = Split.by_unit(table, rng=rng, fractions=HALVES)
    assert len(sample_people(split, rng=rng)) <= MOST_ROWS


def some_people(tags, units):
    """Return people of one half, with nobody but two in the other."""
    n = len(tags)
    return People(
        matrix=np.zeros((n + 2, 1)), categorical=np.array([False]), names=("the target",),
        tags=np.append(tags, [True, False]), units=np.append(units, units.max() + np.array([1, 2])),
        fold=np.append(np.zeros(n, int), [1, 1]), total=n + 2,
    )  # fmt: skip


def test_p_value_agrees_with_all_permutations_of_units(seed):
    rng = stream(seed, "exact")
    scores = rng.normal(size=24) + np.repeat([0.8, 0.0], 12)
    units = np.arange(24) // 3  # eight people, three records each
    tags = np.repeat([True, False], 12)
    scores = (scores - scores.mean()).astype(np.float32)

    def difference(members):
        inside = np.isin(units, members)
        return scores[inside].mean() - scores[~inside].mean()

    observed = difference((0, 1, 2, 3))
    every = [difference(members) for members in combinations(range(8), 4)]
    exact = np.mean(np.array(every) >= observed - 1e-6)
    nothing = np.zeros((26, 1), dtype=np.float32)
    halves = scores[:, None], np.zeros((2, 1), dtype=np.float32)
    _, half, _ = permutation_tests(some_people(tags, units), nothing, halves, rng=rng)
    assert half.observed[0] * half.errors[0] == pytest.approx(observed, rel=1e-4)
    hits = round(half.p_value * (1 + PERMUTATIONS)) - 1
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], PERMUTATIONS, exact)
    assert low <= hits <= high


def test_the_critical_value_is_where_the_p_value_reaches_the_level(seed):
    rng = stream(seed, "critical")
    tags, units = np.arange(40) % 2 == 0, np.arange(40)
    values = rng.normal(size=(42, 5)).astype(np.float32)
    halves = values[:40], values[40:]
    for test in permutation_tests(some_people(tags, units), values, halves, rng=rng)[:2]:  # fmt: skip
        critical = test.critical(ALARM)
        just = replace(test, observed=np.array([critical + 2e-3]))
        below = replace(test, observed=np.array([critical - 2e-3]))
        assert just.p_value <= ALARM < below.p_value


def test_the_error_is_that_of_the_permutations(seed):
    rng = stream(seed, "errors")
    tags, units = np.arange(60) % 3 == 0, np.arange(60)
    values = rng.normal(size=(62, 1)).astype(np.float32)
    values -= values.mean()
    found, _, _ = permutation_tests(
        some_people(tags, units), values, (values[:60], values[60:]), rng=rng
    )
    # The largest of one difference is its size; a standard normal has a mean square of 1 (variance 2 over 999 draws).
    assert np.mean(found.largest**2) == pytest.approx(1.0, abs=5 * np.sqrt(2 / 999))
