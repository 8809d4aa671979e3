"""What is run: the table itself, and the rules by which an attacker may compare answers. Fixed before the first round."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    BayesianRidge,
    LogisticRegression,
    Perceptron,
    SGDClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, LinearSVC

from reticent.attack import Regime

__all__ = [
    "COMPONENTS",
    "DATASETS",
    "DUAL",
    "MODELS",
    "PART",
    "PROBES",
    "ROUNDS",
    "RULED",
    "TRIALS",
]

DATASETS = ("MNIST", "CIFAR-10")
COMPONENTS, PART = 64, 1_600
ROUNDS, TRIALS = 100, 3  # as in the paper


class BayesianRidgeClassifier(ClassifierMixin, BaseEstimator):
    """One Bayesian ridge regression per class, on its indicator; the largest wins."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.models_ = [BayesianRidge().fit(X, y == c) for c in self.classes_]
        return self

    def decision_function(self, X):
        return np.column_stack([model.predict(X) for model in self.models_])

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmax(axis=1)]


MODELS = {
    "Logistic lbfgs": LogisticRegression(),
    "Bayesian ridge": BayesianRidgeClassifier(),
    "Naive Bayes": GaussianNB(),
    "SVC": SVC(),
    "SVC, solved exactly": SVC(tol=1e-9),
    "KNN": KNeighborsClassifier(),
    "LinearSVC": LinearSVC(),
    "SGD SVC": SGDClassifier(),
    "MLP": MLPClassifier(),
    "Perceptron": Perceptron(),
    "Random Forest": RandomForestClassifier(),
}

# A nearest-neighbour product answers in fifths, and only where the exchanged record is a
# neighbour: ties on the pair are decided by all records instead of 400.
PROBES = {"KNN": 2 * PART}

# The default of the scikit-learn of the paper's time. Since version 1.5 the default is "auto", which solves the primal problem here.
DUAL = "LinearSVC, dual"

# Model, regime and data sets of the comparison of rules, one trial of ROUNDS rounds each, in the order in which they are run.
RULED = (
    ("LinearSVC", Regime.SHUFFLED_UNSEEDED, DATASETS),
    (DUAL, Regime.SHUFFLED_UNSEEDED, DATASETS),
    ("Random Forest", Regime.SHUFFLED_UNSEEDED, DATASETS),
    *(
        (model, Regime.SHUFFLED_UNSEEDED, DATASETS)
        for model in ("KNN", "Perceptron", "SGD SVC", "Logistic lbfgs", "SVC")
    ),
    ("MLP", Regime.SHUFFLED_UNSEEDED, ("MNIST",)),
    (DUAL, Regime.SHUFFLED_SEEDED, DATASETS),
    ("LinearSVC", Regime.SHUFFLED_SEEDED, DATASETS),
)
