"""The contracts of mechanisms and trainers: ours pass them, plausible mistakes do not."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.pld_pmf import DensePLDPmf
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge

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
    Terms,
)
from reticent.data import builtin_table, table_from_frame
from reticent.product import FittedProduct
from reticent.run import content_of
from reticent.testing import check_mechanism, check_trainer
from reticent.train import PlainTrainer, PrivateNetwork, guarantee_of, trainer_of

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
        without_tail = right._probs[: math.floor(0.6 * right.size)]
        return pld.PrivacyLossDistribution(
            DensePLDPmf(grid, right._lower_loss, without_tail, 0.0, True)
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


def patients(**columns):
    """Return the built-in patients with the measure of progression itself, and more columns if asked."""
    bunch = load_diabetes(as_frame=True, scaled=False)
    frame = bunch.data.assign(progression=bunch.target, **columns)
    return table_from_frame(frame, target="progression", quantity=True)


@dataclass(frozen=True)
class Forest(PlainTrainer):
    """A trainer of the user whose products depend on the seed; the mistakes below are made in it."""

    trees: int = 5
    recipe: str = "a small forest"

    def train(self, table, *, seed):
        forest = RandomForestClassifier(self.trees, max_depth=4, random_state=seed)
        forest.fit(table.features, table.target)
        return FittedProduct(
            estimator=forest, classes=table.classes, learned=table.classes
        )


class Secret(Forest):
    """Draws its noise from the system, except in pools, whose models are never released."""

    @property
    def repeatable(self):
        return False

    def train(self, table, *, seed):
        return super().train(table, seed=int(np.random.default_rng().integers(2**31)))

    def train_many(self, table, masks, seeds, *, memory):
        return Forest(self.trees).train_many(table, masks, seeds, memory=memory)


class Guaranteed(Secret):
    """States a guarantee, as it may with secret noise."""

    def guarantee(self, rows):
        return guarantee_of(
            PrivateNetwork(epochs=1),
            rows=rows,
            terms=Terms(delta=1 / (10 * rows)),
        )


@pytest.mark.parametrize(
    "trainer", [Forest(), Secret(), Guaranteed()], ids=lambda t: type(t).__name__
)
def test_trainers_of_a_class_pass(trainer):
    check_trainer(trainer, builtin_table(), others=[replace(trainer, trees=6)])


@pytest.mark.parametrize(
    "estimator", [Ridge(), RandomForestRegressor(5)], ids=lambda e: type(e).__name__
)
def test_trainers_of_a_quantity_pass(estimator):
    """Also on a table whose categories are coded once for all models, one of them in a single record."""
    clinic = np.resize(["north", "south", None], 442).astype(object)
    clinic[100] = "abroad"
    trainer = trainer_of(estimator)
    others = [trainer_of(Ridge(alpha=3.0)), trainer_of(estimator, preprocess=False)]
    assert not trainer.prepared(patients(clinic=clinic)).features.equals(
        patients(clinic=clinic).features
    )
    check_trainer(trainer, patients(clinic=clinic), others=others)


class NoChunk(Forest):
    @property
    def chunk(self):
        return 0


class OtherKind(Forest):
    """Says that it predicts a quantity, and predicts a class."""

    @property
    def quantity(self):
        return True


class Careless(Forest):
    """Fills its own table in."""

    def train(self, table, *, seed):
        table.features["age"] = table.features["age"] + 1.0
        return super().train(table, seed=seed)


class Unrepeatable(Secret):
    """Draws its noise from the system, and says that it can be repeated."""

    @property
    def repeatable(self):
        return True


class SecretPool(Secret):
    """Draws the noise of pools from the system as well."""

    def train_many(self, table, masks, seeds, *, memory):
        return PlainTrainer.train_many(self, table, masks, seeds, memory=memory)


class OneSeed(Forest):
    """Gives the first seed of a pool to all of its models."""

    def train_many(self, table, masks, seeds, *, memory):
        seeds = np.full_like(seeds, seeds[0])
        return super().train_many(table, masks, seeds, memory=memory)


class WithoutMasks(Forest):
    """Trains every model of a pool on everyone."""

    def train_many(self, table, masks, seeds, *, memory):
        masks = np.ones_like(masks)
        return super().train_many(table, masks, seeds, memory=memory)


class Coarse(Forest):
    """Rounds the records when it prepares a table."""

    def prepared(self, table):
        return replace(table, features=table.features.round(-1))


class Flat(Forest):
    """Answers with the probability of one class."""

    def train_many(self, table, masks, seeds, *, memory):
        return super().train_many(table, masks, seeds, memory=memory)[..., :1]


class ByAddress(Forest):
    """Takes the place of the object in memory for its content."""

    def content(self):
        return content_of(id(self))


class ByRecipe(Forest):
    """Forgets the number of trees in its content."""

    def content(self):
        return content_of(self.recipe)


@dataclass(frozen=True)
class Diary(Forest):
    """Has a content that grows with every training."""

    seeds: list[int] = field(default_factory=list)

    def train(self, table, *, seed):
        self.seeds.append(seed)
        return super().train(table, seed=seed)


class KnownNoise(Guaranteed):
    """States a guarantee although its noise comes from the seed."""

    repeatable = True

    def train(self, table, *, seed):
        return Forest(self.trees).train(table, seed=seed)


class OtherDelta(Guaranteed):
    def guarantee(self, rows):
        return replace(super().guarantee(rows), delta=1e-3)


class OtherRelation(Guaranteed):
    def guarantee(self, rows):
        return replace(super().guarantee(rows), relation=Relation.REPLACE.value)


class Bare:
    """Has a recipe and a verb, and states nothing that it is capable of."""

    recipe = "a small forest"

    def train(self, table, *, seed):
        return Forest().train(table, seed=seed)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Bare(), "a Bare lacks capabilities"),
        (Forest(recipe=""), "how it can be made again"),
        (NoChunk(), "at least one model, not 0"),
        (OtherKind(), "predicts a quantity, but the target is a class"),
        (Careless(), "must not change its table"),
        (Unrepeatable(), "or the trainer must say that it is not repeatable"),
        (SecretPool(), "nor on secret noise"),
        (OneSeed(), "not on the other models"),
        (WithoutMasks(), "single trainings on the masked records"),
        (Coarse(), "preparing a table must not change the models"),
        (Flat(), r"answers of shape \(2, 442, 2\), not \(2, 442, 1\)"),
        (ByAddress(), "equal trainers must have equal content"),
        (ByRecipe(), "differs in a parameter, so its content must differ"),
        (Diary(), "must not change when it trains"),
        (KnownNoise(), "whoever knows the seed knows the noise"),
        (OtherDelta(), "stated at delta 0.000226, not 0.001"),
        (OtherRelation(), "under add/remove"),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, str) else "",
)
def test_plausible_mistakes_of_trainers_do_not(wrong, words):
    others = [replace(wrong, trees=6)] if isinstance(wrong, Forest) else []
    with pytest.raises(AssertionError, match=words):
        check_trainer(wrong, builtin_table(), others=others)


def test_a_constant_prediction_of_a_quantity_does_not():
    with pytest.raises(AssertionError, match=r"learn something .* R² is"):
        check_trainer(trainer_of(DummyRegressor()), patients())
