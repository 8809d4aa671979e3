"""A product of which nothing but its answers is known."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.errors import OutputRefused
from reticent.product._protocols import Product
from reticent.product.internals import Internals

__all__ = ["ClosedProduct", "answers_of", "as_product"]


@dataclass(frozen=True)
class ClosedProduct:
    """A foreign object that answers queries, as a product that can be neither opened nor saved.

    Parameters
    ----------
    thing : object
        An object with ``predict_proba`` and ``outputs``.
    """

    thing: Any
    classes: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    has_probabilities: bool = True
    file_name: str = ""
    quantity: bool = False

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class."""
        return np.asarray(self.thing.predict_proba(features), dtype=np.float64)

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return what two products are compared by."""
        return np.asarray(self.thing.outputs(features), dtype=np.float64)

    def asked(
        self, features: pd.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what the object answers and what it is compared by, of a query each: nothing says that one follows from the other."""
        return self.predict_proba(features), self.outputs(features)

    def internals(
        self, features: pd.DataFrame, labels: NDArray[np.int64]
    ) -> Internals | None:
        """Return None: the product cannot be opened."""
        return None

    def save(self, file: Path) -> None:
        """Refuse: reticent knows only the answers of the product."""
        raise OutputRefused(
            f"a {type(self.thing).__name__} cannot be saved, because reticent does not know what it is made of; let its trainer return a "
            "product of reticent, such as reticent.product.FittedProduct."
        )


def as_product(thing: Any) -> Product:
    """Return a product unchanged, and any other object that answers queries as a closed product."""
    return thing if isinstance(thing, Product) else ClosedProduct(thing)


def answers_of(product: Any, features: pd.DataFrame) -> NDArray[Any]:
    """Return what a product answers, one row per record: a probability per class, or one prediction.

    Probabilities are kept in single precision, which is as much as attacks can use. A quantity is kept in double
    precision, because near a large mean it has no digits to spare.

    Parameters
    ----------
    product : Product
        A product of any kind.
    features : data frame
        The records.
    """
    if product.quantity:
        return np.asarray(product.predict(features), dtype=np.float64)[:, None]
    return np.asarray(product.predict_proba(features), dtype=np.float32)
