"""Fidelity and transfer: scikit-learn and plain loops as second implementations, coverage, and what sampling alone gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm, spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score

from reticent.errors import InvalidInput
from reticent.evidence import (
    Columns,
    compare_correlations,
    compare_marginals,
    compare_positive_rates,
    compare_transfer,
    count_rare_categories,
    cover_rows,
)
from reticent.evidence.transfer import areas
from reticent.run import stream

FALSE_ALARM = 1e-6
LEVEL = 0.95


def table(numbers: np.ndarray, codes: np.ndarray | None = None) -> Columns:
    if codes is None:
        codes = np.empty((len(numbers), 0))
    return Columns(
        numbers=numbers, codes=codes, ranges=[[-5.0, 5.0]] * numbers.shape[1]
    )


def people(rng: np.random.Generator, n: int) -> Columns:
    hidden = rng.normal(size=n)
    numbers = np.column_stack([hidden, hidden + rng.normal(size=n)])
    return table(numbers, np.column_stack([hidden > 0, rng.integers(0, 5, n)]))


@settings(max_examples=30)
@given(
    scores=st.lists(st.integers(0, 5), min_size=4, max_size=20),
    weights=st.lists(st.integers(1, 3), min_size=20, max_size=20),
    unit=st.sampled_from([1.0, 1e-3]),
)
def test_areas_are_those_of_scikit_learn(scores, weights, unit):
    """With ties and weights of any size, in both measures."""
    s = np.array(scores, dtype=float)
    y = (np.arange(len(s)) % 3 == 0).astype(int)
    w = unit * np.array(weights[: len(s)], dtype=float)
    auc, ap = areas(y, np.column_stack([-s, s]), w[None])
    assert auc[0] == pytest.approx(roc_auc_score(y, s, sample_weight=w))
    assert ap[0] == pytest.approx(average_precision_score(y, s, sample_weight=w))


def test_areas_of_several_classes_are_the_mean_against_the_others(seed):
    rng = stream(seed, "classes")
    y, s = rng.integers(0, 3, 60), rng.random((60, 3))
    auc, ap = areas(y, s, np.ones((1, 60)))
    assert auc[0] == pytest.approx(
        np.mean([roc_auc_score(y == c, s[:, c]) for c in range(3)])
    )
    assert ap[0] == pytest.approx(
        np.mean([average_precision_score(y == c, s[:, c]) for c in range(3)])
    )


def two_models(rng: np.random.Generator, n: int, rows: int = 1):
    """Scores of two models, each with AUC Phi(1/sqrt(2)), that share half of their errors; people with several equal rows."""
    y = (rng.random(n) < 0.5).astype(int)
    shared = rng.normal(size=n)
    scores = [
        y + np.sqrt(0.5) * shared + np.sqrt(0.5) * rng.normal(size=n) for _ in range(2)
    ]
    units = np.repeat(np.arange(n), rows)
    return y[units], [np.column_stack([-s, s])[units] for s in scores], units


def test_interval_of_the_loss_covers_and_counts_people(seed):
    """The truth is 0. The twin takes 15 equal rows of each person for 15 people."""
    rng = stream(seed, "loss")
    runs, misses, auc_misses, twin = 50, 0, 0, 0
    truth = norm.cdf(1 / np.sqrt(2))
    for _ in range(runs):
        y, (a, b), units = two_models(rng, 60, rows=15)
        found = compare_transfer(y, a, [b], units=units, level=LEVEL, rng=rng)
        misses += not found.auc_loss.low <= 0 <= found.auc_loss.high
        auc_misses += not found.auc_real.low <= truth <= found.auc_real.high
        wrong = compare_transfer(
            y, a, [b], units=np.arange(len(y)), level=LEVEL, rng=rng
        )
        twin += not wrong.auc_loss.low <= 0 <= wrong.auc_loss.high
    # A bootstrap of 60 people is a little too short: one in 14 in place of one in 20.
    allowed = binom.ppf(1 - FALSE_ALARM, runs, 0.07)
    assert max(misses, auc_misses) <= allowed < twin


def test_a_useless_table_loses_everything(seed):
    rng = stream(seed, "useless")
    y, (a, _), units = two_models(rng, 400)
    constant = np.tile([1.0, 0.0], (400, 1))
    found = compare_transfer(
        y, a, [constant, constant], units=units, level=LEVEL, rng=rng
    )
    assert found.auc_synthetic.value == 0.5
    assert found.ap_synthetic.value == pytest.approx(y.mean())
    assert found.auc_loss.low > 0.1
    assert found.tables == 2
    assert found.auc_loss.covers == "trainer"


def test_total_variation_equals_a_plain_loop(seed):
    rng = stream(seed, "variation")
    a, b = people(rng, 200), people(rng, 150)
    found = compare_marginals(a, b, level=LEVEL)
    for j in range(2):
        ours, theirs = a.codes[:, j], b.codes[:, j]
        plain = (
            sum(abs((ours == v).mean() - (theirs == v).mean()) for v in range(5)) / 2
        )
        assert found.one[2 + j].value == pytest.approx(plain)
    pairs = [
        sum(
            abs(
                ((a.codes[:, 0] == v) & (a.codes[:, 1] == w)).mean()
                - ((b.codes[:, 0] == v) & (b.codes[:, 1] == w)).mean()
            )
            for v in range(2)
            for w in range(5)
        )
        / 2
    ]
    codes_only = [
        Columns(numbers=np.empty((len(c), 0)), codes=c.codes, ranges=[]) for c in (a, b)
    ]
    assert compare_marginals(*codes_only, level=LEVEL).mean_two.value == pytest.approx(
        pairs[0]
    )


def test_sampling_alone_gives_what_is_stated(seed):
    """Mean of the distances between fresh samples against the formula; half of it must fail. No low end is above 0 too often."""
    rng = stream(seed, "chance")
    runs = 60
    values, stated, alarms = [], [], 0
    for _ in range(runs):
        found = compare_marginals(people(rng, 300), people(rng, 200), level=LEVEL)
        values.append(found.mean_one.value)
        stated.append(found.mean_one_by_chance)
        alarms += sum(e.low > 0 for e in found.one)
    error = norm.isf(FALSE_ALARM / 2) * np.std(values, ddof=1) / np.sqrt(runs)
    # The normal approximation of few rows in a cell is good to a few per cent.
    assert abs(np.mean(values) - np.mean(stated)) <= error + 0.03 * np.mean(stated)
    assert np.mean(values) - np.mean(stated) / 2 > error
    assert alarms <= binom.ppf(1 - FALSE_ALARM, 4 * runs, 1 - LEVEL)


def test_missing_numbers_have_a_bin_of_their_own():
    full, holes = np.arange(10.0)[:, None] / 10, np.full((10, 1), np.nan)
    assert compare_marginals(table(full), table(holes), level=LEVEL).one[0].value == 1
    assert compare_marginals(table(holes), table(holes), level=LEVEL).one[0].value == 0


def test_correlations_are_spearmans_and_the_largest_pays(seed):
    rng = stream(seed, "correlations")
    a, b = table(rng.normal(size=(80, 3))), table(rng.normal(size=(60, 3)))
    found = compare_correlations(a, b, level=LEVEL)
    gaps = [
        spearmanr(b.numbers[:, i], b.numbers[:, j]).statistic
        - spearmanr(a.numbers[:, i], a.numbers[:, j]).statistic
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert found.mean == pytest.approx(np.abs(gaps).mean())
    assert abs(found.largest.value) == pytest.approx(np.abs(gaps).max())
    runs = 100
    alarms = sum(
        not (
            e := compare_correlations(
                *(table(rng.normal(size=(60, 3))) for _ in range(2)), level=LEVEL
            )
        ).largest.low
        <= 0
        <= e.largest.high
        for _ in range(runs)
    )
    assert alarms <= binom.ppf(1 - FALSE_ALARM, runs, 1 - LEVEL)
    assert (
        compare_correlations(
            table(rng.normal(size=(9, 1))), table(rng.normal(size=(9, 1))), level=LEVEL
        )
        is None
    )
    constant = table(np.zeros((9, 2)))
    assert compare_correlations(constant, constant, level=LEVEL).largest.value == 0


def test_rare_categories_are_counted():
    def rows(*counts: int) -> Columns:
        codes = np.repeat(np.arange(len(counts)), counts)[:, None]
        return Columns(numbers=np.empty((len(codes), 0)), codes=codes, ranges=[])

    found = count_rare_categories(
        rows(950, 30, 15, 3, 2), rows(996, 0, 1, 1, 0, 2), smallest=10
    )
    assert (found.rare, found.missing, found.below, found.emitted, found.new) == (
        2,
        1,
        2,
        1,
        1,
    )
    assert found.missing_by_chance == pytest.approx(0.97**1000 + 0.985**1000)


def test_coverage_sees_collapse_and_not_a_fresh_sample(seed):
    rng = stream(seed, "coverage")
    test, train, fresh = (table(rng.normal(size=(n, 3))) for n in (300, 250, 400))
    good = cover_rows(test, train, fresh, level=1 - FALSE_ALARM, rng=rng)
    assert good.lost.low <= 0 <= good.lost.high
    # With as many other rows, none of them is nearer than the fifth own neighbour with chance of about 2^-5.
    assert good.real.low <= 1 - 2**-5 * 1.3 <= good.real.high
    modes = table(train.numbers[:10][rng.integers(10, size=400)])
    assert cover_rows(test, train, modes, level=1 - FALSE_ALARM, rng=rng).lost.low > 0.3


def test_positive_rates_have_the_difference_of_two_rates():
    found = compare_positive_rates([1] * 24 + [0] * 76, [1] * 4 + [0] * 96, level=LEVEL)
    assert (found.real.value, found.synthetic.value) == (0.24, 0.04)
    assert found.difference.value == pytest.approx(-0.2)
    assert found.difference.high < -0.05


def test_refusals():
    rng = np.random.default_rng(0)
    y, (a, b), units = two_models(rng, 10)
    with pytest.raises(InvalidInput, match="no generated table"):
        compare_transfer(y, a, [], units=units, level=LEVEL, rng=rng)
    with pytest.raises(InvalidInput, match="do not fit 10 test records"):
        compare_transfer(y, a, [b[:5]], units=units, level=LEVEL, rng=rng)
    with pytest.raises(InvalidInput, match="infinite or NaN"):
        compare_transfer(y, a * np.nan, [b], units=units, level=LEVEL, rng=rng)
    with pytest.raises(InvalidInput, match="3 units for 10 records"):
        compare_transfer(y, a, [b], units=[1, 2, 3], level=LEVEL, rng=rng)
    with pytest.raises(InvalidInput, match="same class"):
        compare_transfer(y * 0, a, [b], units=units, level=LEVEL, rng=rng)
    few = table(np.zeros((3, 2)))
    with pytest.raises(InvalidInput, match="at least four rows"):
        compare_correlations(few, few, level=LEVEL)
    with pytest.raises(InvalidInput, match="3 test rows have no 5 neighbours"):
        cover_rows(few, few, few, level=LEVEL, rng=rng)
