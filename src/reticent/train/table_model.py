"""What a recipe has learned of a table, whatever its method."""

from typing import Protocol

import pandas as pd

__all__ = ["TableModel"]


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
