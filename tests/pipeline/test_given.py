"""Records and products as callers in Python have them: nothing about them is changed without a word."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import reticent
from reticent.errors import InvalidInput, InvalidSpec
from reticent.run import stream

# What is asked here is what is said, written and refused.

QUICK = {"rounds": 1, "pool": 0, "workers": 1}
N = 160


def records(n=N, seed=0):
    rng = stream(seed, "given")
    y = rng.integers(2, size=n)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n) + y,
            "b": rng.integers(9, size=n),
            "town": pd.Categorical(rng.integers(1, 4, size=n)),
        }
    )
    return X, y


def forest():
    return RandomForestClassifier(n_estimators=10, random_state=0)


def same(a, b):
    assert a.privacy == b.privacy
    assert a.utility == b.utility
    assert a.verdict == b.verdict


def test_polars_objects_and_pandas_give_one_audit():
    pl = pytest.importorskip("polars")
    X, y = records()
    X = X[["a", "b"]]
    expected = reticent.audit(forest(), X, y, **QUICK)
    same(expected, reticent.audit(forest(), pl.from_pandas(X), pl.Series(y), **QUICK))
    same(expected, reticent.audit(forest(), X.to_numpy().astype(object), y, **QUICK))
    same(expected, reticent.audit(forest(), X.assign(ill=y), "ill", **QUICK))
    kept = X.assign(name=[f"n{k}" for k in range(N)])
    dropped = reticent.audit(forest(), kept, y, drop=["name"], **QUICK)
    same(expected, dropped)
    assert "drop=['name']" in dropped.repeat


def test_a_fitted_estimator_is_audited_as_it_is():
    """A model that saw the members answers about them as it does, and is not fitted again."""
    X, y = records(2 * N)
    X = X[["a", "b"]]
    model = forest().fit(X[:N], y[:N])
    before = model.predict_proba(X)
    sides = {"members": (X[:N], y[:N]), "nonmembers": (X[N:], y[N:])}
    dossier = reticent.audit(product=model, workers=1, **sides)
    assert str(dossier.verdict) == "REFUSE"  # a forest knows its members
    assert np.array_equal(model.predict_proba(X), before)
    assert dossier.records["defender"] == dossier.records["reserved"] == N
    assert dossier.subject["product"] == "RandomForestClassifier"
    # The same records with parts are the same audit.
    parts = np.repeat(["defender", "reserved"], N)
    same(dossier, reticent.audit(X=X, y=y, product=model, parts=parts, workers=1))


def test_a_product_is_asked_about_the_records_as_they_were_passed():
    """Categories that are numbers become texts in a table; a product that was asked about texts would know none of them."""
    X, y = records(2 * N)
    coder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    model = make_pipeline(
        make_column_transformer((coder, ["town"]), remainder="drop"), forest()
    )
    model.fit(X[:N], y[:N])
    seen = []

    class Watched:
        classes_ = model.classes_

        def fit(self, X, y):
            raise AssertionError("it is fitted already")

        def predict_proba(self, asked):
            seen.append(asked)
            return model.predict_proba(asked)

    members, nonmembers = (X[:N], y[:N]), (X[N:], y[N:])
    reticent.audit(product=Watched(), members=members, nonmembers=nonmembers, workers=1)
    for asked in seen:
        assert isinstance(asked["town"].dtype, pd.CategoricalDtype)
        assert set(asked["town"]) == {1, 2, 3}
        answers = {tuple(row) for row in model.predict_proba(asked).round(6)}
        assert len(answers) > 1  # it knows the categories


@pytest.mark.parametrize("form", ["array", "polars"])
def test_a_product_is_asked_in_the_form_it_was_fitted_on(form):
    X, y = records(2 * N)
    X = X[["a", "b"]]
    if form == "array":
        X = X.to_numpy()
    else:
        X = pytest.importorskip("polars").from_pandas(X)
    model = forest().fit(
        X[:N], y[:N]
    )  # a frame where an array was learned from would warn
    dossier = reticent.audit(
        product=model, members=(X[:N], y[:N]), nonmembers=(X[N:], y[N:]), workers=1
    )
    assert not [f for f in dossier.findings if f.name == "trainer_warning"]


def test_a_fitted_regression_model_is_audited_as_it_is():
    X, y = records(2 * N)
    y = y + X["a"].to_numpy()
    X = X[["a", "b"]]
    model = RandomForestRegressor(n_estimators=10, random_state=0).fit(X[:N], y[:N])
    dossier = reticent.audit(
        product=model, members=(X[:N], y[:N]), nonmembers=(X[N:], y[N:]), workers=1
    )
    assert dossier.kind == "regressor"
    assert dossier.privacy.value < 0.9


def test_a_trained_product_and_its_folder_are_products(tmp_path):
    pytest.importorskip("torch")
    X, y = records(2 * N)
    X = X[["a", "b"]]
    small = reticent.PrivateNetwork(hidden=[], epochs=1, batch=64)
    trained = reticent.train(X, y, belief=0.9, recipe=small, out=tmp_path)
    sides = {"members": (X[:N], y[:N]), "nonmembers": (X[N:], y[N:])}
    dossiers = [
        reticent.audit(product=product, workers=1, **sides)
        for product in (trained, trained.product, tmp_path)
    ]
    for dossier in dossiers:
        same(dossier, dossiers[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"product": "model"}, "X is missing"),
        ({"product": "model", "X": "X", "y": "y"}, "not known which of the records"),
        (
            {"members": "side", "nonmembers": "side"},
            "there is none; pass it as product=",
        ),
        ({"product": "model", "members": "side"}, "nonmembers is missing"),
        (
            {"product": "model", "members": "side", "nonmembers": "side", "X": "X"},
            "leave these out",
        ),
        (
            {"product": "unfitted", "members": "side", "nonmembers": "side"},
            "is not fitted",
        ),
        ({"product": "y", "members": "side", "nonmembers": "side"}, "cannot be asked"),
        ({"product": "class", "members": "side", "nonmembers": "side"}, "is a class"),
        ({"product": "model", "members": "X", "nonmembers": "side"}, "must be a pair"),
        (
            {"product": "model", "members": "side", "nonmembers": "other"},
            "same columns",
        ),
        ({"product": "model", "members": "side", "nonmembers": "array"}, "in one form"),
        ({"X": "X", "y": "y"}, "neither an estimator nor a product"),
        ({"estimator": "unfitted", "X": "X"}, "y is missing"),
        ({"estimator": "unfitted", "X": "X", "y": "two"}, "one target per record"),
        ({"estimator": "unfitted", "X": "X", "y": "shuffled"}, r"y.loc\[X.index\]"),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_sentence(arguments, message):
    X, y = records()
    X = X[["a", "b"]]
    values = {
        "model": forest().fit(X, y),
        "unfitted": forest(),
        "class": RandomForestClassifier,
        "X": X,
        "y": y,
        "two": np.column_stack([y, y]),
        "shuffled": pd.Series(y).iloc[::-1],
        "side": (X, y),
        "other": (X.rename(columns={"a": "c"}), y),
        "array": (X.set_axis(["x0", "x1"], axis=1).to_numpy(), y),
    }
    if arguments.get("nonmembers") == "array":
        values["side"] = (X.set_axis(["x0", "x1"], axis=1), y)
    given = {name: values[value] for name, value in arguments.items()}
    with pytest.raises(InvalidInput, match=message):
        reticent.audit(**given)


def test_a_fitted_estimator_or_a_class_is_no_trainer():
    X, y = records()
    X = X[["a", "b"]]
    with pytest.raises(InvalidSpec, match=r"RandomForestClassifier is fitted already"):
        reticent.audit(forest().fit(X, y), X, y)
    with pytest.raises(InvalidSpec, match="is a class"):
        reticent.audit(RandomForestClassifier, X, y)


def test_progress_is_told_to_whoever_asks(capfd):
    X, y = records()
    X = X[["a", "b"]]
    told = []
    reticent.audit(forest(), X, y, progress=lambda *step: told.append(step), **QUICK)
    assert {stage for stage, _, _ in told} >= {"checking the data", "attacking"}
    assert capfd.readouterr() == ("", "")  # nobody watches this test
    reticent.audit(forest(), X, y, progress=True, **QUICK)
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert "attacking: 24/24" in lines or any(
        line.startswith("attacking: ") for line in lines
    )
    columns = next(k for k, line in enumerate(lines) if "2 numeric ('a', 'b')" in line)
    training = next(k for k, line in enumerate(lines) if line.startswith("training"))
    assert columns < training


def outputs(labels, classes):
    rng = stream(0, "outputs")
    return rng.dirichlet(np.ones(classes), size=len(labels))


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (["no", "yes"], None),
        ([-1, 1], None),
        ([1.0, 2.0], None),
        ([False, True], None),
        (["yes", "no"], ["yes", "no"]),
    ],
)
def test_true_classes_may_have_names(names, classes):
    """Names in the order of scikit-learn's classes_ say the same as numbers."""
    numbers = np.arange(100) % 2
    answers = outputs(numbers, 2)
    expected = reticent.audit_outputs((answers, numbers), (answers[::-1], numbers))
    labels = np.array(names, dtype=object)[numbers]
    named = reticent.audit_outputs(
        (answers, labels), (answers[::-1], list(labels)), classes=classes
    )
    same(expected, named)


@pytest.mark.parametrize(
    ("labels", "shape", "message"),
    [
        (["a", "b"], 3, "nobody knows which column is whose; pass classes="),
        ([0.5, 1.0], 3, "pass classes="),
        ([0, None], 2, "50 true classes of members are missing"),
        (["a", "b"], 1, "one column per class"),
    ],
)
def test_classes_that_fit_no_column_are_refused(labels, shape, message):
    answers = outputs(range(100), max(shape, 2))[:, :shape]
    side = (answers, [labels[k % 2] for k in range(100)])
    with pytest.raises(InvalidInput, match=message):
        reticent.audit_outputs(side, side)
    with pytest.raises(InvalidInput, match="must be a pair"):
        reticent.audit_outputs(answers, side)


def test_several_classes_per_record_are_refused():
    answers = outputs(range(100), 2)
    side = (answers, np.zeros((100, 2), dtype=int))
    with pytest.raises(InvalidInput, match="one class per record"):
        reticent.audit_outputs(side, side)


def test_lightgbm_and_catboost_are_audited():
    X, y = records()
    for recipe in (
        "LGBMClassifier(n_estimators=5)",
        "CatBoostClassifier(iterations=5)",
    ):
        pytest.importorskip("lightgbm" if "LGBM" in recipe else "catboost")
        dossier = reticent.audit(recipe, X, y, **QUICK)
        assert not dossier.evidence.failed
        assert not [f for f in dossier.findings if f.name == "trainer_warning"]


def test_linear_models_are_named_by_their_class_alone():
    X, y = records()
    same(
        reticent.audit("LogisticRegression()", X, y, **QUICK),
        reticent.audit(LogisticRegression(), X, y, **QUICK),
    )
