"""What the file of a product contains, in counts: no record and no value stands in them."""

import math
from dataclasses import dataclass, replace

from reticent.evidence._estimate import Estimate
from reticent.evidence.proportion import clopper_pearson

__all__ = [
    "READABLE_LEVEL",
    "FileEvidence",
    "FoundInFile",
    "found_beyond_chance",
    "without_small_counts",
]

# A place in the file is chosen among hundreds because it shows most members, so each is judged at one false alarm in a million: together
# they give one in ten thousand audits.
READABLE_LEVEL = 1 - 1e-6


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
        Records that are found there; 0 for fewer than the smallest group, if small counts are hidden.
    beyond : Estimate or None
        Members who are found beyond coincidence, if that was worked out before small counts were hidden; in multiples of the smallest group, or
        one half for a low end that is more than nobody and less than that.
    """

    place: str
    stage: str
    members: int
    nonmembers: int
    beyond: Estimate | None = None


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
    if at.beyond is not None:
        return at.beyond
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


def without_small_counts(
    at: FoundInFile, *, members: int, nonmembers: int, smallest: int
) -> FoundInFile:
    """Return what is found at a place without numbers of few people; whether it is more than coincidence stays as it was.

    Parameters
    ----------
    at : FoundInFile
        The place, with exact counts.
    members, nonmembers : int
        Records that were looked for.
    smallest : int
        Number of people from which something may be said of them.

    Examples
    --------
    >>> place = FoundInFile(place="equal rows", stage="", members=60, nonmembers=3)
    >>> shown = without_small_counts(place, members=900, nonmembers=900, smallest=20)
    >>> shown.members, shown.nonmembers, shown.beyond.low, shown.beyond.value, shown.beyond.high
    (60, 0, 0.5, 60.0, 120.0)
    """
    beyond = found_beyond_chance(
        at, members=members, nonmembers=nonmembers, level=READABLE_LEVEL
    )
    low = smallest * math.floor(beyond.low / smallest)
    return replace(
        at,
        members=at.members if at.members >= smallest else 0,
        nonmembers=at.nonmembers if at.nonmembers >= smallest else 0,
        beyond=replace(
            beyond,
            value=float(smallest * round(beyond.value / smallest)),
            low=0.5 if low == 0 and beyond.low > 0 else float(low),
            high=float(smallest * math.ceil(beyond.high / smallest)),
            method=f"{beyond.method}, in multiples of {smallest}",
        ),
    )
