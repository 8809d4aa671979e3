"""What trainers say of themselves, and what a user's own trainer gets by default."""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from reticent.account import Terms
from reticent.audits import ClassifierKind
from reticent.data import builtin_table
from reticent.errors import InvalidSpec
from reticent.pool import balanced_masks
from reticent.product import FittedProduct, Product, Trainer
from reticent.testing import check_trainer
from reticent.train import (
    SGD,
    EstimatorTrainer,
    Module,
    Network,
    NetworkTrainer,
    PlainTrainer,
    PrivateModule,
    PrivateNetwork,
    PrivateNetworkTrainer,
    guarantee_of,
    parse_trainer,
    train_many,
    trainer_of,
)

TABLE = builtin_table()


class Bare:
    """A user's own trainer: one class with a recipe and a verb."""

    recipe = "a shallow tree"

    def train(self, table, *, seed):
        tree = DecisionTreeClassifier(max_depth=3, random_state=seed)
        tree.fit(table.features, table.target)
        return FittedProduct(
            estimator=tree, classes=table.classes, learned=table.classes
        )


@dataclass(frozen=True)
class Derived(PlainTrainer):
    """The same, from the class that gives all defaults."""

    depth: int = 3
    recipe: str = "a shallow tree"

    def train(self, table, *, seed):
        return Bare().train(table, seed=seed)


@pytest.mark.parametrize("thing", [Bare(), Derived()], ids=["bare", "derived"])
def test_a_trainer_of_the_user_gets_every_capability(thing):
    trainer = trainer_of(thing)
    assert isinstance(trainer, Trainer)
    assert (trainer.recipe, trainer.chunk, trainer.repeatable) == (
        "a shallow tree",
        1,
        True,
    )
    assert trainer.guarantee(100) is None
    assert trainer.watching() is None
    assert trainer.must_be_storable(TABLE) is None
    assert trainer.content() == trainer_of(thing).content()
    check_trainer(trainer, TABLE)
    masks = balanced_masks(4, TABLE.units, rng=np.random.default_rng(0))
    pooled = train_many(trainer, TABLE, masks, np.arange(4), workers=2)
    for k in range(4):
        alone = trainer.train(TABLE.take(np.flatnonzero(masks[k])), seed=k)
        answers = alone.predict_proba(TABLE.features).astype(np.float32)
        assert np.array_equal(pooled[k], answers)


def test_a_parameter_that_the_recipe_does_not_name_is_part_of_the_content():
    assert Derived(depth=3).content() != Derived(depth=4).content()


def test_a_trainer_that_states_some_capabilities_is_asked_for_all():
    class Half(Bare):
        def guarantee(self, rows):
            return None

    with pytest.raises(
        InvalidSpec, match=r"states guarantee but not chunk.*PlainTrainer"
    ):
        trainer_of(Half())


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (3, "an int cannot be trained"),
        (None, "a NoneType cannot be trained"),
        (DecisionTreeClassifier, "is a class"),
        (Bare, "is a class"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_sentence(thing, message):
    with pytest.raises(InvalidSpec, match=message):
        trainer_of(thing)


def test_recipes_estimators_and_text_become_trainers():
    network = Network(hidden=[4], epochs=1, optimiser=SGD(rate=0.1))
    trainer = trainer_of(network)
    assert trainer == NetworkTrainer(network=network, recipe=trainer.recipe)
    assert parse_trainer(trainer.recipe).network == network
    estimator = trainer_of(LogisticRegression(C=0.5), preprocess=False)
    assert estimator.recipe == "LogisticRegression(C=0.5)"
    assert not estimator.preprocess
    assert trainer_of(" sklearn.svm.SVC() ").recipe == "sklearn.svm.SVC()"
    assert trainer_of(trainer) is trainer


def test_estimators_say_what_they_depend_on():
    plain = EstimatorTrainer.of(LogisticRegression(), preprocess=True)
    assert plain.content() == trainer_of(LogisticRegression()).content()
    others = [
        EstimatorTrainer.of(LogisticRegression(C=2.0), preprocess=True),
        replace(plain, preprocess=False),
        EstimatorTrainer.of(DecisionTreeClassifier(), preprocess=True),
    ]
    assert all(other.content() != plain.content() for other in others)


def test_private_trainers_state_their_guarantee_and_can_be_watched():
    recipe = PrivateNetwork(hidden=(), epochs=1, batch=64, noise_multiplier=2.0)
    trainer = trainer_of(recipe)
    guarantee = trainer.guarantee(1000)
    assert guarantee.holds
    assert (guarantee.delta, guarantee.relation) == (1e-4, "add/remove")
    assert guarantee == guarantee_of(
        recipe, rows=1000, terms=Terms(delta=1e-4, relation=trainer_relation())
    )
    assert not trainer.repeatable
    assert trainer.watching() is trainer
    assert trainer.unclipped().network.clipping.norm > 1e6
    assert trainer.unclipped().network.noise_multiplier == 2.0
    seeded = trainer_of(replace(recipe, noise="seeded"))
    assert seeded.repeatable
    assert not seeded.guarantee(1000).holds
    assert seeded.content() != trainer.content()


def trainer_relation():
    from reticent.account import Relation

    return Relation.ADD_REMOVE


def test_the_file_of_a_domain_is_part_of_the_content(tmp_path):
    path = tmp_path / "domain.toml"
    recipe = PrivateNetwork(domain=str(path))
    contents = []
    for high in (1, 2):
        path.write_text(f"[numbers]\nage = [0, {high}]\n")
        contents.append(PrivateNetworkTrainer(network=recipe, recipe="x").content())
    assert contents[0] != contents[1]


def test_trainers_can_be_sent_to_other_processes():
    for thing in (Network(), PrivateNetwork(), LogisticRegression(), Bare()):
        trainer = trainer_of(thing)
        assert pickle.loads(pickle.dumps(trainer)).recipe == trainer.recipe


def test_an_estimator_is_asked_once_for_answers_and_outputs(monkeypatch):
    """To ask a forest takes a third of the time of its training."""
    asked = []
    predict = DecisionTreeClassifier.predict_proba
    monkeypatch.setattr(DecisionTreeClassifier, "predict_proba", lambda *given: asked.append(1) or predict(*given))  # fmt: skip
    fitted = parse_trainer("sklearn.tree.DecisionTreeClassifier()").train(TABLE, seed=0)
    answers = ClassifierKind().ask(fitted, TABLE)
    assert asked == [1]
    assert (answers.values == fitted.predict_proba(TABLE.features)).all()
    assert (answers.outputs == fitted.outputs(TABLE.features)).all()
    # Decision values are what two products are compared by; probabilities are made of them.
    margin = parse_trainer("sklearn.svm.LinearSVC()").train(TABLE, seed=0)
    answers = ClassifierKind().ask(margin, TABLE)
    assert (answers.outputs == margin.outputs(TABLE.features)).all()
    assert answers.values == pytest.approx(expit(answers.outputs))


def test_products_know_their_file():
    fitted = parse_trainer("sklearn.tree.DecisionTreeClassifier()").train(TABLE, seed=0)
    assert isinstance(fitted, Product)
    assert (fitted.file_name, fitted.learned) == ("product.skops", TABLE.classes)
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    network = trainer_of(Network(epochs=1)).train(TABLE, seed=0)
    assert isinstance(network, Product)
    assert (network.file_name, network.learned) == ("product.safetensors", ())


def test_chunks_of_any_size_give_the_same_models():
    """To the last digit where batches are of one size, and to rounding where they are filled up."""
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    trainer = trainer_of(Network(epochs=3, batch=32))
    rng = np.random.default_rng(0)
    equal = balanced_masks(6, TABLE.units, rng=rng)
    unequal = rng.random((6, len(TABLE))) < 0.5
    for masks, tolerance in ((equal, 0.0), (unequal, 1e-6)):
        whole, parts = (
            train_many(
                replace(trainer, chunk=chunk), TABLE, masks, np.arange(6), workers=1
            )
            for chunk in (6, 2)
        )
        assert np.abs(whole - parts).max() <= tolerance


@pytest.mark.parametrize("kind", [Module, PrivateModule])
def test_a_module_that_does_not_exist_is_refused_at_once(kind):
    with pytest.raises(InvalidSpec, match="no_such_module_of_mine"):
        trainer_of(kind("no_such_module_of_mine:make"))
