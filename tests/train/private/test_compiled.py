"""The compiled generator draws normal numbers, each model its own."""

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("numba", reason="the extra `compiled` is not installed")

from reticent.train.private.compiled import (
    add_normal,
    add_tanh_products,
    fill_normal,
    new_state,
    tanh_squares,
)

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
    parts = [np.empty(512, dtype=np.float32) for _ in range(2)]
    for part in parts:
        fill_normal(part, state)
    assert np.array_equal(np.concatenate(parts), drawn(3, 1024).astype(np.float32))


@pytest.mark.parametrize("count", [0, 1, 511, 513])
def test_any_number_of_places_is_filled(count):
    out = np.full(count, np.nan, dtype=np.float32)
    fill_normal(out, new_state(1))
    assert np.isfinite(out).all()


@pytest.mark.parametrize("count", [1, 511, 512, 1500])
def test_noise_is_added_with_the_draws_that_filling_gives(count, seed):
    start = np.random.default_rng(seed).normal(size=count).astype(np.float32)
    moved = start.copy()
    add_normal(moved, new_state(seed), np.float32(0.9), np.float32(-0.3))
    wanted = 0.9 * start.astype(np.float64) - 0.3 * drawn(seed, count)
    assert np.allclose(moved, wanted, atol=1e-6)
    # The twin: noise with the other sign is other noise.
    assert not np.allclose(moved, 1.8 * start - wanted, atol=1e-2)


@pytest.mark.parametrize("records", [1, 2, 7])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 30.0, 1e20])
def test_tanh_of_products_equals_that_of_double_precision(records, scale, seed):
    rng = np.random.default_rng(seed)
    above = (scale * rng.normal(size=(records, 5))).astype(np.float32)
    above[rng.random(above.shape) < 0.3] = 0  # units that are switched off
    below = rng.normal(size=(records, 33)).astype(np.float32)
    weights = rng.random(records).astype(np.float32)
    bent = np.tanh(above[:, :, None].astype(np.float64) * below[:, None, :])
    start = rng.normal(size=(5, 33)).astype(np.float32)
    total, squares = start.copy(), np.empty(records, dtype=np.float32)
    add_tanh_products(above, below, weights, total)
    tanh_squares(above, below, squares)
    wanted = np.einsum("b,boi->oi", weights, bent)
    largest = np.abs(wanted).max() if wanted.any() else 1.0
    assert np.abs(total - start - wanted).max() < 1e-6 * (largest + 2)
    assert np.allclose(squares, (bent**2).sum(axis=(1, 2)), rtol=3e-6)
    # The twin: one record left out is noticed.
    if np.abs(bent[0]).max() > 0.1 and weights[0] > 0.1:
        without = np.einsum("b,boi->oi", weights[1:], bent[1:])
        assert np.abs(total - start - without).max() > 1e-3
