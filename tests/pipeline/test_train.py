"""Training as a verb: a limit is kept, the product is measured on others, and the name is a package too."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="the extra `torch` is not installed")

import reticent
from reticent.account import Terms, make_plan
from reticent.data import builtin_table, table_from_frame
from reticent.errors import InvalidInput, InvalidSpec
from reticent.evidence import clopper_pearson
from reticent.pipeline import Risk, TrainPlan, divide, run_training
from reticent.product import load_product

SMALL = reticent.PrivateNetwork(hidden=[8], epochs=3, batch=64)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    age = rng.normal(45, 12, 1500)
    ill = rng.random(1500) < 1 / (1 + np.exp(-(age - 45) / 4))
    return pd.DataFrame({"age": age, "ill": np.where(ill, "yes", "no")})


@pytest.mark.parametrize(
    ("limit", "key"),
    [
        ({"belief": 0.9}, "belief"),
        ({"advantage": 0.2}, "advantage"),
        ({"tpr": 0.01, "fpr": 0.001}, "tpr"),
        ({"epsilon": 3.0, "delta": 1e-5}, "epsilon"),
    ],
)
def test_every_limit_is_kept(frame, limit, key):
    trained = reticent.train(frame, "ill", recipe=SMALL, **limit)
    guarantee = trained.guarantee
    assert guarantee.holds
    assert 0.9 * limit[key] < getattr(guarantee, key) <= limit[key]
    assert trained.provenance.guarantee == guarantee
    assert trained.provenance.claimed_epsilon == guarantee.epsilon
    assert f"epsilon {guarantee.epsilon:.2f}" in str(trained)


def test_accuracy_is_of_records_that_were_kept_aside(frame):
    table = table_from_frame(frame, target="ill")
    trained = reticent.train(table, belief=0.9, recipe=SMALL, seed=4)
    split = divide(table, seed=4)
    assert trained.rows == len(split.defender)
    answers = trained.product.predict_proba(split.reserved.features).argmax(1)
    hits = int((answers == split.reserved.target).sum())
    assert trained.accuracy == clopper_pearson(hits, len(split.reserved), level=0.95)
    assert trained.guessing == pytest.approx(
        np.bincount(split.reserved.target).max() / len(split.reserved)
    )


def test_a_product_is_saved_with_its_guarantee(frame, tmp_path):
    X, y = frame[["age"]], frame["ill"]
    trained = reticent.train(X, y, belief=0.9, recipe=SMALL, out=tmp_path / "a")
    trained.save(tmp_path / "b")
    for name in ("a", "b"):
        product, provenance = load_product(tmp_path / name, classes=("no", "yes"))
        assert provenance == trained.provenance
        assert np.array_equal(
            product.predict_proba(X), trained.product.predict_proba(X)
        )
    saved = json.loads((tmp_path / "a/provenance.json").read_text())
    assert saved["split"] == {"by": "row"}


def test_a_plan_may_train_on_everything_with_seeded_noise(frame):
    table = table_from_frame(frame, target="ill")
    recipe = reticent.PrivateNetwork(hidden=[], epochs=2, batch=64, noise="seeded")
    plan = TrainPlan(risk=Risk(epsilon=3.0), recipe=recipe, everything=True)
    told = []
    one = run_training(table, plan, progress=lambda *said: told.append(said))
    two = run_training(table, plan)
    assert (one.rows, one.accuracy, one.provenance.seed) == (1500, None, None)
    assert not one.guarantee.holds
    assert "Nothing is guaranteed" in str(one)
    assert np.array_equal(one.product.weights[0], two.product.weights[0])
    name, done, steps, note = told[-1]
    assert (name, done) == ("training privately", steps)
    assert note.startswith("epsilon ")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "a plan has exactly one target, got none"),
        ({"belief": 0.9, "epsilon": 1.0}, "got belief and epsilon"),
        ({"tpr": 0.1}, "add fpr"),
        ({"epsilon": 1.0, "delta": 0.0}, "no pure epsilon"),
    ],
)
def test_a_limit_must_be_stated_once(frame, given, message):
    with pytest.raises(InvalidInput, match=message):
        reticent.train(frame, "ill", **given)


def test_other_input_is_refused_in_one_sentence(frame):
    with pytest.raises(InvalidInput, match="y is missing"):
        reticent.train(frame, belief=0.9)
    with pytest.raises(InvalidInput, match="leave y out"):
        reticent.train(builtin_table(), frame["ill"], belief=0.9)
    with pytest.raises(InvalidInput, match=r"X has shape \(3,\)"):
        reticent.train([1, 2, 3], [0, 1, 0], belief=0.9)
    large = reticent.PrivateNetwork(batch=10_000)
    with pytest.raises(InvalidInput, match="larger than the table"):
        reticent.train(frame, "ill", belief=0.9, recipe=large)
    with pytest.raises(InvalidSpec, match="adds no noise"):
        reticent.train(frame, "ill", belief=0.9, recipe=reticent.Network())


def test_plan_and_identify_are_verbs_too(frame):
    planned = reticent.plan(rows=1000, batch=100, epochs=3, belief=0.9)
    assert planned.belief <= 0.9
    assert planned == make_plan(
        Risk(belief=0.9).target(1000),
        reticent_course(1000, 100, 3),
        Terms(delta=1e-4),
    )
    watched = reticent.identify(frame, "ill", SMALL, runs=4, workers=1)
    assert not watched.epsilons.refuted
    with pytest.raises(InvalidInput, match="no noisy steps to watch"):
        reticent.identify(frame, "ill", "sklearn.naive_bayes.GaussianNB()")


def reticent_course(rows, batch, epochs):
    from reticent.account import Course

    return Course.of_epochs(rows=rows, batch=batch, epochs=epochs)


ORDERS = (
    "import reticent; verb = reticent.train; from reticent.train import Network",
    "from reticent.train import Network; import reticent; verb = reticent.train",
    "import reticent.train; verb = reticent.train; from reticent.train import Network",
    "import reticent.pipeline; from reticent import train as verb; from reticent.train import Network",
)


def test_train_is_a_verb_and_a_package_in_any_order():
    """The package is imported anew for every order; the libraries below it stay, because they take the time."""
    code = f"""
import sys
for imports in {ORDERS}:
    for name in [name for name in sys.modules if name.partition(".")[0] == "reticent"]:
        del sys.modules[name]
    exec(imports)
    from reticent.data import builtin_table
    from reticent.errors import InvalidInput
    assert Network().epochs == 200
    try:
        verb(builtin_table())
    except InvalidInput as error:
        assert "one target" in str(error)
    else:
        raise SystemExit(f"no limit was stated, and nobody minded: {{imports}}")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_can_be_imported_and_importing_the_package_is_instant():
    code = """
import sys
import reticent
heavy = {"numpy", "pandas", "sklearn", "torch", "scipy"} & set(sys.modules)
assert not heavy, heavy
assert set(dir(reticent)) == set(reticent.__all__)
assert "torch" not in sys.modules
for name in reticent.__all__:
    assert getattr(reticent, name) is not None, name
try:
    reticent.nothing
except AttributeError as error:
    assert "no attribute 'nothing'" in str(error)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
