"""Turn the columns of a table into the numbers that a network sees."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import ColumnKind, Table

__all__ = ["Encoder"]


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """One output column per numeric column and per category of each categorical column, in a fixed order.

    Parameters
    ----------
    numbers : tuple of str
        Names of the numeric and boolean columns.
    categories : tuple of (str, tuple of str)
        Names of the categorical columns, each with its known categories.
    """

    numbers: tuple[str, ...]
    categories: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, table: Table) -> "Encoder":
        """Return the encoder of all columns and all categories of a table."""
        schema = table.schema
        numbers = [*schema.names(ColumnKind.NUMERIC), *schema.names(ColumnKind.BOOLEAN)]
        categories = [
            (
                name,
                tuple(
                    sorted({str(v) for v in table.features[name].fillna("(missing)")})
                ),
            )
            for name in schema.names(ColumnKind.CATEGORICAL)
        ]
        return cls(numbers=tuple(numbers), categories=tuple(categories))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the table's columns that are used."""
        return (*self.numbers, *(name for name, _ in self.categories))

    @property
    def width(self) -> int:
        """Number of columns that a network sees."""
        return len(self.numbers) + sum(len(known) for _, known in self.categories)

    def matrix(self, features: pd.DataFrame) -> NDArray[np.float32]:
        """Return numbers unchanged, with NaN for missing ones, and categories as 0 and 1."""
        parts = [features[list(self.numbers)].to_numpy(dtype=np.float32)]
        for name, known in self.categories:
            values = features[name].fillna("(missing)").astype(str).to_numpy()
            parts.append((values[:, None] == np.array(known)[None]).astype(np.float32))
        # Stored row by row: a frame whose columns have one dtype would give an array stored column by column.
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def standardisation(
        self, matrix: NDArray[np.float32], masks: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the centre and the scale of every column, one row per model, from the members of that model.

        Numbers get mean 0 and variance 1. A category that no member has is scaled down to 0.
        """
        count = len(self.numbers)
        centres = np.zeros((len(masks), matrix.shape[1]), dtype=np.float32)
        scales = np.ones_like(centres)
        for k, mask in enumerate(masks):
            members = matrix[mask]
            present = np.isfinite(members[:, :count])
            total = np.maximum(present.sum(axis=0), 1)
            filled = np.where(present, members[:, :count], 0.0).astype(np.float64)
            mean = filled.sum(axis=0) / total
            spread = np.sqrt(
                np.where(present, (filled - mean) ** 2, 0.0).sum(axis=0) / total
            )
            centres[k, :count] = mean
            scales[k, :count] = np.where(spread > 0, spread, 1.0)
            # 1 / 1e30 is 0 beside any weight, and both fit into single precision.
            scales[k, count:] = np.where(members[:, count:].any(axis=0), 1.0, 1e30)
        return centres, scales
