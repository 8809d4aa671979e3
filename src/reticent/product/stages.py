"""What a product makes of its records on the way to an answer: the output of every step of preparation inside it."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline

__all__ = ["Stage", "Staged", "Stages", "estimator_stages", "network_stages"]

# Of one product: five folds of a calibrated pipeline of four steps fit.
MOST_STAGES = 24
# Of one stage, 320 megabytes; wider ones (hashed texts) are left out.
MOST_CELLS = 40_000_000
# Attributes under which scikit-learn and XGBoost keep estimators that were fitted on the same records.
_INSIDE = (
    "best_estimator_",
    "calibrated_classifiers_",
    "estimator",
    "estimator_",
    "estimators_",
    "final_estimator_",
    "regressor_",
)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The records as one step of the product sees them.

    Parameters
    ----------
    name : str
        Which step: ``"records"``, or the names of steps down to it.
    matrix : array of float, shape (n, d)
        One row per record; missing values are NaN.
    """

    name: str
    matrix: NDArray[np.float64]

    def take(self, rows: NDArray[np.int64]) -> "Stage":
        """Return the stage with only some of the records."""
        return Stage(name=self.name, matrix=self.matrix[rows])


@dataclass(frozen=True, kw_only=True)
class Stages:
    """The records after every step of a product's preparation, as far as it can be followed.

    Parameters
    ----------
    stages : tuple of Stage
        What the steps make of the records, without the records themselves.
    unseen : tuple of str
        Steps whose output could not be made, or does not fit into memory.
    """

    stages: tuple[Stage, ...] = ()
    unseen: tuple[str, ...] = ()


@runtime_checkable
class Staged(Protocol):
    """A product that can show what it makes of records before it answers."""

    def stages(self, features: pd.DataFrame) -> Stages:
        """Return the records after every step of preparation."""
        ...


def estimator_stages(estimator: Any, features: pd.DataFrame) -> Stages:
    """Return the output of every transformer inside a fitted estimator.

    Pipelines, column transformers and unions are followed, also inside bags, stacks, searches and calibrated classifiers.

    Parameters
    ----------
    estimator : object
        A fitted estimator whose types were checked when it was loaded.
    features : data frame
        The records.
    """
    found: list[Stage] = []
    unseen: list[str] = []
    with warnings.catch_warnings():
        # Whatever a step warns about, it has said when the product was asked.
        warnings.simplefilter("ignore")
        for name, matrix in _outputs(estimator, features, ""):
            if matrix is None or len(found) >= MOST_STAGES:
                unseen.append(name)
            elif not any(_same(stage.matrix, matrix) for stage in found):
                found.append(Stage(name=name, matrix=matrix))
    return Stages(stages=tuple(found), unseen=tuple(unseen))


def _same(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=True)


def network_stages(encoded: NDArray[np.float32], scaled: NDArray[np.float32]) -> Stages:
    """Return the two forms in which a network sees records: as numbers, and scaled, with 0 for missing numbers."""
    return Stages(
        stages=(
            Stage(name="encoded", matrix=encoded.astype(np.float64)),
            Stage(name="scaled", matrix=np.nan_to_num(scaled.astype(np.float64))),
        )
    )


# The name of a step, and the records after it; None if they cannot be made.
_Output = tuple[str, NDArray[np.float64] | None]


def _outputs(estimator: Any, inputs: Any, name: str) -> Iterator[_Output]:
    if isinstance(estimator, Pipeline):
        yield from _pipeline(estimator, inputs, name)
    elif isinstance(estimator, ColumnTransformer):
        for step, transformer, columns in getattr(estimator, "transformers_", ()):
            if isinstance(transformer, Pipeline) and len(transformer.steps) > 1:
                part = _columns(inputs, columns)
                if part is None:
                    yield f"{name}{step}", None
                else:
                    yield from _pipeline(transformer, part, f"{name}{step}.")
    elif isinstance(estimator, FeatureUnion):
        for step, transformer in estimator.transformer_list:
            yield from _outputs(transformer, inputs, f"{name}{step}.")
    else:
        prepared = getattr(estimator, "_preprocessor", None)
        if prepared is not None:
            yield from _pipeline(Pipeline([("prepared", prepared)]), inputs, name)
        if type(estimator).__name__ == "_CalibratedClassifier":
            yield f"{name}scores", _scores(estimator.estimator, inputs)
        for child in _inside(estimator):
            yield from _outputs(child, inputs, name)


def _scores(estimator: Any, inputs: Any) -> NDArray[np.float64] | None:
    """Return what an estimator answers before its answers are calibrated: an isotonic curve keeps such numbers of single people."""
    for method in ("decision_function", "predict_proba"):
        if hasattr(estimator, method):
            try:
                scores = np.asarray(getattr(estimator, method)(inputs), dtype=float)
            except Exception:
                return None  # as of any other step that cannot be followed
            return scores.reshape(len(scores), -1)
    return None


def _pipeline(pipeline: Pipeline, inputs: Any, name: str) -> Iterator[_Output]:
    for step, transformer in pipeline.steps:
        if transformer is None or transformer == "passthrough":
            continue
        yield from _outputs(transformer, inputs, f"{name}{step}.")
        if not hasattr(transformer, "transform"):
            return
        try:
            outputs = transformer.transform(inputs)
        except Exception:
            # A foreign step may raise anything, for example because it lacks columns. What comes after it cannot be known.
            yield f"{name}{step}", None
            return
        numbers = _numbers(outputs)
        # Texts among which gaps were filled are looked for as they are; any other step that makes no numbers is told.
        if numbers is not None or not isinstance(transformer, SimpleImputer):
            yield f"{name}{step}", numbers
        inputs = outputs


def _inside(estimator: Any) -> Iterator[Any]:
    """Yield the estimators inside another that may prepare records, and not the thousand trees of a forest."""
    fitted = [
        name for name in _INSIDE if name.endswith("_") and hasattr(estimator, name)
    ]
    # Beside fitted ones, those without an underscore are the recipe that they were made by.
    for attribute in fitted or _INSIDE:
        kept = getattr(estimator, attribute, None)
        children = kept if isinstance(kept, list | tuple) else [kept]
        for child in children[:MOST_STAGES]:
            holds = isinstance(child, Pipeline | ColumnTransformer | FeatureUnion)
            if holds or any(hasattr(child, a) for a in (*_INSIDE, "_preprocessor")):
                yield child


def _columns(inputs: Any, columns: Any) -> Any:
    if isinstance(inputs, pd.DataFrame):
        try:
            by_name = isinstance(columns, str) or all(isinstance(c, str) for c in columns)  # fmt: skip
            return inputs[columns] if by_name else inputs.iloc[:, columns]
        except (KeyError, IndexError, TypeError):
            return None
    try:
        return inputs[:, columns]
    except (KeyError, IndexError, TypeError):
        return None


def _numbers(outputs: Any) -> NDArray[np.float64] | None:
    """Return the output of a transformer as numbers; None if it is something else, or too large."""
    if sparse.issparse(outputs):
        matrix: Any = outputs
        if np.prod(matrix.shape, dtype=np.float64) > MOST_CELLS:
            return None
        outputs = matrix.toarray()
    if isinstance(outputs, pd.DataFrame):
        outputs = outputs.select_dtypes(["number", "bool"]).to_numpy(dtype=np.float64)
    try:
        numbers = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    usable = numbers.ndim == 2 and numbers.shape[1] > 0 and numbers.size <= MOST_CELLS
    return numbers if usable else None
