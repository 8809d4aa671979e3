"""Let estimators learn class probabilities, although scikit-learn's classifiers take one class per record.

There are three ways, and an estimator takes the first that fits:

- **Regression.** Decision trees and forests become regressions on the probabilities. For hard labels the trees are the same: Gini's
  impurity is the summed variance of the class indicators.
- **Labels between 0 and 1.** XGBoost's logistic loss takes them as they are, for two classes.
- **Weighted rows.** Any other classifier that takes sample weights is given every record once per class, with the class's probability
  as weight. A loss that is a sum over records is then the expected loss under the probabilities; for cross-entropy that is exactly the
  cross-entropy with soft labels. Counts of rows in leaves are multiplied by the number of classes, so that they count records.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import Pipeline
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from sklearn.utils.validation import has_fit_parameter

from reticent.data import Table
from reticent.errors import InvalidPredictions, InvalidSpec
from reticent.product import ProbabilityRegressor, answers_of
from reticent.train._plain import must_fit

if TYPE_CHECKING:
    from reticent.product import FittedProduct, FittedRegressor
    from reticent.train.models import EstimatorTrainer

__all__ = ["EstimatorStudent"]

_REGRESSORS = {
    RandomForestClassifier: RandomForestRegressor,
    ExtraTreesClassifier: ExtraTreesRegressor,
    DecisionTreeClassifier: DecisionTreeRegressor,
    ExtraTreeClassifier: ExtraTreeRegressor,
}
# Names, because XGBoost may not be installed.
_LOGISTIC = {"XGBClassifier": "XGBRegressor", "XGBRFClassifier": "XGBRFRegressor"}
# Parameters that count rows of a leaf or node.
_COUNTS = (
    *("min_samples_leaf", "min_samples_split"),
    *("min_child_samples", "min_data_in_leaf"),
)
LEAST_WEIGHT = 1e-9  # of a row, which no answer notices
# Parameters that weigh classes, and what they are if they weigh none.
_CLASS_WEIGHTS = {"class_weight": None, "scale_pos_weight": None, "class_weights": None}


@dataclass(frozen=True)
class EstimatorStudent:
    """An estimator that learns targets in place of labels.

    Parameters
    ----------
    trainer : EstimatorTrainer
        The trainer of the same estimator on labels.

    Raises
    ------
    InvalidSpec
        If the estimator takes hard labels only.
    """

    trainer: "EstimatorTrainer"

    def __post_init__(self) -> None:
        if not self.trainer.quantity:
            _must_be_teachable(self.trainer.unfitted(0), self.trainer.recipe)

    def train_on(
        self, table: Table, targets: NDArray[np.floating[Any]], *, seed: int
    ) -> "FittedProduct | FittedRegressor":
        """Return an estimator fitted to targets: class probabilities (n, c), or quantities (n, 1)."""
        trainer = self.trainer
        if trainer.quantity != table.is_quantity:
            raise InvalidPredictions(
                f"the trainer {trainer.recipe} predicts a {'quantity' if trainer.quantity else 'class'}, but the table's target is a "
                f"{'quantity' if table.is_quantity else 'class'}; choose a trainer for this target."
            )
        estimator = trainer.unfitted(seed)
        if table.is_quantity:
            return trainer.fitted(estimator, table, _as_quantity(targets))
        classes = targets.shape[1]
        regressor = _regressor_for(_last(estimator), classes)
        if regressor is not None:
            soft = _with_last(estimator, ProbabilityRegressor(regressor))
            return trainer.fitted(soft, table, _as_probabilities(targets))
        _count_records(_last(estimator), classes)
        return trainer.fitted(estimator, table, _as_weighted_rows(targets))

    def train_many_on(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        targets: NDArray[np.floating[Any]],
        seeds: NDArray[np.int64],
        *,
        memory: float,
    ) -> NDArray[Any]:
        """Return the answers of one estimator per mask on all records, trained one after another."""
        must_fit(table, masks, seeds)
        answers = []
        for k, (mask, seed) in enumerate(zip(masks, seeds, strict=True)):
            rows = np.flatnonzero(mask)
            own = targets if targets.ndim == 2 else targets[k]
            product = self.train_on(table.take(rows), own[rows], seed=int(seed))
            answers.append(answers_of(product, table.features))
        return np.stack(answers)


Fit = Callable[[Any, pd.DataFrame], None]


def _as_quantity(targets: NDArray[np.floating[Any]]) -> Fit:
    def fit(estimator: Any, features: pd.DataFrame) -> None:
        estimator.fit(features, targets[:, 0].astype(np.float64))

    return fit


def _as_probabilities(targets: NDArray[np.floating[Any]]) -> Fit:
    def fit(estimator: Any, features: pd.DataFrame) -> None:
        estimator.fit(features, targets.astype(np.float64))

    return fit


def _as_weighted_rows(targets: NDArray[np.floating[Any]]) -> Fit:
    """Return what fits every record once per class, weighted by the probability of the class."""
    records, classes = targets.shape

    def fit(estimator: Any, features: pd.DataFrame) -> None:
        repeated = pd.concat([features] * classes, ignore_index=True)
        labels = np.repeat(np.arange(classes), records)
        name = _name_of_last(estimator) + "sample_weight"
        # Never 0: trees of scikit-learn leave such rows out, and would count other records in a leaf.
        weights = targets.T.reshape(-1).astype(np.float64).clip(LEAST_WEIGHT)
        estimator.fit(repeated, labels, **{name: weights})

    return fit


def _last(estimator: Any) -> Any:
    """Return the model at the end of a pipeline; any other estimator as it is."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def _name_of_last(estimator: Any) -> str:
    """Return what precedes the parameters of the model at the end of a pipeline, such as ``model__``."""
    name = ""
    while isinstance(estimator, Pipeline):
        name += estimator.steps[-1][0] + "__"
        estimator = estimator.steps[-1][1]
    return name


def _with_last(estimator: Any, model: Any) -> Any:
    """Return a pipeline with another model at its end; the model itself if there is no pipeline."""
    if not isinstance(estimator, Pipeline):
        return model
    last = _name_of_last(estimator).removesuffix("__")
    return estimator.set_params(**{last: model})


def _regressor_for(model: Any, classes: int) -> Any | None:
    """Return the regression model that learns probabilities as a classifier learns classes; None if there is none."""
    kind = _REGRESSORS.get(type(model))
    given = model.get_params(deep=False)
    if kind is not None:
        known = set(kind().get_params(deep=False)) - {"criterion"}
        return kind(**{name: v for name, v in given.items() if name in known})
    name = _LOGISTIC.get(type(model).__name__)
    if name is None or classes > 2 or type(model).__module__.split(".")[0] != "xgboost":
        return None
    import xgboost

    return getattr(xgboost, name)(**{**given, "objective": "binary:logistic"})


def _count_records(model: Any, classes: int) -> None:
    """Multiply what counts rows of a leaf by the rows that a record has, in place."""
    given = model.get_params(deep=False)
    counts = {
        name: classes * given[name]
        for name in _COUNTS
        if isinstance(given.get(name), int) and not isinstance(given[name], bool)
    }
    if counts:
        model.set_params(**counts)


def _must_be_teachable(estimator: Any, recipe: str) -> None:
    """Refuse an estimator that takes hard labels only."""
    model = _last(estimator)
    name = type(model).__name__
    given = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    weighed = [
        key
        for key, neutral in _CLASS_WEIGHTS.items()
        if given.get(key, neutral) not in (neutral, 1)
    ]
    if weighed:
        raise InvalidSpec(
            f"the trainer {recipe} weighs classes by {weighed[0]}, which has no meaning for soft labels; leave it out."
        )
    if type(model) in _REGRESSORS:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = hasattr(model, "fit") and has_fit_parameter(model, "sample_weight")
    if not weights:
        raise InvalidSpec(
            f"the trainer {recipe} takes hard labels only: {name} has neither a regression that matches it nor sample weights; use a "
            "reticent.Network(...), a forest, gradient boosting or logistic regression for soft labels."
        )
    if "cv" in given:
        raise InvalidSpec(
            f"the trainer {recipe} divides its records itself (cv), and would tear the weighted rows of one record apart, so it cannot "
            "learn soft labels; name the model inside it with its parameters."
        )
