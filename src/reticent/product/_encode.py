"""Turn the columns of a table into the numbers that a network sees."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import ColumnKind, Table
from reticent.product._rare import (
    MISSING_CATEGORY,
    SMALLEST_GROUP,
    frequent_categories,
)

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
        return cls(
            numbers=_numbers(table),
            categories=tuple(
                (
                    name,
                    tuple(sorted(map(str, set(column.fillna(MISSING_CATEGORY).array)))),
                )
                for name, column in _categorical(table)
            ),
        )

    @classmethod
    def learned(cls, table: Table) -> "Encoder":
        """Return the encoder of a table's columns, and of the categories that enough people have.

        The file of a product names its categories, and one that a single member has gives this member away.
        """
        return cls(
            numbers=_numbers(table),
            categories=tuple(
                (name, tuple(map(str, frequent_categories(column, table.units))))
                for name, column in _categorical(table)
            ),
        )

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
            values = features[name].fillna(MISSING_CATEGORY).astype(str).to_numpy()
            parts.append((values[:, None] == np.array(known)[None]).astype(np.float32))
        # Stored row by row: a frame whose columns have one dtype would give an array stored column by column.
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def standardisation(
        self, matrix: NDArray[np.float32], masks: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the centre and the scale of every column, one row per model, from the members of that model.

        Numbers get mean 0 and variance 1. A category that too few members have is scaled down to 0.
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
            # The mean of few people would name them: such a number is scaled down to 0, as a rare category is.
            known = total >= SMALLEST_GROUP
            centres[k, :count] = np.where(known, mean, 0.0)
            scales[k, :count] = np.where(known, np.where(spread > 0, spread, 1.0), 1e30)
            # 1 / 1e30 is 0 beside any weight, and both fit into single precision.
            shared = members[:, count:].sum(axis=0) >= SMALLEST_GROUP
            scales[k, count:] = np.where(shared, 1.0, 1e30)
        return centres, scales


def _numbers(table: Table) -> tuple[str, ...]:
    schema = table.schema
    return (*schema.names(ColumnKind.NUMERIC), *schema.names(ColumnKind.BOOLEAN))


def _categorical(table: Table) -> list[tuple[str, pd.Series]]:
    names = table.schema.names(ColumnKind.CATEGORICAL)
    return [(name, table.features[name]) for name in names]
