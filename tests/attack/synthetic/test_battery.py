"""Each comparison against a second, naive implementation; what each catches; and how often the learned one is wrong."""

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
    from dataclasses import replace

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
