"""The file of a product laid beside records: what it contains, and the records as every step of the product sees them."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import ColumnKind, Table
from reticent.errors import InvalidInput
from reticent.product._protocols import Product
from reticent.product.contents import Contents, NamedArray, contents_of
from reticent.product.stages import Stage, Staged, Stages

__all__ = ["OpenedFile", "Words", "open_file"]


@dataclass(frozen=True, kw_only=True)
class Words:
    """A column of texts.

    Parameters
    ----------
    name : str
        Name of the column.
    values : tuple of str
        The different texts in it.
    codes : array of int, shape (n,)
        Each record's text, by position in ``values``; -1 if it is missing.
    """

    name: str
    values: tuple[str, ...]
    codes: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class OpenedFile:
    """What an attacker who holds the file lays beside the records in question.

    There is no tag in it: which records are members is what the attacker must say.

    Parameters
    ----------
    contents : Contents
        What the file contains.
    stages : tuple of Stage
        The records as numbers, first as they are, then after every step of the product's own preparation.
    words : tuple of Words
        The columns of texts.
    target : array of float, shape (n,)
        Class number or quantity of each record.
    classes : int
        Number of classes; 0 if the target is a quantity.
    people : array of int, shape (n,)
        The person each record belongs to.
    unseen : tuple of str
        Steps of the product's preparation whose output could not be made, so that what stands in the file behind them may be missed.

    Raises
    ------
    InvalidInput
        If there is not one of each per record.
    """

    contents: Contents
    stages: tuple[Stage, ...]
    words: tuple[Words, ...]
    target: NDArray[np.float64]
    classes: int
    people: NDArray[np.int64]
    unseen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.target)
        lengths = {len(self.people), *(len(w.codes) for w in self.words)}
        lengths |= {len(stage.matrix) for stage in self.stages}
        if lengths != {n}:
            raise InvalidInput(
                f"the parts of an opened file are about {sorted(lengths | {n})} records; pass one row of each per record."
            )

    def __len__(self) -> int:
        return len(self.target)

    @property
    def nbytes(self) -> int:
        """Bytes that a copy of it takes."""
        records = sum(stage.matrix.nbytes for stage in self.stages)
        return records + self.contents.nbytes

    def take(self, rows: NDArray[np.int64]) -> "OpenedFile":
        """Return the same file beside only some of the records."""
        return replace(
            self,
            stages=tuple(stage.take(rows) for stage in self.stages),
            words=tuple(replace(w, codes=w.codes[rows]) for w in self.words),
            target=self.target[rows],
            people=self.people[rows],
        )

    def memorised(self, known: NDArray[np.bool_]) -> "OpenedFile":
        """Return the file of a product that keeps every known record, beside the same records.

        It is the control that every reader of files must catch.
        """
        rows = np.column_stack([self.stages[0].matrix, self.target])[known]
        memory = NamedArray(path="memory", values=rows)
        contents = Contents(arrays=(memory,), size=rows.nbytes)
        return replace(self, contents=contents)


def open_file(
    product: Product, table: Table, *, contents: Contents | None = None
) -> OpenedFile:
    """Lay the file of a product beside the records of a table.

    Parameters
    ----------
    product : Product
        The product, whose types were checked if it was loaded.
    table : Table
        Members and non-members, in any order.
    contents : Contents or None
        What the product's file contains, if it has been read; else the product is saved to a temporary folder and read.

    Raises
    ------
    OutputRefused
        If the product cannot be stored, and so has no file to read.
    """
    if contents is None:
        contents = contents_of(product)
    words, columns = [], []
    textual = table.schema.names(ColumnKind.CATEGORICAL)
    for name in table.features.columns:
        column = table.features[name]
        if name in textual:
            codes, values = pd.factorize(column, sort=True)
            texts = tuple(str(value) for value in values)
            words.append(
                Words(name=str(name), values=texts, codes=codes.astype(np.int64))
            )
            numbers = np.where(codes < 0, np.nan, codes.astype(np.float64))
        else:
            numbers = column.to_numpy(dtype=np.float64)
        columns.append(numbers)
    matrix = np.column_stack(columns) if columns else np.empty((len(table), 0))
    prepared = Stages()
    if isinstance(product, Staged):
        prepared = product.stages(table.features)
    return OpenedFile(
        contents=contents,
        stages=(Stage(name="records", matrix=matrix), *prepared.stages),
        words=tuple(words),
        target=np.asarray(table.target, dtype=np.float64),
        classes=len(table.classes),
        people=table.units,
        unseen=prepared.unseen,
    )
