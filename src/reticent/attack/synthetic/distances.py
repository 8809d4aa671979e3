"""Distances to the nearest synthetic row, and how they compare with those to the auxiliary table.

References
----------
.. [1] Gower, "A general coefficient of similarity and some of its properties", Biometrics 27, 1971, Section 2.
.. [2] Chen, Yu, Zhang & Fritz, "GAN-Leaks", arXiv:1909.03935, Sections 4.2 and 4.5 (the distance, and its calibration by a reference).
"""

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic._base import Comparison, Tables
from reticent.attack.synthetic._nearest import nearest

__all__ = ["DistanceRatio", "GowerDistance", "HammingDifference", "RankDistance"]

# Distances below this are rounding of single precision, except for 0 itself, which is a copy.
FAINT = 1e-6


def _near(tables: Tables) -> dict[str, NDArray[np.float64]]:
    """Return the nearest distances to the synthetic table, computed once."""
    known = tables.to_synthetic
    if "ranks" not in known:
        known.update(nearest(tables.records, tables.synthetic))
    return known


def _beside(tables: Tables) -> dict[str, NDArray[np.float64]]:
    """Return the nearest distances to the auxiliary table, computed once."""
    known = tables.to_auxiliary
    if "ranks" not in known:
        known.update(nearest(tables.records, tables.auxiliary))
    return known


def _ratio(
    to_synthetic: NDArray[np.float64], to_auxiliary: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how much nearer the synthetic table is: the logarithm of the ratio of distances."""
    return np.log(to_auxiliary + FAINT) - np.log(to_synthetic + FAINT)


class RankDistance(Comparison):
    """Guess that a record was used if a synthetic row is near, numbers compared by their ranks [1]_.

    The distance is the mean difference over the columns: of ranks among all records for numbers, 0 or 1 for categories. A copy has distance 0
    exactly.
    """

    name = "rank_distance"
    columns = ("rank_distance",)

    def compare(self, tables: Tables) -> NDArray[np.float64]:
        """Return minus the distance to the nearest synthetic row."""
        return -_near(tables)["ranks"][:, None]


class GowerDistance(Comparison):
    """Guess that a record was used if a synthetic row is near by Gower's coefficient, numbers compared by their range [1]_."""

    name = "gower_distance"
    columns = ("gower_distance",)

    def compare(self, tables: Tables) -> NDArray[np.float64]:
        """Return minus the distance to the nearest synthetic row."""
        return -_near(tables)["gower"][:, None]


class DistanceRatio(Comparison):
    """Guess that a record was used if a synthetic row is nearer than other people's records are [2]_.

    People in crowded places have near rows in every table; the ratio to the auxiliary table takes that out. It helps against generators that mix
    neighbours and hurts against those that add noise, so both kinds of distance are kept.
    """

    name = "distance_ratio"
    columns = ("distance_ratio", "gower_ratio")

    def compare(self, tables: Tables) -> NDArray[np.float64]:
        """Return the logarithm of the ratio of distances, by ranks and by range."""
        near, beside = _near(tables), _beside(tables)
        return np.column_stack(
            [
                _ratio(near["ranks"], beside["ranks"]),
                _ratio(near["gower"], beside["gower"]),
            ]
        )


class HammingDifference(Comparison):
    """Guess that a record was used if the most similar synthetic row differs in fewer cells than the most similar row of other people.

    The smaller distance by ranks decides among equal differences, far below one cell.
    """

    name = "hamming_difference"
    columns = ("hamming_difference",)

    def compare(self, tables: Tables) -> NDArray[np.float64]:
        """Return how many cells fewer differ."""
        near, beside = _near(tables), _beside(tables)
        difference = beside["hamming"] - near["hamming"]
        # A mean difference by ranks is at most 1, so that a thousandth of it never outweighs a cell.
        return (difference - 1e-3 * near["ranks"])[:, None]
