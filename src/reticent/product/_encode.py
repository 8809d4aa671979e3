"""Turn the columns of a table into the numbers a network sees."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import ColumnKind, Table

__all__ = ["Encoder"]


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """One column per number and per category, in a fixed order."""

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
        """The columns that are looked at."""
        return (*self.numbers, *(name for name, _ in self.categories))

    @property
    def width(self) -> int:
        """How many columns a network sees."""
        return len(self.numbers) + sum(len(known) for _, known in self.categories)

    def matrix(self, features: pd.DataFrame) -> NDArray[np.float32]:
        """Return numbers as they are, missing ones NaN, and categories as 0 and 1."""
        parts = [features[list(self.numbers)].to_numpy(dtype=np.float32)]
        for name, known in self.categories:
            values = features[name].fillna("(missing)").astype(str).to_numpy()
            parts.append((values[:, None] == np.array(known)[None]).astype(np.float32))
        # Rows in one piece: a frame of one kind of numbers would hand down columns instead.
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def standardisation(
        self, matrix: NDArray[np.float32], masks: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return centre and scale of every column from each model's own members.

        Numbers get mean 0 and variance 1. A category that no member has is scaled to nothing.
        """
        count = len(self.numbers)
        centres = np.zeros((len(masks), matrix.shape[1]), dtype=np.float32)
        scales = np.ones_like(centres)
        for k, mask in enumerate(masks):
            own = matrix[mask]
            seen = np.isfinite(own[:, :count])
            total = np.maximum(seen.sum(axis=0), 1)
            filled = np.where(seen, own[:, :count], 0.0).astype(np.float64)
            mean = filled.sum(axis=0) / total
            spread = np.sqrt(
                np.where(seen, (filled - mean) ** 2, 0.0).sum(axis=0) / total
            )
            centres[k, :count] = mean
            scales[k, :count] = np.where(spread > 0, spread, 1.0)
            scales[k, count:] = np.where(own[:, count:].any(axis=0), 1.0, 1e30)
        return centres, scales
