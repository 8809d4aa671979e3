"""The share of a true answer, seen through randomised ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from reticent.account import RandomisedResponse
from reticent.errors import InvalidInput
from reticent.evidence import clopper_pearson, estimate_share
from reticent.run import stream

FALSE_ALARM = 1e-6
COINS = RandomisedResponse(truth=0.5)


@given(st.integers(0, 200))
def test_two_fair_coins_are_twice_yes_less_a_half(hits):
    heard = np.arange(200) < hits
    found = estimate_share(COINS, heard.astype(int), level=0.9)
    plain = clopper_pearson(hits, 200, level=0.9)
    for ours, seen in ((found.value, plain.value), (found.low, plain.low), (found.high, plain.high)):  # fmt: skip
        assert ours == pytest.approx(2 * seen - 0.5)


@pytest.mark.parametrize("fixed", [True, False], ids=["these people", "any people"])
def test_the_interval_covers_and_the_value_is_unbiased(seed, fixed):
    mechanism = RandomisedResponse(truth=0.3, answers=4)
    share, people, runs, level = 0.2, 150, 2_000, 0.9
    rng = stream(seed, f"shares/{fixed}")
    values, covered = [], 0
    for _ in range(runs):
        hit = (
            np.arange(people) < share * people if fixed else rng.random(people) < share
        )
        heard = np.where(
            rng.random(people) < 0.3, 2 * hit, rng.integers(4, size=people)
        )
        found = estimate_share(mechanism, heard, answer=2, level=level)
        values.append(found.value)
        covered += found.low <= share <= found.high
    assert covered >= binom.ppf(FALSE_ALARM, runs, level)
    error = np.std(values) / np.sqrt(runs)
    assert abs(np.mean(values) - share) < 4.9 * error
    # Twin: the share of what was heard is far off.
    naive = np.mean(values) * 0.3 + 0.7 / 4
    assert abs(naive - share) > 4.9 * error


@pytest.mark.parametrize(
    ("mechanism", "answers", "answer", "words"),
    [
        (COINS, [], 1, "at least one"),
        (COINS, [0, 2], 1, "this mechanism released them"),
        (COINS, [0, 1], 2, "from 0 to 1, got 2"),
        (RandomisedResponse(truth=0.0), [0, 1], 1, "never told"),
    ],
)
def test_what_cannot_be_is_refused(mechanism, answers, answer, words):
    with pytest.raises(InvalidInput, match=words):
        estimate_share(mechanism, answers, answer=answer, level=0.9)
