"""Singling out, linkability, attribute inference: plain second implementations, size under the null, and power against copies."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, fisher_exact, norm

from reticent.errors import InvalidInput
from reticent.evidence import (
    Columns,
    Success,
    compare_success,
    guess_attribute,
    infer_attribute,
    link_halves,
    single_out,
    vulnerability,
)
from reticent.evidence import singling_out as singling
from reticent.run import stream

FALSE_ALARM = 1e-6
LEVEL = 0.95


def people(rng: np.random.Generator, n: int, *, fine: bool = True) -> Columns:
    """Two numbers and two categories that depend on each other."""
    hidden = rng.normal(size=n)
    numbers = np.column_stack([hidden + rng.normal(size=n), rng.normal(size=n)])
    codes = np.column_stack([hidden > 0, rng.integers(0, 4, n)])
    return Columns(
        numbers=numbers if fine else numbers.round(),
        codes=codes,
        ranges=[[-5, 5]] * 2,
    )


def test_success_of_rows_is_a_difference_of_rates_and_fisher(seed):
    rng = stream(seed, "newcombe")
    d, r = rng.random(40) < 0.5, rng.random(60) < 0.3
    found = compare_success(
        Success(attack=d, baseline=np.zeros(40)),
        Success(attack=r, baseline=np.zeros(60)),
        level=LEVEL,
        rng=rng,
    )
    reference = vulnerability(d, r, level=LEVEL)
    for end in ("value", "low", "high"):
        assert getattr(found.excess, end) == pytest.approx(getattr(reference, end))
    table = [[d.sum(), (~d).sum()], [r.sum(), (~r).sum()]]
    assert found.p_value == pytest.approx(
        fisher_exact(table, alternative="greater").pvalue
    )


def test_rows_of_a_person_count_once(seed):
    """Ten rows of each person that agree are one trial; the twin that counts rows is ten times too sure."""
    rng = stream(seed, "units")
    d, r = (rng.random(30) < 0.5).astype(float), (rng.random(30) < 0.4).astype(float)
    rows = compare_success(
        Success(attack=d, baseline=d),
        Success(attack=r, baseline=r),
        level=LEVEL,
        rng=rng,
    )
    units = np.repeat(np.arange(30), 10)
    repeated = [np.repeat(x, 10) for x in (d, r)]
    grouped = compare_success(
        *(Success(attack=x, baseline=x, units=units) for x in repeated),
        level=LEVEL,
        rng=rng,
    )
    assert grouped.excess == rows.excess
    wrong = compare_success(
        *(Success(attack=x, baseline=x) for x in repeated), level=LEVEL, rng=rng
    )
    assert wrong.excess.high - wrong.excess.low < 0.5 * (
        rows.excess.high - rows.excess.low
    )


def test_interval_of_shared_success_covers(seed):
    """People with several rows and success in between; one standard error in place of the quantile must fail."""
    rng = stream(seed, "coverage")
    runs, misses, twin = 120, 0, 0
    for _ in range(runs):
        sides = []
        for mean in (0.5, 0.3):
            own = rng.beta(4 * mean, 4 * (1 - mean), 50)
            rows = rng.random((50, 3)) < own[:, None]
            sides.append(
                Success(
                    attack=rows.ravel(),
                    baseline=np.zeros(150),
                    units=np.repeat(np.arange(50), 3),
                )
            )
        found = compare_success(
            *sides, level=LEVEL, rng=np.random.default_rng(0)
        ).excess
        misses += not found.low <= 0.2 <= found.high
        half = (found.high - found.low) / 2 / norm.isf(0.025)
        twin += abs(found.value - 0.2) > half
    allowed = binom.ppf(1 - FALSE_ALARM, runs, 1 - LEVEL)
    assert misses <= allowed < twin


@settings(max_examples=30)
@given(
    d=st.lists(st.floats(0, 1), min_size=1, max_size=8),
    r=st.lists(st.floats(0, 1), min_size=1, max_size=8),
)
def test_estimates_contain_their_values_at_any_input(d, r):
    found = compare_success(
        Success(attack=d, baseline=np.zeros(len(d))),
        Success(attack=r, baseline=np.zeros(len(r))),
        level=LEVEL,
        rng=np.random.default_rng(0),
    )
    assert found.excess.value == pytest.approx(np.mean(d) - np.mean(r))
    assert -1 <= found.excess.low <= found.excess.high <= 1
    assert 0 < found.p_value <= 1


def test_exactly_one_of_those_who_match_over_all_subsamples():
    total, size = 7, 4
    chance = singling._chance_of_one(total, size)
    for matching in range(total + 1):
        subsets = list(combinations(range(total), size))
        expected = np.mean([sum(i < matching for i in s) == 1 for s in subsets])
        assert chance(np.array([matching]))[0] == pytest.approx(expected)


def judge(found, alarms):
    """Add the p-values of one audit to those of each attack."""
    for name, one in found.items():
        if one is not None:
            alarms.setdefault(name, []).append(one.p_value)


def all_attacks(d, r, s, rng):
    out = single_out(d, r, s, level=LEVEL, rng=rng)
    return {
        "values": out.values,
        "rows": out.rows,
        "link": link_halves(
            d, r, s, first=[True, False, True, False], level=LEVEL, rng=rng
        ),
        "number": infer_attribute(d, r, s, secret=0, level=LEVEL, rng=rng),
        "category": infer_attribute(
            d, r, s, secret=2, level=LEVEL, rng=rng, neighbours=3
        ),
    }


@pytest.mark.parametrize(
    ("runs", "attempts"), [(15, 40), pytest.param(300, 200, marks=pytest.mark.slow)]
)
def test_fresh_people_alarm_at_most_at_their_rate(runs, attempts, seed, monkeypatch):
    monkeypatch.setattr(singling, "ATTEMPTS", attempts)
    rng = stream(seed, "null")
    p_values: dict[str, list[float]] = {}
    for turn in range(runs):
        fine = turn % 2 == 0
        d, r, s = (people(rng, n, fine=fine) for n in (80, 60, 100))
        judge(all_attacks(d, r, s, rng), p_values)
    for name, found in p_values.items():
        alarms = np.count_nonzero(np.array(found) <= 0.05)
        assert alarms <= binom.ppf(1 - FALSE_ALARM, len(found), 0.05), name


def test_copies_are_caught_by_every_attack(seed, monkeypatch):
    """Half of the synthetic table are members; what is not copied stays as invisible as fresh people."""
    monkeypatch.setattr(singling, "ATTEMPTS", 200)
    rng = stream(seed, "copies")
    d, r, fresh = (people(rng, 300) for _ in range(3))
    copied = Columns.stack([d.take(np.arange(150)), fresh.take(np.arange(150))])
    found = all_attacks(d, r, copied, rng)
    for name in ("values", "rows", "link", "number"):
        assert found[name].excess.low > 0, name
        assert found[name].p_value < 0.01, name
    assert found["link"].members.value > 0.4
    assert found["values"].baseline.value < 0.1


def test_exact_values_are_caught_where_rows_are_independent(seed, monkeypatch):
    """Independent marginals that re-emit values: nobody is copied, and values single people out all the same."""
    monkeypatch.setattr(singling, "ATTEMPTS", 200)
    rng = stream(seed, "values")
    d, r = people(rng, 300), people(rng, 300)
    mixed = Columns(
        numbers=np.column_stack([rng.permutation(c) for c in d.numbers.T]),
        codes=np.column_stack([rng.permutation(c) for c in d.codes.T]),
        ranges=d.ranges,
    )
    found = single_out(d, r, mixed, level=LEVEL, rng=rng)
    assert found.values.excess.low > 0.8
    assert found.rows.excess.low < 0.1


def test_several_rows_of_a_person_do_not_hide_them(seed):
    """A value that only one person has, in all of her rows, singles her out; counted by rows, nobody is."""
    rng = stream(seed, "several")
    numbers = np.repeat(rng.normal(size=(60, 1)), 2, axis=0)
    d = Columns(numbers=numbers, codes=np.empty((120, 0)), ranges=[[-5, 5]])
    r = Columns(
        numbers=rng.normal(size=(120, 1)), codes=np.empty((120, 0)), ranges=[[-5, 5]]
    )
    units = np.repeat(np.arange(60), 2)
    made = d.take(np.arange(0, 120, 2))
    by_person = single_out(d, r, made, units=(units, units), level=LEVEL, rng=rng)
    by_row = single_out(d, r, made, level=LEVEL, rng=rng)
    assert by_person.values.members.value > 0.9
    assert by_row.values.members.value < 0.1
    assert by_person.rows is None


def test_a_classifier_that_remembers_gives_attributes_away(seed):
    """The known label is likely only with the person's own value for members, and alike for all values for others."""
    rng = stream(seed, "inversion")
    truth_d, truth_r = rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    remembered = np.full((200, 3), 0.5)
    remembered[np.arange(200), truth_d] = 0.9
    prior = np.array([0.4, 0.3, 0.3])
    constant = prior.argmax()

    def success(likelihood, truth):
        return Success(
            attack=guess_attribute(likelihood, prior, rng=rng) == truth,
            baseline=constant == truth,
        )

    found = compare_success(
        success(remembered, truth_d),
        success(np.full((200, 3), 0.5), truth_r),
        level=LEVEL,
        rng=rng,
    )
    assert found.members.value == 1
    assert found.excess.low > 0.4
    assert found.over_baseline.low > 0.4
    # Equal likelihoods leave the prior; equal weights are decided by chance.
    assert (guess_attribute(np.ones((50, 3)), prior, rng=rng) == 0).all()
    assert set(guess_attribute(np.ones((99, 3)), np.ones(3), rng=rng)) == {0, 1, 2}


def test_missing_values_can_be_guessed():
    rng = np.random.default_rng(0)
    numbers = np.column_stack(
        [np.arange(20.0), np.where(np.arange(20) % 2, np.nan, 3.0)]
    )
    rows = Columns(numbers=numbers, codes=np.empty((20, 0)), ranges=[[0, 20], [0, 5]])
    found = infer_attribute(rows, rows, rows, secret=1, level=LEVEL, rng=rng)
    assert found.members.value == 1


def test_refusals():
    rng = np.random.default_rng(0)
    rows = people(rng, 5)
    with pytest.raises(InvalidInput, match="column 4 cannot be guessed"):
        infer_attribute(rows, rows, rows, secret=4, level=LEVEL, rng=rng)
    with pytest.raises(InvalidInput, match="0 of 4 columns are in the first half"):
        link_halves(rows, rows, rows, first=[False] * 4, level=LEVEL, rng=rng)
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        Success(attack=[2.0], baseline=[0.0])
    with pytest.raises(InvalidInput, match="1 attempts, 2 of the baseline"):
        Success(attack=[1.0], baseline=[0.0, 0.0])
    with pytest.raises(InvalidInput, match="do not fit priors"):
        guess_attribute([[0.1, 0.9]], [1.0], rng=rng)
    with pytest.raises(InvalidInput, match="negative or not finite"):
        guess_attribute([[0.1, np.nan]], [0.5, 0.5], rng=rng)
    with pytest.raises(InvalidInput, match="units for"):
        single_out(rows, rows, rows, units=([1], [2]), level=LEVEL, rng=rng)
    with pytest.raises(InvalidInput, match="the synthetic set has 1 rows"):
        single_out(rows, rows, rows.take([0]), level=LEVEL, rng=rng)
