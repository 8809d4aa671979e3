"""Dividing a table: whole units, shares, strata, seeds, refusals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.data import PARTS, Split, table_from_frame
from reticent.errors import InvalidSplit
from reticent.run import stream


def make_table(n=500, *, share=0.2, units=None, parts=None, classes=2):
    """Return a table whose first records, a given share, are of the last class."""
    y = np.arange(n) % (classes - 1)
    y[: round(share * n)] = classes - 1
    frame = pd.DataFrame({"x": np.arange(n) / 3})
    return table_from_frame(frame, target=y, unit=units, part=parts)


def divide(table, seed=0, **arguments):
    return Split.by_unit(table, rng=stream(seed, "split"), **arguments)


def parts_of(split):
    return [split.defender, split.reserved, split.auxiliary]


def test_every_row_is_in_exactly_one_part():
    split = divide(make_table())
    ids = np.concatenate([part.ids for part in parts_of(split)])
    assert np.array_equal(np.sort(ids), np.arange(500))


def test_rows_keep_their_order_and_content():
    table = make_table()
    part = divide(table).defender
    assert np.all(np.diff(part.ids) > 0)
    assert np.array_equal(part.features["x"], table.features["x"].iloc[part.ids])
    assert np.array_equal(part.target, table.target[part.ids])


@pytest.mark.parametrize("fractions", [(0.4, 0.4, 0.2), (0.5, 0.3, 0.2), (0.5, 0.5, 0)])
@pytest.mark.parametrize("seed", range(3))
def test_shares_hold_within_each_class_up_to_one_unit(fractions, seed):
    table = make_table(classes=3)
    split = divide(table, seed, fractions=fractions)
    for part, fraction in zip(parts_of(split), fractions, strict=True):
        counts = np.zeros(3) if part is None else np.bincount(part.target, minlength=3)
        expected = fraction * np.bincount(table.target)
        assert np.all(np.abs(counts - expected) <= 1)


def test_unstratified_split_would_fail_the_same_bound():
    table = make_table()
    rows = stream(0, "plain").permutation(500)[:200]
    misses = abs(np.bincount(table.target[rows])[1] - 0.4 * 100)
    assert misses > 1


def test_seed_repeats_the_split_and_another_changes_it():
    table = make_table()
    first, again, other = divide(table, 1), divide(table, 1), divide(table, 2)
    assert np.array_equal(first.defender.ids, again.defender.ids)
    assert not np.array_equal(first.defender.ids, other.defender.ids)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=130, max_size=160),
    seed=st.integers(0, 2**32),
)
def test_no_unit_is_ever_in_two_parts(sizes, seed):
    units = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(units)
    y = (rng.permutation(len(sizes)) % 2)[shuffled]
    frame = pd.DataFrame({"x": rng.normal(size=len(units))})
    split = divide(table_from_frame(frame, target=y, unit=shuffled), seed)
    owned = [set(part.units) for part in parts_of(split)]
    assert sum(map(len, owned)) == len(sizes) == len(set.union(*owned))
    assert sum(map(len, parts_of(split))) == len(units)


def test_parts_of_the_table_are_taken_as_they_are():
    labels = np.resize(PARTS, 90)
    split = Split.by_part(make_table(90, share=0.5, parts=labels))
    for name, part in zip(PARTS, parts_of(split), strict=True):
        assert np.array_equal(part.ids, np.flatnonzero(labels == name))


def test_small_table_is_divided_into_two_parts_alone():
    split = divide(make_table(100))
    assert split.auxiliary is None
    assert abs(len(split.defender) - 50) <= 2
    assert divide(make_table(130)).auxiliary is not None


def test_auxiliary_part_may_be_absent():
    labels = np.resize(PARTS[:2], 60)
    assert Split.by_part(make_table(60, share=0.5, parts=labels)).auxiliary is None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ["defender", "reservd"],
            "'reservd', which is not a part; the nearest match is 'reserved'",
        ),
        (["train", "test"], "'test', which is not a part; known: 'defender'"),
        (["defender", None], r"\(missing\)"),
        (["defender"], "reserved part has 0 records but at least 20"),
    ],
)
def test_unknown_part_is_refused(labels, message):
    table = make_table(60, share=0.5, parts=np.resize(labels, 60))
    with pytest.raises(InvalidSplit, match=message):
        Split.by_part(table)


def test_table_without_parts_cannot_be_taken_by_part():
    with pytest.raises(InvalidSplit, match="has no part column"):
        Split.by_part(make_table())


def test_small_part_is_refused():
    with pytest.raises(InvalidSplit, match=r"part has 1\d records but at least 20"):
        divide(make_table(30))
    smallest = np.repeat(["defender", "reserved"], 20)
    Split.by_part(make_table(40, parts=smallest))  # 20 are enough


def test_person_on_both_sides_is_refused():
    labels = np.resize(PARTS[:2], 60)
    units = np.arange(60)
    units[3] = units[2]
    table = make_table(60, share=0.5, units=units, parts=labels)
    with pytest.raises(InvalidSplit, match="1 units are in both the defender and the"):
        Split.by_part(table)


@pytest.mark.parametrize("people", [1, 19])
def test_many_records_of_few_people_are_refused(people):
    labels = np.repeat(["defender", "reserved"], 30)
    units = np.where(labels == "defender", np.arange(60) % people, np.arange(60))
    table = make_table(60, share=0.25, units=units, parts=labels)
    with pytest.raises(InvalidSplit, match=f"defender part has records of {people} p"):
        Split.by_part(table)


def test_class_without_a_defender_record_is_refused():
    labels = np.repeat(["reserved", "defender"], 30)
    table = make_table(60, share=0.3, parts=labels)
    with pytest.raises(InvalidSplit, match="no record of the class '1'"):
        Split.by_part(table)


@pytest.mark.parametrize("fractions", [(0.4, 0.4, 0.4), (1.2, -0.4, 0.2)])
def test_shares_that_do_not_sum_to_one_are_refused(fractions):
    with pytest.raises(InvalidSplit, match="do not sum to 1"):
        divide(make_table(), fractions=fractions)
