"""A network is saved as numbers and names, and answers the same afterwards, without PyTorch."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from reticent.account import Guarantee
from reticent.data import table_from_frame
from reticent.errors import InvalidPredictions, UnsafeProduct
from reticent.product import (
    Encoder,
    NetworkProduct,
    Provenance,
    load_product,
    save_product,
)

CLASSES = ("ill", "well")


def table(n=50):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n)),
            "city": rng.choice(["Oslo", "Bergen", None], n),
        }
    )
    return table_from_frame(frame, target=np.array(CLASSES)[rng.integers(0, 2, n)])


def network(activation="tanh"):
    rng = np.random.default_rng(1)
    encoder = Encoder.of(table())
    sizes = [encoder.width, 5, 2]
    return NetworkProduct(
        encoder=encoder,
        centre=np.array([40, 0, 0, 0], dtype=np.float32),
        scale=np.array([10, 1, 1, 1], dtype=np.float32),
        weights=tuple(
            rng.normal(size=(b, a)).astype(np.float32)
            for a, b in itertools.pairwise(sizes)
        ),
        biases=tuple(rng.normal(size=b).astype(np.float32) for b in sizes[1:]),
        activation=activation,
        classes=CLASSES,
        warnings=("the values of x were too few",),
    )


GUARANTEE = Guarantee(
    mechanism="noise",
    holds=True,
    relation="add/remove",
    epsilon=1.0,
    delta=1e-5,
    noise_multiplier=2.0,
    sampling_rate=0.1,
    steps=10,
    advantage=0.1,
    belief=0.7,
    prior=0.5,
    tpr=0.01,
    fpr=0.001,
    caveats=("a",),
    public=("b", "c"),
)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_answers_are_those_of_the_formula(activation):
    made, features = network(activation), table().features
    seen = np.nan_to_num((made.encoder.matrix(features) - made.centre) / made.scale)
    hidden = seen @ made.weights[0].T + made.biases[0]
    hidden = np.tanh(hidden) if activation == "tanh" else np.maximum(hidden, 0)
    logits = (hidden @ made.weights[1].T + made.biases[1]).astype(np.float64)
    odds = np.exp(logits)
    assert made.predict_proba(features) == pytest.approx(
        odds / odds.sum(axis=1, keepdims=True), abs=1e-6
    )


def test_saved_and_loaded_it_is_the_same(tmp_path):
    made = network()
    provenance = Provenance(recipe="reticent.Network()", guarantee=GUARANTEE)
    save_product(tmp_path / "p", made, provenance)
    loaded, known = load_product(tmp_path / "p", classes=CLASSES)
    features = table().features
    assert np.array_equal(loaded.predict_proba(features), made.predict_proba(features))
    assert loaded.warnings == made.warnings
    assert known.guarantee == GUARANTEE
    assert known.recipe == "reticent.Network()"
    turned, _ = load_product(tmp_path / "p", classes=CLASSES[::-1])
    assert turned.predict_proba(features) == pytest.approx(
        made.predict_proba(features)[:, ::-1]
    )


def test_a_folder_holds_one_product(tmp_path):
    from sklearn.dummy import DummyClassifier

    from reticent.product import FittedProduct

    save_product(tmp_path, network(), Provenance())
    fitted = DummyClassifier().fit([[0], [1]], [0, 1])
    save_product(
        tmp_path, FittedProduct(estimator=fitted, classes=CLASSES), Provenance()
    )
    loaded, _ = load_product(tmp_path, classes=CLASSES)
    assert loaded.file_name == "product.skops"


def test_other_classes_or_columns_are_told(tmp_path):
    save_product(tmp_path, network(), Provenance())
    with pytest.raises(InvalidPredictions, match="knows the classes ill, well"):
        load_product(tmp_path, classes=("no", "yes"))
    loaded, _ = load_product(tmp_path, classes=CLASSES)
    with pytest.raises(InvalidPredictions, match="'age'"):
        loaded.predict_proba(table().features.drop(columns="age"))


@pytest.mark.parametrize("damage", ["cut", "foreign", "shapes"])
def test_a_file_that_is_no_network_is_refused(tmp_path, damage):
    from safetensors.numpy import save

    save_product(tmp_path, network(), Provenance())
    file = tmp_path / "product.safetensors"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:100])
    elif damage == "foreign":
        file.write_bytes(save({"weights": np.zeros(3, np.float32)}))
    else:
        words = {
            "numbers": ["age"],
            "categories": [],
            "activation": "relu",
            "classes": ["a", "b"],
            "warnings": [],
        }
        arrays = {
            "centre": np.zeros(1, np.float32),
            "scale": np.ones(1, np.float32),
            "weights.0": np.zeros((2, 3), np.float32),
            "biases.0": np.zeros(2, np.float32),
        }
        file.write_bytes(save(arrays, metadata={"network": json.dumps(words)}))
    with pytest.raises(UnsafeProduct, match="cannot be read as a network"):
        load_product(tmp_path, classes=CLASSES)
