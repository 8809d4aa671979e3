"""Generators of synthetic tables as trainers: what is trained on records and samples rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from reticent.data import Table, as_frame, in_columns_of
from reticent.errors import InvalidSpec, ReticentError, TrainerFailed
from reticent.product import SyntheticTable
from reticent.run import Content, code_of, content_of, named_by_user
from reticent.train._plain import PlainTrainer

__all__ = ["Generator", "parse_generator"]


@dataclass(frozen=True)
class Generator(PlainTrainer):
    """A function of the user that fits a generator on a frame and samples rows from it.

    Parameters
    ----------
    recipe : str
        Its name, ``module:function``. It is called with a data frame of records, the number of rows to sample and a seed, and returns a frame with
        the same columns. Numbers and truth values are floats in the frame, categories texts, and missing values NaN.
    rows_per_record : float
        Rows to sample for each record that it is fitted on.
    """

    recipe: str
    rows_per_record: float = 1.0

    def train(self, table: Table, *, seed: int) -> SyntheticTable:
        """Return the rows that the function makes of the records of a table.

        Raises
        ------
        TrainerFailed
            If the function fails, or returns no table of the same columns.
        """
        function = named_by_user(self.recipe, role="generator", what="function")
        rows = max(1, round(self.rows_per_record * len(table)))
        # A copy: what the user's function does to it must not reach the records.
        records = table.features.copy()
        try:
            # Whoever draws from the global stream repeats itself as well.
            np.random.seed(seed % 2**32)  # noqa: NPY002
            frame = as_frame(function(records, rows, seed), name=self.recipe)
        except ReticentError:
            raise
        except Exception as error:
            # The kind only: a message could quote cells of the table.
            raise TrainerFailed(
                f"the generator {self.recipe} failed with {type(error).__name__}; try it outside reticent first, as function(frame, rows, seed)."
            ) from error
        return _as_synthetic(frame, table, self.recipe)

    def content(self) -> Content:
        """Return the name, the number of rows, and the code of the function."""
        return content_of(self.recipe, self.rows_per_record) + code_of(self.recipe)


def parse_generator(text: str, *, rows_per_record: float) -> Generator:
    """Return the generator that a user names as ``module:function``. This imports the module.

    Parameters
    ----------
    text : str
        The name.
    rows_per_record : float
        Rows to sample for each record that it is fitted on.

    Raises
    ------
    InvalidSpec
        If there is no such function.
    """
    text = text.strip()
    if "(" in text:
        raise InvalidSpec(
            f"the generator {text!r} is a call, but a function is needed that fits on a frame and samples rows; write it as module:function."
        )
    named_by_user(text, role="generator", what="function")
    return Generator(text, rows_per_record)


def _as_synthetic(frame: Any, table: Table, recipe: str) -> SyntheticTable:
    made: pd.DataFrame = frame.rename(columns=str)
    absent = [c for c in table.features.columns if c not in made.columns]
    if absent:
        raise TrainerFailed(
            f"the generator {recipe} returned a table without the column {absent[0]!r}, so it cannot be compared; let it return all columns that it is given."
        )
    columns = list(table.features.columns)
    alike = in_columns_of(made[columns], table.features, table.schema)
    return SyntheticTable(alike.frame)
