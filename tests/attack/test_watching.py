"""From what was seen to beliefs, against likelihoods written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm

from reticent.attack import log_odds
from reticent.errors import InvalidInput
from reticent.pool import Side, Trace


def trace_of(shown, one, two, *, one_deviation=1.0, two_deviation=None, **how):
    """Return the trace of releases (R, T, P) whose common sum is 0."""
    two_deviation = one_deviation if two_deviation is None else two_deviation

    def side(share, deviation):
        return Side(
            residual=(shown**2).sum(2),
            inner=shown @ share,
            square=np.full(shown.shape[:2], (share**2).sum()),
            deviation=np.full(shown.shape[:2], deviation),
        )

    return Trace(
        first=side(one, one_deviation),
        second=side(two, two_deviation),
        distance=np.full(shown.shape[:2], np.linalg.norm(one - two)),
        size=shown.shape[2],
        **{"rate": 1.0, **how},
    )


def density(shown, share, deviation):
    return norm.logpdf(shown, share, deviation).sum(-1)


@pytest.fixture
def shown():
    return np.random.default_rng(3).normal(0.2, 1.0, (4, 6, 5))


ONE, TWO = np.array([0.5, 0, -0.3, 0, 0.1]), np.array([0, 0.4, 0, 0, 0.2])


def test_full_batches_are_a_sum_of_log_density_ratios(shown):
    naive = (density(shown, ONE, 0.8) - density(shown, TWO, 0.8)).cumsum(1)
    found = log_odds(trace_of(shown, ONE, TWO, one_deviation=0.8))
    np.testing.assert_allclose(found, naive, atol=1e-10)


def test_sampled_steps_are_mixtures(shown):
    q = 0.3

    def mixed(share):
        return np.logaddexp(
            np.log(1 - q) + density(shown, 0, 1.0),
            np.log(q) + density(shown, share, 1.0),
        )

    naive = (mixed(ONE) - mixed(TWO)).cumsum(1)
    found = log_odds(trace_of(shown, ONE, TWO, rate=q))
    np.testing.assert_allclose(found, naive, atol=1e-10)
    # The twin: without the mixture the belief is another one.
    assert abs(log_odds(trace_of(shown, ONE, TWO)) - naive).max() > 0.1


def test_a_scale_of_its_own_tells_as_well(shown):
    naive = (density(shown, ONE, 1.0) - density(shown, TWO, 1.1)).cumsum(1)
    found = log_odds(trace_of(shown, ONE, TWO, one_deviation=1.0, two_deviation=1.1))
    np.testing.assert_allclose(found, naive, atol=1e-10)


def test_in_a_shuffled_table_only_the_place_of_the_record_tells(shown):
    place = np.zeros(shown.shape[:2], dtype=bool)
    place[:, [1, 3]] = True
    gained = density(shown, ONE, 1.0) - density(shown, 0, 1.0)
    found = log_odds(trace_of(shown, ONE, np.zeros(5), rate=1 / 3, place=place))
    np.testing.assert_allclose(found, (gained * place).cumsum(1), atol=1e-10)


def test_releases_of_other_sizes_are_joined_unless_their_scale_tells(shown):
    """With one scale the odds do not depend on the size; with two, what the scale tells would be computed for another size."""
    wide, narrow = (trace_of(part, ONE[:k], TWO[:k]) for part, k in ((shown, 5), (shown[..., :3], 3)))  # fmt: skip
    joined = Trace.join([wide, narrow])
    assert joined.runs == 8
    expected = np.concatenate([log_odds(wide), log_odds(narrow)])
    np.testing.assert_allclose(log_odds(joined), expected)
    telling = trace_of(shown, ONE, TWO, one_deviation=0.8, two_deviation=1.0)
    with pytest.raises(InvalidInput, match="3 to 5 numbers at a scale that depends"):
        Trace.join([telling, narrow])
    assert Trace.join([telling, telling]).size == 5


def test_the_prior_shifts_the_odds(shown):
    trace = trace_of(shown, ONE, TWO)
    even, sceptical = log_odds(trace), log_odds(trace, prior=0.1)
    np.testing.assert_allclose(even - sceptical, np.log(9), atol=1e-12)
    with pytest.raises(InvalidInput, match="prior"):
        log_odds(trace, prior=1.0)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1.0), st.floats(0.05, 50.0))
def test_exchanging_the_tables_turns_the_belief_round(seed, rate, deviation):
    shown = np.random.default_rng(seed).normal(size=(2, 4, 5))
    there = log_odds(trace_of(shown, ONE, TWO, one_deviation=deviation, rate=rate))
    back = log_odds(trace_of(shown, TWO, ONE, one_deviation=deviation, rate=rate))
    assert np.isfinite(there).all()
    np.testing.assert_allclose(expit(there) + expit(back), 1.0, atol=1e-9)


def test_huge_gradients_do_not_overflow():
    shown = np.full((1, 3, 5), 1e6)
    assert np.isfinite(log_odds(trace_of(shown, 1e4 * ONE, TWO, rate=0.01))).all()
