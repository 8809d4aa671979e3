"""Lower bounds on epsilon from runs on neighbouring tables: how often they are wrong, and what they see."""

import numpy as np
import pytest
from scipy.stats import binom

from reticent.account import gaussian_epsilon
from reticent.errors import InvalidInput
from reticent.evidence import rerun_ceiling, rerun_lower_bound
from reticent.run import stream

FALSE_ALARM = 1e-6
AUDITS, RUNS, LEVEL = 150, 60, 0.9


def laplace(shift, epsilon, rng):
    return rng.laplace(shift, 1 / epsilon, RUNS)


def normal(shift, mu, rng):
    return rng.normal(shift * mu, 1.0, RUNS)


def refuted(draw, truth, claim, seed, **form):
    """Return how many of many audits refute a claim."""
    rng = stream(seed, "test/reruns")
    return sum(
        rerun_lower_bound(
            draw(1.0, truth, rng), draw(0.0, truth, rng), level=LEVEL, **form
        ).low
        > claim
        for _ in range(AUDITS)
    )


@pytest.mark.parametrize("epsilon", [0.5, pytest.param(2.0, marks=pytest.mark.slow)])
def test_a_true_claim_is_refuted_no_oftener_than_stated(seed, epsilon):
    """The twin claims a third of the truth, and is refuted more often than chance allows."""
    most = binom.ppf(1 - FALSE_ALARM, AUDITS, 1 - LEVEL)
    assert refuted(laplace, epsilon, epsilon, seed, delta=0.0) <= most
    assert refuted(laplace, 3.0, 0.5, seed, delta=0.0) > most


def test_gaussian_noise_is_read_in_its_own_form(seed):
    """With the same scores the Gaussian form shows more than no assumption; a claim of half the noise is refuted."""
    mu, delta = 1.0, 1e-5
    truth = gaussian_epsilon(mu, delta)
    most = binom.ppf(1 - FALSE_ALARM, AUDITS, 1 - LEVEL)
    form = {"delta": delta, "gaussian": True}
    assert refuted(normal, mu, truth, seed, **form) <= most
    assert refuted(normal, 2.5, truth, seed, **form) > most
    rng = stream(seed, "test/forms")
    scores = normal(1.0, 2.5, rng), normal(0.0, 2.5, rng)
    shown = rerun_lower_bound(*scores, level=LEVEL, **form)
    any_form = rerun_lower_bound(*scores, level=LEVEL, delta=delta)
    assert shown.low > any_form.low
    assert shown.high == np.inf


def test_the_ceiling_is_what_an_adversary_shows_who_is_never_wrong():
    apart = np.arange(50) + 50.0, np.arange(50.0)
    for form in ({"delta": 0.0}, {"delta": 1e-5, "gaussian": True}):
        shown = rerun_lower_bound(*apart, level=LEVEL, **form).low
        assert shown == pytest.approx(rerun_ceiling(50, 50, level=LEVEL, **form), abs=0.01)  # fmt: skip
    # More runs could show more.
    assert rerun_ceiling(200, 200, delta=0.0, level=LEVEL) > rerun_ceiling(50, 50, delta=0.0, level=LEVEL)  # fmt: skip


def test_no_gaussian_form_without_a_delta():
    with pytest.raises(InvalidInput, match="no pure epsilon"):
        rerun_lower_bound([1.0], [0.0], delta=0.0, level=0.9, gaussian=True)
