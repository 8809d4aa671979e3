"""The contract of mechanisms: ours pass it, plausible mistakes do not."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.pld_pmf import DensePLDPmf

from reticent.account import (
    Composition,
    Exponential,
    Gaussian,
    Group,
    Laplace,
    NonSphericalGaussian,
    PrivateTraining,
    RandomisedResponse,
    Relation,
    SubsampledGaussian,
)
from reticent.testing import check_mechanism

STEP = SubsampledGaussian(noise_multiplier=1.0, sampling_rate=0.1)


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomisedResponse(truth=0.5),
        RandomisedResponse(truth=0.3, answers=5),
        Laplace(noise_multiplier=0.7),
        Gaussian(noise_multiplier=1.5),
        Gaussian(noise_multiplier=0.8, relation=Relation.REPLACE),
        NonSphericalGaussian(deviations=(1.0, 2.0), ranges=(1.0, 0.5)),
        Exponential(epsilon=1.0),
        STEP,
        SubsampledGaussian(
            noise_multiplier=1.0, sampling_rate=0.1, relation=Relation.REPLACE
        ),
        PrivateTraining(noise_multiplier=1.0, sampling_rate=0.01, steps=500),
        Composition(parts=((Gaussian(noise_multiplier=2.0), 3), (STEP, 2))),
    ],
    ids=lambda m: f"{type(m).__name__}-{m.relation}",
)
def test_our_mechanisms_pass(mechanism):
    check_mechanism(mechanism)


def test_groups_pass():
    check_mechanism(Group(mechanism=STEP, size=3), grid=1e-2)


@dataclass(frozen=True, kw_only=True)
class _Made:
    relation: Relation = Relation.ADD_REMOVE


class OneDirection(_Made):
    """Accounts for a record that is removed, and forgets the one that is added."""

    def loss(self, grid):
        return pld.PrivacyLossDistribution(STEP.loss(grid)._pmf_add)


class WrongSign(_Made):
    def loss(self, grid):
        right = Gaussian(noise_multiplier=1.0).loss(grid)._pmf_remove
        last = right._lower_loss + right.size - 1
        turned = DensePLDPmf(grid, -last, right._probs[::-1], 0.0, True)
        return pld.PrivacyLossDistribution(turned)


class Optimistic(_Made):
    """Rounds losses down."""

    def loss(self, grid):
        return pld.from_laplace_mechanism(
            1.0,
            pessimistic_estimate=False,
            use_connect_dots=False,
            value_discretization_interval=10 * grid,
        )


class BetterIfCoarse(_Made):
    """Takes the blur of the grid for noise."""

    def loss(self, grid):
        return Gaussian(noise_multiplier=1.0 + 10 * grid).loss(grid)


class Drawing(_Made):
    """Not a description: another noise at each call."""

    def loss(self, grid):
        noise = float(np.random.default_rng().uniform(1, 2))
        return Gaussian(noise_multiplier=noise).loss(grid)


class Losing(_Made):
    """Cuts a tail off and does not say so."""

    def loss(self, grid):
        right = Gaussian(noise_multiplier=1.0).loss(grid)._pmf_remove
        kept = right._probs[: math.floor(0.6 * right.size)]
        return pld.PrivacyLossDistribution(
            DensePLDPmf(grid, right._lower_loss, kept, 0.0, True)
        )


@dataclass
class Mutable:
    relation: Relation = Relation.ADD_REMOVE

    def loss(self, grid):
        return Gaussian(noise_multiplier=1.0).loss(grid)


@dataclass(frozen=True)
class WithoutRelation:
    def loss(self, grid):
        return Gaussian(noise_multiplier=1.0).loss(grid)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (OneDirection(), "give the loss of both"),
        (WrongSign(), "wrong sign"),
        (Optimistic(), "rounded down"),
        (BetterIfCoarse(), "guaranteed more than a fine one"),
        (Drawing(), "draws nothing"),
        (Losing(), "add up to"),
        (Mutable(), "frozen"),
        (WithoutRelation(), "relation"),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, str) else "",
)
def test_plausible_mistakes_do_not(wrong, words):
    with pytest.raises(AssertionError, match=words):
        check_mechanism(wrong)
