"""Many models trained on parts of the same records, and which record trained which model."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput

__all__ = ["ModelPool", "balanced_masks", "record_blocks"]

# Records that are worked on at once: with 64 models an array of one number each takes 32 MB, whatever the size of the table.
BLOCK = 65_536


def record_blocks(records: int, *, most: int = BLOCK) -> Iterator[slice]:
    """Yield consecutive blocks of nearly equal size, so that temporary arrays do not grow with the table.

    Parameters
    ----------
    records : int
        Number of records.
    most : int
        Largest size of a block.

    Examples
    --------
    >>> list(record_blocks(10, most=4))
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    count = max(1, -(-records // most))
    for block in range(count):
        yield slice(block * records // count, (block + 1) * records // count)


def balanced_masks(
    models: int, units: NDArray[np.int64], *, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return membership masks in which every unit is in exactly half of the models.

    Models come in pairs, each trained on the half of the units that the other was not.

    Parameters
    ----------
    models : int
        Number of models, even and at least 2.
    units : array of int, shape (n,)
        Unit of each record; all records of a unit are in the same models.
    rng : numpy.random.Generator
        The stream that the masks are drawn from.

    Examples
    --------
    >>> masks = balanced_masks(4, np.arange(6), rng=np.random.default_rng(0))
    >>> masks.sum(axis=0)
    array([2, 2, 2, 2, 2, 2])
    """
    if models < 2 or models % 2:
        raise InvalidInput(
            f"a pool of {models} models cannot hold every record in half of them; use an even number."
        )
    names, unit_of_row = np.unique(units, return_inverse=True)
    masks = np.empty((models, len(units)), dtype=bool)
    for pair in range(models // 2):
        # Exactly half of the units; the complement is the next model, so that every record is in half of the models.
        chosen = rng.permutation(len(names)) % 2 == 0
        masks[2 * pair] = chosen[unit_of_row]
        masks[2 * pair + 1] = ~masks[2 * pair]
    return masks


@dataclass(frozen=True, kw_only=True)
class ModelPool(ABC):
    """M models, each trained on a known part of n records; subclasses add what the models answered.

    Parameters
    ----------
    masks : array of bool, shape (M, n)
        Which records trained which model.
    """

    masks: NDArray[np.bool_]

    def __post_init__(self) -> None:
        m, n = self.masks.shape
        inside = self.masks.sum(axis=0)
        if m < 2 or (n and (inside.min() < 1 or inside.max() > m - 1)):
            raise InvalidInput(
                "at least one record is in all models of the pool or in none, so models with it cannot be compared with "
                "models without it; use balanced_masks."
            )

    def __len__(self) -> int:
        return len(self.masks)

    @abstractmethod
    def take(self, rows: NDArray[np.int64] | slice) -> Self:
        """Return the pool on some of the records."""

    @abstractmethod
    def of_models(self, chosen: NDArray[np.bool_]) -> Self:
        """Return the pool of the chosen models; what was computed for all models is not computed again."""

    @abstractmethod
    def errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return each model's error on each record, and that of a constant answer learned from the model's members; both (M, n)."""

    def mean(self, values: NDArray[np.float64], *, inside: bool) -> NDArray[np.float64]:
        """Return the mean of values (M, n) over the models trained with, or without, each record."""
        mean = np.empty(self.masks.shape[1])
        for its in record_blocks(len(mean)):
            chosen = self.masks[:, its] == inside
            total = np.where(chosen, values[:, its], 0.0).sum(axis=0)
            mean[its] = total / chosen.sum(axis=0)
        return mean

    def first(self, models: int) -> Self:
        """Return the pool of the first ``models`` models, an even number."""
        return self.of_models(np.arange(len(self)) < models)

    def games(self, *, most: int | None = None) -> Iterator[tuple[int, Self]]:
        """Yield each model as a target, at most ``most`` of them, with the pool of its shadow models."""
        for model, shadows in self.shadows(most=most):
            yield model, self.of_models(shadows)

    def shadows(
        self, *, most: int | None = None
    ) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Yield each model as a target, at most ``most`` of them, and say which models are its shadows.

        The target's complement is left out as well: otherwise a member of the target would be in one
        shadow model fewer than a non-member, and that count would give its membership away.
        """
        for model in range(min(len(self), most or len(self))):
            rest = self.pairs != self.pairs[model]
            if rest.sum() >= 2:
                yield model, rest

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """A number for each model, which a model shares with its complement."""
        first: dict[bytes, int] = {}
        return np.array(
            # A mask and its complement have the same smaller representation, by which they are recognised.
            [
                first.setdefault(min(mask.tobytes(), (~mask).tobytes()), len(first))
                for mask in self.masks
            ]
        )
