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
from sklearn.pipeline import FeatureUnion, Pipeline

__all__ = ["Stage", "Staged", "estimator_stages", "network_stages"]

MOST_STAGES = (
    24  # of one product: five folds of a calibrated pipeline of four steps fit
)
MOST_CELLS = (
    40_000_000  # of one stage, 320 megabytes; wider ones (hashed texts) are left out
)
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


@runtime_checkable
class Staged(Protocol):
    """A product that can show what it makes of records before it answers."""

    def stages(self, features: pd.DataFrame) -> tuple[Stage, ...]:
        """Return the records after every step of preparation, without the records themselves."""
        ...


def estimator_stages(estimator: Any, features: pd.DataFrame) -> tuple[Stage, ...]:
    """Return the output of every transformer inside a fitted estimator.

    Pipelines, column transformers and unions are followed, also inside bags, stacks, searches and calibrated classifiers. A step
    that cannot transform these records, or whose output would not fit into memory, is left out together with those after it.

    Parameters
    ----------
    estimator : object
        A fitted estimator whose types were checked when it was loaded.
    features : data frame
        The records.
    """
    found: list[Stage] = []
    with warnings.catch_warnings():
        # Whatever a step warns about, it has said when the product was asked.
        warnings.simplefilter("ignore")
        for stage in _stages(estimator, features, ""):
            same = (s for s in found if s.matrix.shape == stage.matrix.shape)
            if not any(np.array_equal(s.matrix, stage.matrix, equal_nan=True) for s in same):  # fmt: skip
                found.append(stage)
            if len(found) >= MOST_STAGES:
                break
    return tuple(found)


def network_stages(
    encoded: NDArray[np.float32], scaled: NDArray[np.float32]
) -> tuple[Stage, ...]:
    """Return the two forms in which a network sees records: as numbers, and scaled, with 0 for missing numbers."""
    return (
        Stage(name="encoded", matrix=encoded.astype(np.float64)),
        Stage(name="scaled", matrix=np.nan_to_num(scaled.astype(np.float64))),
    )


def _stages(estimator: Any, inputs: Any, name: str) -> Iterator[Stage]:
    if isinstance(estimator, Pipeline):
        yield from _pipeline(estimator, inputs, name)
    elif isinstance(estimator, ColumnTransformer):
        for step, transformer, columns in estimator.transformers_:
            if isinstance(transformer, Pipeline) and len(transformer.steps) > 1:
                part = _columns(inputs, columns)
                if part is not None:
                    yield from _pipeline(transformer, part, f"{name}{step}.")
    elif isinstance(estimator, FeatureUnion):
        for step, transformer in estimator.transformer_list:
            yield from _stages(transformer, inputs, f"{name}{step}.")
    else:
        prepared = getattr(estimator, "_preprocessor", None)
        if prepared is not None:
            yield from _pipeline(Pipeline([("prepared", prepared)]), inputs, name)
        for child in _inside(estimator):
            yield from _stages(child, inputs, name)


def _pipeline(pipeline: Pipeline, inputs: Any, name: str) -> Iterator[Stage]:
    for step, transformer in pipeline.steps:
        if transformer is None or transformer == "passthrough":
            continue
        yield from _stages(transformer, inputs, f"{name}{step}.")
        if not hasattr(transformer, "transform"):
            return
        try:
            outputs = transformer.transform(inputs)
        except Exception:
            # It may lack columns, or be of no use beyond its training; what comes after cannot be known then.
            return
        matrix = _numbers(outputs)
        if matrix is not None:
            yield Stage(name=f"{name}{step}", matrix=matrix)
        inputs = outputs


def _inside(estimator: Any) -> Iterator[Any]:
    """Yield the estimators inside another that may prepare records, and not the thousand trees of a forest."""
    for attribute in _INSIDE:
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
