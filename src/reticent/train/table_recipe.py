"""What every recipe of a synthetic table with a guarantee is asked for, whatever its method."""

from typing import Protocol

import pandas as pd

from reticent.account import Guarantee, Relation, Target, Terms
from reticent.data import Table
from reticent.run import Run
from reticent.train.constraints import Constraints

__all__ = ["TableModel", "TableRecipe"]


class TableModel(Protocol):
    """What was learned of a table, all of which has been paid for."""

    @property
    def rows(self) -> int:
        """Rows to draw if nobody says how many."""
        ...

    def sample(
        self, rows: int | None = None, *, seed: int = 0
    ) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Return new rows, and what users should know about them."""
        ...


class TableRecipe(Protocol):
    """How a synthetic table is made, and what that guarantees."""

    @property
    def recipe(self) -> str:
        """The call that makes this recipe again."""
        ...

    def keeping(
        self, target: Target, table: Table, *, delta: float, relation: Relation
    ) -> "TableRecipe":
        """Return the recipe with the least noise that meets a target."""
        ...

    def parsed_constraints(self, table: Table) -> Constraints:
        """Return what every row keeps."""
        ...

    def fit(self, table: Table, *, run: Run) -> TableModel:
        """Spend the whole budget on a table; return a model from which any number of rows may be drawn."""
        ...

    def guarantee_on(self, table: Table, terms: Terms) -> Guarantee:
        """Return what holds for every person of a table, in the given terms."""
        ...
