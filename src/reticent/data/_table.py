"""A table of records: features, target, units, groups; immutable by convention and by type."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data._finding import Finding

__all__ = ["MISSING", "ColumnKind", "Schema", "Table", "number_of_people"]

# The question mark is how many published tables (Adult among them) mark a missing value.
MISSING = ("?", "", "NaN", "nan")


class ColumnKind(StrEnum):
    """What the values of a column are."""

    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    BOOLEAN = "boolean"


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a table and what each holds.

    Parameters
    ----------
    columns : mapping of str to ColumnKind
        Feature columns in their order; in a declaration, empty to let the values decide.
    missing : tuple of str
        Cell contents that mean "missing" in text files.
    dates : tuple of str
        Numeric columns that are dates or durations, counted in days.
    drop : tuple of str
        In a declaration: columns that are left out.
    infers_others : bool
        In a declaration: whether the values decide what columns hold that it does not name. Otherwise such a column is an error.
    """

    columns: Mapping[str, ColumnKind]
    missing: tuple[str, ...] = MISSING
    dates: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    infers_others: bool = False

    def names(self, kind: ColumnKind) -> list[str]:
        """Return the columns of one kind, in order."""
        return [name for name, declared in self.columns.items() if declared == kind]


def number_of_people(units: NDArray[np.int64]) -> int:
    """Return how many different people records belong to.

    By sorting: where nearly all are different, numpy counts them by hashing in thirty times the time (2.4), and every training asks.

    Examples
    --------
    >>> number_of_people(np.array([7, 3, 7]))
    2
    """
    if not len(units):
        return 0
    ordered = np.sort(units)
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


@dataclass(frozen=True, kw_only=True)
class Table:
    """Records with a class or a quantity each, and the unit (person) each belongs to.

    Parameters
    ----------
    features : pandas.DataFrame
        One row per record; numeric and boolean columns are floats, categorical ones strings;
        missing values are NaN.
    target : array of int or float
        Class of each record, an index into ``classes``; or, if there are no classes, the quantity that a
        regression model predicts, in double precision.
    classes : tuple of str
        Names of the classes; empty if the target is a quantity.
    units : array of int
        The unit each record belongs to; no unit may be in two parts of a split.
    groups : array of str or None
        Subgroup of each record.
    parts : array of str or None
        Part of each record if the table came divided.
    ids : array of int
        Row numbers in the table that was read.
    schema : Schema
        What the feature columns hold.
    dropped : int
        Rows left out because their target was missing.
    findings : tuple of Finding
        How the columns were understood, and what in them may have been meant otherwise.
    """

    features: pd.DataFrame
    target: NDArray[Any]
    classes: tuple[str, ...]
    units: NDArray[np.int64]
    ids: NDArray[np.int64]
    schema: Schema
    groups: NDArray[np.object_] | None = None
    parts: NDArray[np.object_] | None = None
    dropped: int = 0
    findings: tuple[Finding, ...] = ()

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: NDArray[np.int64]) -> "Table":
        """Return a table with only the given rows, in the given order."""
        return replace(
            self,
            features=self.features.iloc[rows].reset_index(drop=True),
            target=self.target[rows],
            units=self.units[rows],
            ids=self.ids[rows],
            groups=None if self.groups is None else self.groups[rows],
            parts=None if self.parts is None else self.parts[rows],
        )

    def join(self, other: "Table") -> "Table":
        """Return this table with the rows of another table below its own."""
        return replace(
            self,
            features=pd.concat([self.features, other.features], ignore_index=True),
            target=np.concatenate([self.target, other.target]),
            units=np.concatenate([self.units, other.units]),
            ids=np.concatenate([self.ids, other.ids]),
            groups=_concatenate(self.groups, other.groups),
            parts=_concatenate(self.parts, other.parts),
        )

    @property
    def is_quantity(self) -> bool:
        """Whether the target is a quantity, which regression models predict, and not a class."""
        return not self.classes

    @property
    def repeats_units(self) -> bool:
        """Whether some unit has more than one record."""
        return number_of_people(self.units) < len(self)

    @cached_property
    def row_hashes(self) -> NDArray[np.uint64]:
        """A hash of each record's features and target; equal records have equal hashes."""
        with_target = self.features.assign(**{"\0target": self.target})
        hashes = pd.util.hash_pandas_object(with_target, index=False)
        return np.asarray(hashes, dtype=np.uint64)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the whole content: records in order, columns, classes, units, groups."""
        digest = hashlib.sha256()
        digest.update(repr((list(self.features.columns), self.classes)).encode())
        digest.update(self.row_hashes.tobytes())
        digest.update(np.ascontiguousarray(self.units).tobytes())
        for labels in (self.groups, self.parts):
            digest.update(b"-" if labels is None else "\0".join(labels).encode())
        return digest.hexdigest()


def _concatenate(
    a: NDArray[np.object_] | None, b: NDArray[np.object_] | None
) -> NDArray[np.object_] | None:
    return None if a is None or b is None else np.concatenate([a, b])
