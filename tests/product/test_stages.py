"""Records as every step of a product sees them, and the file laid beside them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from reticent.data import table_from_frame
from reticent.product import FittedProduct, Staged, open_file
from reticent.product.stages import MOST_CELLS, estimator_stages
from reticent.train import parse_trainer

RNG = np.random.default_rng(42)
FRAME = pd.DataFrame(
    {
        "a": RNG.normal(5, 2, 80),
        "b": RNG.normal(size=80),
        "town": RNG.choice(["Ulm", "Bonn", "Kiel"], 80),
    }
)
Y = RNG.integers(2, size=80)


def names(estimator, features=FRAME) -> list[str]:
    return [stage.name for stage in estimator_stages(estimator, features).stages]


def test_steps_of_pipelines_are_followed_to_the_last():
    numbers = FRAME[["a", "b"]]
    model = make_pipeline(StandardScaler(), PCA(1), LogisticRegression())
    model.fit(numbers, Y)
    scaled, reduced = estimator_stages(model, numbers).stages
    assert (scaled.name, reduced.name) == ("standardscaler", "pca")
    assert np.allclose(scaled.matrix.std(axis=0), 1)
    assert np.array_equal(reduced.matrix, model[:-1].transform(numbers))


def test_pipelines_inside_column_transformers_are_followed():
    inner = make_pipeline(StandardScaler(), KNNImputer())
    outer = make_column_transformer((inner, ["a", "b"]), (OneHotEncoder(), ["town"]))
    model = make_pipeline(outer, RandomForestClassifier(3)).fit(FRAME, Y)
    shown = names(model)
    assert shown[0].endswith("pipeline.standardscaler")
    assert shown[-1] == "columntransformer"
    widths = [s.matrix.shape[1] for s in estimator_stages(model, FRAME).stages]
    assert widths == [2, 5]  # without missing values the imputer shows nothing new


@pytest.mark.parametrize(
    ("wrap", "shown"),
    [
        # What is calibrated are the scores before: an isotonic curve keeps such numbers of single people.
        (lambda model: CalibratedClassifierCV(model, cv=2), {"scores", "standardscaler"}),
        (lambda model: GridSearchCV(model, {"logisticregression__C": [1.0]}, cv=2), {"standardscaler"}),
    ],
    ids=["calibrated", "searched"],
)  # fmt: skip
def test_wrapped_pipelines_are_followed(wrap, shown):
    model = wrap(make_pipeline(StandardScaler(), LogisticRegression()))
    model.fit(FRAME[["a", "b"]], Y)
    assert set(names(model, FRAME[["a", "b"]])) == shown


def test_the_recipe_beside_fitted_models_is_not_followed():
    columns = make_column_transformer((StandardScaler(), ["a", "b"]))
    model = make_pipeline(columns, LogisticRegression())
    stages = estimator_stages(CalibratedClassifierCV(model, cv=2).fit(FRAME, Y), FRAME)
    assert "scores" in {stage.name for stage in stages.stages}
    assert not stages.unseen


def test_categories_of_histograms_are_prepared():
    frame = FRAME.assign(town=FRAME["town"].astype("category"))
    model = HistGradientBoostingClassifier(max_iter=2).fit(frame, Y)
    (stage,) = estimator_stages(model, frame).stages
    assert stage.matrix.shape == (80, 3)


def test_a_forest_alone_has_no_stages():
    model = RandomForestClassifier(3).fit(FRAME[["a", "b"]], Y)
    assert estimator_stages(model, FRAME[["a", "b"]]).stages == ()


def refuses(values):
    raise RuntimeError("no more")


def is_huge(values):
    return np.broadcast_to(0.0, (len(values), MOST_CELLS))


@pytest.mark.parametrize("function", [refuses, is_huge])
def test_what_cannot_be_followed_is_named(function):
    step = FunctionTransformer(lambda values: values)
    model = make_pipeline(StandardScaler(), step, LogisticRegression())
    model.fit(FRAME[["a", "b"]], Y)
    step.func = function
    stages = estimator_stages(model, FRAME[["a", "b"]])
    assert [stage.name for stage in stages.stages] == ["standardscaler"]
    assert stages.unseen == ("functiontransformer",)


def test_a_file_is_laid_beside_the_records():
    table = table_from_frame(FRAME, target=Y)
    model = make_pipeline(
        make_column_transformer((StandardScaler(), ["a", "b"])), LogisticRegression()
    ).fit(table.features, table.target)
    product = FittedProduct(estimator=model, classes=table.classes)
    assert isinstance(product, Staged)
    file = open_file(product, table)
    assert [stage.name for stage in file.stages] == ["records", "columntransformer"]
    (words,) = file.words
    assert [words.values[code] for code in words.codes] == FRAME["town"].tolist()
    # Texts are numbered in their order, as by an encoder.
    assert np.array_equal(file.stages[0].matrix[:, 2], words.codes)
    assert np.array_equal(file.target, Y)
    assert file.unseen == ()
    part = file.take(np.array([3, 1]))
    assert np.array_equal(part.stages[1].matrix, file.stages[1].matrix[[3, 1]])


def test_texts_with_gaps_filled_are_not_called_unread():
    """The preparation of every audit fills gaps among texts before it codes them."""
    frame = pd.DataFrame({"town": ["Bonn", "Ulm", None, "Bonn"] * 20})
    table = table_from_frame(frame, target=np.arange(80) % 2)
    product = parse_trainer("sklearn.linear_model.LogisticRegression()").train(
        table, seed=0
    )
    stages = product.stages(table.features)
    assert stages.unseen == ()
    assert stages.stages[-1].matrix.shape == (80, 3)
