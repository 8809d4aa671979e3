"""Each comparison against a second, naive implementation; what each catches; and how often the learned one is wrong."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from made_tables import copied_among, people, resampled
from reticent.attack import Knowledge, SealedTags
from reticent.attack.synthetic import (
    COMPARISONS,
    LearnedTable,
    SyntheticChallenge,
    Tables,
    _nearest,
    nearest,
)
from reticent.attack.synthetic.exact_values import ExactPairs, ExactValues
from reticent.attack.synthetic.identical import IdenticalRows
from reticent.attack.synthetic.tree_likelihood import TreeLikelihood
from reticent.data import Coder, table_from_frame
from reticent.errors import InvalidInput, InvalidPredictions
from reticent.evidence import UnitScores, pair_wins, widened_accuracy
from reticent.run import stream

FALSE_ALARM = 1e-6
BY_NAME = {comparison.name: comparison for comparison in COMPARISONS}


def tables_of(records, synthetic, auxiliary):
    whole = table_from_frame(pd.concat([records, auxiliary], ignore_index=True), target=None)  # fmt: skip
    coder = Coder(whole.features, whole.schema)
    features = whole.features
    made = table_from_frame(synthetic, target=None).features
    return Tables(
        records=coder.code(features.iloc[: len(records)]),
        synthetic=coder.code(made),
        auxiliary=coder.code(features.iloc[len(records) :]),
        names=coder.names,
    )


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    records, fresh, auxiliary = people(40, rng), people(30, rng), people(35, rng)
    synthetic = copied_among(records.iloc[:30], fresh, 0.3, rng)
    synthetic.loc[0, "town"] = "nowhere"
    return tables_of(records, synthetic, auxiliary)


def test_nearest_distances_are_those_of_brute_force(small):
    found = nearest(small.records, small.synthetic)
    a, b = small.records, small.synthetic
    d = a.codes.shape[1]
    for i in range(len(a)):
        distances = {"ranks": [], "gower": [], "hamming": []}
        for k in range(len(b)):
            unequal = sum(
                a.codes[i, j] != b.codes[k, j] for j in range(d) if not a.numeric[j]
            )
            for name, x, y in (("ranks", a.ranks, b.ranks), ("gower", a.scaled, b.scaled)):  # fmt: skip
                apart = [min(1.0, abs(float(p) - float(q))) for p, q in zip(x[i], y[k], strict=True)]  # fmt: skip
                distances[name].append((unequal + sum(apart)) / d)
            distances["hamming"].append(int((a.codes[i] != b.codes[k]).sum()))
        for name, values in distances.items():
            assert found[name][i] == pytest.approx(min(values), abs=1e-6)


def test_a_copy_has_distance_zero_and_one_changed_cell_has_not(small):
    found = nearest(small.records, small.records)
    assert (found["ranks"] == 0).all()
    assert (found["hamming"] == 0).all()
    moved = small.records.take(np.arange(len(small.records)))
    moved.ranks[:, 0] += np.float32(1e-3)
    assert (nearest(small.records, moved)["ranks"] > 0).any()


def all_pairs(records, others):
    """The smallest distances by computing every pair, in single precision and in the order of the columns."""
    d = records.codes.shape[1]
    differs = records.codes[:, None, :] != others.codes[None, :, :]
    result = {"hamming": differs.sum(axis=2).min(axis=1)}
    for name, a, b in (("ranks", records.ranks, others.ranks), ("gower", records.scaled, others.scaled)):  # fmt: skip
        total = differs[:, :, ~records.numeric].sum(axis=2).astype(np.float32)
        for j in range(a.shape[1]):
            apart = np.abs(a[:, None, j] - b[None, :, j])
            total += np.minimum(apart, np.float32(1))
        result[name] = total.min(axis=1) / d
    return result


def mixed_tables(kind, rng):
    """Records and rows of one kind, with duplicates, copies, ties, missing numbers and values that no record has."""
    n, m = 60, 250
    numbers = rng.normal(size=(n + m, 5))
    if kind == "heavy tails":
        numbers = np.exp(4 * numbers)
    if kind == "grid":
        numbers = numbers.round()
    texts = rng.choice(list("abcdef"), (n + m, 9))
    if kind == "many texts":
        # More than fit into one byte.
        texts[:, 0] = rng.integers(0, 100_000, n + m)
        texts = texts.astype(object)
        texts[:, 1] = [str(k) for k in rng.permutation(n + m)]
    frame = pd.DataFrame(numbers).rename(columns=lambda j: f"number {j}")
    if kind != "one number":
        frame = frame.mask(rng.random(frame.shape) < 0.1)
    if kind not in ("numbers", "one number"):
        frame = pd.concat([frame, pd.DataFrame(texts).rename(columns=lambda j: f"text {j}")], axis=1)  # fmt: skip
    if kind == "one number":
        frame = frame[["number 0"]]
    if kind == "texts":
        frame = frame[[c for c in frame if c.startswith("text")]]
    records, rows = frame.iloc[:n].copy(), frame.iloc[n:].copy()
    # Copies of records, some of them twice; and records that occur twice.
    rows.iloc[:20] = records.iloc[np.repeat(np.arange(10), 2)].to_numpy()
    records.iloc[50:] = records.iloc[:10].to_numpy()
    if "number 0" in rows:
        rows.loc[rows.index[30:40], "number 0"] *= 100.0
    return tables_of(records, rows, frame.iloc[:n])


KINDS = ("mixed", "grid", "heavy tails", "numbers", "one number", "texts", "many texts")


@pytest.mark.parametrize("kind", KINDS)
def test_nearest_distances_equal_those_of_all_pairs_to_the_last_digit(kind, seed):
    tables = mixed_tables(kind, stream(seed, f"test/nearest/{kind}"))
    found = nearest(tables.records, tables.synthetic)
    expected = all_pairs(tables.records, tables.synthetic)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
    # Copies, and records that are equal to a copied one.
    assert (found["ranks"][:10] == 0).all()
    assert (found["ranks"][50:] == 0).all()
    assert (found["gower"][:10] == 0).all()
    assert (found["hamming"][50:] == 0).all()


@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
def test_every_way_to_the_nearest_row_gives_the_same_digits(shares, seed, monkeypatch):
    """All pairs computed; ruled out by whole numbers; ruled out by categories alone."""
    by_categories, picked = shares
    monkeypatch.setattr(_nearest, "MOST_BY_CATEGORIES", by_categories)
    monkeypatch.setattr(_nearest, "MOST_PICKED", picked)
    tables = mixed_tables("mixed", stream(seed, "test/nearest/ways"))
    found = nearest(tables.records, tables.synthetic)
    for name, values in all_pairs(tables.records, tables.synthetic).items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_whole_numbers_never_rule_out_a_row_that_is_near(seed):
    """The sum in steps is at most that of the exact differences, plus one step per column."""
    tables = mixed_tables("mixed", stream(seed, "test/nearest/steps"))
    a, b = tables.records, tables.synthetic
    scale = _nearest._Scale.of(a.ranks, b.ranks, a.codes.shape[1])
    nothing = np.zeros((len(a), len(b)), dtype=np.uint8)
    coarse = scale._coarse(nothing, slice(0, len(a)))
    exact = np.minimum(np.abs(a.ranks[:, None].astype(float) - b.ranks), 1).sum(axis=2)
    assert (coarse <= scale.steps * exact + a.ranks.shape[1] + 1e-6).all()
    # The twin: without the steps of rounding the bound would fail.
    assert (coarse > scale.steps * exact).any()


def test_of_a_longer_table_evenly_spaced_rows_are_looked_at(small, monkeypatch):
    monkeypatch.setattr(_nearest, "MOST_ROWS", 7)
    chosen = np.linspace(0, len(small.synthetic) - 1, 7).astype(np.int64)
    found = nearest(small.records, small.synthetic)
    expected = all_pairs(small.records, small.synthetic.take(chosen))
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_the_auxiliary_table_is_compared_once_for_all_synthetic_tables(small):
    people_alone = replace(small)
    first, second = (people_alone.released(small.synthetic) for _ in range(2))
    for comparison in COMPARISONS:
        comparison.compare(first)
    known = {name: values.copy() for name, values in first.to_auxiliary.items()}
    assert second.to_auxiliary is first.to_auxiliary
    assert "ranks" in known
    for comparison in COMPARISONS:
        np.testing.assert_array_equal(comparison.compare(second), comparison.compare(small))  # fmt: skip


def test_equal_and_nearly_equal_rows_are_counted_as_by_hand(small):
    scores = IdenticalRows().compare(small)
    mine, rows, others = (t.codes for t in (small.records, small.synthetic, small.auxiliary))  # fmt: skip
    sizes = len(rows), len(others)
    for k, most in enumerate((0, 1)):
        for i, record in enumerate(mine):
            counts = [((table != record).sum(axis=1) <= most).sum() for table in (rows, others)]  # fmt: skip
            expected = np.log((counts[0] + 0.5) / (sizes[0] + 1)) - np.log(
                (counts[1] + 0.5) / (sizes[1] + 1)
            )
            assert scores[i, k] == pytest.approx(expected)


@pytest.mark.parametrize(("comparison", "size"), [(ExactValues(), 1), (ExactPairs(), 2)])  # fmt: skip
def test_exact_values_are_counted_as_by_hand(small, comparison, size):
    scores = comparison.compare(small)[:, 0]
    mine, rows, others = (t.codes for t in (small.records, small.synthetic, small.auxiliary))  # fmt: skip
    for i, record in enumerate(mine):
        total = 0.0
        for columns in combinations(range(mine.shape[1]), size):
            counts = [(t[:, columns] == record[list(columns)]).all(axis=1).sum() for t in (rows, others)]  # fmt: skip
            total += np.log((counts[0] + 0.5) / (len(rows) + 1))
            total -= np.log((counts[1] + 0.5) / (len(others) + 1))
        assert scores[i] == pytest.approx(total)


def test_a_tree_of_two_columns_is_their_joint_frequency(small):
    two = Tables(
        **{
            name: _first_columns(getattr(small, name), 2)
            for name in ("records", "synthetic", "auxiliary")
        },
        names=small.names[:2],
    )
    scores = TreeLikelihood().compare(two)[:, 0]
    mine, rows, others = (t.bins for t in (two.records, two.synthetic, two.auxiliary))
    for i, record in enumerate(mine):
        counts = [(t == record).all(axis=1).sum() for t in (rows, others)]
        expected = np.log((counts[0] + 0.5) / (len(rows) + 1))
        expected -= np.log((counts[1] + 0.5) / (len(others) + 1))
        assert scores[i] == pytest.approx(expected)


def _first_columns(coded, count):
    numbers = int(coded.numeric[:count].sum())
    return replace(
        coded,
        codes=coded.codes[:, :count],
        bins=coded.bins[:, :count],
        ranks=coded.ranks[:, :numbers],
        scaled=coded.scaled[:, :numbers],
        numeric=coded.numeric[:count],
    )


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_synthetic_rows_changes_nothing(small, seed):
    order = np.random.default_rng(seed).permutation(len(small.synthetic))
    shuffled = small.released(small.synthetic.take(order))
    for comparison in COMPARISONS:
        np.testing.assert_allclose(
            comparison.compare(shuffled), comparison.compare(small), atol=1e-5
        )


def test_each_leak_is_caught_by_the_comparison_that_is_made_for_it(seed):
    """Copies by equal rows, re-emitted values by exact values; and a resampling copula by no distance."""
    rng = stream(seed, "test/battery")
    n = 500
    records, auxiliary = people(2 * n, rng), people(n, rng)
    real, fresh = records.iloc[:n], people(n, rng)
    copies = tables_of(records, copied_among(real, fresh, 0.2, rng), auxiliary)
    values = tables_of(records, resampled(real, rng), auxiliary)

    def accuracy(tables, name):
        score = BY_NAME[name].compare(tables)[:, 0]
        return pair_wins(score[:n], score[n:]).accuracy

    # A fifth of the members is above everybody else: .6, less what coincides; the standard error is below .02.
    assert accuracy(copies, "identical_rows") == pytest.approx(0.6, abs=0.01)
    # Measured .77 to .82 over 20 seeds with a standard error of .015; chance lies 8 standard errors below this bound.
    assert accuracy(values, "exact_values") > 0.62
    # Five standard errors of .018 (one in a million, two-sided) around chance.
    assert abs(accuracy(values, "rank_distance") - 0.5) < 0.09
    assert abs(accuracy(values, "identical_rows") - 0.5) < 0.09


def learned(comparisons, tags, rng, **changes):
    challenge = SyntheticChallenge.__new__(SyntheticChallenge)
    object.__setattr__(challenge, "comparisons", comparisons)
    knowledge = Knowledge(tags=SealedTags(tags, np.arange(len(tags))))
    return LearnedTable(**changes).score(challenge, knowledge=knowledge, rng=rng)


def test_the_learned_attack_alarms_at_its_stated_rate_where_nothing_leaks(seed):
    """Its interval is widened by permutations; with the usual width, the twin, it alarms far more often."""
    rng = stream(seed, "test/learned null")
    runs, n, level = 150, 150, 0.9
    alarms, raw = 0, 0
    tags = np.arange(2 * n) < n
    for _ in range(runs):
        # Correlated comparisons, as those of a battery are.
        common = rng.normal(size=(2 * n, 1))
        inputs = common + rng.normal(size=(2 * n, 6))
        scores = learned(inputs, tags, rng, permutations=19)
        for spread in (scores.spread, 1.0):
            divided = UnitScores(members=scores.values[tags], nonmembers=scores.values[~tags], spread=spread)  # fmt: skip
            low = widened_accuracy(divided, level=level).low
            if spread == 1.0:
                raw += low > 0.5
            else:
                alarms += low > 0.5
    # One end of an interval of 90 % may miss in 5 % of the cases.
    most = binom.ppf(1 - FALSE_ALARM, runs, (1 - level) / 2)
    assert alarms <= most
    assert raw > alarms


def test_the_learned_attack_finds_what_several_comparisons_tell_together(seed):
    rng = stream(seed, "test/learned power")
    n = 400
    tags = np.arange(2 * n) < n
    inputs = rng.normal(size=(2 * n, 8)) + 0.35 * tags[:, None]
    scores = learned(inputs, tags, rng)
    accuracy = pair_wins(scores.values[tags], scores.values[~tags]).accuracy
    alone = pair_wins(inputs[tags, 0], inputs[~tags, 0]).accuracy
    # Together Phi(.35 sqrt(8 / 2)) = .758, alone Phi(.35 / sqrt 2) = .598; standard errors of .017 and .02.
    assert accuracy > 0.67
    assert accuracy > alone


def test_comparisons_that_do_not_fit_are_refused(small):
    columns = ("a", "b")
    with pytest.raises(InvalidPredictions, match="do not fit 40 records"):
        SyntheticChallenge(comparisons=np.zeros((3, 2)), columns=columns, tables=small)
    with pytest.raises(InvalidPredictions, match="NaN or infinite"):
        SyntheticChallenge(
            comparisons=np.full((40, 2), np.nan), columns=columns, tables=small
        )
    challenge = SyntheticChallenge(
        comparisons=np.zeros((40, 2)), columns=columns, tables=small
    )
    with pytest.raises(InvalidInput, match="no comparison called 'c'"):
        challenge.column("c")
