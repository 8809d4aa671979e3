"""The records as their owner has them, for products that were made elsewhere and must be asked about just these."""

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data._table import Table
from reticent.errors import InvalidInput

__all__ = ["Original"]


@dataclass(frozen=True)
class Original:
    """Records in the form in which they were passed: a frame of any library, or an array.

    A table holds categories as texts and everything else as numbers. A model fitted on the records themselves may answer otherwise about
    these, without an error: a category 1 is not the text "1".

    Parameters
    ----------
    records : data frame or array
        What was passed.
    rows : mapping of int to int
        Row of each record, by the hash of its features in the table.
    """

    records: Any
    rows: dict[int, int]

    @classmethod
    def of(cls, records: Any, table: Table) -> "Original":
        """Return the original of a table that was made from these records."""
        hashes = _hashes(table.features)
        return cls(records, dict(zip(hashes[::-1], table.ids[::-1], strict=True)))

    def of_features(self, features: pd.DataFrame) -> Any:
        """Return the records that have these features in the table.

        Raises
        ------
        InvalidInput
            If one of them is not in the table.
        """
        try:
            rows = np.array([self.rows[h] for h in _hashes(features)], dtype=np.int64)
        except KeyError:
            raise InvalidInput(
                "the product was asked about a record that is not among those passed; audit it from a file with --product instead."
            ) from None
        return _taken(self.records, rows)


def _hashes(features: pd.DataFrame) -> list[int]:
    hashes: list[int] = pd.util.hash_pandas_object(features, index=False).tolist()
    return hashes


def _taken(records: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(records, pd.DataFrame):
        return records.iloc[rows]
    native = nw.from_native(records, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    if isinstance(native, nw.DataFrame):
        return native[rows.tolist()].to_native()
    return np.asarray(records)[rows]
