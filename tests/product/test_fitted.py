"""A fitted estimator seen from outside: order of classes, decision values, refusals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from reticent.errors import InvalidPredictions
from reticent.product import FittedProduct, Predictor

FEATURES = pd.DataFrame({"x": [0.0, 1.0, 2.0], "z": [1.0, 0.0, 1.0]})


class Fixed:
    """A product with given answers."""

    def __init__(self, answers, classes=None):
        self.answers = np.asarray(answers)
        if classes is not None:
            self.classes_ = np.asarray(classes)

    def predict_proba(self, features):
        return np.resize(self.answers, (len(features), self.answers.shape[-1]))


class Deciding:
    """A product with given decision values and no probabilities."""

    def __init__(self, values, classes):
        self.values, self.classes_ = np.asarray(values), np.asarray(classes)

    def decision_function(self, features):
        return self.values


def answer(estimator, classes, **arguments):
    product = FittedProduct(estimator=estimator, classes=classes, **arguments)
    assert isinstance(product, Predictor)
    return product.predict_proba(FEATURES)


def test_classes_are_aligned_by_name():
    p = answer(Fixed([0.7, 0.2, 0.1], ["c", "a", "b"]), ("a", "b", "c"))
    assert p == pytest.approx(np.tile([0.2, 0.1, 0.7], (3, 1)))


def test_classes_are_aligned_by_number():
    p = answer(Fixed([0.7, 0.2, 0.1], [2, 0, 1]), ("a", "b", "c"))
    assert p == pytest.approx(np.tile([0.2, 0.1, 0.7], (3, 1)))


@pytest.mark.parametrize("own", [[1.0, 2.0], [1, 2], ["1", "2"]])
def test_numbers_that_are_names_of_classes_count_as_names(own):
    p = answer(Fixed([0.7, 0.3], own), ("1", "2"))
    assert p == pytest.approx(np.tile([0.7, 0.3], (3, 1)))


def test_truth_values_are_names():
    p = answer(Fixed([0.7, 0.3], [True, False]), ("False", "True"))
    assert p == pytest.approx(np.tile([0.3, 0.7], (3, 1)))


def test_product_that_does_not_name_its_classes_has_those_of_the_table():
    p = answer(Fixed([0.7, 0.3]), ("no", "yes"))
    assert p == pytest.approx(np.tile([0.7, 0.3], (3, 1)))


def test_class_the_product_never_learned_has_probability_zero():
    p = answer(Fixed([0.6, 0.4], ["a", "c"]), ("a", "b", "c"))
    assert p == pytest.approx(np.tile([0.6, 0.0, 0.4], (3, 1)))


def test_class_the_product_never_learned_has_the_lowest_decision_value():
    values = np.array([[3.0, -4.0], [1.0, 2.0], [0.0, 0.0]])
    p = answer(Deciding(values, ["a", "c"]), ("a", "b", "c"))
    assert np.all(p[:, 1] < p[:, [0, 2]].min(axis=1))


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(12)), st.integers(1, 12))
def test_class_numbers_are_never_taken_for_names(names, kept):
    # Trained on numbers, as reticent does, where classes themselves are called 0, 1, ...
    classes = tuple(str(name) for name in names)
    learned = np.arange(12)[-kept:]
    probabilities = np.arange(1.0, kept + 1) / 12
    estimator = Fixed(probabilities, learned)
    p = answer(estimator, classes, learned=classes)
    expected = np.r_[np.zeros(12 - kept), probabilities]
    assert np.array_equal(p, np.tile(expected, (3, 1)))


def test_numbers_learned_from_another_table_are_matched_by_name():
    p = answer(Fixed([0.7, 0.3], [0, 1]), ("no", "yes"), learned=("yes", "no"))
    assert p == pytest.approx(np.tile([0.3, 0.7], (3, 1)))


@pytest.mark.parametrize(
    ("own", "learned"), [(["x", "y"], ()), ([0, 7], ()), ([0, 1], ("x", "y"))]
)
def test_product_for_another_target_is_refused(own, learned):
    with pytest.raises(InvalidPredictions, match="audit it on the target it was"):
        answer(Fixed([0.7, 0.3], own), ("no", "yes"), learned=learned)


def test_binary_decision_values_become_logistic_probabilities():
    values = np.array([-2.0, 0.0, 3.0])
    product = FittedProduct(
        estimator=Deciding(values, [0, 1]), classes=("no", "yes"), learned=()
    )
    assert np.array_equal(product.outputs(FEATURES), np.column_stack([-values, values]))
    p = product.predict_proba(FEATURES)
    assert p[:, 1] == pytest.approx(expit(values))
    assert p.sum(axis=1) == pytest.approx(1)
    assert not product.has_probabilities


def test_decision_values_of_several_classes_become_softmax_probabilities():
    values = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [5.0, -5.0, 0.0]])
    product = FittedProduct(
        estimator=Deciding(values, ["c", "a", "b"]), classes=("a", "b", "c")
    )
    turned = values[:, [1, 2, 0]]
    assert np.array_equal(product.outputs(FEATURES), turned)
    assert product.predict_proba(FEATURES) == pytest.approx(softmax(turned, axis=1))


@pytest.mark.parametrize("classes", [2, 3])
def test_answers_agree_with_those_of_scikit_learn(classes):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 3)), columns=[*"abc"])
    y = np.arange(90) % classes
    names = tuple("abc"[:classes])
    logistic = LogisticRegression().fit(X, y)
    product = FittedProduct(estimator=logistic, classes=names)
    assert np.array_equal(product.predict_proba(X), logistic.predict_proba(X))
    machine = SVC().fit(X, y)
    product = FittedProduct(estimator=machine, classes=names)
    most = product.predict_proba(X).argmax(axis=1)
    assert np.array_equal(most, machine.predict(X))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_answers_that_are_no_numbers_are_refused(bad):
    answers = [[0.5, 0.5], [bad, 0.5], [0.1, 0.9]]
    with pytest.raises(InvalidPredictions, match="1 of 3 records are NaN or infinite"):
        answer(Fixed(answers, [0, 1]), ("no", "yes"))


@pytest.mark.parametrize("answers", [[-3.0, 3.0], [0.5, 1.1]])
def test_answers_that_are_no_probabilities_are_refused(answers):
    with pytest.raises(InvalidPredictions, match="which are no probabilities"):
        answer(Fixed(answers, [0, 1]), ("no", "yes"))


def test_rounding_errors_are_borne():
    p = answer(Fixed([-1e-9, 1 + 1e-9], [0, 1]), ("no", "yes"))
    assert p == pytest.approx(np.tile([0.0, 1.0], (3, 1)), abs=1e-6)


@pytest.mark.parametrize("inside", [False, True])
def test_decision_values_of_pairs_of_classes_are_refused(inside):
    # Three classes have three pairs, so the shape alone would not show it.
    machine = SVC(decision_function_shape="ovo")
    machine = make_pipeline(StandardScaler(), machine) if inside else machine
    machine.fit(FEATURES, [0, 1, 2])
    assert machine.decision_function(FEATURES).shape == (3, 3)
    with pytest.raises(InvalidPredictions, match="compare pairs of classes"):
        answer(machine, ("a", "b", "c"))


@pytest.mark.parametrize("answers", [[0.5, 0.3, 0.2], [0.5]])
def test_wrong_number_of_columns_is_refused(answers):
    with pytest.raises(InvalidPredictions, match=r"shape \(3, \d\) where \(3, 2\)"):
        answer(Fixed(answers, [0, 1]), ("no", "yes"))


def test_product_without_probabilities_is_refused():
    line = LinearRegression().fit(FEATURES, [0, 1, 0])
    with pytest.raises(InvalidPredictions, match="neither predict_proba nor decision"):
        answer(line, ("no", "yes"))


def test_product_that_raises_is_refused_with_its_own_words():
    class Raising:
        def predict_proba(self, features):
            raise KeyError("no such ward")

    with pytest.raises(InvalidPredictions, match=r"raised KeyError.*no such ward"):
        answer(Raising(), ("no", "yes"))
