"""How many retraining rounds are planned, and how stopping early is paid for."""

import numpy as np
import pytest
from scipy.stats import binom

from reticent.attack import Retrained
from reticent.evidence import clopper_pearson, split_level
from reticent.pipeline import LOOKS, plan_rounds
from reticent.run import stream

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(
    ("one", "seconds", "expected"),
    [
        (0.01, 60, [100, 100, 100]),  # plenty of time
        (1.0, 60, [32, 16, 16]),  # a third of 120 trainings each
        (1.6, 60, [16, 8, 8]),
        (2.5, 60, [8, 8, 8]),  # the first eight rounds share no model
        (600.0, 60, [0, 0, 0]),
    ],
)
def test_rounds_fit_into_the_time(one, seconds, expected):
    planned = plan_rounds(
        one, seconds, most_rounds=100, workers=2, gives=Retrained.PRODUCT
    )
    assert planned.tolist() == expected


def test_rounds_that_share_no_model_take_twice_the_time():
    def plan(gives):
        return plan_rounds(1.0, 60, most_rounds=100, workers=2, gives=gives).tolist()

    assert plan(Retrained.VARIES) == [16, 16, 16]
    # Without the product's seed only one regime is left, and has all of the time.
    assert plan(Retrained.OTHER) == [0, 0, 32]


def test_a_little_more_time_changes_nothing():
    one, other = (
        plan_rounds(
            seconds, 60, most_rounds=100, workers=2, gives=Retrained.PRODUCT
        ).tolist()
        for seconds in (1.0, 0.97)
    )
    assert one == other


def stopped_early(rng, each, limit):
    """Look at a fair coin after each planned number of rounds; stop when it looks settled."""
    wins = rng.random(100) < 0.5
    for look in LOOKS:
        interval = clopper_pearson(wins[:look].sum(), look, level=each)
        if interval.low > limit or interval.high < limit:
            break
    return not interval.low <= 0.5 <= interval.high


@pytest.mark.parametrize("paid", [True, False])
def test_looking_often_is_paid_for(paid, seed):
    rng = stream(seed, "looks")
    runs = 4000
    each = split_level(0.95, len(LOOKS)) if paid else 0.95
    missed = sum(stopped_early(rng, each, 0.5) for _ in range(runs))
    if paid:
        assert missed <= binom.isf(FALSE_ALARM, runs, 0.05)
    else:  # the plausible wrong answer
        assert missed > binom.isf(FALSE_ALARM, runs, 0.05)
    assert np.isfinite(missed)
