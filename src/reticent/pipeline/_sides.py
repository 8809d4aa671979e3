"""Members, then non-members: their tags and units, and scores summed up per unit."""

import numpy as np
from numpy.typing import NDArray

from reticent.attack import Knowledge, SealedTags
from reticent.pool import Pool

__all__ = ["Sides"]


class Sides:
    """Members, then non-members: their tags and units, and scores summed up per unit.

    Parameters
    ----------
    tags : array of bool
        Whether each record is a member.
    units : array of int
        Unit of each record.
    pool : Pool or None
        Models trained on parts of these records.
    """

    def __init__(
        self,
        tags: NDArray[np.bool_],
        units: NDArray[np.int64],
        pool: Pool | None = None,
    ) -> None:
        self.tags, self.units, self.pool = tags, units, pool
        self.names, self.first, self.unit_of_row = np.unique(
            units, return_index=True, return_inverse=True
        )
        self.unit_tags = tags[self.first]

    def sealed(self) -> SealedTags:
        """Return the tags as attacks may read them."""
        return SealedTags(self.tags, self.units)

    def knowledge(self) -> Knowledge:
        """Return what the attacks of this audit know."""
        return Knowledge(tags=self.sealed(), pool=self.pool)

    def by_unit(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean score of each unit: the question is about people, not rows."""
        counts = np.bincount(self.unit_of_row)
        return np.bincount(self.unit_of_row, weights=scores) / counts

    def divide(
        self, scores: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the scores of member units and of non-member units."""
        per_unit = self.by_unit(scores)
        return per_unit[self.unit_tags], per_unit[~self.unit_tags]

    def halves(self, rows: NDArray[np.int64], *, rng: np.random.Generator) -> "Sides":
        """Call a random half of the units of some rows members."""
        names, unit_of_row = np.unique(self.units[rows], return_inverse=True)
        chosen = rng.permutation(len(names)) % 2 == 0
        pool = None if self.pool is None else self.pool.take(rows)
        return Sides(chosen[unit_of_row], self.units[rows], pool)
