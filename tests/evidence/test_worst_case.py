"""The worst case: what is left of its bias, coverage, size and power, and what it cannot see."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom

from reticent.errors import InvalidInput
from reticent.evidence import (
    Estimate,
    _cells,
    subgroup_aware,
    worst_case,
    worst_case_density,
    worst_case_discrete,
    worst_case_vectors,
)
from reticent.evidence._cells import CELLS, Cells
from reticent.run import stream

FALSE_ALARM = 1e-6
STRICT = 4.9  # standard errors that a mean exceeds once in a million
ASKED = {"feature": "x", "level": 0.95}


@pytest.fixture
def few(monkeypatch):
    """With 19 permutations the p-value is exactly 1/20 or less in 1 of 20 null runs."""
    monkeypatch.setattr(worst_case, "PERMUTATIONS", 19)


def shifted(rng, delta, n, runs):
    """Two normal samples whose total variation distance is known, many times."""
    return [
        worst_case_density(rng.normal(delta, 1, n), rng.normal(0, 1, n), **ASKED, rng=rng)
        for _ in range(runs)
    ]  # fmt: skip


def truth_of(delta):
    """Total variation of N(delta, 1) and N(0, 1)."""
    return 2 * ndtr(delta / 2) - 1


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("n", [200, 1000])
@pytest.mark.parametrize("delta", [0.1, 0.5, 1.5])
def test_the_corrected_estimate_is_nearly_unbiased(n, delta, seed):
    runs = 60
    values = [
        w.estimate.value
        for w in shifted(stream(seed, f"bias {n} {delta}"), delta, n, runs)
    ]
    error = np.std(values) / np.sqrt(runs)
    assert abs(np.mean(values) - truth_of(delta)) < 0.02 + STRICT * error


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("n", "delta"), [(200, 0.0), (200, 0.1), (1000, 0.0)])
def test_twin_the_plug_in_leans_upwards(n, delta, seed):
    """Two samples of one source never look quite alike; most of that is taken away."""
    runs = 60
    found = shifted(stream(seed, f"twin {n} {delta}"), delta, n, runs)
    plug_in = np.array([w.plug_in for w in found])
    value = np.array([w.estimate.value for w in found])
    error = plug_in.std() / np.sqrt(runs)
    assert plug_in.mean() - truth_of(delta) > 0.02 + STRICT * error
    gain = plug_in - value
    assert gain.mean() > 0.5 * (plug_in.mean() - truth_of(delta))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "delta",
    [0.0, *(pytest.param(d, marks=pytest.mark.slow) for d in (0.3, 1.0)), 3.0],
)
def test_the_interval_covers_the_truth(delta, seed):
    """Where nothing is there, and where members and others hardly overlap."""
    runs, truth = 300, truth_of(delta)  # 12 % would be noticed
    found = shifted(stream(seed, f"coverage {delta}"), delta, 300, runs)
    missed = sum(not w.estimate.low <= truth <= w.estimate.high for w in found)
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.05)


def test_twin_two_halves_are_not_as_good_as_independent_records(seed):
    """Halves judged by each other's rule err together: the plain interval lies above 0 too often."""
    rng, runs, n = stream(seed, "halves"), 4000, 100
    plain = honest = 0
    for _ in range(runs):
        d, r = rng.integers(10, size=(2, n))
        called = Cells(members=d, nonmembers=r, counted=10).cross_fitted(rng)
        made = worst_case._corrected(
            "x", 0.0, np.zeros(1), called, threshold=0.0, level=0.95
        )
        honest += made.estimate.low > 0
        plain += worst_case.vulnerability(*called, level=0.95).low > 0
    assert honest <= binom.isf(FALSE_ALARM, runs, 0.025)
    assert plain > binom.isf(FALSE_ALARM, runs, 0.025)
    assert plain > 2 * honest


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("n", [50, 1000])
def test_separated_samples_are_wholly_exposed(n, seed):
    """A kernel flattens the edge between them, so the plug-in alone (the twin) is no upper end."""
    rng = stream(seed, f"edge {n}")
    made = worst_case_density(
        rng.normal(20, 1, n), rng.normal(0, 1, n), **ASKED, rng=rng
    )
    assert made.plug_in < 0.97
    assert made.estimate.low > 0.5
    assert made.estimate.high > 0.99


def interleaved(rng, n, values):
    """Members have the even values and others the odd ones: the total variation is 1."""
    return 2 * rng.integers(values // 2, size=n), 2 * rng.integers(values // 2, size=n) + 1  # fmt: skip


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("n", "values"), [(1000, 40), (200, 20), (60, 6)])
def test_few_values_that_alternate_are_counted(n, values, seed):
    """An exact count: no draw of these sizes leaves a value with fewer than ten records but once in a million."""
    rng = stream(seed, f"interleaved {n}")
    d, r = interleaved(rng, n, values)
    alone = worst_case_density(d, r, **ASKED, rng=rng)
    three = [np.column_stack([side, side // 4, np.zeros(n)]) for side in (d, r)]
    for made in (alone, worst_case_vectors(*three, **ASKED, rng=rng)):
        assert made.plug_in == pytest.approx(1)
        assert made.estimate.high == 1
        assert made.estimate.low > (0.85 if n > 60 else 0.8)
        assert made.p_value == 0.05
    # Twin: smoothed over all values, as before, hardly anything is left of it, at either end.
    grid = worst_case.cells_of_numbers(d + rng.uniform(0, 1e-9, n), r + rng.uniform(0, 1e-9, n), rng)  # fmt: skip
    blurred = replace(grid, width=CELLS * 0.2 * n**-0.25)
    smoothed = worst_case._by_cells(blurred, "x", 0.95, rng)
    assert smoothed.estimate.high < 0.9
    if values == 40:
        assert smoothed.estimate.high < 0.2


@pytest.mark.usefixtures("few")
def test_rare_values_that_alternate_are_counted_as_well(seed):
    """Two or three records of a value, all on one side. The twin, which counts values of ten and more, sees nothing of it."""
    rng = stream(seed, "interleaved, rare")
    d, r = interleaved(rng, 200, 80)
    made = worst_case_density(d, r, **ASKED, rng=rng).estimate
    assert made.low > 0.6
    assert made.high > 0.99
    twin = worst_case._by_cells(_cells._cells(d, r, 10), "x", 0.95, rng).estimate
    assert twin.high < 0.5


def test_rounded_numbers_that_do_not_alternate_are_smoothed(seed):
    """Alike, shifted and of another shape: six deviations are passed with a chance of 1e-9 each if the sum of squares is nearly normal."""
    rng = stream(seed, "rounded")
    for _ in range(40):
        alike = rng.normal(size=(2, 200))
        shifted = rng.normal(1, 1, 200), rng.normal(0, 1, 200)
        sharp = np.abs(rng.normal(0, 0.3, 200)), rng.exponential(size=200)
        for sides in (alike, shifted, sharp):
            d, r = (side.round(2) for side in sides)
            coarse, tied = _cells._cells(d, r, 10), _cells._cells(d, r, 2)
            assert tied.counted > coarse.counted
            assert not _cells._alternate(coarse, tied, rng)


@pytest.mark.usefixtures("few")
def test_a_group_whose_scores_alternate_is_not_lost_in_the_sum(seed):
    rng = stream(seed, "group interleaved")
    apart, same = interleaved(rng, 300, 12), rng.normal(size=(2, 300))
    each = [
        (1.0, worst_case_density(d, r, **ASKED, rng=rng).estimate)
        for d, r in (apart, same)
    ]
    whole = subgroup_aware(each, level=0.9)
    assert whole.low > 0.45
    assert whole.high > 0.5


@pytest.mark.usefixtures("few")
def test_common_values_among_others_are_counted_and_the_others_smoothed(seed):
    """Half of the records alternate, half are alike: the truth is one half."""
    rng, runs, n = stream(seed, "mixed"), 60, 500
    missed = high = 0
    for _ in range(runs):
        sides = [
            np.where(rng.random(n) < 0.5, even_or_odd, rng.normal(size=n))
            for even_or_odd in interleaved(rng, n, 12)
        ]
        made = worst_case_density(*sides, **ASKED, rng=rng).estimate
        missed += not made.low <= 0.5 <= made.high
        high += made.high > 0.75
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.06)
    assert high == 0  # a bound that is always 1 would cover, too


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_the_steps_of_a_forest_are_covered(shift, seed):
    """Fifty-one values with a smooth difference: counting them costs width and no coverage."""
    rng, runs, n = stream(seed, f"steps {shift}"), 100, 400
    edges = np.linspace(-3, 3, 50)
    shares = [np.diff(np.r_[0, ndtr(edges - s), 1]) for s in (shift, 0.0)]
    truth = np.abs(shares[0] - shares[1]).sum() / 2
    low = high = 0
    for _ in range(runs):
        d, r = (np.searchsorted(edges, rng.normal(s, 1, n)) for s in (shift, 0.0))
        made = worst_case_density(d, r, **ASKED, rng=rng).estimate
        low, high = low + (made.low > truth + 1e-12), high + (made.high < truth)
    assert max(low, high) <= binom.isf(FALSE_ALARM, runs, 0.025)


def test_two_values_are_the_gap_whichever_way_they_are_asked_for(seed):
    rng = stream(seed, "two values")
    d, r = rng.random(90) < 0.7, rng.random(80) < 0.4
    ways = [way(d, r, **ASKED, rng=stream(seed, "same")) for way in (worst_case_density, worst_case_discrete)]  # fmt: skip
    assert ways[0] == ways[1]


@pytest.mark.usefixtures("few")
def test_p_values_are_uniform_where_nothing_is_there(seed):
    runs, rng = 400, stream(seed, "size")
    p = np.array(
        [
            worst_case_discrete(*rng.integers(6, size=(2, 60)), **ASKED, rng=rng).p_value
            for _ in range(runs)
        ]
    )  # fmt: skip
    for share in (0.05, 0.25, 0.5):
        assert (p <= share).sum() <= binom.isf(FALSE_ALARM, runs, share)
    # Ties of so few counts make p-values larger, not by much.
    assert (p <= 0.5).sum() >= binom.ppf(FALSE_ALARM, runs, 0.35)


@pytest.mark.usefixtures("few")
def test_p_values_are_small_where_something_is_there(seed):
    runs = 60
    found = shifted(stream(seed, "power"), 0.5, 300, runs)
    assert sum(w.p_value <= 0.05 for w in found) > 0.9 * runs
    null = shifted(stream(seed, "null"), 0.0, 300, runs)
    assert sum(w.p_value <= 0.05 for w in null) <= binom.isf(FALSE_ALARM, runs, 0.05)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 60), st.integers(0, 60))
@settings(max_examples=50, deadline=None)
def test_for_the_zero_one_loss_it_is_the_gap_of_errors(d_wrong, r_wrong, d, r):
    """Corollary 1: the best adversary that sees right or wrong uses the gap, either way round."""
    member, other = np.zeros(d_wrong + d + 4), np.zeros(r_wrong + r + 4)
    member[:d_wrong] = other[:r_wrong] = 1
    w = worst_case_discrete(member, other, **ASKED, rng=np.random.default_rng(0))
    assert w.plug_in == pytest.approx(abs(member.mean() - other.mean()))
    assert 0 <= w.estimate.low <= w.estimate.value <= w.estimate.high <= 1
    assert w.estimate.high >= w.plug_in - 1e-12


def test_many_values_are_counted_as_by_hand(seed):
    rng = stream(seed, "by hand")
    d, r = rng.integers(7, size=90), rng.integers(2, 9, size=120)
    by_hand = sum(abs((d == v).mean() - (r == v).mean()) for v in range(9)) / 2
    assert worst_case_discrete(d, r, **ASKED, rng=rng).plug_in == pytest.approx(by_hand)


def test_the_permutation_bias_is_that_of_permuted_records(seed):
    """The pooled cells are drawn without replacement: the naive way permutes the tags themselves."""
    rng = stream(seed, "permuted")
    d, r = rng.integers(5, size=50), rng.integers(5, size=70)
    both = np.concatenate([d, r])
    naive = []
    for _ in range(2000):
        p = rng.permutation(both)
        naive.append(
            sum(abs((p[:50] == v).mean() - (p[50:] == v).mean()) for v in range(5)) / 2
        )
    ours = worst_case_discrete(d, r, **ASKED, rng=rng).bias
    error = np.std(naive) * np.sqrt(1 / 2000 + 1 / worst_case.PERMUTATIONS)
    assert abs(ours - np.mean(naive)) < STRICT * error


@given(st.integers(0, 2**32 - 1), st.sampled_from([np.exp, np.cbrt, lambda x: 3 * x - 7]))  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_a_monotone_transformation_changes_nothing(key, transform):
    rng = np.random.default_rng(key)
    d, r = rng.normal(0.5, 1, 60).round(1), rng.normal(0, 1, 50).round(1)
    plain, other = (
        worst_case_density(a, b, **ASKED, rng=np.random.default_rng(key))
        for a, b in ((d, r), (transform(d), transform(r)))
    )
    assert plain == other


@pytest.mark.usefixtures("few")
def test_neighbours_in_two_dimensions_are_right(seed):
    """2 Phi(|delta| / 2) - 1 with |delta| the distance of the means."""
    rng, n, runs = stream(seed, "plane"), 200, 200
    truth = truth_of(np.sqrt(2))
    found = [
        worst_case_vectors(rng.normal(1, 1, (n, 2)), rng.normal(0, 1, (n, 2)), **ASKED, rng=rng)
        for _ in range(runs)
    ]  # fmt: skip
    values = [w.estimate.value for w in found]
    error = np.std(values) / np.sqrt(runs)
    assert abs(np.mean(values) - truth) < 0.05 + STRICT * error
    missed = sum(not w.estimate.low <= truth <= w.estimate.high for w in found)
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.05)  # 14 % would be noticed


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("dimensions", "delta"), [(2, 0.0), (10, 0.5)])
def test_the_low_end_of_neighbours_does_not_exceed_the_truth(dimensions, delta, seed):
    rng, n, runs = stream(seed, f"low {dimensions}"), 100, 250
    truth = truth_of(delta * np.sqrt(dimensions))
    found = [
        worst_case_vectors(
            rng.normal(delta, 1, (n, dimensions)), rng.normal(0, 1, (n, dimensions)),
            **ASKED, rng=rng,
        )
        for _ in range(runs)
    ]  # fmt: skip
    above = sum(w.estimate.low > truth + 1e-12 for w in found)
    assert above <= binom.isf(FALSE_ALARM, runs, 0.025)
    if dimensions == 10:  # many dimensions: it leans down, so it is no upper bound
        values = [w.estimate.value for w in found]
        assert np.mean(values) < truth - STRICT * np.std(values) / np.sqrt(runs)


def test_the_unit_of_a_column_does_not_count(seed):
    rng = stream(seed, "unit")
    d, r = rng.normal(1, 1, (60, 3)), rng.normal(0, 1, (60, 3))
    scale = np.array([1.0, 1e6, 1e-6])
    plain, other = (
        worst_case_vectors(a, b, **ASKED, rng=stream(seed, "same"))
        for a, b in ((d, r), (d * scale, r * scale))
    )
    assert plain == other


def test_a_group_adds_what_its_share_is_worth():
    def made(value):
        return Estimate(
            value=value, low=value - 0.1, high=value + 0.1, level=0.95, method="m"
        )

    whole = subgroup_aware([(30, made(0.2)), (10, made(0.6))], level=0.95)
    assert whole.value == pytest.approx(0.3)
    assert (whole.low, whole.high) == pytest.approx((0.2, 0.4))


def test_knowing_the_group_never_harms_the_adversary(seed):
    """Theorem 4: opposite gaps in two groups cancel for one who does not know them."""
    rng = stream(seed, "theorem 4")
    n, group = 1000, np.arange(1000) % 2
    d = rng.random(n) < np.where(group == 0, 0.8, 0.2)
    r = rng.random(n) < np.where(group == 0, 0.2, 0.8)
    blind = worst_case_discrete(d, r, **ASKED, rng=rng).estimate
    each = [
        (1.0, worst_case_discrete(d[group == g], r[group == g], **ASKED, rng=rng).estimate)
        for g in (0, 1)
    ]  # fmt: skip
    assert blind.high < 0.3
    assert subgroup_aware(each, level=0.9).low > 0.45


def test_what_cannot_be_compared_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match="use worst_case_density"):
        worst_case_discrete(rng.random(400), rng.random(400), **ASKED, rng=rng)
    with pytest.raises(
        InvalidInput, match="at least four members and four non-members"
    ):
        worst_case_density([0.0, 1.0, 2.0], [0.0] * 9, **ASKED, rng=rng)
    with pytest.raises(InvalidInput, match="1 of 5 scores of members are NaN"):
        worst_case_density([0.0, 1.0, 2.0, 3.0, np.nan], [0.0] * 9, **ASKED, rng=rng)
    with pytest.raises(InvalidInput, match="one row per record"):
        worst_case_vectors(rng.random(40), rng.random(40), **ASKED, rng=rng)
    with pytest.raises(InvalidInput, match="at least ten rows"):
        worst_case_vectors(rng.random((9, 2)), rng.random((40, 2)), **ASKED, rng=rng)
    with pytest.raises(InvalidInput, match="the same features of both"):
        worst_case_vectors(rng.random((20, 2)), rng.random((20, 3)), **ASKED, rng=rng)
    with pytest.raises(InvalidInput, match="no groups with a positive share"):
        subgroup_aware([], level=0.95)
    with pytest.raises(InvalidInput, match="level"):
        worst_case_discrete([0] * 5, [1] * 5, feature="x", level=95, rng=rng)
