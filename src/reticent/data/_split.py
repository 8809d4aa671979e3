"""Divide a table into the defender's, the reserved and the auxiliary part, by unit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent._check import nearest
from reticent.data._table import Table, number_of_people
from reticent.errors import InvalidSplit

__all__ = ["PARTS", "SMALLEST_PART", "Split"]

PARTS = ("defender", "reserved", "auxiliary")
# Intervals over fewer records, or fewer people, are too wide to decide anything.
SMALLEST_PART = 20
# An auxiliary part is made only if it is expected to exceed the smallest part by this factor, so that
# rounding within the strata does not push it below.
AUXILIARY_MARGIN = 1.25
# Strata of a quantity: fine enough to balance its tails, coarse enough that no stratum is almost empty.
QUANTILES = 10


@dataclass(frozen=True, kw_only=True)
class Split:
    """Three parts of a table; no unit is in two of them.

    Parameters
    ----------
    defender : Table
        The records the product is trained on: the members.
    reserved : Table
        Records of the same source that the product never sees: the non-members.
    auxiliary : Table or None
        Records an outsider may hold; neither members nor non-members.
    drawn : bool
        Whether the parts were drawn at random, and not given.
    """

    defender: Table
    reserved: Table
    auxiliary: Table | None
    drawn: bool = False

    def __post_init__(self) -> None:
        named = [("defender", self.defender), ("reserved", self.reserved)]
        if self.auxiliary is not None:
            named.append(("auxiliary", self.auxiliary))
        for name, part in named:
            if len(part) < SMALLEST_PART:
                raise InvalidSplit(
                    f"the {name} part has {len(part)} records but at least {SMALLEST_PART} are "
                    "needed to say anything; bring a larger table or divide it differently."
                )
            people = number_of_people(part.units)
            if people < SMALLEST_PART:
                raise InvalidSplit(
                    f"the {name} part has records of {people} people but at least {SMALLEST_PART} are "
                    "needed to say anything; bring a larger table or divide it differently."
                )
        for i, (name, part) in enumerate(named):
            for other_name, other in named[i + 1 :]:
                shared = len(np.intersect1d(part.units, other.units))
                if shared:
                    raise InvalidSplit(
                        f"{shared} units are in both the {name} and the {other_name} part, so their "
                        "membership is undefined; split by unit with Split.by_unit()."
                    )
        if self.defender.is_quantity and np.ptp(self.defender.target) == 0:
            raise InvalidSplit(
                f"every record of the defender part has the target {self.defender.target[0]:g}, so no product can learn "
                "anything; divide the table differently."
            )
        absent = set(range(len(self.defender.classes))) - set(self.defender.target)
        if absent:
            name = self.defender.classes[min(absent)]
            raise InvalidSplit(
                f"the defender part has no record of the class {name!r}, so no product can learn "
                "it; leave out that class or bring more records."
            )

    @classmethod
    def by_unit(
        cls,
        table: Table,
        *,
        rng: np.random.Generator,
        fractions: tuple[float, float, float] = (0.4, 0.4, 0.2),
    ) -> "Split":
        """Divide a table at random, whole units at a time, stratified by the target.

        A unit belongs to the stratum of its most frequent class, or to the decile of its mean
        target if that is a quantity. Within each stratum the units are shuffled and dealt to
        the parts in the given fractions.

        Parameters
        ----------
        table : Table
            What to divide.
        rng : numpy.random.Generator
            The stream of the split.
        fractions : tuple of float
            Shares of defender, reserved and auxiliary, which sum to 1. A table too small
            for an auxiliary part has none.
        """
        if min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-9:
            raise InvalidSplit(
                f"the fractions {fractions} do not sum to 1; give shares such as 0.4, 0.4, 0.2."
            )
        units, unit_of_row = np.unique(table.units, return_inverse=True)
        if fractions[2] * len(units) < AUXILIARY_MARGIN * SMALLEST_PART:
            # There are too few units for a third part, so the other two share them.
            fractions = (
                fractions[0] + fractions[2] / 2,
                fractions[1] + fractions[2] / 2,
                0.0,
            )
        stratum, strata = _strata(table, unit_of_row, len(units))
        part_of_unit = np.empty(len(units), dtype=np.int64)
        for c in range(strata):
            members = rng.permutation(np.flatnonzero(stratum == c))
            # The random offset rounds each cut up or down without bias.
            cuts = np.floor(np.cumsum(fractions)[:-1] * len(members) + rng.random())
            part_of_unit[members] = np.searchsorted(
                cuts, np.arange(len(members)), side="right"
            )
        return cls._from_codes(table, part_of_unit[unit_of_row], drawn=True)

    @classmethod
    def by_part(cls, table: Table) -> "Split":
        """Divide a table into the parts that its part column names."""
        if table.parts is None:
            raise InvalidSplit(
                "the table has no part column, so its parts are unknown; read it with one or use Split.by_unit()."
            )
        for label in sorted(set(table.parts)):
            if label not in PARTS:
                raise InvalidSplit(
                    f"the part column holds {label!r}, which is not a part; {nearest(label, PARTS)}."
                )
        codes = np.array([PARTS.index(label) for label in table.parts])
        return cls._from_codes(table, codes)

    @classmethod
    def _from_codes(
        cls, table: Table, codes: NDArray[np.int64], *, drawn: bool = False
    ) -> "Split":
        rows = [np.flatnonzero(codes == k) for k in range(3)]
        return cls(
            defender=table.take(rows[0]),
            reserved=table.take(rows[1]),
            auxiliary=table.take(rows[2]) if len(rows[2]) else None,
            drawn=drawn,
        )


def _strata(
    table: Table, unit_of_row: NDArray[np.int64], units: int
) -> tuple[NDArray[np.int64], int]:
    """Return the stratum of each unit, and how many strata there are."""
    if table.is_quantity:
        total = np.bincount(unit_of_row, weights=table.target, minlength=units)
        mean = total / np.bincount(unit_of_row, minlength=units)
        inner = np.quantile(mean, np.arange(1, QUANTILES) / QUANTILES)
        # Equal means share a decile, so with many ties some deciles stay empty.
        return np.searchsorted(inner, mean, side="right"), QUANTILES
    counts = np.zeros((units, len(table.classes)), dtype=np.int64)
    np.add.at(counts, (unit_of_row, table.target), 1)
    return counts.argmax(axis=1), len(table.classes)
