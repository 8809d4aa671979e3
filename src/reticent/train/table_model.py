"""What a recipe has learned of a table, whatever its method."""

from typing import TYPE_CHECKING, Protocol

import pandas as pd

if TYPE_CHECKING:
    from reticent.train.wgan.released import ReleasedCritic

__all__ = ["TableModel"]


class TableModel(Protocol):
    """What was learned of a table, all of which has been paid for."""

    @property
    def rows(self) -> int:
        """Rows to draw if nobody says how many."""
        ...

    @property
    def critic(self) -> "ReleasedCritic | None":
        """What it was trained against, covered by the same guarantee; None if there is none."""
        ...

    def sample(
        self, rows: int | None = None, *, seed: int = 0
    ) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Return new rows, and what users should know about them."""
        ...
