"""Choose the record that tells two neighbouring tables apart."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.account import Relation
from reticent.attack import Dissimilarity, most_dissimilar_pair, most_dissimilar_record
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Watchable
from reticent.run import stream

__all__ = [
    "Dissimilar",
    "LargestGradient",
    "Mislabelled",
    "Neighbour",
    "NeighbouringTables",
    "Search",
    "choose",
]

# Records whose gradients are compared: enough to meet an unusual one, and seconds of work.
LOOKED_AT = 200


@dataclass(frozen=True, kw_only=True)
class NeighbouringTables:
    """Two tables that differ in one record.

    Parameters
    ----------
    table : Table
        The records of both.
    own : int
        Row that only the first table holds.
    other : int or None
        Row that only the second one holds, if there is one.
    words : str
        How they were chosen.
    """

    table: Table
    own: int
    other: int | None
    words: str


@dataclass(frozen=True, kw_only=True)
class Search:
    """What a neighbour is chosen from.

    Parameters
    ----------
    table : Table
        The first table, or for a mislabelled record all of it but that one.
    outside : Table or None
        Records of which one may stand in the place of another; None if the second table lacks the record.
    trainer : Watchable
        The training whose gradients are compared.
    seed : int
        Seed of the initial weights.
    rng : numpy.random.Generator
        Draws the samples.
    """

    table: Table
    outside: Table | None
    trainer: Watchable
    seed: int
    rng: np.random.Generator

    def sample(self, table: Table) -> NDArray[np.int64]:
        """Return rows of a table whose gradients are compared."""
        size = min(len(table), LOOKED_AT)
        return np.sort(self.rng.choice(len(table), size=size, replace=False))

    def longest(self, table: Table, rows: NDArray[np.int64]) -> int:
        """Return the row with the longest gradient, before any clipping."""
        gradients = self.trainer.unclipped().gradients_at_start(
            table, [int(row) for row in rows], seed=self.seed
        )
        # Before the clip, because clipped gradients of hard records all have the same length.
        return int(rows[int(np.square(gradients).sum(1).argmax())])


class Neighbour(Protocol):
    """Which record tells two tables apart."""

    def choose(self, search: Search) -> NeighbouringTables:
        """Return two tables that differ in that record."""
        ...


@dataclass(frozen=True, kw_only=True)
class Dissimilar:
    """The record that is most unlike the others, or for replace-one the most unlike pair (Definition 6 of D5.3).

    Parameters
    ----------
    distance : Dissimilarity
        How records are compared.
    """

    distance: Dissimilarity

    def choose(self, search: Search) -> NeighbouringTables:
        """Return the table with and without its most unlike record, or with it exchanged for the most unlike of all."""
        table, outside = search.table, search.outside
        name = type(self.distance).__name__
        if outside is None:
            unlike = most_dissimilar_record(table, self.distance, rng=search.rng)
            return NeighbouringTables(
                table=table,
                own=unlike.row,
                other=None,
                words=f"the record most unlike the others by {name}",
            )
        pair = most_dissimilar_pair(table, outside, self.distance, rng=search.rng)
        return NeighbouringTables(
            table=table.join(outside.take(np.array([pair.candidate]))),
            own=pair.row,
            other=len(table),
            words=f"the most unlike pair by {name}",
        )


@dataclass(frozen=True, kw_only=True)
class LargestGradient:
    """The record with the longest gradient at initial weights, or for replace-one the pair whose clipped gradients lie farthest apart."""

    def choose(self, search: Search) -> NeighbouringTables:
        """Return the table with and without that record, or with the two records of the pair exchanged."""
        table, outside = search.table, search.outside
        rows = search.sample(table)
        if outside is None:
            return NeighbouringTables(
                table=table,
                own=search.longest(table, rows),
                other=None,
                words="the record with the longest gradient at the start",
            )
        candidates = search.sample(outside)
        joined = table.join(outside.take(candidates))
        inside, beyond = (
            search.trainer.gradients_at_start(joined, list(some), seed=search.seed)
            for some in (rows, range(len(table), len(joined)))
        )
        # |a - b|^2 = |a|^2 + |b|^2 - 2ab for all pairs at once: one product of matrices in place of a loop over
        # pairs.
        apart = (
            (inside**2).sum(1)[:, None]
            + (beyond**2).sum(1)[None]
            - 2 * inside @ beyond.T
        )
        i, j = np.unravel_index(int(apart.argmax()), apart.shape)
        return NeighbouringTables(
            table=table.join(outside.take(candidates[[j]])),
            own=int(rows[i]),
            other=len(table),
            words="the pair whose gradients lie farthest apart at the start",
        )


@dataclass(frozen=True, kw_only=True)
class Mislabelled:
    """A record that does not exist: a copy of one with another class, of all copies the one with the longest gradient.

    What is guaranteed holds for every record anybody could bring, so also for this one.
    """

    def choose(self, search: Search) -> NeighbouringTables:
        """Return the table with and without the copy, or with the copy in the place of its original."""
        table, rng = search.table, search.rng
        rows = search.sample(table)
        copies = table.take(rows)
        # Never 0: every copy has a class that is not its own.
        shift = rng.integers(1, len(table.classes), size=len(rows))
        copies = replace(copies, target=(copies.target + shift) % len(table.classes))
        joined = table.join(copies)
        best = search.longest(joined, np.arange(len(table), len(joined)))
        at = best - len(table)
        return NeighbouringTables(
            table=table.join(copies.take(np.array([at]))),
            own=len(table),
            # For replace-one, the record and its mislabelled copy stand for each other.
            other=None if search.outside is None else int(rows[at]),
            words="a copy of a record with another class",
        )


def choose(
    table: Table,
    neighbour: Neighbour,
    *,
    trainer: Watchable,
    relation: Relation,
    outside: Table | None,
    seed: int,
) -> NeighbouringTables:
    """Return two tables that differ in one record.

    Parameters
    ----------
    table : Table
        The first table, or for a mislabelled record all of it but that one.
    neighbour : Neighbour
        Which record is wanted.
    trainer : Watchable
        The training whose gradients are compared.
    relation : Relation
        Whether the second table lacks the record or holds another in its place.
    outside : Table or None
        Where that other one is taken from.
    seed : int
        Seed of samples and initial weights.

    Raises
    ------
    InvalidInput
        If a record must be exchanged for one from outside, but there is none.
    """
    replaced = relation == Relation.REPLACE
    # Taking the other record from inside would leave it in the table twice.
    if replaced and (outside is None or len(outside) == 0):
        raise InvalidInput(
            "for replace-one a record must be exchanged for one from outside the table, but there is none; keep some "
            "records aside, or watch with add/remove."
        )
    search = Search(
        table=table,
        outside=outside if replaced else None,
        trainer=trainer,
        seed=seed,
        rng=stream(seed, "neighbour"),
    )
    return neighbour.choose(search)
