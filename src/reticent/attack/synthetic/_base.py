"""What an attacker of a synthetic table is shown, and what every comparison of records with it has in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Need, Scores
from reticent.data import Coded
from reticent.errors import InvalidInput, InvalidPredictions
from reticent.product import OpenedFile

__all__ = ["Comparison", "SyntheticChallenge", "Tables", "record_blocks"]

# Cells of a matrix of distances that are computed at once: a megabyte of single precision stays in the cache.
CELLS_AT_ONCE = 1 << 18


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Records in question, the synthetic table and the auxiliary table, in one coding.

    Parameters
    ----------
    records : Coded
        The records of which an attacker says how likely each was used.
    synthetic : Coded
        The rows that would be released.
    auxiliary : Coded
        Other people's records from the same source: what is common in the population, and so says nothing about membership.
    names : tuple of str
        The columns.
    """

    records: Coded
    synthetic: Coded
    auxiliary: Coded
    names: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all three."""
        return self.records.nbytes + self.synthetic.nbytes + self.auxiliary.nbytes

    def take(self, rows: NDArray[np.int64]) -> "Tables":
        """Return the same tables with only some of the records in question."""
        part = replace(self, records=self.records.take(rows))
        if "to_auxiliary" in vars(self):
            vars(part)["to_auxiliary"] = {
                name: values[rows] for name, values in self.to_auxiliary.items()
            }
        return part

    def released(self, synthetic: Coded) -> "Tables":
        """Return the same people beside another synthetic table; what was found out about the auxiliary one is not found out again."""
        other = replace(self, synthetic=synthetic)
        # Also while it is empty: what is found out beside one synthetic table is then known beside all others.
        vars(other)["to_auxiliary"] = self.to_auxiliary
        return other

    @cached_property
    def to_auxiliary(self) -> dict[str, NDArray[np.float64]]:
        """What comparisons have computed about records and auxiliary table, by name; it is the same for every synthetic table."""
        return {}

    @cached_property
    def to_synthetic(self) -> dict[str, NDArray[np.float64]]:
        """What comparisons have computed about records and synthetic table and others need as well."""
        return {}


@dataclass(frozen=True, kw_only=True)
class SyntheticChallenge:
    """Every record in question, compared with the synthetic table.

    There is no tag in it: which records are members is what the attacker must say.

    Parameters
    ----------
    comparisons : array of float, shape (n, k)
        The comparisons of reticent's own attacks, larger meaning more like a member.
    columns : tuple of str
        Their names.
    tables : Tables or None
        The tables themselves, for attacks that compare in their own way; None for a shadow table, of which only the comparisons are kept.
    critic : array of float, shape (n,), or None
        What the critic of the generator says of each record, larger meaning more real; None if it is not at hand.
    file : OpenedFile or None
        Always None: a table has no bytes beside its rows.
    """

    comparisons: NDArray[np.float64]
    columns: tuple[str, ...]
    tables: Tables | None
    critic: NDArray[np.float64] | None = None
    file: OpenedFile | None = None

    def __post_init__(self) -> None:
        records = len(self.comparisons if self.tables is None else self.tables.records)
        shape = (records, len(self.columns))
        if self.comparisons.shape != shape:
            raise InvalidPredictions(
                f"comparisons of shape {self.comparisons.shape} do not fit {shape[0]} records and {shape[1]} names; pass one row per record and one "
                "column per name."
            )
        if not np.isfinite(self.comparisons).all():
            bad = int((~np.isfinite(self.comparisons)).any(axis=1).sum())
            raise InvalidPredictions(
                f"the comparisons of {bad} of {shape[0]} records are NaN or infinite, so no attack can be judged; return finite numbers."
            )

    def __len__(self) -> int:
        return len(self.comparisons)

    @property
    def nbytes(self) -> int:
        """Bytes that a copy of it takes."""
        tables = 0 if self.tables is None else self.tables.nbytes
        return self.comparisons.nbytes + tables

    def need_tables(self, attack: str) -> Tables:
        """Return the tables, or refuse because an attack cannot do without them."""
        if self.tables is None:
            raise InvalidInput(
                f"the attack {attack!r} looks at the rows of the synthetic table, but only comparisons with it were kept."
            )
        return self.tables

    def take(self, rows: NDArray[np.int64]) -> "SyntheticChallenge":
        """Return the same challenge with only some of the records."""
        return SyntheticChallenge(
            comparisons=self.comparisons[rows],
            columns=self.columns,
            tables=None if self.tables is None else self.tables.take(rows),
            critic=None if self.critic is None else self.critic[rows],
        )

    def column(self, name: str) -> NDArray[np.float64]:
        """Return one comparison by its name.

        Raises
        ------
        InvalidInput
            If there is none of that name.
        """
        if name not in self.columns:
            raise InvalidInput(
                f"there is no comparison called {name!r}; use one of {', '.join(self.columns)}."
            )
        return np.asarray(self.comparisons[:, self.columns.index(name)])


class Comparison(ABC):
    """One way to compare records with a synthetic table; also an attack, whose score is the first of its columns.

    To add one, derive from it, set ``name`` and ``columns``, write :meth:`compare`, and add a line to the registry. The learned attacks combine
    all columns of the registry, with shadow generators as well.

    Attributes
    ----------
    name : str
        Name of the attack.
    columns : tuple of str
        Names of the columns that :meth:`compare` returns; the first is the attack's score.
    """

    name: str
    columns: tuple[str, ...]
    needs: ClassVar[frozenset[Need]] = frozenset({Need.SYNTHETIC, Need.AUXILIARY})

    @abstractmethod
    def compare(self, tables: Tables) -> NDArray[np.float64]:
        """Return the comparisons, shape (n, columns), larger meaning more like a member, all finite."""

    def score(
        self,
        challenge: SyntheticChallenge,
        *,
        knowledge: Any,
        rng: np.random.Generator,
    ) -> Scores:
        """Return the first comparison of each record."""
        return Scores(values=challenge.column(self.columns[0]))


def record_blocks(records: int, others: int) -> Iterator[slice]:
    """Yield slices of records so small that their distances to all others stay in the cache."""
    step = max(1, CELLS_AT_ONCE // max(others, 1))
    for start in range(0, records, step):
        yield slice(start, min(start + step, records))
