"""Many models trained on parts of the same records, and which record trained which model."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput

__all__ = ["ModelPool", "balanced_masks"]


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
    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return the pool on some of the records."""

    @abstractmethod
    def _of_models(self, chosen: NDArray[np.bool_]) -> Self:
        """Return the pool of the chosen models; what was computed for all models is not computed again."""

    def mean(self, values: NDArray[np.float64], *, inside: bool) -> NDArray[np.float64]:
        """Return the mean of values (M, n) over the models trained with, or without, each record."""
        chosen = self.masks if inside else ~self.masks
        total: NDArray[np.float64] = np.where(chosen, values, 0.0).sum(axis=0)
        return np.asarray(total / chosen.sum(axis=0))

    def first(self, models: int) -> Self:
        """Return the pool of the first ``models`` models, an even number."""
        return self._of_models(np.arange(len(self)) < models)

    def games(self, *, most: int | None = None) -> Iterator[tuple[int, Self]]:
        """Yield each model as a target, at most ``most`` of them, with the pool of its shadow models.

        The target's complement is left out as well: otherwise a member of the target would be in one
        shadow model fewer than a non-member, and that count would give its membership away.
        """
        for model in range(min(len(self), most or len(self))):
            rest = np.arange(len(self)) != model
            rest &= ~(self.masks == ~self.masks[model]).all(axis=1)
            if rest.sum() >= 2:
                yield model, self._of_models(rest)

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
