"""The blind baseline: valid under its null, with repeated people too, and able to see a shift."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from reticent.attack import blind_baseline
from reticent.attack.blind import PERMUTATIONS, _permutation_test
from reticent.data import Severity, Split, table_from_frame
from reticent.run import stream
from reticent.testing import FALSE_ALARM

HALVES = (0.5, 0.5, 0.0)


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


def test_random_splits_rarely_raise_an_alarm(seed):
    rng = stream(seed, "table")
    frame = pd.DataFrame(
        {
            "x": np.round(rng.normal(size=120), 1),
            "town": rng.choice(["a", "b", "c", None], size=120),
        }
    )
    table = table_from_frame(frame, target=rng.integers(2, size=120))
    assert false_alarms(table, 200, seed) <= most(200)


def people_with_signatures(seed, people=40, each=4):
    """Return records by which a person is recognised: their own numbers, hardly any noise."""
    rng = stream(seed, "people")
    own = np.repeat(rng.normal(size=(people, 2)), each, axis=0)
    frame = pd.DataFrame(own + rng.normal(scale=1e-3, size=own.shape), columns=[*"ab"])
    units = np.repeat(np.arange(people), each)
    return table_from_frame(frame, target=units % 2, unit=units)


def test_people_with_several_records_raise_no_more_alarms(seed):
    assert false_alarms(people_with_signatures(seed), 100, seed) <= most(100)


def test_rows_taken_for_people_would_raise_too_many(seed):
    # The twin of the test above: it fails if whole units are not kept together.
    table = people_with_signatures(seed)
    assert false_alarms(table, 30, seed, forget_units=True) > most(30)


@pytest.mark.parametrize("kind", ["number", "category", "missing"])
def test_shifted_reserved_part_stops_the_audit(kind, seed):
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
    parts = np.where(reserved, "reserved", "defender")
    table = table_from_frame(frame, target=rng.integers(2, size=2 * n), part=parts)
    found = blind_baseline(Split.by_part(table), rng=rng)
    assert found.p_value == 2 / (1 + PERMUTATIONS)  # the smallest there is
    assert found.accuracy > 0.6
    finding = found.finding(false_alarm=0.01)
    assert (finding.name, finding.severity) == ("blind_baseline", Severity.STOP)


def test_shifted_target_is_seen_too(seed):
    rng = stream(seed, "target")
    n = 300
    reserved = np.arange(2 * n) >= n
    y = (rng.random(2 * n) < 0.2 + 0.6 * reserved).astype(int)
    parts = np.where(reserved, "reserved", "defender")
    frame = pd.DataFrame({"x": rng.normal(size=2 * n)})
    split = Split.by_part(table_from_frame(frame, target=y, part=parts))
    assert blind_baseline(split, rng=rng).p_value <= 0.01


def test_same_stream_gives_the_same_answer():
    table = people_with_signatures(0)
    split = Split.by_unit(table, rng=stream(0, "split"), fractions=HALVES)
    first, again = (blind_baseline(split, rng=stream(0, "blind")) for _ in range(2))
    assert first == again
    assert first.finding(false_alarm=1e-9).severity == Severity.NOTE


def test_long_tail_of_categories_is_bearable():
    rng = stream(0, "tail")
    frame = pd.DataFrame({"code": [f"icd {k}" for k in range(800)]})
    table = table_from_frame(frame, target=rng.integers(2, size=800))
    split = Split.by_unit(table, rng=rng, fractions=HALVES)
    assert 0 < blind_baseline(split, rng=rng).p_value <= 1


def test_accuracy_counts_pairs_and_half_the_ties():
    rng = stream(0, "pairs")
    scores = rng.integers(5, size=40).astype(float)
    tags = np.arange(40) % 2
    accuracy, _ = _permutation_test(scores, tags, np.arange(40), rng=rng)
    pairs = scores[tags == 1][:, None] - scores[tags == 0][None, :]
    assert accuracy == pytest.approx(np.mean((pairs > 0) + 0.5 * (pairs == 0)))


def test_p_value_agrees_with_all_permutations_of_units(seed):
    rng = stream(seed, "exact")
    scores = rng.normal(size=24) + np.repeat([0.8, 0.0], 12)
    units = np.arange(24) // 3  # eight people, three records each
    tags = np.repeat([1, 0], 12)
    ranks = np.argsort(np.argsort(scores))

    def difference(members):
        inside = np.isin(units, members)
        return ranks[inside].mean() - ranks[~inside].mean()

    observed = difference((0, 1, 2, 3))
    every = [difference(members) for members in combinations(range(8), 4)]
    exact = np.mean(np.array(every) >= observed - 1e-9)
    _, p = _permutation_test(scores, tags, units, rng=rng)
    hits = round(p * (1 + PERMUTATIONS)) - 1
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], PERMUTATIONS, exact)
    assert low <= hits <= high
