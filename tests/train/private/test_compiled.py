"""The compiled generator draws normal numbers, each model its own."""

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("numba", reason="the extra `compiled` is not installed")

from reticent.train.private.compiled import fill_normal, new_state

ALARM = 1e-6


def drawn(seed, count=400_000):
    out = np.empty(count, dtype=np.float32)
    fill_normal(out, new_state(seed))
    return out.astype(np.float64)


def alarms(numbers):
    """Return p-values of being independent normal numbers: law, moments, neighbours."""
    n = len(numbers)
    found = [stats.kstest(numbers, "norm").pvalue]
    for power, mean, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        z = ((numbers**power).mean() - mean) / np.sqrt(spread / n)
        found.append(2 * stats.norm.sf(abs(z)))
    for lag in (1, 63, 64, 65, 128):  # within and between the sixty-four lanes
        for shape in (lambda x: x, lambda x: (x**2 - 1) / np.sqrt(2)):
            z = (shape(numbers[:-lag]) * shape(numbers[lag:])).sum() / np.sqrt(n - lag)
            found.append(2 * stats.norm.sf(abs(z)))
    tail = int((np.abs(numbers) > 4).sum())
    found.append(stats.binomtest(tail, n, 2 * stats.norm.sf(4)).pvalue)
    return found


def test_numbers_are_normal_and_independent(seed):
    found = alarms(drawn(seed))
    assert min(found) > ALARM / len(found)


def test_a_generator_that_repeats_its_lanes_is_found_out(seed):
    """The twin: every second vector a copy, as of a state that was not moved."""
    numbers = drawn(seed).reshape(-1, 2, 64)[:, [0, 0]].ravel()
    found = alarms(numbers)
    assert min(found) < ALARM / len(found)


def test_seeds_give_streams_of_their_own(seed):
    one, same, other = drawn(seed, 5000), drawn(seed, 5000), drawn(seed + 1, 5000)
    assert np.array_equal(one, same)
    z = (one * other).sum() / np.sqrt(len(one))
    assert 2 * stats.norm.sf(abs(z)) > ALARM


def test_a_state_goes_on_where_it_was():
    state = new_state(3)
    parts = [np.empty(128, dtype=np.float32) for _ in range(2)]
    for part in parts:
        fill_normal(part, state)
    assert np.array_equal(np.concatenate(parts), drawn(3, 256).astype(np.float32))


@pytest.mark.parametrize("count", [0, 1, 127, 129])
def test_any_number_of_places_is_filled(count):
    out = np.full(count, np.nan, dtype=np.float32)
    fill_normal(out, new_state(1))
    assert np.isfinite(out).all()
