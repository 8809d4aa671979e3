"""What the file of a product contains, in counts: no record and no value stands in them."""

import math
from dataclasses import dataclass, replace

from scipy.stats import binom, hypergeom

from reticent.evidence._estimate import Estimate

__all__ = [
    "READABLE_LEVEL",
    "FileEvidence",
    "FoundInFile",
    "HeldOutFound",
    "LoneRow",
    "found_beyond_chance",
    "held_out_found",
    "without_small_counts",
]

# One audit in two hundred says of a file that holds nobody that somebody stands in it: a tenth of the error that a verdict may have, and large enough for
# a few dozen copied rows among coincidences. Half of that is for whole records, half for values, texts, tokens and positions; each half is shared
# by the places of its family at which anybody is found.
READABLE_LEVEL = 1 - 5e-3 / 2
# As many audits of honest products say that held-out people were seen.
SEEN_ERROR = 1e-4


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
    among : int
        Places of the same family at which anybody was found, member or not: this one was chosen among them.
    rows : int
        Of whole records: how many different rows stand there; 0 if that is not known.
    coincidence : float
        Of whole records: the largest chance that a row of nobody in question equals one of them.
    """

    place: str
    stage: str
    members: int
    nonmembers: int
    beyond: Estimate | None = None
    among: int = 1
    rows: int = 0
    coincidence: float = 1.0


@dataclass(frozen=True, kw_only=True)
class LoneRow:
    """A place where the whole record of a member stands whom nobody else resembles; nothing says who, nor how many.

    Parameters
    ----------
    place : str
        Where it stands.
    others : int
        Other people whom nobody resembles either; none of them is found there.
    chance : float
        Largest share of such people whom coincidence alone puts there, at 95 % confidence.
    """

    place: str
    others: int
    chance: float


@dataclass(frozen=True, kw_only=True)
class HeldOutFound:
    """How many held-out people stand at a place, beside those who equal a member by coincidence.

    Parameters
    ----------
    place : str
        Where they were looked for.
    found : int
        Held-out people whose whole record stands there and equals no member's; 0 for fewer than the smallest group.
    alike : int
        Those whose whole record equals a member's and does not stand there; 0 for fewer than the smallest group.
    factor : float
        How many times as many may be ``found`` as ``alike`` in a product that never saw them.
    seen : bool
        Whether more are found than that explains, so that whoever made the product saw them.
    """

    place: str
    found: int
    alike: int
    factor: float
    seen: bool


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
    besides : tuple of str
        What the file of a table holds besides its cells.
    lone_row : LoneRow or None
        Where the whole record of a member stands whom nobody else resembles.
    held_out : HeldOutFound or None
        Whether held-out people stand in it whom its maker must have seen; None if that cannot be told.
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
    besides: tuple[str, ...] = ()
    lone_row: LoneRow | None = None
    held_out: HeldOutFound | None = None

    @property
    def records_per_parameter(self) -> float:
        """Members per number in the file; infinite if it has none."""
        return self.members / self.parameters if self.parameters else float("inf")


def found_beyond_chance(
    at: FoundInFile, *, members: int, nonmembers: int, level: float
) -> Estimate:
    """Return how many members are found at a place beyond coincidence, which finds non-members alike.

    If coincidence alone puts people there, those who are found are members as often as all others (Fisher). The low end is one more than the
    largest number of members that could be taken away without the others being plausible as coincidences; it is above 0 for at most a share
    1 - level of files that tell nothing, whichever of ``at.among`` places was chosen. Nobody but those who are found can be readable, so
    their number is the high end.

    Parameters
    ----------
    at : FoundInFile
        The place.
    members, nonmembers : int
        People who were looked for.
    level : float
        Confidence of all places of the family together, in (0, 1).

    Examples
    --------
    >>> place = FoundInFile(place="_fit_X", stage="records", members=600, nonmembers=0)
    >>> print(found_beyond_chance(place, members=600, nonmembers=600, level=0.95))
    600 [596, 600]
    """
    if at.beyond is not None:
        return at.beyond
    error = (1 - level) / at.among
    # A few rows that are all members' are no coincidence where strangers' rows hardly ever equal one; where they do, that test says nothing and costs nothing.
    by_rows = at.rows > 0 and at.coincidence < 1
    error = error / 2 if by_rows else error

    def is_too_many(planted: int) -> bool:
        """Whether coincidence does not explain those who are left if some are there because of the product."""
        # Those who are there because of the product might coincide as well, so that all members are asked, which leans to the safe side.
        left = at.members - planted
        found = left + at.nonmembers
        among_people = hypergeom.sf(left - 1, members + nonmembers, members, found)
        among_rows = binom.sf(min(left, at.rows) - 1, at.rows, at.coincidence)
        return bool(among_people <= error or (by_rows and among_rows <= error))

    low, high = 0, at.members
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if is_too_many(middle) else (low, middle)
    expected = at.nonmembers * members / max(nonmembers, 1)
    return Estimate(
        value=max(float(low), at.members - expected),
        low=float(low),
        high=float(at.members),
        level=level,
        method="Fisher's exact test, inverted",
    )


def held_out_found(
    place: str, found: int, alike: int, *, factor: float, among: int, smallest: int
) -> HeldOutFound:
    """Return whether held-out people stand at a place more often than they equal members, as the maker of a product must have seen them for.

    A product that never saw them holds a record of theirs by the same coincidence by which a member has it. Of the records that do one and
    not the other, a share of at most ``factor / (1 + factor)`` stands there; the test is binomial and exact.

    Parameters
    ----------
    place : str
        Where they were looked for.
    found, alike : int
        Different records that stand there and equal no member's, and that equal a member's and do not stand there.
    factor : float
        How many times as likely the first may be as the second in an honest product.
    among : int
        Places that are tested.
    smallest : int
        Counts of fewer people are hidden.

    Examples
    --------
    >>> held_out_found("equal rows", 400, 30, factor=4, among=1, smallest=20).seen
    True
    >>> held_out_found("equal rows", 40, 30, factor=4, among=1, smallest=20).seen
    False
    """
    chance = binom.sf(found - 1, found + alike, factor / (1 + factor))
    return HeldOutFound(
        place=place,
        found=found if found >= smallest else 0,
        alike=alike if alike >= smallest else 0,
        factor=factor,
        seen=bool(chance <= SEEN_ERROR / among),
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
    (60, 0, 40.0, 60.0, 60.0)
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
