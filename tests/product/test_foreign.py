"""Products in a process of their own answer as they do in this one, to the digit, and leave no process behind."""

import pickle
import signal

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from reticent.errors import InvalidInput, UnsafeProduct
from reticent.product import FittedProduct, SavedProduct, load_product, read_contents

MODELS = [
    # Of one job, because a sum over threads depends on which is ready first.
    RandomForestClassifier(20, random_state=0),
    make_pipeline(StandardScaler(), LogisticRegression()),
    HistGradientBoostingClassifier(max_iter=10),
    XGBClassifier(n_estimators=5),
    KNeighborsClassifier(),
    BaggingClassifier(n_estimators=4, n_jobs=2, random_state=0),
]


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3000, 4)), columns=list("abcd"))
    return X, (X["a"] * X["b"] > 0).astype(int)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_it_answers_the_same_to_the_digit(model, records, tmp_path):
    X, y = records
    here = FittedProduct(estimator=model.fit(X, y), classes=("0", "1"))
    skops.io.dump(model, tmp_path / "product.skops")
    there, _ = load_product(tmp_path, classes=("0", "1"))
    assert np.array_equal(there.outputs(X), here.outputs(X))
    assert np.array_equal(there.asked(X)[0], here.predict_proba(X))
    mine, other = here.stages(X), there.stages(X)
    assert [s.name for s in mine.stages] == [s.name for s in other.stages]
    for one, two in zip(mine.stages, other.stages, strict=True):
        assert np.array_equal(one.matrix, two.matrix)
    # What is saved are the bytes that were loaded, and not those of another writer.
    there.save(tmp_path / "again")
    whole = (tmp_path / "product.skops").read_bytes()
    assert (tmp_path / "again").read_bytes() == whole
    with pytest.raises(TypeError, match="stays here"):
        pickle.dumps(there)


def saved(folder, records):
    X, y = records
    skops.io.dump(LogisticRegression().fit(X, y), folder / "product.skops")
    return SavedProduct(folder)


def test_no_process_is_left(records, tmp_path):
    product = saved(tmp_path, records)
    process = product._cell._process
    assert process.poll() is None
    del product
    assert process.poll() == -signal.SIGKILL


def test_a_process_that_is_gone_is_told_every_time(records, tmp_path):
    product = saved(tmp_path, records).on(("0", "1"))
    product.cell._process.send_signal(signal.SIGSEGV)
    for _ in range(2):
        with pytest.raises(UnsafeProduct, match=r"crashed the process .* \(SIGSEGV\)"):
            product.outputs(records[0])


def test_an_interrupted_question_ends_the_process(records, tmp_path, monkeypatch):
    product = saved(tmp_path, records).on(("0", "1"))

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(product.cell, "_read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        product.outputs(records[0])
    assert product.cell._process.poll() == -signal.SIGKILL
    with pytest.raises(InvalidInput, match="load it again"):
        product.outputs(records[0])


def test_every_file_and_its_name_is_read(records, tmp_path):
    """Numbers hidden beside a model, and the name of their file; a product that is saved anew has neither."""
    (tmp_path / "born 1947-11-23.json").write_text("[81.5, 82.5, 83.5, 84.5]")
    product = saved(tmp_path, records)

    def found(contents):
        numbers = {float(v) for a in contents.arrays for v in a.values.ravel()}
        return numbers | {text for t in contents.texts for text in t.values}

    hidden = {81.5, 84.5, "born 1947-11-23.json"}
    assert hidden <= found(read_contents(product.files))
    anew = product.on(("0", "1")).to_bytes()
    assert not hidden & found(read_contents(anew))
