"""Regression models as products: predictions checked, saved and loaded without foreign code."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import skops.io
from safetensors.numpy import load_file, save_file
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import Lasso, LinearRegression, Ridge, TweedieRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBRegressor

from reticent.errors import InvalidPredictions, UnsafeProduct
from reticent.product import (
    Encoder,
    FittedProduct,
    FittedRegressor,
    NetworkProduct,
    Provenance,
    Regressor,
    SavedProduct,
    load_product,
    read_provenance,
    save_product,
)
from reticent.run import one_thread, stream

MODELS = [
    LinearRegression(),
    Ridge(),
    Lasso(alpha=0.01),
    TweedieRegressor(power=1.5),
    DecisionTreeRegressor(),
    RandomForestRegressor(5),
    ExtraTreesRegressor(5),
    GradientBoostingRegressor(n_estimators=5),
    HistGradientBoostingRegressor(max_iter=5),
    KNeighborsRegressor(),
    SVR(),
    MLPRegressor(max_iter=2000, hidden_layer_sizes=(4,), tol=0.1),
    GaussianProcessRegressor(alpha=0.1, optimizer=None),
    TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
    GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, scoring="neg_mean_absolute_error"),
    make_pipeline(SelectKBest(f_regression, k=2), Ridge()),
    XGBRegressor(n_estimators=5, n_jobs=1),
]


def records(n: int = 80) -> tuple[pd.DataFrame, np.ndarray]:
    rng = stream(42, "regressor")
    features = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return features, np.exp(features["a"].to_numpy()) + rng.uniform(0.5, 1, size=n)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_regressors_are_saved_and_loaded_and_predict_the_same(model, tmp_path):
    features, y = records()
    with one_thread():
        product = FittedRegressor(estimator=model.fit(features, y))
        expected = product.predict(features)
        save_product(tmp_path, product, Provenance(recipe="made here"))
        again, provenance = load_product(tmp_path, classes=())
        assert again.quantity
        assert np.array_equal(again.predict(features), expected)
    assert provenance == read_provenance(tmp_path) == Provenance(recipe="made here")
    assert json.loads((tmp_path / "provenance.json").read_text())["quantity"] is True
    assert SavedProduct(tmp_path).quantity


class Answers:
    """An estimator of somebody else, who derives from nothing."""

    def __init__(self, values: object) -> None:
        self.values = values

    def predict(self, features: pd.DataFrame) -> object:
        if isinstance(self.values, Exception):
            raise self.values
        return self.values


def test_predictions_are_one_column_of_doubles():
    features, y = records()
    product = FittedRegressor(estimator=Ridge().fit(features, y.astype(np.float32)))
    assert isinstance(product, Regressor)
    assert product.quantity
    assert product.predict(features).dtype == np.float64
    assert np.array_equal(product.outputs(features)[:, 0], product.predict(features))
    column = FittedRegressor(estimator=Answers(np.ones((80, 1))))
    assert column.predict(features).shape == (80,)
    with pytest.raises(InvalidPredictions, match="gives no probabilities"):
        product.predict_proba(features)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((80, 2)), r"shape \(80, 2\) where \(80,\) was expected"),
        (np.ones(79), r"shape \(79,\)"),
        (np.array([np.nan, *np.ones(79)]), "1 of 80 records are NaN"),
        (np.array(["x"] * 80), "raised ValueError"),
        (RuntimeError("out of\nmemory"), "raised RuntimeError.*out of memory"),
    ],
)
def test_answers_that_are_no_quantity_are_refused(values, message):
    with pytest.raises(InvalidPredictions, match=message):
        FittedRegressor(estimator=Answers(values)).predict(records()[0])


def test_without_predict_there_is_nothing_to_ask():
    with pytest.raises(InvalidPredictions, match="has no predict"):
        FittedRegressor(estimator=object()).predict(records()[0])


def test_a_class_is_not_audited_on_a_quantity_nor_the_reverse(tmp_path):
    features, y = records()
    forest = FittedRegressor(estimator=DecisionTreeRegressor().fit(features, y))
    save_product(tmp_path / "r", forest, Provenance())
    with pytest.raises(InvalidPredictions, match="is a regression model, but the tab"):
        load_product(tmp_path / "r", classes=("no", "yes"))
    tree = DecisionTreeClassifier().fit(features, y > 1)
    classifier = FittedProduct(estimator=tree, classes=("no", "yes"))
    save_product(tmp_path / "c", classifier, Provenance())
    assert not SavedProduct(tmp_path / "c").quantity
    with pytest.raises(InvalidPredictions, match="is a classifier, but the table"):
        load_product(tmp_path / "c", classes=())


def test_what_a_file_says_beside_the_model_is_not_believed(tmp_path):
    features, y = records()
    tree = FittedRegressor(estimator=DecisionTreeRegressor().fit(features, y))
    save_product(tmp_path, tree, Provenance())
    file = tmp_path / "provenance.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "quantity": False}))
    assert SavedProduct(tmp_path).quantity
    file.unlink()
    assert SavedProduct(tmp_path / "product.skops").quantity


def test_an_estimator_without_tags_is_what_the_provenance_says(tmp_path):
    answers = FittedRegressor(estimator=Answers(np.ones(3)))
    save_product(tmp_path, answers, Provenance())
    (known,) = skops.io.get_untrusted_types(file=tmp_path / "product.skops")
    assert SavedProduct(tmp_path, trust=(known,)).quantity
    (tmp_path / "provenance.json").unlink()
    assert not SavedProduct(tmp_path, trust=(known,)).quantity
    product, _ = load_product(tmp_path, classes=(), trust=(known,))
    assert product.outputs(records(3)[0]).tolist() == [[1.0]] * 3


def test_a_foreign_type_is_refused(tmp_path):
    file = tmp_path / "product.skops"
    skops.io.dump(Answers(np.ones(3)), file)
    for ask in (SavedProduct, lambda path: load_product(path, classes=())):
        with pytest.raises(UnsafeProduct, match="could execute foreign code"):
            ask(file)


def network() -> NetworkProduct:
    rng = stream(42, "network")
    return NetworkProduct(
        encoder=Encoder(numbers=("a", "b", "c"), categories=()),
        centre=np.zeros(3, dtype=np.float32),
        scale=np.ones(3, dtype=np.float32),
        weights=(
            rng.normal(size=(4, 3)).astype(np.float32),
            rng.normal(size=(1, 4)).astype(np.float32),
        ),
        biases=(np.ones(4, dtype=np.float32), np.zeros(1, dtype=np.float32)),
        activation="tanh",
        classes=(),
        target_centre=1e6,
        target_scale=1e-3,
    )


def test_a_network_predicts_in_the_units_of_the_target():
    features, _ = records(10)
    product = network()
    hidden = np.tanh(features.to_numpy() @ product.weights[0].T + 1)
    expected = 1e6 + 1e-3 * (hidden @ product.weights[1].T)[:, 0]
    assert product.predict(features) == pytest.approx(expected, abs=1e-8)
    assert product.outputs(features).shape == (10, 1)
    assert product.predict(features.iloc[:0]).shape == (0,)
    with pytest.raises(InvalidPredictions, match="predicts a quantity"):
        product.predict_proba(features)
    with pytest.raises(InvalidPredictions, match="predicts a quantity"):
        product.internals(features, np.zeros(10, dtype=int))


def test_a_network_for_a_quantity_is_saved_and_loaded(tmp_path):
    features, _ = records(10)
    save_product(tmp_path, network(), Provenance())
    again, _ = load_product(tmp_path, classes=())
    assert np.array_equal(again.predict(features), network().predict(features))
    assert SavedProduct(tmp_path).quantity
    with pytest.raises(InvalidPredictions, match="predicts a quantity, but the tab"):
        load_product(tmp_path, classes=("no", "yes"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target_scale": 0.0}, "no finite centre and scale"),
        ({"target_centre": float("nan")}, "no finite centre and scale"),
        ({"classes": ("a",)}, "does not clearly say|do not fit"),
    ],
)
def test_a_crafted_network_is_refused(change, message, tmp_path):
    crafted = replace(network(), **change)
    crafted.save(tmp_path / "product.safetensors")
    if "classes" in change:  # as if somebody had edited the file
        words = {
            "numbers": ["a", "b", "c"],
            "categories": [],
            "activation": "tanh",
            "classes": ["a"],
            "warnings": [],
            "target": [0.0, 1.0],
        }
        arrays = load_file(tmp_path / "product.safetensors")
        save_file(
            arrays,
            tmp_path / "product.safetensors",
            metadata={"network": json.dumps(words)},
        )
    with pytest.raises(UnsafeProduct, match=message):
        load_product(tmp_path, classes=())
