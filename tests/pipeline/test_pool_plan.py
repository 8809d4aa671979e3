"""How large a pool is: by time, by memory, never in between."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.pipeline import SIZES, forecast, largest_size

ASKED = {"workers": 2, "records": 40_000, "classes": 2, "memory": 2.0}


def choose_size(one, *, seconds, workers, records, classes, memory):
    """Return the size for models that take so long each."""
    forecasts = [
        forecast(models, each=one, workers=workers, answers=(records, classes))
        for models in SIZES
    ]
    return largest_size(forecasts, seconds=seconds, memory=memory)


def memory_needed(models, records, classes):
    return forecast(models, each=0, workers=1, answers=(records, classes)).gigabytes


@pytest.mark.parametrize(
    ("one", "seconds", "expected"),
    [
        (0.0, 60, 64),  # too short to be measured
        (0.01, 60, 64),
        (3.0, 120, 32),  # 0.4 x 120 s x 2 workers / 3 s = 32 models
        (3.1, 120, 16),  # 31 would fit, but 31 is no size
        (12.0, 60, 4),
        (12.1, 60, 0),
        (600.0, 60, 0),
    ],
)
def test_the_pool_fits_into_the_time(one, seconds, expected):
    assert choose_size(one, seconds=seconds, **ASKED) == expected


def test_memory_bounds_the_pool():
    """64 models on a million records of two classes: 64e6 x 2 x (8 + 16 + 1) bytes."""
    assert memory_needed(64, 1_000_000, 2) == pytest.approx(3.2)
    large = {**ASKED, "records": 1_000_000}
    assert choose_size(0.01, seconds=60, **large) == 32
    assert choose_size(0.01, seconds=60, **{**large, "memory": 3.2}) == 64
    assert choose_size(0.01, seconds=60, **{**large, "memory": 0.1}) == 0


plans = st.fixed_dictionaries(
    {
        "seconds": st.floats(1, 1e4),
        "workers": st.integers(1, 64),
        "records": st.integers(10, 10**7),
        "classes": st.integers(2, 1000),
        "memory": st.floats(0.01, 100),
    }
)


@given(st.floats(0, 1e4), plans, st.floats(1, 10))
@settings(max_examples=200, deadline=None)
def test_more_time_or_memory_never_makes_a_smaller_pool(one, plan, more):
    size = choose_size(one, **plan)
    assert size in (0, *SIZES)
    assert size == 0 or memory_needed(size, plan["records"], plan["classes"]) <= plan["memory"]  # fmt: skip
    for name in ("seconds", "memory"):
        assert choose_size(one, **{**plan, name: plan[name] * more}) >= size
    assert choose_size(one * more, **plan) <= size


@given(st.integers(1, 64), st.integers(1, 10**6), st.integers(2, 50))
@settings(max_examples=50, deadline=None)
def test_memory_is_at_least_that_of_the_answers(models, records, classes):
    answers = models * records * classes * 4 / 1e9
    assert memory_needed(models, records, classes) > 2 * answers
