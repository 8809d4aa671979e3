"""Train scikit-learn-like classifiers, preprocessing included."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from reticent.data import ColumnKind, Schema, Table
from reticent.errors import InvalidPredictions, ReticentError, TrainerFailed
from reticent.product import FittedProduct

__all__ = [
    "EstimatorTrainer",
    "first_line",
    "standard_preprocessing",
    "wants_raw_columns",
]


def standard_preprocessing(schema: Schema) -> ColumnTransformer:
    """Return imputation, one-hot coding and scaling for a table's columns.

    Numbers: median for missing values, then mean 0 and variance 1. Booleans: the more
    frequent value. Categories: one column each, a missing value is a category, categories
    beyond the 60 most frequent share one. It is fitted with the model, so it learns from the
    records the model learns from and from no others.
    """
    steps: list[tuple[str, Any, list[str]]] = []
    numeric = schema.names(ColumnKind.NUMERIC)
    boolean = schema.names(ColumnKind.BOOLEAN)
    categorical = schema.names(ColumnKind.CATEGORICAL)
    if numeric:
        scale = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
        )
        steps.append(("numeric", scale, numeric))
    if boolean:
        fill = SimpleImputer(strategy="most_frequent", keep_empty_features=True)
        steps.append(("boolean", fill, boolean))
    if categorical:
        code = make_pipeline(
            SimpleImputer(
                strategy="constant", fill_value="(missing)", keep_empty_features=True
            ),
            OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                max_categories=60,
                sparse_output=False,
            ),
        )
        steps.append(("categorical", code, categorical))
    return ColumnTransformer(steps, sparse_threshold=0.0)


def wants_raw_columns(estimator: object) -> bool:
    """Whether an estimator is a pipeline that treats the raw columns itself."""
    return (
        isinstance(estimator, Pipeline)
        and len(estimator.steps) > 0
        and isinstance(estimator.steps[0][-1], ColumnTransformer)
    )


@dataclass(frozen=True, kw_only=True)
class EstimatorTrainer:
    """Train a fresh estimator on a table.

    Parameters
    ----------
    make : callable
        Returns a new, unfitted estimator with ``fit`` and ``predict_proba`` or
        ``decision_function``.
    recipe : str
        Description from which the estimator can be made again.
    preprocess : bool
        Whether :func:`standard_preprocessing` goes before the estimator.
    source : str
        Hash of the user's own code behind ``make``, if there is any.
    """

    make: Callable[[], Any]
    recipe: str
    preprocess: bool = True
    source: str = ""

    @classmethod
    def of(cls, estimator: Any, *, preprocess: bool) -> "EstimatorTrainer":
        """Return the trainer of a scikit-learn estimator, which is cloned for each training."""
        return cls(
            make=_Clone(estimator),
            recipe=_describe(estimator),
            preprocess=preprocess and not wants_raw_columns(estimator),
        )

    def train(self, table: Table, *, seed: int) -> FittedProduct:
        """Fit preprocessing and estimator on all records, in their order.

        Every ``random_state`` of the estimator is set to ``seed``.

        Raises
        ------
        TrainerFailed
            If the estimator raises; its own message is kept.
        """
        estimator = self._seeded(seed)
        if self.preprocess:
            estimator = Pipeline(
                [
                    ("prepare", standard_preprocessing(table.schema)),
                    ("model", estimator),
                ]
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                estimator.fit(table.features, table.target)
            except ReticentError:
                raise
            except Exception as error:
                raise TrainerFailed(
                    f"the trainer {self.recipe} raised {type(error).__name__}: {first_line(error)}; "
                    "try it on this table outside reticent first."
                ) from error
        if not hasattr(estimator, "predict_proba") and not hasattr(
            estimator, "decision_function"
        ):
            raise InvalidPredictions(
                f"the trainer {self.recipe} gives neither predict_proba nor decision_function, so its "
                "products cannot be compared record by record; choose a classifier with probabilities."
            )
        return FittedProduct(
            estimator=estimator,
            classes=table.classes,
            learned=table.classes,
            # Kinds only: a message could quote cells of the table.
            warnings=tuple(sorted({w.category.__name__ for w in caught})),
        )

    def _seeded(self, seed: int) -> Any:
        try:
            estimator = self.make()
        except ReticentError:
            raise
        except Exception as error:
            raise TrainerFailed(
                f"the trainer {self.recipe} could not be made: {type(error).__name__}: {first_line(error)}; "
                "check its arguments."
            ) from error
        if not hasattr(estimator, "fit"):
            raise TrainerFailed(
                f"the trainer {self.recipe} gives a {type(estimator).__name__} without a fit method; "
                "return an estimator."
            )
        if hasattr(estimator, "get_params") and hasattr(estimator, "set_params"):
            names = [
                name
                for name in estimator.get_params(deep=True)
                if name == "random_state" or name.endswith("__random_state")
            ]
            if names:
                estimator.set_params(**dict.fromkeys(names, seed))
        return estimator


@dataclass(frozen=True)
class _Clone:
    estimator: Any

    def __call__(self) -> Any:
        return clone(self.estimator)


def _describe(estimator: Any) -> str:
    """Return an estimator's class and those parameters that differ from their defaults."""
    if not hasattr(estimator, "get_params"):
        return repr(estimator)
    try:
        defaults = type(estimator)().get_params(deep=False)
    except TypeError:  # a parameter without a default, as of a pipeline
        defaults = {}
    changed = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in defaults or repr(value) != repr(defaults[name])
    }
    arguments = ", ".join(f"{name}={_value(value)}" for name, value in changed.items())
    return f"{type(estimator).__name__}({arguments})"


def _value(value: Any) -> str:
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _describe(value)
    if isinstance(value, list | tuple):
        inside = ", ".join(_value(item) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return repr(value)


def first_line(error: object) -> str:
    """Return the first line of an exception's or warning's message."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else "(no message)"
