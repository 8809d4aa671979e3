"""What reticent asks of products and trainers, and nothing more."""

from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import Table

__all__ = ["Predictor", "Trainer"]


@runtime_checkable
class Predictor(Protocol):
    """A classifier as it would be released: it answers queries."""

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class, in the order of the table's classes."""
        ...

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return what two products are compared by: probabilities or decision values."""
        ...


@runtime_checkable
class Trainer(Protocol):
    """A recipe that turns records into a product."""

    @property
    def recipe(self) -> str:
        """A description from which the trainer can be made again."""
        ...

    def train(self, table: Table, *, seed: int) -> Predictor:
        """Return a product trained on all records of a table, in their order.

        The same table and seed give the same product if the recipe can be seeded at all.
        """
        ...
