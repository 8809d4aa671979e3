"""The private classifier: scikit-learn's contract, its guarantee, and answers that need no PyTorch."""

import subprocess
import sys
from dataclasses import is_dataclass, replace

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

import reticent
from reticent.account import PrivateTraining, Relation, Terms, trade_off
from reticent.errors import InvalidInput, InvalidPredictions
from reticent.product import (
    FittedProduct,
    Provenance,
    load_product,
    save_product,
)
from reticent.train import (
    SGD,
    PrivateNetwork,
    guarantee_of,
)
from reticent.train.private import clipping
from reticent.train.private.classifier import (
    PrivateNetworkClassifier,
    fitting_batch,
)
from reticent.train.private.clipping import Clip, PerLayer, TanhThenClip
from reticent.train.private.networks import train_privately
from reticent.train.stacking import Cohort

D = 6
BOUNDS = (-4.0, 4.0)
NAMED = [getattr(clipping, name) for name in clipping.__all__]
CLIPPINGS = [t for t in NAMED if is_dataclass(t) and t is not clipping.Filter]
# Two fits with secret noise are not alike, and these checks compare them.
UNALIKE = {
    "check_classifier_data_not_an_array",
    "check_fit_idempotent",
    "check_supervised_y_2d",
}


def seeded(**changes):
    given = {"noise": "seeded", "noise_multiplier": 0.5, "epochs": 2, "random_state": 0}
    return PrivateNetworkClassifier(**{**given, **changes})


def data(seed=0, rows=200, classes=2):
    return make_classification(
        rows, D, n_informative=4, n_classes=classes, random_state=seed
    )


def alike(one, other):
    """Whether two classifiers have the same weights."""
    return all(
        np.array_equal(a, b) for a, b in zip(one.weights_, other.weights_, strict=True)
    )


# --- The contract of scikit-learn


def expected_failures(estimator):
    if estimator.noise == "seeded":
        return {}
    return dict.fromkeys(UNALIKE, "compares two fits, and secret noise never repeats")


@parametrize_with_checks(
    [
        seeded(),
        seeded(hidden=(), bounds=(-10.0, 10.0), momentum=0.5),
        seeded(noise="secret", hidden=(4,), activation="relu"),
    ],
    expected_failed_checks=expected_failures,
)
def test_the_contract_of_estimators(estimator, check):
    check(estimator)


def test_the_constructor_keeps_what_it_is_given():
    low = np.zeros(D)
    given = PrivateNetworkClassifier(bounds=(low, 1.0), clipping=Clip(norm=0.5))
    assert given.get_params()["bounds"][0] is low
    assert clone(given).clipping == Clip(norm=0.5)
    assert reticent.PrivateNetworkClassifier is PrivateNetworkClassifier


def test_it_works_in_pipelines_and_searches():
    X, y = data()
    made = make_pipeline(FunctionTransformer(np.arcsinh), seeded())
    search = GridSearchCV(
        made,
        {"privatenetworkclassifier__hidden": [(), (4,)]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    best = search.best_estimator_[-1]
    assert best.rows_ == len(X)
    assert alike(best, clone(best).fit(np.arcsinh(X), y))


# --- What is trained, and what answers


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("hidden", [(), (5, 4)])
def test_answers_equal_those_of_the_engine(hidden, activation, seed):
    """The second implementation: the engine itself, which answers with PyTorch."""
    X, y = data(seed, classes=3)
    changes = {"hidden": hidden, "activation": activation}
    made = seeded(
        **changes, batch=20, rate=0.3, momentum=0.2, l2=0.01, random_state=seed
    ).fit(X, y)
    recipe = PrivateNetwork(
        **changes,
        epochs=2,
        batch=20,
        optimiser=SGD(rate=0.3, momentum=0.2),
        l2=0.01,
        noise_multiplier=0.5,
        noise="seeded",
    )
    inputs = torch.from_numpy(X.astype(np.float32))
    networks = train_privately(
        Cohort(
            inputs=inputs,
            targets=torch.from_numpy(np.eye(3, dtype=np.float32)[y]),
            masks=np.ones((1, len(X)), dtype=bool),
            seeds=[int(check_random_state(seed).randint(2**31 - 1))],
        ),
        recipe,
    )
    assert made.predict_proba(X) == pytest.approx(
        networks.probabilities(inputs)[0], abs=1e-5
    )
    assert [w.shape for w in made.weights_] == [w[0].shape for w in networks.weights]
    assert made.n_iter_ == 20


def test_seeded_fits_repeat_and_secret_ones_differ():
    X, y = data()
    assert alike(seeded().fit(X, y), seeded().fit(X, y))
    assert not alike(seeded().fit(X, y), seeded(random_state=1).fit(X, y))
    secret = seeded(noise="secret")
    assert not alike(clone(secret).fit(X, y), clone(secret).fit(X, y))


def test_it_learns(seed):
    X, y = data(seed, rows=6_000)
    X, X_new, y, y_new = train_test_split(X, y, train_size=4_000, random_state=seed)
    made = PrivateNetworkClassifier(epsilon=5.0, noise="seeded", random_state=seed)
    answers = made.fit(X, y).predict(X_new)
    assert np.mean(answers == y_new) > 0.75  # 0.85 is the least of 100 seeds
    # The twin: as many answers of each class, given to the wrong records.
    shuffled = np.random.default_rng(seed).permutation(answers)
    assert np.mean(shuffled == y_new) < 0.6


def test_labels_may_be_words_and_columns_have_names():
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(D)])
    words = np.array(["no", "yes"], dtype=object)[y]
    made = seeded().fit(frame, words)
    assert made.classes_.tolist() == ["no", "yes"]
    assert made.feature_names_in_.tolist() == frame.columns.tolist()
    numbers = seeded().fit(X, y)
    assert (made.predict(frame) == made.classes_[numbers.predict(X)]).all()
    with pytest.raises(ValueError, match="feature names"):
        made.predict(frame[frame.columns[::-1]])


def test_one_class_is_always_the_answer():
    X, _ = data()
    made = seeded().fit(X, np.full(len(X), "only"))
    assert (made.predict_proba(X) == 1).all()
    assert set(made.predict(X)) == {"only"}


# --- Bounds


def test_bounds_clip_and_scale(seed):
    X, y = data(seed)
    low, high = np.linspace(-2, -0.5, D), np.linspace(0.5, 3, D)
    by_hand = 2 * (np.minimum(np.maximum(X, low), high) - low) / (high - low) - 1
    assert np.abs(by_hand).max() == pytest.approx(1.0)
    made, plain = seeded(bounds=(low, high)).fit(X, y), seeded().fit(by_hand, y)
    assert made.predict_proba(X) == pytest.approx(
        plain.predict_proba(by_hand), abs=1e-4
    )
    far = np.where(high < X, 1e300, X)  # beyond the bounds all values are the same
    assert (made.predict_proba(far) == made.predict_proba(X)).all()
    assert alike(made, clone(made).fit(far, y))
    same = seeded(bounds=BOUNDS).fit(X, y)
    assert alike(same, seeded(bounds=(np.full(D, -4), np.full(D, 4))).fit(X, y))


def test_numbers_too_large_for_a_network_are_refused_without_bounds():
    X, y = data()
    made = seeded().fit(X, y)
    X[3, 2] = 1e300
    for ask in (lambda: seeded().fit(X, y), lambda: made.predict(X)):
        with pytest.raises(ValueError, match="too large for dtype"):
            ask()


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((1.0, 1.0), "column 0 are 1 and 1"),
        ((0.0, [1.0, 2.0]), "do not fit 6 columns"),
        ((0.0, np.inf), "finite low below high"),
        (4.0, "pass a pair"),
        ((0.0, 1.0, 2.0), "pass a pair"),
        (("low", "high"), "pass a pair"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(bounds, words):
    with pytest.raises(InvalidInput, match=words):
        seeded(bounds=bounds).fit(*data())


# --- The guarantee


@pytest.mark.parametrize("relation", list(Relation))
def test_noise_is_the_least_that_keeps_epsilon(relation):
    X, y = data()
    made = PrivateNetworkClassifier(
        epsilon=2.0, epochs=2, relation=relation.value, delta=1e-4
    ).fit(X, y)
    guarantee = made.guarantee_
    assert guarantee.holds
    assert guarantee.caveats == ()
    assert 1.9 < guarantee.epsilon <= 2.0
    less = PrivateTraining(
        noise_multiplier=0.99 * made.noise_multiplier_,
        sampling_rate=guarantee.sampling_rate,
        steps=guarantee.steps,
        relation=relation,
    )
    assert trade_off(less).epsilon(1e-4) > 2.0


def test_the_promise_is_that_of_the_recipe():
    """The second implementation: what `reticent train` guarantees if nothing is learned of the columns."""
    X, y = data()
    made = seeded(noise="secret", noise_multiplier=1.5, batch=25, rows=250).fit(X, y)
    recipe = PrivateNetwork(
        epochs=2, batch=25, noise_multiplier=1.5, rows=250, domain="declared"
    )
    expected = guarantee_of(recipe, rows=250, terms=Terms(delta=1 / 2500))
    assert replace(made.guarantee_, public=()) == replace(expected, public=())
    assert "the number of rows (250)" in made.guarantee_.public


def test_seeded_noise_promises_nothing():
    guarantee = seeded(bounds=BOUNDS).fit(*data()).guarantee_
    assert not guarantee.holds
    assert "seed" in guarantee.caveats[0]
    assert "the lowest and highest values of the columns" in guarantee.public


def test_the_promise_is_never_stale():
    X, y = data()
    made = seeded(noise="secret", noise_multiplier=1.0)
    with pytest.raises(NotFittedError):
        _ = made.guarantee_
    first = made.fit(X, y).guarantee_
    answers = made.predict_proba(X)
    made.set_params(noise_multiplier=9.0, noise="seeded", activation="relu", bounds=(0, 1))  # fmt: skip
    assert made.guarantee_ == first
    assert (made.predict_proba(X) == answers).all()
    with pytest.raises(InvalidInput, match="larger than the table"):
        made.set_params(batch=201).fit(X, y)
    assert made.guarantee_ == first  # the weights are still those of the first fit
    second = made.set_params(batch=None).fit(X, y).guarantee_
    assert second.epsilon < first.epsilon
    assert (first.holds, second.holds) == (True, False)


def test_a_first_fit_that_fails_leaves_nothing_that_answers():
    X, y = data()
    made = seeded(batch=201)
    with pytest.raises(InvalidInput, match="larger than the table"):
        made.fit(X, y)
    with pytest.raises(NotFittedError):
        made.predict(X)


def test_the_public_number_of_rows_sets_course_and_delta():
    X, y = data()
    made = seeded(rows=1_000).fit(X, y)
    assert (made.rows_, made.batch_) == (1_000, fitting_batch(1_000))
    assert made.delta_ == 1e-4
    assert made.n_iter_ == 2 * -(-1_000 // made.batch_)
    assert made.guarantee_.sampling_rate == made.batch_ / 1_000


@pytest.mark.parametrize("clipping", [PerLayer(), TanhThenClip(norm=0.5)])
def test_other_treatments_are_used(clipping):
    X, y = data()
    made = seeded(clipping=clipping).fit(X, y)
    assert not alike(made, seeded().fit(X, y))
    assert type(clipping).__name__ in made.guarantee_.mechanism


# --- The batch


def test_batches_that_fit():
    """Reference values of the rule of `reticent train`."""
    rows = [1, 16, 300, 452, 453, 4_000, 48_842, 10**6]
    assert [fitting_batch(n) for n in rows] == [1, 16, 16, 16, 32, 256, 2048, 8192]


@given(st.integers(1, 10**9))
def test_a_batch_is_never_larger_than_the_table(rows):
    batch = fitting_batch(rows)
    assert min(rows, 16) <= batch <= min(rows, 8192)
    assert batch == rows or batch & (batch - 1) == 0


# --- Bad input


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch": 201}, "batch of 201 is larger than the table of 200 rows"),
        ({"rows": 10, "batch": 11}, "larger than the table of 10 rows"),
        ({"batch": 0}, "batch must be .* at least 1, got 0"),
        ({"batch": 2.5}, "batch must be a whole number .* got 2.5"),
        ({"epsilon": 0, "noise_multiplier": None}, "epsilon must be"),
        (
            {"epsilon": "3", "noise_multiplier": None},
            "epsilon must be a finite number, got '3'",
        ),
        (
            {"epsilon": np.inf, "noise_multiplier": None},
            "epsilon must be a finite number, got inf",
        ),
        ({"delta": 0}, r"delta must be in \(0, 1\), got 0"),
        ({"delta": 0, "noise_multiplier": None}, r"delta must be in \(0, 1\), got 0"),
        ({"delta": 1.0}, r"delta must be in \(0, 1\), got 1"),
        ({"noise": "weak"}, "noise 'weak' is not known"),
        ({"noise_multiplier": 0}, "noise multiplier must be positive .* got 0"),
        ({"noise_multiplier": np.nan}, "noise_multiplier must be a finite .* got nan"),
        ({"relation": "friends"}, "relation 'friends' is not known"),
        ({"hidden": 32}, "hidden is 32"),
        ({"hidden": (0,)}, "a width in hidden must be .* got 0"),
        ({"activation": "sin"}, "activation 'sin' is not known"),
        ({"epochs": 0}, "epochs must be .* got 0"),
        ({"rate": 0}, "rate must be above 0"),
        ({"momentum": 1.0}, r"momentum in \[0, 1\)"),
        ({"l2": -1.0}, "l2 at least 0"),
        ({"clipping": "Clip"}, "clipping 'Clip' bounds no gradient"),
        ({"clipping": Clip}, "bounds no gradient"),
        ({"rows": 0}, "rows must be .* got 0"),
    ],
)
def test_bad_parameters_get_one_sentence(changes, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        seeded(**changes).fit(*data())
    assert "\n" not in str(caught.value)


def test_a_training_that_diverges_is_told():
    with pytest.raises(InvalidPredictions, match="diverged"):
        seeded(l2=1e3, epochs=20).fit(*data())


def test_weights_of_samples_are_no_argument():
    X, y = data()
    with pytest.raises(TypeError, match="sample_weight"):
        seeded().fit(X, y, sample_weight=np.ones(len(X)))


# --- Without PyTorch


def test_a_stored_pipeline_answers_without_torch_and_a_fit_asks_for_it(tmp_path):
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(D)])
    words = np.array(["no", "yes"], dtype=object)[y]
    made = make_pipeline(
        FunctionTransformer(np.arcsinh),
        seeded(bounds=(np.full(D, -2), 2), clipping=Clip(norm=0.5), noise="secret"),
    ).fit(frame, words)
    guarantee = made[-1].guarantee_
    product = FittedProduct(estimator=made, classes=("no", "yes"))
    folder = save_product(
        tmp_path / "product", product, Provenance(guarantee=guarantee)
    )
    again, provenance = load_product(folder, classes=("no", "yes"))
    assert (again.predict_proba(frame) == made.predict_proba(frame)).all()
    file = folder / "product.skops"
    stored = skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))
    assert stored[-1].guarantee_ == provenance.guarantee == guarantee
    assert stored[-1].clipping == Clip(norm=0.5)

    frame.to_parquet(tmp_path / "frame.parquet")
    np.save(tmp_path / "answers.npy", made.predict_proba(frame))
    code = f"""
import sys
class Hidden:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
import numpy as np, pandas as pd
from pathlib import Path
from reticent.errors import InvalidSpec
import skops.io
here = Path({str(tmp_path)!r})
file = here / "product/product.skops"
estimator = skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))
frame = pd.read_parquet(here / "frame.parquet")
answers = estimator.predict_proba(frame)
assert np.allclose(answers, np.load(here / "answers.npy"), rtol=0, atol=1e-12)
assert estimator[-1].guarantee_.holds
try:
    estimator.fit(frame, answers.argmax(axis=1))
except InvalidSpec as error:
    assert "install reticent[torch]" in str(error)
else:
    raise AssertionError
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("made", CLIPPINGS)
def test_every_treatment_may_be_stored(made, tmp_path):
    model = seeded(clipping=made(), epochs=1).fit(*data())
    product = FittedProduct(estimator=model, classes=("0", "1"))
    folder = save_product(tmp_path / "product", product, Provenance())
    file = folder / "product.skops"
    load_product(folder, classes=("0", "1"))  # its types are trusted
    stored = skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))
    assert stored.clipping == made()
