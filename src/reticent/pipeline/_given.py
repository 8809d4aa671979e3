"""Records and products as callers in Python have them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from reticent.data import (
    ColumnKind,
    Original,
    Table,
    as_frame,
    as_values,
    table_from_frame,
)
from reticent.errors import InvalidInput
from reticent.pipeline._train import TrainedProduct
from reticent.product import (
    FittedProduct,
    FittedRegressor,
    Product,
    ProductFiles,
    Provenance,
    SavedProduct,
    declares_quantity,
)
from reticent.train import is_fitted

__all__ = ["GivenProduct", "GivenRecords", "both_sides"]

_METHODS = ("predict_proba", "decision_function", "predict")  # that are asked


@dataclass(frozen=True, kw_only=True)
class GivenRecords:
    """Records as a caller has them: features in a frame of any library or in an array, and one value per record of the rest."""

    X: Any
    y: Any
    groups: Any = None
    units: Any = None
    parts: Any = None
    drop: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("y", "groups", "units", "parts"):
            _must_have_the_same_order(self.X, getattr(self, name), name)

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return as_frame(self.X, name="X")

    def table(self, *, quantity: bool = False) -> Table:
        """Return the records as a table."""
        return table_from_frame(
            self._frame,
            target=self.y,
            group=self.groups,
            unit=self.units,
            part=self.parts,
            quantity=quantity,
            name="X",
            drop=self.drop,
        )

    @property
    def needs_preprocessing(self) -> bool:
        """Whether there is text or something missing; complete numbers reach an estimator as they are."""
        named = [c for c in (self.y, self.units, self.parts) if isinstance(c, str)]
        table = table_from_frame(
            self._frame.drop(columns=[c for c in named if c in self._frame]),
            target=np.arange(len(self._frame)) % 2,
            name="X",
            drop=self.drop,
        )
        return bool(table.schema.names(ColumnKind.CATEGORICAL)) or bool(
            table.features.isna().to_numpy().any()
        )


def both_sides(members: Any, nonmembers: Any) -> tuple[Any, pd.Series, list[str]]:
    """Return members and non-members as one set of records: features, targets and parts.

    Parameters
    ----------
    members, nonmembers : pair of X and y
        Records that the product was trained on, and others.

    Raises
    ------
    InvalidInput
        If they are no pairs, or do not have the same columns.
    """
    pairs = {"members": members, "nonmembers": nonmembers}
    for name, pair in pairs.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidInput(
                f"{name} must be a pair of features and targets, such as {name}=(X, y)."
            )
        _must_have_the_same_order(pair[0], pair[1], "y")
    frames = [as_frame(pair[0], name=name) for name, pair in pairs.items()]
    targets = [as_values(pair[1], role="target") for pair in pairs.values()]
    for name, frame, target in zip(pairs, frames, targets, strict=True):
        if len(frame) != len(target):
            raise InvalidInput(
                f"{name} has {len(frame)} records but {len(target)} targets; pass one per record."
            )
    if list(frames[0].columns) != list(frames[1].columns):
        raise InvalidInput(
            f"members have the columns {list(frames[0].columns)[:6]} and nonmembers {list(frames[1].columns)[:6]}; a product is asked about "
            "the same columns of both."
        )
    sizes = [len(frame) for frame in frames]
    parts = ["defender"] * sizes[0] + ["reserved"] * sizes[1]
    X = _one_below_the_other(members[0], nonmembers[0])
    return X, pd.concat(targets, ignore_index=True), parts


def _one_below_the_other(above: Any, below: Any) -> Any:
    natives = [nw.from_native(X, pass_through=True) for X in (above, below)]
    natives = [X.collect() if isinstance(X, nw.LazyFrame) else X for X in natives]
    are_frames = [isinstance(X, nw.DataFrame) for X in natives]
    if are_frames[0] != are_frames[1] or (
        are_frames[0] and natives[0].implementation != natives[1].implementation
    ):
        raise InvalidInput(
            f"members are a {type(above).__name__} and nonmembers a {type(below).__name__}, so the product would not be asked in the same "
            "way; pass both in one form."
        )
    if isinstance(above, pd.DataFrame):
        return pd.concat([above, below], ignore_index=True)
    if are_frames[0]:
        return nw.concat(natives).to_native()
    return np.concatenate([np.asarray(above), np.asarray(below)])


@dataclass(frozen=True)
class GivenProduct:
    """A product as a caller has it: a fitted estimator, a product of reticent, or the path of a saved one."""

    product: Any

    def __post_init__(self) -> None:
        product = self.product
        if isinstance(product, type):
            raise InvalidInput(
                f"{product.__name__} is a class and no product; pass a fitted {product.__name__}(...)."
            )
        if isinstance(product, str | Path | Product | TrainedProduct):
            return
        if not any(hasattr(product, method) for method in _METHODS):
            raise InvalidInput(
                f"the product, a {type(product).__name__}, has neither predict_proba nor decision_function nor predict, so it cannot be "
                "asked anything; pass a fitted classifier or regression model."
            )
        # Only scikit-learn's estimators can say so; whether another object is fitted shows when it is asked.
        if hasattr(product, "__sklearn_tags__") and not is_fitted(product):
            raise InvalidInput(
                f"the product, a {type(product).__name__}, is not fitted, so there is nothing to audit; fit it on the members first, or audit "
                "its recipe with reticent.audit(estimator, X, y)."
            )

    @property
    def name(self) -> str:
        """How the report calls it."""
        if isinstance(self.product, str | Path):
            return str(self.product)
        return type(self._inner).__name__

    @property
    def quantity(self) -> bool:
        """Whether it predicts a quantity."""
        if self._saved is not None:
            return self._saved.quantity
        if isinstance(self._inner, Product):
            return self._inner.quantity
        return declares_quantity(self._inner)

    def on(self, table: Table, records: GivenRecords) -> tuple[Product, Provenance]:
        """Return the product, which is asked about the records as they were passed, and where it comes from."""
        if self._saved is not None:
            return self._saved.on(table.classes), self._saved.notes.provenance
        if isinstance(self.product, TrainedProduct):
            return self.product.product, self.product.provenance
        if isinstance(self.product, Product):
            return self.product, Provenance()
        asked = _AsPassed(self.product, Original.of(records.X, table))
        if table.is_quantity:
            return FittedRegressor(estimator=asked), Provenance()
        product = FittedProduct(estimator=asked, classes=table.classes)
        return product, replace(Provenance(), classes=table.classes)

    @property
    def files(self) -> ProductFiles | None:
        """Its files, if it was saved."""
        return None if self._saved is None else self._saved.files

    @cached_property
    def _saved(self) -> SavedProduct | None:
        path = self.product
        return SavedProduct(path) if isinstance(path, str | Path) else None

    @property
    def _inner(self) -> Any:
        if isinstance(self.product, TrainedProduct):
            return self.product.product
        return self.product


class _AsPassed:
    """An estimator that is asked about records in the form in which they were passed."""

    def __init__(self, estimator: Any, original: Original) -> None:
        self._estimator = estimator
        self._original = original

    def __getattr__(self, name: str) -> Any:
        # Only what the estimator itself has, because its methods say what it is.
        value = getattr(self.__dict__["_estimator"], name)
        if name not in _METHODS:
            return value
        original = self.__dict__["_original"]
        return lambda features: value(original.of_features(features))


def _must_have_the_same_order(X: Any, values: Any, name: str) -> None:
    """Refuse values whose index has the labels of X in another order: by place they would belong to other records."""
    if not isinstance(X, pd.DataFrame) or not isinstance(
        values, pd.Series | pd.DataFrame
    ):
        return
    if len(X) != len(values) or X.index.equals(values.index):
        return
    if X.index.sort_values().equals(values.index.sort_values()):
        raise InvalidInput(
            f"the index of {name} has the labels of X in another order, so records would get each other's values; pass {name}.loc[X.index]."
        )
