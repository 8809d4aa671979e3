"""Saved products: nothing is lost, and nothing of a stranger's is executed."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import skops.io
from numpy.testing import runstring
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from reticent.data import builtin_table
from reticent.errors import InvalidInput, OutputRefused, UnsafeProduct
from reticent.product import (
    FittedProduct,
    Provenance,
    load_product,
    save_product,
    versions,
)
from reticent.train import parse_trainer

TABLE = builtin_table()


class Homemade(ClassifierMixin, BaseEstimator):
    """A type that skops cannot know."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.share_ = float(np.mean(y))
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.share_, self.share_], (len(X), 1))


def fitted(estimator):
    estimator.fit(TABLE.features, TABLE.target)
    return FittedProduct(estimator=estimator, classes=TABLE.classes)


@pytest.mark.parametrize(
    "recipe",
    [
        "sklearn.ensemble.RandomForestClassifier(n_estimators=5)",
        "sklearn.linear_model.LogisticRegression()",
        "sklearn.svm.SVC()",
        "sklearn.ensemble.HistGradientBoostingClassifier(max_iter=5)",
        "sklearn.neighbors.KNeighborsClassifier()",
        "sklearn.neural_network.MLPClassifier((4,), max_iter=5)",
        "sklearn.calibration.CalibratedClassifierCV()",
        "sklearn.ensemble.StackingClassifier([('a', sklearn.naive_bayes.GaussianNB())])",
        "xgboost.XGBClassifier(n_estimators=5)",
        "lightgbm.LGBMClassifier(n_estimators=5)",
        "catboost.CatBoostClassifier(iterations=5)",
    ],
)
def test_product_comes_back_with_its_answers_and_its_origin(tmp_path, recipe):
    if recipe.startswith(("lightgbm", "catboost")):
        pytest.importorskip(recipe.partition(".")[0])
    product = parse_trainer(recipe).train(TABLE, seed=3)
    provenance = Provenance(
        recipe=recipe,
        data_fingerprint=TABLE.fingerprint,
        seed=3,
        classes=TABLE.classes,
        versions=versions(),
        split={"by": "row"},
        claimed_epsilon=1.5,
    )
    folder = save_product(tmp_path / "kept", product, provenance)
    loaded, origin = load_product(folder, classes=TABLE.classes)
    assert origin == provenance
    assert np.array_equal(
        loaded.outputs(TABLE.features), product.outputs(TABLE.features)
    )


def test_class_numbers_keep_their_meaning(tmp_path):
    product = parse_trainer("sklearn.tree.DecisionTreeClassifier()").train(
        TABLE, seed=0
    )
    save_product(tmp_path, product, Provenance(classes=TABLE.classes))
    turned = TABLE.classes[::-1]
    loaded, _ = load_product(tmp_path, classes=turned)
    assert np.array_equal(
        loaded.predict_proba(TABLE.features),
        product.predict_proba(TABLE.features)[:, ::-1],
    )


def test_file_made_with_skops_elsewhere_is_of_unknown_origin(tmp_path):
    names = np.array(TABLE.classes)[TABLE.target]
    logistic = make_pipeline(StandardScaler(), LogisticRegression())
    logistic.fit(TABLE.features, names)
    skops.io.dump(logistic, tmp_path / "model.skops")
    loaded, origin = load_product(tmp_path / "model.skops", classes=TABLE.classes)
    assert origin == Provenance()
    assert np.array_equal(
        loaded.predict_proba(TABLE.features), logistic.predict_proba(TABLE.features)
    )


class Bomb:
    """An object whose unpickling leaves a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (Path(self.trace),)


@pytest.mark.parametrize(
    "name", ["model.pkl", "model.joblib", "model.skops", "model.bin"]
)
@pytest.mark.parametrize("write", [pickle.dump, joblib.dump])
def test_pickle_is_refused_and_not_opened(tmp_path, name, write):
    trace = tmp_path / "executed"
    with (tmp_path / name).open("wb") as handle:
        write(Bomb(trace), handle)
    with pytest.raises(UnsafeProduct, match=r"but a pickle: .*can execute any code"):
        load_product(tmp_path / name, classes=TABLE.classes)
    assert not trace.exists()


def test_zip_archive_named_as_a_pickle_is_refused_too(tmp_path):
    skops.io.dump(LogisticRegression(), tmp_path / "model.pkl")
    with pytest.raises(UnsafeProduct, match="but a pickle"):
        load_product(tmp_path / "model.pkl", classes=TABLE.classes)


@pytest.mark.parametrize("content", [b"PK\x03\x04 but nothing more", b"{}"])
def test_what_is_no_product_is_refused(tmp_path, content):
    (tmp_path / "model.skops").write_bytes(content)
    with pytest.raises(UnsafeProduct, match=r"not a skops file|cannot be read as a"):
        load_product(tmp_path / "model.skops", classes=TABLE.classes)


def test_unknown_type_is_refused_by_name_until_somebody_vouches_for_it(tmp_path):
    product = fitted(Homemade())
    save_product(tmp_path, product, Provenance())
    (name,) = skops.io.get_untrusted_types(file=tmp_path / "product.skops")
    assert name.endswith("Homemade")
    with pytest.raises(UnsafeProduct, match=r"Homemade, whose loading.*--trust"):
        load_product(tmp_path, classes=TABLE.classes)
    loaded, _ = load_product(tmp_path, classes=TABLE.classes, trust=(name,))
    assert np.array_equal(
        loaded.predict_proba(TABLE.features), product.predict_proba(TABLE.features)
    )


def test_code_hidden_in_functions_of_numpy_is_refused(tmp_path):
    # Each step is a function of numpy: the first gives 2, the second picks the text that
    # stands third, the third executes it. A whole package must therefore not be trusted.
    trace = tmp_path / "executed"
    pipeline = make_pipeline(
        FunctionTransformer(np.ndim),
        FunctionTransformer(
            np.choose,
            kw_args={"choices": ["", "", f"open({str(trace)!r}, 'w').close()"]},
        ),
        FunctionTransformer(runstring, kw_args={"dict": {}}),
        DummyClassifier().fit(TABLE.features, TABLE.target),
    )
    skops.io.dump(pipeline, tmp_path / "model.skops")
    with pytest.raises(UnsafeProduct, match="runstring"):
        load_product(tmp_path / "model.skops", classes=TABLE.classes)
    assert not trace.exists()
    # Whoever vouches for these functions is protected by the process in which they are called.
    vouched = tuple(skops.io.get_untrusted_types(file=tmp_path / "model.skops"))
    loaded, _ = load_product(
        tmp_path / "model.skops", classes=TABLE.classes, trust=vouched
    )
    with pytest.raises(UnsafeProduct, match=r"tried to reach outside itself \(open .*executed"):  # fmt: skip
        loaded.predict_proba(TABLE.features)
    assert not trace.exists()


def test_absent_product_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="there is no product at"):
        load_product(tmp_path, classes=TABLE.classes)


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"colour": "red"})])
def test_broken_provenance_is_refused(tmp_path, content):
    save_product(tmp_path, fitted(DummyClassifier()), Provenance())
    (tmp_path / "provenance.json").write_text(content)
    with pytest.raises(InvalidInput, match=r"provenance .* cannot be read"):
        load_product(tmp_path, classes=TABLE.classes)


def test_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    product = fitted(DummyClassifier())
    with pytest.raises(OutputRefused, match="cannot be written"):
        save_product(tmp_path / "file" / "below", product, Provenance())


def test_product_that_needs_pickle_is_not_saved(tmp_path):
    product = FittedProduct(estimator=(i for i in range(3)), classes=TABLE.classes)
    with pytest.raises(OutputRefused, match="cannot be stored without pickle"):
        save_product(tmp_path, product, Provenance())
    assert not list(tmp_path.glob("*.skops"))


def test_reading_a_file_loads_no_other_array_library():
    """PyTorch takes seconds to load, and every audit of a scikit-learn model reads a file."""
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    code = (
        "import sys\n"
        "from reticent.product._skops import skops_io\n"
        "io = skops_io()\n"
        "assert 'torch' not in sys.modules\n"
        "from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES as names\n"
        "print(len(names), 'sklearn.tree._classes.DecisionTreeClassifier' in names)\n"
        "import sklearn.externals.array_api_compat.torch\n"  # it is only hidden while skops looks
        "assert skops_io() is io\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    number, has_tree = done.stdout.split()
    assert int(number) > 150
    assert has_tree == "True"
