"""The exponential mechanism's loss: against its closed form, against exponential mechanisms themselves, and a twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.account import Choice, Composition, Exponential, Relation, trade_off
from reticent.errors import InvalidInput


def closed_form(epsilon, a):
    """The largest delta of an exponential mechanism at a loss a."""
    e = math.exp(epsilon)
    return (math.sqrt(e) - math.exp(a / 2)) ** 2 / (e - 1)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_it_is_the_closed_form(epsilon):
    curve = trade_off(Choice(epsilon=epsilon))
    for share in (0.0, 0.3, 0.9):
        a = share * epsilon
        assert closed_form(epsilon, a) <= curve.delta(a) + 1e-12
        assert curve.delta(a) == pytest.approx(closed_form(epsilon, a), abs=1e-4)
    twice = trade_off(Choice(epsilon=epsilon, relation=Relation.REPLACE))
    assert twice.advantage == pytest.approx(math.tanh(epsilon / 2), abs=1e-4)


@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(-1, 1)), min_size=2, max_size=6),
    st.floats(0.1, 3.0),
)
def test_no_exponential_mechanism_exceeds_it(outcomes, epsilon):
    """Qualities that move by at most 1 in any direction: no pair of tables has a larger delta anywhere."""
    quality, move = np.array(outcomes).T
    p, q = (np.exp(epsilon / 2 * x) for x in (quality, quality + move))
    p, q = p / p.sum(), q / q.sum()
    for a in np.linspace(0, epsilon, 5):
        for one, other in ((p, q), (q, p)):
            delta = np.maximum(one - math.exp(a) * other, 0).sum()
            assert delta <= closed_form(epsilon, a) + 1e-12


def test_a_smaller_bound_would_be_refuted():
    """The twin: two outcomes that move apart have a larger delta than half of the epsilon allows."""
    epsilon = 1.0
    t = epsilon / 2
    p = np.array([(math.exp(epsilon) - math.exp(t)) / (math.exp(epsilon) - 1)])
    p = np.append(p, 1 - p)
    q = p * np.exp([-t, epsilon - t])
    assert q.sum() == pytest.approx(1)
    delta = np.maximum(p - q, 0).sum()
    assert delta == pytest.approx(closed_form(epsilon, 0.0))
    assert delta > closed_form(epsilon / 2, 0.0) * 1.5


def test_it_costs_less_than_a_pure_epsilon_and_composes():
    many = [
        trade_off(Composition(parts=((kind(epsilon=0.2), 20),))).epsilon(1e-5)
        for kind in (Choice, Exponential)
    ]
    assert many[0] < 0.7 * many[1]
    # As much as the zero-concentrated bound of epsilon^2 / 6 for each, which a loss uniform on [-epsilon, epsilon] has.
    rho = 20 * 0.2**2 / 6
    assert many[0] < rho + 2 * math.sqrt(rho * math.log(1e5))


def test_an_epsilon_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match="positive and finite"):
        Choice(epsilon=0.0)
