"""Findings about a divided table: each by its name, and none on clean data."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from reticent.data import (
    Severity,
    Split,
    check_columns,
    check_groups,
    check_overlap,
    check_split,
    table_from_frame,
)
from reticent.data._findings import _could_be_cut
from reticent.run import stream

N = 200


def make_split(**columns):
    """Return a split of clean records, with what a test adds to them."""
    rng = stream(0, "findings")
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "town": rng.choice(["Oslo", "Bergen", "Tromsø"], size=N),
            "member": rng.random(N) < 0.5,
        }
    )
    extra = {k: columns.pop(k) for k in ("group", "target", "unit") if k in columns}
    arguments = {"target": np.arange(N) % 2, **extra}
    parts = np.repeat(["defender", "reserved"], N // 2)
    table = table_from_frame(frame.assign(**columns), part=parts, **arguments)
    return Split.by_part(table)


def whole(split):
    return split.defender.join(split.reserved)


def only(findings):
    (finding,) = findings
    return finding.name, finding.severity


def test_clean_data_have_no_finding():
    (overview,) = check_split(make_split(), smallest_group=20)
    assert overview.name == "columns"  # which says what the columns are taken for


def test_identical_records_on_both_sides_are_counted():
    split = make_split()
    copied = np.r_[np.arange(7), np.arange(7, 100)]
    reserved = split.reserved.take(copied)
    twins = split.defender.take(np.arange(7))
    frame = pd.concat([twins.features, reserved.features.iloc[7:]])
    target = np.r_[twins.target, reserved.target[7:]]
    both = pd.concat([split.defender.features, frame])
    table = table_from_frame(
        both,
        target=np.r_[split.defender.target, target],
        part=np.repeat(["defender", "reserved"], 100),
    )
    (finding,) = check_overlap(Split.by_part(table))
    assert (finding.name, finding.severity) == ("identical_records", Severity.WARNING)
    assert "7 of 100 defender records (7.0%)" in finding.text


def test_records_that_differ_by_the_target_alone_are_not_identical():
    parts = np.repeat(["defender", "reserved"], 40)
    target = np.r_[np.resize([0, 1], 40), np.resize([1, 0], 40)]
    frame = pd.DataFrame({"x": np.tile(np.arange(40.0), 2)})
    table = table_from_frame(frame, target=target, part=parts)
    assert check_overlap(Split.by_part(table)) == []


@pytest.mark.parametrize("value", [3.5, "same", np.nan])
def test_constant_column_is_noted(value):
    findings = check_columns(whole(make_split(extra=[value] * N)))
    assert only(findings) == ("constant_column", Severity.NOTE)
    assert "'extra'" in findings[0].text


@pytest.mark.parametrize(
    "column", [np.arange(N) + 7_000, [f"patient {i}" for i in range(N)]]
)
def test_identifier_is_warned_of(column):
    findings = check_columns(whole(make_split(number=column)))
    assert only(findings) == ("identifier_column", Severity.WARNING)
    assert "--unit" in findings[0].text


def test_measurement_with_a_fraction_is_no_identifier():
    assert check_columns(whole(make_split(weight=np.arange(N) / 7))) == []


@pytest.mark.parametrize(
    "column",
    [
        np.where(np.arange(N) % 2, "ill", "well"),
        np.arange(N) % 2 == 0,
        np.where(np.arange(N) % 2, 1.0, -1.0) + np.arange(N) / 1_000,
    ],
)
def test_copy_of_the_target_is_warned_of(column):
    findings = check_columns(whole(make_split(diagnosis=column)))
    assert only(findings) == ("target_copy", Severity.WARNING)


def test_strong_predictor_is_no_copy():
    noisy = np.where(np.arange(N) % 20 == 0, 1 - np.arange(N) % 2, np.arange(N) % 2)
    assert check_columns(whole(make_split(symptom=noisy))) == []


def test_small_groups_are_counted_but_not_named():
    group = np.full(N, "many", dtype=object)
    group[:30] = "members alone"
    group[100:104] = "four"
    split = make_split(group=group)
    (finding,) = check_groups(split, smallest_group=20)
    assert (finding.name, finding.severity) == ("small_group", Severity.WARNING)
    assert "2 of 3 groups" in finding.text
    assert not any(name in finding.text for name in ("four", "alone"))


def test_groups_are_counted_by_people_not_by_records():
    units = np.arange(N)
    units[:25] = 0  # one member with 25 records
    group = np.where(np.isin(np.arange(N) % 100, range(25)), "few", "many")
    assert check_groups(make_split(group=group), smallest_group=20) == []
    (finding,) = check_groups(make_split(group=group, unit=units), smallest_group=20)
    assert "1 of 2 groups" in finding.text


def test_missing_targets_are_counted():
    target = np.resize([0.0, 1.0], N)
    target[[5, 150]] = np.nan
    _, *findings = check_split(make_split(target=target), smallest_group=20)
    assert only(findings) == ("missing_target", Severity.NOTE)
    assert "2 rows" in findings[0].text


def test_no_finding_shows_a_record():
    secret = [f"Ola Nordmann {i}" for i in range(N)]
    findings = check_split(make_split(name=secret), smallest_group=20)
    assert findings
    assert not any("Ola" in finding.text for finding in findings)


def test_a_column_is_spared_its_tree_only_if_no_tree_could_copy_the_class(seed):
    # Against the tree itself: whatever it predicts almost without error must not be spared.
    rng = stream(seed, "cuts")
    could = 0
    for _ in range(200):
        size, classes = int(rng.integers(20, 2000)), int(rng.integers(2, 5))
        numbers = rng.integers(0, 1 + 10 ** int(rng.integers(1, 4)), size=size) / 7
        cuts = np.quantile(numbers, np.sort(rng.random(classes)))
        labels = np.searchsorted(cuts, numbers) % classes
        wrong = rng.random(size) < rng.choice([0.0, 0.0005, 0.01])
        labels[wrong] = rng.integers(classes, size=int(wrong.sum()))
        tree = DecisionTreeClassifier(max_leaf_nodes=2 * classes, random_state=0)
        tree.fit(numbers[:, None], labels)
        if tree.score(numbers[:, None], labels) >= 0.999:
            could += 1
            assert _could_be_cut(numbers, labels, 2 * classes)
    assert could > 20
    assert not _could_be_cut(numbers, rng.integers(2, size=size), 4)
