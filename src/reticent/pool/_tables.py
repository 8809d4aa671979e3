"""A pool of synthetic tables: many tables made from known parts of the same records, and how the records compare with each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.pool._models import ModelPool

__all__ = ["TablePool"]


@dataclass(frozen=True, kw_only=True)
class TablePool(ModelPool):
    """M synthetic tables, each made from a known part of n records.

    Parameters
    ----------
    masks : array of bool, shape (M, n)
        Which records were used for which table.
    comparisons : array of float, shape (M, n, k)
        How each record compares with the rows of each table, larger meaning more like a member.
    """

    comparisons: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.comparisons.shape[:2] != self.masks.shape:
            raise InvalidInput(
                f"masks {self.masks.shape} and comparisons {self.comparisons.shape} do not fit together; pass one row per table and one column per "
                "record."
            )
        if not np.isfinite(self.comparisons).all():
            raise InvalidInput(
                "some comparisons of the pool are NaN or infinite, so nothing can be compared; repair the generator."
            )
        super().__post_init__()

    @property
    def nbytes(self) -> int:
        """Bytes that a copy takes."""
        return self.masks.nbytes + self.comparisons.nbytes

    def take(self, rows: NDArray[np.int64] | slice) -> "TablePool":
        """Return the pool on some of the records."""
        return TablePool(
            masks=self.masks[:, rows], comparisons=self.comparisons[:, rows]
        )

    def of_models(self, chosen: NDArray[np.bool_]) -> "TablePool":
        return TablePool(masks=self.masks[chosen], comparisons=self.comparisons[chosen])

    def errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Refuse: a table answers no question, so it cannot be wrong.

        Raises
        ------
        InvalidInput
            Always.
        """
        raise InvalidInput(
            "a synthetic table answers no question, so it has no errors; compare models that learned from it."
        )
