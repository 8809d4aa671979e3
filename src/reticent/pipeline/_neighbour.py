"""Choose the record that tells two neighbouring tables apart."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reticent.account import Relation
from reticent.attack import Dissimilarity, most_dissimilar_pair, most_dissimilar_record
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.run import stream
from reticent.train import PrivateModuleTrainer, PrivateNetworkTrainer
from reticent.train.private import Clip

__all__ = [
    "Dissimilar",
    "LargestGradient",
    "Mislabelled",
    "Neighbour",
    "PrivateTrainer",
    "choose",
]

PrivateTrainer = PrivateNetworkTrainer | PrivateModuleTrainer
LOOKED_AT = 200  # records whose gradients are compared
UNCLIPPED = 1e9  # a norm that clips nothing


@dataclass(frozen=True, kw_only=True)
class Dissimilar:
    """The record that is most unlike the others, or for replace-one the most unlike pair (Definition 6 of D5.3).

    Parameters
    ----------
    distance : Dissimilarity
        How records are compared.
    """

    distance: Dissimilarity


@dataclass(frozen=True, kw_only=True)
class LargestGradient:
    """The record with the longest gradient at initial weights, or for replace-one the pair whose clipped gradients lie farthest apart."""


@dataclass(frozen=True, kw_only=True)
class Mislabelled:
    """A record that does not exist: a copy of one with another class, of all copies the one with the longest gradient.

    What is guaranteed holds for every record anybody could bring, so also for this one.
    """


Neighbour = Dissimilar | LargestGradient | Mislabelled


def choose(
    table: Table,
    neighbour: Neighbour,
    *,
    trainer: PrivateTrainer,
    relation: Relation,
    outside: Table | None,
    seed: int,
) -> tuple[Table, int, int | None, str]:
    """Return the records of both tables, the rows that tell them apart, and how they were chosen.

    Parameters
    ----------
    table : Table
        The first table, or for a mislabelled record all of it but that one.
    neighbour : Neighbour
        Which record is wanted.
    trainer : PrivateNetworkTrainer or PrivateModuleTrainer
        Whose gradients count.
    relation : Relation
        Whether the second table lacks the record or holds another in its place.
    outside : Table or None
        Where that other one is taken from.
    seed : int
        Of samples and initial weights.
    """
    rng = stream(seed, "neighbour")
    replaced = relation == Relation.REPLACE
    if replaced and (outside is None or len(outside) == 0):
        raise InvalidInput(
            "for replace-one a record must be exchanged for one from outside the table, but there is none; keep some "
            "records aside, or watch with add/remove."
        )
    if isinstance(neighbour, Mislabelled):
        return _mislabelled(table, trainer, seed, rng, replaced)
    if isinstance(neighbour, Dissimilar):
        name = type(neighbour.distance).__name__
        if not replaced:
            found = most_dissimilar_record(table, neighbour.distance, rng=rng)
            return (
                table,
                found.row,
                None,
                f"the record most unlike the others by {name}",
            )
        assert outside is not None
        pair = most_dissimilar_pair(table, outside, neighbour.distance, rng=rng)
        joined = table.join(outside.take(np.array([pair.candidate])))
        return joined, pair.row, len(table), f"the most unlike pair by {name}"
    rows = np.sort(
        rng.choice(len(table), size=min(len(table), LOOKED_AT), replace=False)
    )
    if not replaced:
        best = _longest(table, rows, trainer, seed)
        return table, best, None, "the record with the longest gradient at the start"
    assert outside is not None
    some = np.sort(
        rng.choice(len(outside), size=min(len(outside), LOOKED_AT), replace=False)
    )
    joined = table.join(outside.take(some))
    own = trainer.gradients_at_start(joined, list(rows), seed=seed)
    theirs = trainer.gradients_at_start(
        joined, list(range(len(table), len(joined))), seed=seed
    )
    apart = (own**2).sum(1)[:, None] + (theirs**2).sum(1)[None] - 2 * own @ theirs.T
    i, j = np.unravel_index(int(apart.argmax()), apart.shape)
    return (
        table.join(outside.take(some[[j]])),
        int(rows[i]),
        len(table),
        "the pair whose gradients lie farthest apart at the start",
    )


def _mislabelled(
    table: Table,
    trainer: PrivateTrainer,
    seed: int,
    rng: np.random.Generator,
    replaced: bool,
) -> tuple[Table, int, int | None, str]:
    """Return the table with a copy of a record that has a wrong class, and what it stands against."""
    rows = np.sort(
        rng.choice(len(table), size=min(len(table), LOOKED_AT), replace=False)
    )
    copies = table.take(rows)
    shift = rng.integers(1, len(table.classes), size=len(rows))
    copies = replace(copies, target=(copies.target + shift) % len(table.classes))
    joined = table.join(copies)
    best = _longest(joined, np.arange(len(table), len(joined)), trainer, seed)
    at = best - len(table)
    canary = copies.take(np.array([at]))
    words = "a copy of a record with another class"
    if replaced:  # the record and its mislabelled copy stand for each other
        return table.join(canary), len(table), int(rows[at]), words
    return table.join(canary), len(table), None, words


def _longest(
    table: Table, rows: NDArray[np.int64], trainer: PrivateTrainer, seed: int
) -> int:
    """Return the row with the longest gradient, before any clipping."""
    bare = _unclipped(trainer)
    found = bare.gradients_at_start(table, [int(row) for row in rows], seed=seed)
    return int(rows[int(np.square(found).sum(1).argmax())])


def _unclipped(trainer: PrivateTrainer) -> PrivateTrainer:
    plain = Clip(norm=UNCLIPPED)
    if isinstance(trainer, PrivateNetworkTrainer):
        return replace(trainer, network=replace(trainer.network, clipping=plain))
    return replace(trainer, training=replace(trainer.training, clipping=plain))
