"""Scores and groups of people: the last values that refer to individuals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["UnitGroups", "UnitScores"]


@dataclass(frozen=True, kw_only=True)
class UnitScores:
    """Scores of one attack, one per unit, because the question is about people and not about rows.

    Parameters
    ----------
    members, nonmembers : array of float
        Scores, larger meaning more like a member.
    spread : float
        How much wider their LTU accuracy spreads than that of scores that were not learned from tags; at least 1.
    """

    members: NDArray[np.float64]
    nonmembers: NDArray[np.float64]
    spread: float = 1.0


@dataclass(frozen=True, kw_only=True)
class UnitGroups:
    """The group of each unit."""

    members: NDArray[np.str_]
    nonmembers: NDArray[np.str_]

    def names(self, *, smallest: int) -> list[str]:
        """Return the groups with at least ``smallest`` members and as many non-members, sorted."""
        return [
            str(name)
            for name in np.unique(np.concatenate([self.members, self.nonmembers]))
            if min((self.members == name).sum(), (self.nonmembers == name).sum())
            >= smallest
        ]
