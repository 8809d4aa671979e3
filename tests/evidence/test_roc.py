"""True-positive rates at low false-positive rates: ties, resolution, coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from reticent.errors import InvalidInput
from reticent.evidence import (
    exposed_share,
    individual_privacy,
    pair_wins,
    roc_points,
    tpr_at_fpr,
)
from reticent.run import stream

FALSE_ALARM = 1e-6


def by_hand(d, r, fpr):
    """Try every threshold between scores, ties apart: the naive second implementation."""
    best = 0.0
    for cut in [-np.inf, *sorted({*d, *r})]:
        if np.mean(np.array(r) > cut) <= fpr + 1e-12:
            best = max(best, np.mean(np.array(d) > cut))
    return best


@given(
    st.lists(st.integers(0, 10_000), min_size=5, max_size=40, unique=True),
    st.floats(0.01, 0.9),
    st.randoms(use_true_random=False),
)
@settings(max_examples=80, deadline=None)
def test_equals_trying_every_threshold(values, fpr, random):
    random.shuffle(values)
    half = len(values) // 2
    d, r = values[:half], values[half:]
    assert tpr_at_fpr(d, r, fpr=fpr, level=0.9).value == pytest.approx(
        by_hand(d, r, fpr)
    )


def test_ties_are_broken_evenly(seed):
    """All scores tied: a randomised attack finds as many members as non-members."""
    estimate = tpr_at_fpr(np.zeros(1000), np.zeros(1000), fpr=0.1, level=0.95)
    assert estimate.value == pytest.approx(0.1, abs=0.002)
    # Against breaking ties at random many times.
    rng = stream(seed, "ties")
    d, r = rng.integers(3, size=300), rng.integers(3, size=300)
    runs = [
        tpr_at_fpr(
            d + 0.1 * rng.random(300), r + 0.1 * rng.random(300), fpr=0.05, level=0.9
        ).value
        for _ in range(400)
    ]
    middle, error = np.mean(runs), np.std(runs) / 20
    assert tpr_at_fpr(d, r, fpr=0.05, level=0.9).value == pytest.approx(
        middle, abs=5 * error
    )


def test_a_rate_below_one_in_n_is_not_resolved_and_says_so():
    rng = np.random.default_rng(0)
    d, r = rng.normal(1, 1, 100), rng.normal(0, 1, 100)
    point = roc_points(d, r, fprs=[0.001], level=0.95)[0]
    assert not point.resolved
    assert point.tpr.low == 0
    assert point.tpr.high > 0.05
    assert roc_points(d, r, fprs=[0.01], level=0.95)[0].resolved


@pytest.mark.parametrize(
    ("shift", "fpr", "n"),
    [(0.0, 0.001, 3000), (1.0, 0.01, 400), (2.0, 0.05, 150), (1.0, 0.001, 200)],
)
def test_the_interval_covers_the_truth(shift, fpr, n, seed):
    truth = 1 - ndtr(ndtri(1 - fpr) - shift)
    rng = stream(seed, f"coverage {shift} {fpr} {n}")
    runs, level, missed = 1_000, 0.95, 0
    for _ in range(runs):
        e = tpr_at_fpr(
            rng.normal(shift, 1, n), rng.normal(0, 1, n), fpr=fpr, level=level
        )
        missed += not e.low <= truth <= e.high
    assert missed <= binom.isf(FALSE_ALARM, runs, 1 - level)


def test_twin_clopper_pearson_alone_misses_when_the_threshold_is_estimated(seed):
    """Treating the estimated threshold as known is the plausible wrong answer."""
    from reticent.evidence import clopper_pearson

    fpr, n, runs, missed = 0.01, 200, 400, 0
    truth = 1 - ndtr(ndtri(1 - fpr) - 1.0)
    rng = stream(seed, "twin")
    for _ in range(runs):
        d, r = rng.normal(1, 1, n), np.sort(rng.normal(0, 1, n))
        hits = int((d > r[-3]).sum())
        e = clopper_pearson(hits, n, level=0.95)
        missed += not e.low <= truth <= e.high
    assert missed > binom.isf(FALSE_ALARM, runs, 0.05)


def test_coverage_holds_with_ties(seed):
    """Scores on a coarse grid; the truth is that of the attack with ties broken at random."""
    rng = stream(seed, "tied coverage")
    runs, n, fpr, missed = 1_000, 300, 0.05, 0
    # Non-members: P(score = 2) = 0.1, members: 0.3; the top block holds the 5 %.
    truth = 0.3 * (fpr / 0.1)
    for _ in range(runs):
        d = rng.choice(3, n, p=[0.3, 0.4, 0.3])
        r = rng.choice(3, n, p=[0.5, 0.4, 0.1])
        e = tpr_at_fpr(d, r, fpr=fpr, level=0.95)
        missed += not e.low <= truth <= e.high
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.05)


def test_exposed_share_is_the_share_of_low_individual_scores(seed):
    rng = stream(seed, "exposed")
    d, r = rng.normal(1, 1, 1000), rng.normal(0, 1, 2000)
    direct = np.mean(individual_privacy(pair_wins(d, r)) <= 0.1 + 1e-12)
    assert exposed_share(d, r, below=0.1, level=0.95).value == pytest.approx(direct)


def test_rates_outside_the_unit_interval_are_refused():
    with pytest.raises(InvalidInput, match=r"fpr must lie inside \(0, 1\), got 0"):
        tpr_at_fpr([1.0], [0.0], fpr=0, level=0.95)
    with pytest.raises(InvalidInput, match=r"level must lie inside \(0, 1\), got 95"):
        tpr_at_fpr([1.0], [0.0], fpr=0.1, level=95)
