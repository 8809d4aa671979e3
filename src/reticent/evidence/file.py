"""What the file of a product contains, in counts: no record and no value stands in them."""

import math
from dataclasses import dataclass

from reticent.evidence._estimate import Estimate
from reticent.evidence.proportion import clopper_pearson

__all__ = ["FileEvidence", "FoundInFile", "found_beyond_chance"]


@dataclass(frozen=True, kw_only=True)
class FoundInFile:
    """How many people's records are found at one place of a file.

    Members and non-members are found alike where records coincide; only the difference is due to the product.

    Parameters
    ----------
    place : str
        Where in the file: names of attributes.
    stage : str
        As which step of the product sees the records, or which column.
    members, nonmembers : int
        Records that are found there.
    """

    place: str
    stage: str
    members: int
    nonmembers: int


@dataclass(frozen=True, kw_only=True)
class FileEvidence:
    """What the file of a product contains.

    Parameters
    ----------
    members, nonmembers : int
        Records that were looked for.
    rows, values, trees : FoundInFile or None
        The place that shows most members beyond as many non-members: by their whole records, by values that few people share, and by
        thresholds and leaves of trees; None if there is none.
    rare_values : int
        Different values that stand in the file and that fewer than ``smallest_group`` people share.
    smallest_group : int
        That number of people.
    long_axes : tuple of str
        Places of arrays with an axis as long as the number of members.
    parameters : int
        Numbers in it.
    size : int
        Its bytes.
    unread : tuple of str
        What could not be read, and why.
    """

    members: int
    nonmembers: int
    rows: FoundInFile | None
    values: FoundInFile | None
    trees: FoundInFile | None
    rare_values: int
    smallest_group: int
    long_axes: tuple[str, ...]
    parameters: int
    size: int
    unread: tuple[str, ...]

    @property
    def records_per_parameter(self) -> float:
        """Members per number in the file; infinite if it has none."""
        return self.members / self.parameters if self.parameters else float("inf")


def found_beyond_chance(
    at: FoundInFile, *, members: int, nonmembers: int, level: float
) -> Estimate:
    """Return how many members are found at a place beyond the share at which non-members are found there by coincidence.

    The interval is that of the difference of two proportions from their exact intervals, which is conservative: its low end is above 0 for at
    most a share 1 - level of files that tell nothing.

    Parameters
    ----------
    at : FoundInFile
        The place.
    members, nonmembers : int
        Records that were looked for.
    level : float
        Confidence, in (0, 1).

    Examples
    --------
    >>> place = FoundInFile(place="_fit_X", stage="records", members=600, nonmembers=0)
    >>> print(found_beyond_chance(place, members=600, nonmembers=600, level=0.95))
    600 [591, 600]
    """
    each = (1 + level) / 2  # two intervals hold together
    inside = clopper_pearson(at.members, members, level=each)
    outside = clopper_pearson(at.nonmembers, nonmembers, level=each)
    value = max(0.0, members * (inside.value - outside.value))
    low = max(0.0, members * (inside.low - outside.high))
    high = max(0.0, members * (inside.high - outside.low))
    return Estimate(
        value=value,
        # Whole people, rounded outwards; a low end below one person is kept, because it is more than nobody.
        low=float(math.floor(low)) if low >= 1 else low,
        high=float(math.ceil(high)),
        level=level,
        method="difference of two exact intervals",
    )
