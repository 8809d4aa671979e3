"""Many equal steps have the loss that ``dp_accounting`` computes for them, to the last digit."""

import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld

from reticent.account import Relation, SubsampledGaussian
from reticent.account.composed import CUT_OFF, composed, kept_cells
from reticent.run import stream

GRID = 1e-2


def cells(pmf):
    """What a distribution of the library consists of."""
    dense = pmf.to_dense_pmf()
    return (dense._lower_loss, dense._infinity_mass, *dense._probs)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("steps", [2, 30, 2_000])
@pytest.mark.parametrize(("noise", "rate"), [(0.5, 0.3), (0.9, 0.01), (6.0, 0.1)])
def test_digits_are_those_of_the_library(noise, rate, steps, relation):
    once = SubsampledGaussian(
        noise_multiplier=noise, sampling_rate=rate, relation=relation
    ).loss(GRID)
    ours = composed(once, steps)
    with np.errstate(all="ignore"):
        theirs = once.self_compose(steps)
    assert cells(ours._pmf_remove) == cells(theirs._pmf_remove)
    assert cells(ours._pmf_add) == cells(theirs._pmf_add)
    # The twin: one step less is another distribution.
    assert cells(composed(once, steps - 1)._pmf_remove) != cells(theirs._pmf_remove)


@pytest.mark.parametrize(
    "once",
    [
        pld.from_gaussian_mechanism(3.0, value_discretization_interval=GRID),
        pld.from_randomized_response(0.3, 3, value_discretization_interval=GRID),
    ],
    ids=["both sides alike", "few losses"],
)
def test_other_forms_of_a_loss_are_composed_too(once):
    for times in (1, 2, 9):
        ours, theirs = composed(once, times), once.self_compose(times)
        assert cells(ours._pmf_remove) == cells(theirs._pmf_remove)
        assert ours._symmetric == theirs._symmetric


def test_cells_that_are_kept_are_those_of_the_library(seed):
    """Any distribution will do; where masses are too small to be seen, nothing is cut."""
    rng = stream(seed, "kept cells")
    for shape in (0.05, 1.0, 20.0):
        for count in (1, 2, 57, 3_000):
            once = rng.dirichlet(np.full(count, shape))
            for times in (2, 100, 10_000):
                wanted = common.compute_self_convolve_bounds(once, times, CUT_OFF)
                assert kept_cells(once, times) == wanted
    assert kept_cells(np.zeros(5), 3) == (0, 12)
