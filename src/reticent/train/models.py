"""Train scikit-learn-like classifiers and regression models, including preprocessing."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from reticent.data import ColumnKind, Table
from reticent.errors import InvalidPredictions, ReticentError, TrainerFailed
from reticent.product import (
    MISSING_CATEGORY,
    SMALLEST_GROUP,
    FittedProduct,
    FittedRegressor,
    Student,
    answers_of,
    as_product,
    declares_quantity,
    frequent_categories,
    people_with,
)
from reticent.run import Content, code_of, content_of
from reticent.train._estimators import well_behaved
from reticent.train._plain import PlainTrainer

__all__ = [
    "EstimatorTrainer",
    "describe",
    "first_line",
    "standard_preprocessing",
    "wants_raw_columns",
]


# Categories of a column that get a column each: bounds the width of tables with free text; the rest share one.
MOST_CATEGORIES = 60


def standard_preprocessing(table: Table) -> ColumnTransformer:
    """Return imputation, one-hot coding and scaling for a table's columns.

    Numbers get mean 0 and variance 1, and missing ones become the mean. Missing booleans become the more frequent value.
    Categories get one column each, the 60 most frequent at most; a missing value is a category. A category that fewer than 20 people
    have gets none, and a number that fewer than 20 people have is left out: the file of the product would name what single people
    have. The preprocessing is fitted with the model, so it learns from the records that the model learns from and from no others.

    Parameters
    ----------
    table : Table
        The records that the model learns from; categories may be numbers, as :meth:`EstimatorTrainer.prepared` returns them.
    """
    steps: list[tuple[str, Any, list[str]]] = []
    schema, features, units = table.schema, table.features, table.units
    numeric = [
        name
        for name in schema.names(ColumnKind.NUMERIC)
        if people_with(features[name], units) >= SMALLEST_GROUP
    ]
    boolean = schema.names(ColumnKind.BOOLEAN)
    if numeric:
        # In this order: the scaler looks past missing values, and their place is then the mean, which is nobody's value.
        scale = make_pipeline(
            StandardScaler(), SimpleImputer(strategy="constant", fill_value=0.0)
        )
        steps.append(("numeric", scale, numeric))
    if boolean:
        fill = SimpleImputer(strategy="most_frequent", keep_empty_features=True)
        steps.append(("boolean", fill, boolean))
    known = {
        name: frequent_categories(features[name], units, most=MOST_CATEGORIES)
        for name in schema.names(ColumnKind.CATEGORICAL)
    }
    known = {name: categories for name, categories in known.items() if categories}
    if known:
        one_hot = OneHotEncoder(
            categories=list(known.values()),
            handle_unknown="ignore",
            sparse_output=False,
        )
        fill = SimpleImputer(
            strategy="constant", fill_value=MISSING_CATEGORY, keep_empty_features=True
        )
        code = one_hot if _is_coded(table) else make_pipeline(fill, one_hot)
        steps.append(("categorical", code, list(known)))
    if not steps:
        raise TrainerFailed(
            f"no column of the table has a value that {SMALLEST_GROUP} people share, so there is nothing to learn that would not name "
            "single people; bring more people, or prepare the columns yourself with --raw."
        )
    return ColumnTransformer(steps, sparse_threshold=0.0)


def wants_raw_columns(estimator: object) -> bool:
    """Whether an estimator is a pipeline that preprocesses the raw columns itself."""
    return (
        isinstance(estimator, Pipeline)
        and len(estimator.steps) > 0
        and isinstance(estimator.steps[0][-1], ColumnTransformer)
    )


@dataclass(frozen=True, kw_only=True)
class EstimatorTrainer(PlainTrainer):
    """Train a fresh estimator on a table.

    Parameters
    ----------
    make : callable
        Returns a new, unfitted estimator with ``fit`` and ``predict_proba`` or
        ``decision_function``; or a regression model, which scikit-learn's tags must say.
    recipe : str
        Description from which the estimator can be built again.
    preprocess : bool
        Whether :func:`standard_preprocessing` goes before the estimator.
    code : Content, optional
        Parameters and code behind ``make``; by default the code of the callable itself.
    """

    make: Callable[[], Any]
    recipe: str
    preprocess: bool = True
    code: Content | None = None

    @classmethod
    def of(cls, estimator: Any, *, preprocess: bool) -> "EstimatorTrainer":
        """Return the trainer of a scikit-learn estimator, which is cloned for each training."""
        return cls(
            make=_Clone(estimator),
            recipe=describe(estimator),
            preprocess=preprocess and not wants_raw_columns(estimator),
            code=content_of(estimator),
        )

    def content(self) -> Content:
        """Return the recipe, whether columns are preprocessed, and the code of the estimator."""
        code = code_of(self.make) if self.code is None else self.code
        return content_of(self.recipe, self.preprocess) + code

    @property
    def quantity(self) -> bool:
        """Whether products predict a quantity: they do if the estimator says that it is a regression model."""
        return declares_quantity(self.unfitted(0))

    def train(self, table: Table, *, seed: int) -> FittedProduct | FittedRegressor:
        """Fit preprocessing and estimator on all records, in their order.

        Every ``random_state`` of the estimator is set to ``seed``. A table whose target is a quantity gives
        a :class:`FittedRegressor`.

        Raises
        ------
        TrainerFailed
            If the estimator raises; the error quotes its message.
        InvalidPredictions
            If the estimator predicts a class and the target is a quantity, or the reverse.
        """
        estimator = self.unfitted(seed)
        if table.is_quantity and not declares_quantity(estimator):
            raise InvalidPredictions(
                f"the target is a quantity, but the trainer {self.recipe} does not say that it is a regression model; choose "
                "one, or let your own class derive from sklearn.base.RegressorMixin."
            )

        def fit(whole: Any, features: pd.DataFrame) -> None:
            whole.fit(features, table.target)

        return self.fitted(estimator, table, fit)

    def student(self) -> Student:
        """Return the same estimator on targets: as a regression, or on weighted rows; see :mod:`reticent.train._students`.

        Raises
        ------
        InvalidSpec
            If it takes hard labels only.
        """
        from reticent.train._students import EstimatorStudent

        return EstimatorStudent(self)

    def fitted(
        self, estimator: Any, table: Table, fit: Callable[[Any, pd.DataFrame], None]
    ) -> FittedProduct | FittedRegressor:
        """Return the product of an estimator after the preprocessing that the recipe asks for.

        Parameters
        ----------
        estimator : object
            An unfitted estimator.
        table : Table
            The records.
        fit : callable
            Fits the whole pipeline to the features.

        Raises
        ------
        TrainerFailed
            If the estimator raises; the error quotes its message.
        """
        if self.preprocess:
            estimator = Pipeline(
                [
                    (
                        "prepare",
                        standard_preprocessing(table),
                    ),
                    ("model", estimator),
                ]
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fit(estimator, table.features)
            except ReticentError:
                raise
            except Exception as error:
                raise TrainerFailed(
                    f"the trainer {self.recipe} raised {type(error).__name__}: {first_line(error)}; "
                    "try it on this table outside reticent first."
                ) from error
        # Only the kinds are stored, because a message could quote cells of the table.
        kinds = tuple(sorted({w.category.__name__ for w in caught}))
        if table.is_quantity:
            return FittedRegressor(estimator=estimator, warnings=kinds)
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
            warnings=kinds,
        )

    def prepared(self, table: Table) -> Table:
        """Return the table with its categories numbered in alphabetical order, so that each of many models encodes them faster.

        Each model still learns from its members which categories there are and how frequent they are.
        """
        names = table.schema.names(ColumnKind.CATEGORICAL)
        if not self.preprocess or not names or _is_coded(table):
            return table
        numbered = {
            name: pd.Categorical(
                table.features[name].fillna(MISSING_CATEGORY).astype(str)
            ).codes.astype(np.float64)
            for name in names
        }
        return replace(table, features=table.features.assign(**numbered))

    def _answers(
        self, table: Table, mask: NDArray[np.bool_], seed: int
    ) -> NDArray[Any]:
        """Return the answers of one model of a pool, which is asked about similar records one after another."""
        product = as_product(self.train(table.take(np.flatnonzero(mask)), seed=seed))
        order = _by_category(table)
        answers = answers_of(product, table.features.iloc[order])
        in_place = np.empty_like(answers)
        in_place[order] = answers
        return in_place

    @property
    def prepares(self) -> bool:
        """Whether :func:`standard_preprocessing` goes before the estimator."""
        return self.preprocess

    def parameters(self) -> Mapping[str, Any]:
        """Return the estimator's parameters, if it has any to tell."""
        estimator = self.unfitted(0)
        if not hasattr(estimator, "get_params"):
            return {}
        return dict(estimator.get_params(deep=False))

    def unfitted(self, seed: int) -> Any:
        """Return a new, unfitted estimator with every ``random_state`` set to a seed."""
        try:
            estimator = self.make()
        except ReticentError:
            raise
        except Exception as error:
            raise TrainerFailed(
                f"the trainer {self.recipe} could not be built: {type(error).__name__}: {first_line(error)}; "
                "check its arguments."
            ) from error
        if not hasattr(estimator, "fit"):
            raise TrainerFailed(
                f"the trainer {self.recipe} gives a {type(estimator).__name__} without a fit method, so it cannot be "
                "trained; return an estimator."
            )
        if hasattr(estimator, "get_params") and hasattr(estimator, "set_params"):
            names = [
                name
                for name in estimator.get_params(deep=True)
                if name == "random_state" or name.endswith("__random_state")
            ]
            if names:
                estimator.set_params(**dict.fromkeys(names, seed))
        return well_behaved(estimator, seed)


def _by_category(table: Table) -> NDArray[np.intp]:
    """Return an order in which records of the same categories are neighbours; that of the table if they are texts, which take longer to sort.

    Such records go the same ways through trees, as the processor then expects: a forest of 100 trees answers 39,000 records in 0.23 s in place of 0.32.
    """
    if not _is_coded(table):
        return np.arange(len(table))
    names = table.schema.names(ColumnKind.CATEGORICAL)
    codes = [table.features[name].to_numpy() for name in names]
    # Numbers of two bytes are sorted without comparing them: in a millisecond.
    return np.lexsort([code.astype(np.int64).astype(np.uint16) for code in codes])


def _is_coded(table: Table) -> bool:
    """Whether categories are already numbers; in a table that was just read they are text."""
    names = table.schema.names(ColumnKind.CATEGORICAL)
    return bool(names) and pd.api.types.is_numeric_dtype(table.features[names[0]])


@dataclass(frozen=True)
class _Clone:
    estimator: Any

    def __call__(self) -> Any:
        return clone(self.estimator)


def describe(estimator: Any) -> str:
    """Return the class of an estimator and the parameters that differ from their defaults."""
    if not hasattr(estimator, "get_params"):
        return repr(estimator)
    try:
        defaults = type(estimator)().get_params(deep=False)
    except TypeError:  # a parameter has no default, such as the steps of a pipeline
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
        return describe(value)
    if isinstance(value, list | tuple):
        inside = ", ".join(_value(item) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return repr(value)


def first_line(error: object) -> str:
    """Return the first line of an exception's or warning's message."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else "(no message)"
