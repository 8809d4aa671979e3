"""Trainers described in one line: parsed, looked up, never evaluated."""

import contextlib
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from reticent.data import builtin_table
from reticent.errors import InvalidSpec, TrainerFailed
from reticent.testing import check_trainer
from reticent.train import parse_trainer, trainer_of


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Return a function that writes a module of the user, importable in this test alone."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text, name="mine_for_a_test"):
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        return name

    yield write
    sys.modules.pop("mine_for_a_test", None)


def test_literals_become_arguments():
    made = parse_trainer(
        "sklearn.ensemble.RandomForestClassifier(n_estimators=3, max_depth=None, "
        "class_weight={0: 1.5, 1: -2}, max_features='sqrt', bootstrap=False)"
    ).make()
    expected = {
        "n_estimators": 3,
        "max_depth": None,
        "class_weight": {0: 1.5, 1: -2},
        "max_features": "sqrt",
        "bootstrap": False,
    }
    assert isinstance(made, RandomForestClassifier)
    assert expected.items() <= made.get_params().items()


@settings(max_examples=30, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner),
        max_leaves=5,
    )
)
def test_any_literal_arrives_unchanged(value):
    text = f"sklearn.tree.DecisionTreeClassifier(max_depth={value!r})"
    assert parse_trainer(text).make().max_depth == value


def test_calls_may_be_nested():
    text = (
        "sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(with_std=False), "
        "sklearn.ensemble.VotingClassifier([('a', sklearn.svm.SVC(C=2.0))], weights=(1,)))"
    )
    made = parse_trainer(text).make()
    assert isinstance(made, Pipeline)
    assert isinstance(made[0], StandardScaler)
    assert made[0].with_std is False
    assert made[1].estimators[0][1].C == 2.0
    assert made[1].weights == (1,)


def test_name_alone_is_a_call_without_arguments():
    trainer = parse_trainer(" sklearn.linear_model.LogisticRegression ")
    assert trainer.recipe == "sklearn.linear_model.LogisticRegression"
    check_trainer(trainer, builtin_table())


def test_each_training_has_an_estimator_of_its_own():
    trainer = parse_trainer("sklearn.tree.DecisionTreeClassifier()")
    assert trainer.make() is not trainer.make()


def test_xgboost_is_at_hand():
    check_trainer(
        parse_trainer("xgboost.XGBClassifier(n_estimators=5)"), builtin_table()
    )


@pytest.mark.parametrize("preprocess", [True, False])
def test_pipeline_with_its_own_columns_gets_the_raw_ones(preprocess):
    columns = (
        "sklearn.compose.make_column_transformer("
        "(sklearn.preprocessing.StandardScaler(), ['bmi', 'bp']))"
    )
    text = f"sklearn.pipeline.make_pipeline({columns}, sklearn.svm.SVC())"
    trainer = parse_trainer(text, preprocess=preprocess)
    assert not trainer.preprocess
    product = trainer.train(builtin_table(), seed=0)
    assert product.estimator[-1].n_features_in_ == 2


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch {trace}')",
        "os.system('touch {trace}')",
        "sklearn.svm.SVC(C=__import__('os').system('touch {trace}'))",
        "sklearn.svm.SVC(C=open('{trace}', 'w'))",
        "sklearn.svm.SVC(C=(lambda: open('{trace}', 'w'))())",
        "sklearn.svm.SVC(C=[open('{trace}', 'w') for _ in range(1)])",
        "sklearn.svm.SVC(C=f\"{{open('{trace}', 'w')}}\")",
        "sklearn.svm.SVC(*[open('{trace}', 'w')])",
        "sklearn.svm.SVC(**{{'C': open('{trace}', 'w')}})",
        "sklearn.os.system('touch {trace}')",
        "sklearn.utils._testing.os.system('touch {trace}')",
        "sklearn.svm.SVC().__class__.__base__.__subclasses__()",
        "(lambda: open('{trace}', 'w'))()",
        'numpy.testing.runstring(\'open("{trace}", "w")\', {{}})',
        "sklearn.svm.SVC(); open('{trace}', 'w')",
    ],
)
def test_no_expression_is_evaluated(text, tmp_path):
    trace = tmp_path / "executed"
    with pytest.raises(InvalidSpec):
        parse_trainer(text.format(trace=trace))
    assert not trace.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RandomForest()", "not a class of sklearn, xgboost, lightgbm or catboost"),
        ("LogisticRegresion()", "the nearest match is 'LogisticRegression'"),
        ("eval('1')", "'eval' in the trainer is not a class of"),
        (
            "sklearn.LogisticRegression()",
            "write LogisticRegression, which is sklearn.linear_model.LogisticRegression",
        ),
        ("pandas.DataFrame()", "'pandas.DataFrame' in the trainer is not a class of"),
        ("sklearn.svm._SVC()", "is not a class of"),
        (
            "sklearn.ensemble.RandomForestClasifier()",
            "no estimator 'RandomForestClasifier'; .*'RandomForestClassifier'",
        ),
        ("xgboost.XGBClasifier()", "the nearest match is 'XGBClassifier'"),
        ("sklearn.ensembl.RandomForestClassifier()", "'sklearn.ensembl'.*imported"),
        ("sklearn.datasets.load_iris()", "no estimator 'load_iris'"),
        ("sklearn.svm.SVC(c=1)", r"does not take these arguments \(.*'c'"),
        ("sklearn.svm.SVC(C=lambda: 1)", "'lambda: 1' in the trainer is not a literal"),
        ("sklearn.svm.SVC(C=x)", "'x' in the trainer is not a literal"),
        ("sklearn.svm.SVC(C={[]: 1})", "not a literal"),
        ("sklearn.svm.SVC(**{'C': 1})", r"'\*\*' in the trainer hides"),
        ("sklearn.svm.SVC(", "cannot be read"),
        ("a forest, please", "cannot be read"),
        ("", "without a fit method"),
        ("no_such_module_here:make", "No module named 'no_such_module_here'"),
        (":make", "does not name a function"),
        ("json:lods", "no function 'lods'; the nearest match is 'loads'"),
        ("collections:OrderedDict", "gives a OrderedDict without a fit method"),
    ],
)
def test_bad_description_says_what_to_do(text, message):
    with pytest.raises(InvalidSpec, match=message):
        parse_trainer(text)


def test_function_of_the_user(own_module):
    name = own_module(
        "from sklearn.tree import DecisionTreeClassifier\n"
        "def make():\n    return DecisionTreeClassifier(max_depth=2)\n"
    )
    trainer = parse_trainer(f"{name}:make")
    assert trainer.recipe == f"{name}:make"
    check_trainer(trainer, builtin_table())


def test_content_follows_the_code_of_the_user(own_module):
    text = "from sklearn.tree import DecisionTreeClassifier as make\n"
    name = own_module(text)
    before = parse_trainer(f"{name}:make").content()
    assert parse_trainer(f"{name}:make").content() == before
    Path(sys.modules[name].__file__).write_text(text + "# changed\n")
    assert parse_trainer(f"{name}:make").content() != before


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("def make():\n    raise OSError('no licence')\n", TrainerFailed, "no licence"),
        ("raise OSError('no disk')\n", InvalidSpec, "OSError: no disk"),
        ("def make(:\n", InvalidSpec, "SyntaxError"),
        ("make = 3\n", InvalidSpec, "no function 'make'"),
    ],
)
def test_code_of_the_user_that_fails_is_told(own_module, text, error, message):
    with pytest.raises(error, match=message):
        parse_trainer(f"{own_module(text)}:make")


def test_user_code_is_seeded_too(own_module):
    name = own_module("from sklearn.ensemble import ExtraTreesClassifier as make\n")
    product = parse_trainer(f"{name}:make").train(builtin_table(), seed=5)
    assert product.estimator["model"].random_state == 5


@pytest.mark.parametrize(
    ("text", "recipe"),
    [
        ("LogisticRegression()", "sklearn.linear_model.LogisticRegression()"),
        ("GaussianNB", "sklearn.naive_bayes.GaussianNB"),
        ("Network(hidden=[8])", "reticent.Network(hidden=[8])"),
        (
            "make_pipeline(StandardScaler(), SVC(C=2))",
            "sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), sklearn.svm.SVC(C=2))",
        ),
        (
            "Pipeline([('é', PCA(2)), ('b', SVC())])",
            "sklearn.pipeline.Pipeline([('é', sklearn.decomposition.PCA(2)), ('b', sklearn.svm.SVC())])",
        ),
        ("XGBClassifier(n_estimators=3)", "xgboost.XGBClassifier(n_estimators=3)"),
    ],
)
def test_the_name_of_a_class_is_enough(text, recipe):
    trainer = parse_trainer(text)
    assert trainer.recipe == recipe
    assert trainer.content() == parse_trainer(recipe).content()


@pytest.mark.parametrize(
    "recipe", ["LGBMClassifier(n_estimators=5)", "CatBoostClassifier(iterations=5)"]
)
def test_boosted_trees_of_other_libraries_are_quiet_and_repeatable(
    recipe, tmp_path, capfd
):
    package = "lightgbm" if "LGBM" in recipe else "catboost"
    pytest.importorskip(package)
    trainer = parse_trainer(recipe)
    assert trainer.recipe == f"{package}.{recipe}"
    table = builtin_table()
    with contextlib.chdir(tmp_path):
        first, again, other = (trainer.train(table, seed=s) for s in (1, 1, 2))
    answers = first.predict_proba(table.features)
    assert np.array_equal(answers, again.predict_proba(table.features))
    if package == "catboost":  # LightGBM draws nothing at random unless it is asked to
        assert not np.array_equal(answers, other.predict_proba(table.features))
    assert capfd.readouterr() == ("", "")
    assert not any(tmp_path.iterdir())
    assert first.warnings == ()


@pytest.mark.parametrize(
    "recipe", ["LGBMRegressor(n_estimators=5)", "CatBoostRegressor(iterations=5)"]
)
def test_regression_models_of_other_libraries_say_that_they_are(recipe):
    pytest.importorskip("lightgbm" if "LGBM" in recipe else "catboost")
    assert parse_trainer(recipe).quantity


def test_what_the_user_has_set_is_left():
    pytest.importorskip("lightgbm")
    from reticent.train._estimators import well_behaved

    loud = well_behaved(parse_trainer("LGBMClassifier(verbosity=1)").make(), 3)
    assert loud.get_params()["verbosity"] == 1
    pytest.importorskip("catboost")
    seeded = well_behaved(parse_trainer("CatBoostClassifier(random_seed=7)").make(), 3)
    assert seeded.get_params()["random_seed"] == 7


class OwnModel:
    """A model that knows nothing of scikit-learn."""

    def fit(self, X, y):
        self.mean_ = y.mean()
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        XGBClassifier(n_estimators=2),
        OwnModel(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_a_fitted_estimator_is_no_trainer(estimator):
    trainer_of(estimator)  # unfitted, it is
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    with pytest.raises(InvalidSpec, match=r"fitted already.*audit\(product=model"):
        trainer_of(estimator.fit(X, y))


def test_a_function_that_returns_a_fitted_estimator_is_no_trainer(
    tmp_path, monkeypatch
):
    (tmp_path / "fitted_elsewhere.py").write_text(
        "from sklearn.dummy import DummyClassifier\n"
        "def make():\n    return DummyClassifier().fit([[0], [1]], [0, 1])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidSpec, match="fitted already"):
        parse_trainer("fitted_elsewhere:make")


def test_a_class_in_the_place_of_its_object_is_refused():
    with pytest.raises(
        InvalidSpec,
        match=r"LogisticRegression is a class.*pass LogisticRegression\(...\)",
    ):
        trainer_of(LogisticRegression)
