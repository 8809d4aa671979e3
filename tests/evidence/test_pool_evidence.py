"""What a pool adds: exact intervals of loss quantiles, boxes over models, histograms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from reticent.errors import InvalidInput
from reticent.evidence import (
    Correction,
    crossed,
    disparity_of,
    loss_quantiles,
    posterior_histogram,
    split_level,
)
from reticent.run import stream

FALSE_ALARM = 1e-6


@given(st.integers(5, 400), st.floats(0.02, 0.98), st.sampled_from([0.8, 0.95, 0.999]))
@settings(max_examples=100, deadline=None)
def test_order_statistics_cover_exactly_and_no_closer_ones_would(n, share, level):
    """Losses 1..n: an end is the number of an order statistic, whose coverage is binomial."""
    (made,) = loss_quantiles(np.arange(1.0, n + 1), shares=[share], level=level)
    low, high, miss = made.loss.low, made.loss.high, (1 - level) / 2
    assert made.loss.value == pytest.approx(np.quantile(np.arange(1.0, n + 1), share))
    assert binom.cdf(low - 1, n, share) <= miss + 1e-12  # fewer than `low` lie below
    if np.isfinite(high):
        assert binom.sf(high - 1, n, share) <= miss + 1e-12
        if high - 1 > made.loss.value:
            assert binom.sf(high - 2, n, share) > miss - 1e-12
    else:
        assert binom.sf(n - 1, n, share) > miss - 1e-12
    if low < np.floor(made.loss.value):
        assert binom.cdf(low, n, share) > miss - 1e-12


def any_missed(seed, joint):
    """Runs in which an interval misses a quantile of losses that are |N(0, 1)|."""
    from scipy.stats import halfnorm

    rng, runs, shares = stream(seed, "quantiles"), 600, (0.1, 0.5, 0.9)
    truth = halfnorm.ppf(shares)
    # A caller that forgets to share the level would ask for each quantile alone.
    asked = [shares] if joint else [(share,) for share in shares]
    missed = 0
    for _ in range(runs):
        odds = rng.normal(size=400)
        made = [q for s in asked for q in loss_quantiles(odds, shares=s, level=0.9)]
        missed += any(
            not q.loss.low <= t <= q.loss.high for q, t in zip(made, truth, strict=True)
        )
    return missed, binom.isf(FALSE_ALARM, runs, 0.1)


def test_quantiles_of_the_loss_are_covered_together(seed):
    missed, most = any_missed(seed, joint=True)
    assert missed <= most


def test_twin_quantiles_each_alone_are_not(seed):
    missed, most = any_missed(seed, joint=False)
    assert missed > most


def test_few_people_leave_a_high_quantile_open():
    (made,) = loss_quantiles(np.linspace(-3, 3, 100), shares=[0.99], level=0.95)
    assert made.loss.high == np.inf
    assert made.loss.low < made.loss.value
    (lowest,) = loss_quantiles(np.linspace(-3, 3, 100), shares=[0.01], level=0.95)
    assert lowest.loss.low == 0


def test_the_sign_of_the_log_odds_does_not_count(seed):
    odds = stream(seed, "sign").normal(size=80)
    assert loss_quantiles(odds, shares=[0.5, 0.9], level=0.9) == loss_quantiles(
        np.abs(odds), shares=[0.5, 0.9], level=0.9
    )


def test_shares_outside_zero_to_one_are_refused():
    with pytest.raises(InvalidInput, match="share"):
        loss_quantiles(np.arange(50.0), shares=[50], level=0.95)
    with pytest.raises(InvalidInput, match="1 of 3 scores of log-odds are NaN"):
        loss_quantiles([0.0, 1.0, np.nan], shares=[0.5], level=0.95)
    with pytest.raises(InvalidInput, match="level"):
        loss_quantiles(np.arange(50.0), shares=[0.5], level=95)


def test_a_box_is_five_numbers_over_models(seed):
    rng = stream(seed, "box")
    masks = rng.random((9, 120)) < 0.5
    called = rng.random((9, 120)) < np.where(masks, 0.7, 0.4)
    found = crossed(called, masks, np.arange(120) % 2, level=0.95)
    made = disparity_of(found, attack="lira", correction=Correction.BONFERRONI)
    by_model = np.sort(np.array(found.by_model), axis=0)
    for g, group in enumerate(made.groups):
        # Of nine sorted numbers the ends, the third, fifth and seventh.
        box = group.box
        five = (box.low, box.lower, box.median, box.upper, box.high)
        assert five == pytest.approx(by_model[[0, 2, 4, 6, 8], g])
        assert group.vulnerability == found.vulnerability[g]
    assert [g.name for g in made.groups] == ["0", "1"]
    assert (made.attack, made.correction) == ("lira", "Bonferroni")
    assert (made.p_value, made.pairs) == (found.p_value, found.pairs)


def test_shares_of_predicted_probabilities_are_counted(seed):
    rng = stream(seed, "posterior")
    d, r = rng.beta(4, 2, 400), rng.beta(2, 4, 300)
    made = posterior_histogram(d, r, bins=10)
    assert made.edges == pytest.approx(np.arange(11) / 10)
    for values, shares in ((d, made.members), (r, made.nonmembers)):
        for k, share in enumerate(shares):
            count = np.sum((values >= k / 10) & (values < (k + 1) / 10))
            assert share == pytest.approx(count / len(values) if count >= 5 else 0, abs=1e-6)  # fmt: skip


def test_bins_of_fewer_than_five_people_are_not_shown():
    p = np.concatenate([np.full(4, 0.05), np.full(5, 0.35), np.full(91, 0.95)])
    made = posterior_histogram(p, p, bins=10)
    assert made.members == (0, 0, 0, 0.05, 0, 0, 0, 0, 0, 0.91)
    certain = posterior_histogram(np.ones(9), np.zeros(9), bins=2)
    assert (certain.members, certain.nonmembers) == ((0, 1), (1, 0))


def test_the_level_is_shared_by_all_quantiles():
    shares = [0.25, 0.5, 0.75]
    alone = loss_quantiles(
        np.arange(300.0), shares=[0.5], level=split_level(0.9, len(shares))
    )
    together = loss_quantiles(np.arange(300.0), shares=shares, level=0.9)
    assert together[1].loss.low == alone[0].loss.low
    assert together[1].loss.high == alone[0].loss.high
    assert together[1].loss.level == 0.9
