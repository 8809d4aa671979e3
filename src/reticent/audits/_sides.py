"""Members, then non-members: their tags and units, and scores summed up per unit."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reticent.attack import SealedTags
from reticent.evidence import UnitGroups, UnitScores

__all__ = ["Sides"]


@dataclass(frozen=True)
class Sides:
    """Who is a member, and which records belong to one unit.

    Parameters
    ----------
    tags : array of bool
        Whether each record is a member.
    units : array of int
        Unit of each record.
    """

    tags: NDArray[np.bool_]
    units: NDArray[np.int64]

    @cached_property
    def _distinct(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        # The first row stands for its unit; no unit has rows on both sides, so the tag is that of all.
        _, first, unit_of_row = np.unique(
            self.units, return_index=True, return_inverse=True
        )
        return first, unit_of_row

    @property
    def first(self) -> NDArray[np.int64]:
        """The first record of each unit."""
        return self._distinct[0]

    @cached_property
    def unit_tags(self) -> NDArray[np.bool_]:
        """Whether each unit is a member."""
        return np.asarray(self.tags[self.first])

    def sealed(self) -> SealedTags:
        """Return the tags as attacks may read them."""
        return SealedTags(self.tags, self.units)

    def by_unit(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean score of each unit: the question is about people, not rows."""
        unit_of_row = self._distinct[1]
        return np.bincount(unit_of_row, weights=scores) / np.bincount(unit_of_row)

    def to_records(self, per_unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give each record the value of its unit."""
        return per_unit[self._distinct[1]]

    def divide(self, scores: NDArray[np.float64]) -> UnitScores:
        """Return the scores of member units and of non-member units."""
        per_unit = self.by_unit(scores)
        return UnitScores(
            members=per_unit[self.unit_tags], nonmembers=per_unit[~self.unit_tags]
        )

    def groups(self, names: NDArray[np.object_]) -> UnitGroups:
        """Return the groups of member units and of non-member units."""
        per_unit = names[self.first].astype(str)
        return UnitGroups(
            members=per_unit[self.unit_tags], nonmembers=per_unit[~self.unit_tags]
        )

    def halves(self, rows: NDArray[np.int64], *, rng: np.random.Generator) -> "Sides":
        """Call a random half of the units of some rows members."""
        names, unit_of_row = np.unique(self.units[rows], return_inverse=True)
        # Exactly half, where coins would leave sides of different size; by unit, so that nobody is on both.
        chosen = rng.permutation(len(names)) % 2 == 0
        return Sides(chosen[unit_of_row], self.units[rows])
