"""Trainers of estimators: what they learn from, seeds, contracts, refusals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from reticent.data import ColumnKind, Schema, Split, builtin_table, table_from_frame
from reticent.errors import InvalidPredictions, TrainerFailed
from reticent.product import Encoder, answers_of
from reticent.run import stream
from reticent.testing import check_trainer
from reticent.train import EstimatorTrainer, models, standard_preprocessing
from reticent.train.models import wants_raw_columns


def mixed_table(n=200):
    """Return a table with every kind of column, and missing values in each."""
    rng = stream(0, "mixed")
    age = rng.normal(50, 10, size=n)
    town = rng.choice(["Oslo", "Bergen", "Tromsø"], size=n).astype(object)
    smoker = rng.choice([True, False, None], size=n)
    y = (age + rng.normal(scale=5, size=n) > 50).astype(int)
    age[::9], town[::7] = np.nan, None
    frame = pd.DataFrame({"age": age, "town": town, "smoker": smoker})
    return table_from_frame(frame, target=y)


def train(estimator, table=None, *, preprocess=True, seed=0):
    trainer = EstimatorTrainer.of(estimator, preprocess=preprocess)
    return trainer.train(table or mixed_table(), seed=seed)


@pytest.mark.parametrize(
    "table", [mixed_table(), builtin_table()], ids=["mixed", "442"]
)
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        RandomForestClassifier(n_estimators=20),
        SVC(),
        XGBClassifier(n_estimators=5),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_trainers_keep_the_contract(estimator, table, seed):
    trainer = EstimatorTrainer.of(estimator, preprocess=True)
    check_trainer(trainer, table, seed=seed)


def test_trainer_that_learns_nothing_breaks_the_contract():
    class Constant(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    trainer = EstimatorTrainer.of(Constant(), preprocess=False)
    with pytest.raises(AssertionError, match="learn something"):
        check_trainer(trainer, builtin_table())


def test_preprocessing_learns_from_the_defender_alone():
    split = Split.by_unit(mixed_table(), rng=stream(0, "split"))
    fitted = train(LogisticRegression(), split.defender).estimator
    scaler, imputer = [
        step for _, step in fitted["prepare"].named_transformers_["numeric"].steps
    ]
    own = split.defender.features["age"]
    assert imputer.statistics_[0] == 0
    assert scaler.mean_[0] == pytest.approx(own.mean())
    assert scaler.scale_[0] == pytest.approx(own.std(ddof=0))
    everyone = mixed_table().features["age"]
    assert scaler.mean_[0] != pytest.approx(everyone.mean())


def test_preprocessing_of_each_kind():
    table = mixed_table()
    prepare = standard_preprocessing(table).fit(table.features)
    names = list(prepare.get_feature_names_out())
    assert names == [
        "numeric__age",
        "boolean__smoker",
        *(f"categorical__town_{c}" for c in ["(missing)", "Bergen", "Oslo", "Tromsø"]),
    ]
    coded = prepare.transform(table.features)
    assert np.isfinite(coded).all()
    assert np.array_equal(coded[:, 2:].sum(axis=1), np.ones(len(table)))
    assert np.array_equal(coded[:, 2], table.features["town"].isna())


def test_category_that_was_never_seen_is_no_failure():
    product = train(LogisticRegression())
    asked = mixed_table().features.assign(town="Longyearbyen")
    assert np.isfinite(product.predict_proba(asked)).all()


def test_column_without_any_value_is_no_failure():
    kinds = dict.fromkeys(["n", "b", "c"])
    kinds = dict(zip(kinds, ColumnKind, strict=True))
    frame = pd.DataFrame({"x": np.arange(40.0), **dict.fromkeys(kinds, np.nan)})
    schema = Schema(columns={"x": ColumnKind.NUMERIC, **kinds})
    table = table_from_frame(frame, target=np.arange(40) // 20, schema=schema)
    p = train(LogisticRegression(), table).predict_proba(table.features)
    assert np.array_equal(p.argmax(axis=1), table.target)


def test_categories_beyond_the_most_frequent_get_no_column():
    codes = [f"code {k}" for k in range(80)] * 20
    frame = pd.DataFrame({"code": codes})
    table = table_from_frame(frame, target=np.arange(1600) % 2)
    prepare = standard_preprocessing(table).fit(table.features)
    assert prepare.transform(table.features).shape == (1600, 60)


def test_what_few_people_have_is_not_learned():
    """A town of 19 people, a measurement of 19, a person with 25 rows: none leaves a trace in the preparation."""
    rng = np.random.default_rng(0)
    n = 200
    units = np.arange(n)
    units[:25] = 0
    frame = pd.DataFrame(
        {
            "town": np.where(np.arange(n) < 25, "Alone", "Oslo"),
            "district": np.where(np.arange(n) >= n - 19, "Few", "Many"),
            "dose": np.where(np.arange(n) >= n - 19, rng.normal(size=n), np.nan),
            "age": rng.normal(45, 10, n),
        }
    )
    frame.loc[50, "age"] = np.nan
    table = table_from_frame(frame, target=np.arange(n) % 2, unit=units)
    prepare = standard_preprocessing(table).fit(table.features)
    assert list(prepare.get_feature_names_out()) == [
        "numeric__age",
        "categorical__town_Oslo",
        "categorical__district_Many",
    ]
    learned = repr(prepare.named_transformers_["categorical"][-1].categories_)
    assert "Alone" not in learned
    assert "Few" not in learned
    coded = prepare.transform(table.features)
    assert coded[50, 0] == 0  # the mean
    assert np.array_equal(coded[:25, 1], np.zeros(25))
    encoder = Encoder.learned(table)
    assert encoder.categories == (("town", ("Oslo",)), ("district", ("Many",)))
    assert ("Alone",) not in [known[:1] for _, known in encoder.categories]
    centres, scales = encoder.standardisation(
        encoder.matrix(table.features), np.ones((1, n), dtype=bool)
    )
    at = encoder.numbers.index("dose")
    assert centres[0, at] == 0
    assert scales[0, at] > 1e29


def test_a_table_of_which_nothing_may_be_learned_is_refused():
    frame = pd.DataFrame({"name": [f"person {k}" for k in range(100)]})
    table = table_from_frame(frame, target=np.arange(100) % 2)
    with pytest.raises(TrainerFailed, match="would not name single people"):
        train(LogisticRegression(), table)


def test_seed_decides_and_the_estimator_of_the_caller_stays_unfitted():
    forest = RandomForestClassifier(n_estimators=5, random_state=99)
    table = builtin_table()
    one, again, other = (
        train(forest, table, seed=s).predict_proba(table.features) for s in (1, 1, 2)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert not hasattr(forest, "classes_")
    assert forest.random_state == 99


def test_seed_reaches_estimators_inside_estimators():
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=2))
    product = train(pipeline, builtin_table(), preprocess=False, seed=7)
    assert product.estimator[-1].random_state == 7


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31 - 2), st.randoms(use_true_random=False))
def test_any_seed_repeats_the_product(seed, random):
    table = builtin_table().take(np.array(random.sample(range(442), 60)))
    tree = DecisionTreeClassifier(max_features=1)
    first, again = (train(tree, table, seed=seed) for _ in range(2))
    assert np.array_equal(
        first.predict_proba(table.features), again.predict_proba(table.features)
    )


def test_product_learned_without_a_class_still_answers_in_the_tables_order():
    frame = pd.DataFrame({"x": np.repeat([0.0, 1.0, 2.0], 20)})
    table = table_from_frame(frame, target=np.repeat([1, 2, 3], 20))
    rest = table.take(np.arange(20, 60))
    p = train(DecisionTreeClassifier(), rest).predict_proba(rest.features)
    assert np.array_equal(p.argmax(axis=1), rest.target)
    assert np.array_equal(p[:, 0], np.zeros(40))


def test_pipeline_that_treats_raw_columns_is_left_alone():
    own = make_column_transformer((StandardScaler(), ["age"]))
    pipeline = make_pipeline(own, LogisticRegression())
    assert wants_raw_columns(pipeline)
    assert not EstimatorTrainer.of(pipeline, preprocess=True).preprocess
    assert EstimatorTrainer.of(LogisticRegression(), preprocess=True).preprocess
    table = mixed_table()
    whole = table.take(np.flatnonzero(table.features["age"].notna()))
    assert train(pipeline, whole).estimator[0].n_features_in_ == 3


def test_recipe_leaves_no_parameter_out():
    grid = make_pipeline(*(StandardScaler(with_mean=False) for _ in range(60)))
    recipe = EstimatorTrainer.of(grid, preprocess=True).recipe
    assert recipe.count("StandardScaler(with_mean=False)") == 60
    assert "\n" not in recipe


def test_warnings_of_the_estimator_travel_with_the_product():
    # By kind: a message could quote cells of the table.
    assert train(LogisticRegression(max_iter=1)).warnings == ("ConvergenceWarning",)
    assert train(LogisticRegression()).warnings == ()


class Raising(BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("the ward is closed\nsecond line")


def test_trainer_that_raises_is_as_trainer_failure():
    with pytest.raises(
        TrainerFailed, match=r"Raising\(\) raised RuntimeError: the ward is closed;"
    ):
        train(Raising())


def test_estimator_refuses_its_parameters():
    with pytest.raises(TrainerFailed, match="InvalidParameterError"):
        train(RandomForestClassifier(n_estimators=-1))


def test_missing_values_without_preprocessing_are_the_trainers_failure():
    table = builtin_table()
    table.features.loc[3, "bmi"] = np.nan
    with pytest.raises(TrainerFailed, match="contains NaN"):
        train(LogisticRegression(), table, preprocess=False)


def test_trainer_without_probabilities_is_refused():
    with pytest.raises(InvalidPredictions, match="neither predict_proba nor decision"):
        train(LinearRegression())


def raise_when_made():
    raise OSError("no licence")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (raise_when_made, "could not be built: OSError: no licence"),
        (dict, "gives a dict without a fit method"),
    ],
)
def test_maker_that_fails_is_told(make, message):
    trainer = EstimatorTrainer(make=make, recipe="mine")
    with pytest.raises(TrainerFailed, match=message):
        trainer.train(builtin_table(), seed=0)


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(10),
        LogisticRegression(),
        KNeighborsClassifier(),
        RandomForestRegressor(10),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_models_of_a_pool_answer_each_record_wherever_it_is_asked(estimator, seed):
    """Records are asked about by their categories; answers stand where the records do, as if they had been asked about in the order of the table."""
    rng, n = stream(seed, "asked by category"), 400
    town, work = rng.integers(5, size=n), rng.integers(3, size=n)
    frame = pd.DataFrame(
        {"town": np.array(list("vwxyz"))[town], "age": rng.normal(size=n), "work": np.array(list("abc"))[work]}
    )  # fmt: skip
    quantity = is_regressor(estimator)
    frame["y"] = town + frame["age"] if quantity else (town + work) % 2
    table = table_from_frame(frame, target="y", quantity=quantity)
    trainer = EstimatorTrainer.of(estimator, preprocess=True)
    coded, mask = trainer.prepared(table), rng.random(n) < 0.5
    (answers,) = trainer.train_many(coded, mask[None], np.array([3]), memory=1.0)
    product = trainer.train(coded.take(np.flatnonzero(mask)), seed=3)
    assert np.array_equal(answers, answers_of(product, coded.features))
    # The twin: the order is another one, in which neighbours have the same town and work.
    order = models._by_category(coded)
    assert not np.array_equal(answers[order], answers)
    assert (np.diff(town[order]) != 0).sum() + (np.diff(work[order]) != 0).sum() < 20
    # Texts are left in their order.
    assert np.array_equal(models._by_category(table), np.arange(n))
