"""Trainers of regression models: products, pools of predictions, networks on squared error."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reticent.data import Table, table_from_frame
from reticent.errors import InvalidInput, InvalidPredictions
from reticent.pool import PredictionPool, balanced_masks
from reticent.product import FittedRegressor, NetworkProduct, Regressor
from reticent.run import stream
from reticent.train import (
    SGD,
    Adam,
    EstimatorTrainer,
    Network,
    NetworkTrainer,
    PrivateNetwork,
    parse_trainer,
    spell,
    train_many,
)
from reticent.train.engine import initial_parameters, train_networks
from reticent.train.stacking import Cohort


def table(n: int = 120, seed: int = 42, origin: float = 1e6) -> Table:
    rng = stream(seed, "quantity")
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "sex": rng.choice(["f", "m"], n),
            "shoe": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 3, n)),
        }
    )
    frame["income"] = (
        origin + 2 * frame["age"] + 30 * (frame["sex"] == "f") + rng.normal(0, 5, n)
    )
    return table_from_frame(frame, target="income", quantity=True)


def classes() -> Table:
    whole = table()
    frame = whole.features.assign(rich=whole.target > np.median(whole.target))
    return table_from_frame(frame, target="rich")


def explained(product: Regressor, records: Table) -> float:
    y = records.target
    return 1 - float(np.var(y - product.predict(records.features)) / np.var(y))


@pytest.mark.parametrize(
    "text",
    [
        "sklearn.linear_model.Ridge",
        "sklearn.ensemble.RandomForestRegressor(n_estimators=10)",
        "sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), sklearn.svm.SVR(C=100.0))",
        "xgboost.XGBRegressor(n_estimators=10, n_jobs=1)",
    ],
)
def test_estimators_that_predict_a_quantity_are_trained(text):
    trainer = parse_trainer(text)
    assert trainer.quantity
    product = trainer.train(table(), seed=1)
    assert isinstance(product, FittedRegressor)
    assert explained(product, table()) > 0.5


def test_classifiers_say_that_they_predict_classes():
    for text in ("sklearn.linear_model.LogisticRegression", "reticent.Network()"):
        assert not parse_trainer(text).quantity
    assert not EstimatorTrainer.of(RandomForestClassifier(), preprocess=True).quantity
    nested = make_pipeline(StandardScaler(), RandomForestRegressor())
    assert EstimatorTrainer.of(nested, preprocess=True).quantity


def test_the_seed_reaches_the_estimator():
    trainer = EstimatorTrainer.of(RandomForestRegressor(3), preprocess=True)
    first, again, other = (
        trainer.train(table(), seed=seed).outputs(table().features)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("trainer", "records", "message"),
    [
        (
            "sklearn.linear_model.LogisticRegression()",
            table(),
            "the target is a quantity",
        ),
        (
            "sklearn.linear_model.Ridge()",
            classes(),
            "neither predict_proba nor decision",
        ),
        ("reticent.Network(epochs=1)", table(), "predicts a class, but the table"),
        (
            "reticent.Network(epochs=1, quantity=True)",
            classes(),
            "predicts a quantity, but the table",
        ),
    ],
)
def test_a_trainer_for_the_other_kind_of_target_is_refused(trainer, records, message):
    with pytest.raises(InvalidPredictions, match=message):
        parse_trainer(trainer).train(records, seed=0)


@pytest.mark.parametrize(
    "text",
    [
        "sklearn.linear_model.Ridge()",
        "reticent.Network(hidden=[8], epochs=3, quantity=True)",
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_many_models_are_the_models_one_by_one(text, workers):
    """Also near a mean of a million, where single precision would round to a sixteenth."""
    trainer, records = parse_trainer(text), table()
    masks = balanced_masks(4, records.units, rng=stream(42, "masks"))
    seeds = np.arange(4)
    answers = train_many(trainer, records, masks, seeds, workers=workers)
    assert answers.shape == (4, len(records), 1)
    assert answers.dtype == np.float64
    pool = PredictionPool(
        masks=masks, predictions=answers[..., 0], targets=records.target
    )
    for k in range(4):
        alone = trainer.train(records.take(np.flatnonzero(masks[k])), seed=k)
        expected = records.target - alone.predict(records.features)
        # Networks add in single precision, in an order of their own.
        assert pool.residuals[k] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("optimiser", [SGD(rate=0.05), Adam(rate=0.01)])
def test_steps_are_those_of_automatic_differentiation(optimiser):
    rng = stream(42, "autograd")
    n, d = 40, 3
    x = torch.from_numpy(rng.normal(size=(n, d)).astype(np.float32))
    y = torch.from_numpy(rng.normal(size=(n, 1)).astype(np.float32))
    recipe = Network(
        hidden=(5,),
        epochs=3,
        batch=n,
        optimiser=optimiser,
        activation="tanh",
        quantity=True,
    )
    # One batch holds all members, so their order does not matter.
    trained = train_networks(
        Cohort(inputs=x, targets=y, masks=np.ones((1, n), dtype=bool), seeds=[7]),
        recipe,
    )
    weights, biases = initial_parameters([d, 5, 1], torch.Generator().manual_seed(7))
    layers = [p.clone().requires_grad_() for p in (*weights, *biases)]
    follow = (
        torch.optim.SGD(layers, lr=optimiser.rate)
        if isinstance(optimiser, SGD)
        else torch.optim.Adam(layers, lr=optimiser.rate)
    )
    for _ in range(3):
        follow.zero_grad()
        hidden = torch.tanh(layers[0] @ x.T + layers[2])
        loss = (layers[1] @ hidden + layers[3] - y.T).square().mean() / 2
        loss.backward()
        follow.step()
    ours = [*trained.weights, *trained.biases]
    for mine, theirs in zip(ours, layers, strict=True):
        assert torch.allclose(mine[0], theirs, atol=1e-5)


def test_a_network_without_hidden_layers_is_least_squares():
    """Full batches, many epochs: the optimum is unique, and another library knows it."""
    whole = table(60)
    features = whole.features.assign(shoe=whole.features["shoe"].fillna(40.0))
    records = table_from_frame(features, target=whole.target, quantity=True)
    recipe = Network(
        hidden=(), epochs=4000, batch=60, optimiser=SGD(rate=0.3), quantity=True
    )
    product = NetworkTrainer(network=recipe, recipe="here").train(records, seed=0)
    assert isinstance(product, NetworkProduct)
    assert product.quantity
    design = pd.get_dummies(features, dtype=float).to_numpy()
    reference = LinearRegression().fit(design, records.target)
    expected = reference.predict(design) - 1e6
    assert product.predict(features) - 1e6 == pytest.approx(expected, abs=0.02)


def test_a_network_for_a_quantity_learns_and_repeats_itself():
    records = table()
    trainer = parse_trainer(
        "reticent.Network(hidden=[16], epochs=100, batch=32, optimiser=reticent.Adam(rate=0.01), quantity=True)"
    )
    first, again = (trainer.train(records, seed=3) for _ in range(2))
    assert np.array_equal(
        first.predict(records.features), again.predict(records.features)
    )
    assert explained(first, records) > 0.8


def test_the_recipe_spells_itself():
    recipe = Network(hidden=(4,), quantity=True)
    assert spell(recipe) == "reticent.Network(hidden=(4,), quantity=True)"
    assert parse_trainer(spell(recipe)).quantity


def test_private_networks_are_for_classes_only():
    with pytest.raises(InvalidInput, match="can only predict classes"):
        PrivateNetwork(quantity=True)


def test_ridge_through_a_trainer_is_ridge():
    """An identity: preprocessing and model fitted on the members and on nobody else."""
    records = table()
    trainer = EstimatorTrainer.of(Ridge(), preprocess=False)
    numbers = table_from_frame(
        records.features[["age"]], target=records.target, quantity=True
    )
    product = trainer.train(numbers, seed=0)
    expected = Ridge().fit(numbers.features, numbers.target).predict(numbers.features)
    assert np.array_equal(product.outputs(numbers.features)[:, 0], expected)
