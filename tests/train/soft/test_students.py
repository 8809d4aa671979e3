"""Estimators that learn class probabilities: equal to a naive fit, and for hard labels to the classifier itself."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from reticent.data import table_from_frame
from reticent.errors import InvalidInput, InvalidPredictions
from reticent.product import ProbabilityRegressor
from reticent.run import stream
from reticent.train import trainer_of


def table_of(classes, seed=0, records=120):
    rng = stream(seed, f"students/{classes}")
    X = rng.normal(size=(records, 4))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=records), np.linspace(-0.8, 0.8, classes - 1))  # fmt: skip
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    return table_from_frame(frame, target="y"), X


def soft_targets(table, seed):
    rng = stream(seed, "students/targets")
    return rng.dirichlet(np.ones(len(table.classes)), size=len(table))


def one_hot(table):
    return np.eye(len(table.classes))[table.target]


def student(model):
    return trainer_of(model, preprocess=False).student()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_forest_is_a_regression_on_the_targets(classes, seed):
    table, X = table_of(classes)
    targets = soft_targets(table, seed)
    model = RandomForestClassifier(n_estimators=7, min_samples_leaf=3, max_depth=5)
    product = student(model).train_on(table, targets, seed=3)
    naive = RandomForestRegressor(
        n_estimators=7, min_samples_leaf=3, max_depth=5, max_features="sqrt", random_state=3
    )  # fmt: skip
    learned = targets[:, 1] if classes == 2 else targets
    expected = naive.fit(X, learned).predict(X)
    if classes == 2:
        expected = np.column_stack([1 - expected, expected])
    assert np.allclose(product.predict_proba(table.features), expected)
    # For hard labels it is the tree that the classifier grows: Gini's impurity is a variance.
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    hard = student(tree).train_on(table, one_hot(table), seed=0)
    assert np.allclose(
        hard.predict_proba(table.features), tree.fit(X, table.target).predict_proba(X)
    )


def test_xgboost_learns_labels_between_0_and_1(seed):
    xgboost = pytest.importorskip("xgboost", reason="the extra is not installed")
    table, X = table_of(2)
    targets = soft_targets(table, seed)
    model = xgboost.XGBClassifier(n_estimators=6, max_depth=3)
    product = student(model).train_on(table, targets, seed=3)
    data = xgboost.DMatrix(X, label=targets[:, 1])
    naive = xgboost.train({"objective": "binary:logistic", "max_depth": 3, "seed": 3}, data, 6)  # fmt: skip
    assert np.allclose(
        product.predict_proba(table.features)[:, 1], naive.predict(data), atol=1e-5
    )
    hard = student(model).train_on(table, one_hot(table), seed=3)
    plain = trainer_of(model, preprocess=False).train(table, seed=3)
    assert np.allclose(
        hard.predict_proba(table.features), plain.predict_proba(table.features), atol=1e-5
    )  # fmt: skip


def test_several_classes_of_xgboost_are_weighted_rows(seed):
    xgboost = pytest.importorskip("xgboost", reason="the extra is not installed")
    table, X = table_of(3)
    targets = soft_targets(table, seed)
    product = student(xgboost.XGBClassifier(n_estimators=4, max_depth=2)).train_on(
        table, targets, seed=3
    )
    naive = xgboost.XGBClassifier(n_estimators=4, max_depth=2, random_state=3).fit(
        np.tile(X, (3, 1)), np.repeat([0, 1, 2], len(X)), sample_weight=targets.T.ravel()
    )  # fmt: skip
    assert np.allclose(
        product.predict_proba(table.features), naive.predict_proba(X), atol=1e-5
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_weighted_rows_of_logistic_regression_are_the_soft_cross_entropy(classes, seed):
    """Against the penalised cross-entropy with soft labels, minimised by hand."""
    table, X = table_of(classes)
    targets = soft_targets(table, seed)
    model = LogisticRegression(C=0.7, tol=1e-8, max_iter=1000)
    product = student(model).train_on(table, targets, seed=0)

    def probabilities(flat):
        parts = flat.reshape(classes, 5)
        logits = X @ parts[:, :4].T + parts[:, 4]
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    def cost(flat):
        weights = flat.reshape(classes, 5)[:, :4]
        # Two classes have one weight vector in scikit-learn, of which these are the difference.
        penalty = ((weights[1] - weights[0]) ** 2).sum() if classes == 2 else (weights**2).sum()  # fmt: skip
        return -0.7 * (targets * np.log(probabilities(flat))).sum() + penalty / 2

    found = minimize(cost, np.zeros(5 * classes), tol=1e-10)
    answers = product.predict_proba(table.features)
    assert np.allclose(answers, probabilities(found.x), atol=1e-3)
    hard = trainer_of(model, preprocess=False).train(table, seed=0)
    assert abs(answers - hard.predict_proba(table.features)).max() > 0.1  # the twin


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_estimators=5),
        HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=15),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["boosting", "histograms", "pipeline"],
)
def test_hard_targets_give_the_classifier_itself(model):
    """Weighted rows with weights of nearly 0 and 1."""
    table, _ = table_of(2)
    taught = student(model).train_on(table, one_hot(table), seed=1)
    plain = trainer_of(model, preprocess=False).train(table, seed=1)
    apart = taught.predict_proba(table.features) - plain.predict_proba(table.features)
    assert abs(apart).max() < 0.02


def test_leaves_count_records_and_not_rows(seed):
    table, X = table_of(2)
    targets = soft_targets(table, seed)
    model = GradientBoostingClassifier(n_estimators=5, min_samples_leaf=4)

    def smallest(fitted):
        leaves = fitted.apply(X)[:, :, 0].T
        return min(np.unique(row, return_counts=True)[1].min() for row in leaves)

    taught = student(model).train_on(table, targets, seed=1)
    assert smallest(taught.estimator) >= 4
    # The twin: the same rows with the count as it was given, which two records fill.
    rows, labels = np.tile(X, (2, 1)), np.repeat([0, 1], len(X))
    twin = model.fit(rows, labels, sample_weight=targets.T.ravel())
    assert smallest(twin) < 4


def test_models_of_a_pool_learn_their_own_targets(seed):
    table, _ = table_of(3)
    learner = student(DecisionTreeClassifier(max_depth=3))
    masks = stream(seed, "students/masks").random((2, len(table))) < 0.6
    targets = np.stack([soft_targets(table, seed), soft_targets(table, seed + 1)])
    pooled = learner.train_many_on(table, masks, targets, np.array([1, 2]), memory=1.0)
    for k in range(2):
        rows = np.flatnonzero(masks[k])
        alone = learner.train_on(table.take(rows), targets[k][rows], seed=k + 1)
        assert np.allclose(pooled[k], alone.predict_proba(table.features))


def test_targets_and_tables_that_do_not_fit_are_refused():
    table, X = table_of(2)
    with pytest.raises(InvalidPredictions, match="predicts a quantity"):
        student("sklearn.linear_model.Ridge()").train_on(table, one_hot(table), seed=0)
    with pytest.raises(InvalidInput, match="one probability per class"):
        ProbabilityRegressor(RandomForestRegressor()).fit(X, table.target)
