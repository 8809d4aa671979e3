"""How many members can be read in a synthetic table."""

from dataclasses import replace

import numpy as np

from reticent.evidence._estimate import Estimate
from reticent.evidence.file import (
    READABLE_LEVEL,
    FileEvidence,
    FoundInFile,
    found_beyond_chance,
)
from reticent.evidence.measures._base import Seen
from reticent.evidence.measures.file_records import FileRecords
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["TableRecords", "people", "readable"]


class TableRecords(FileRecords):
    """Members whose row, or a value that few people share, stands in a synthetic table, beyond what coincidence explains.

    The judgement is that of :class:`FileRecords`, by exact counts. The evidence holds multiples of the smallest group, rounded outwards, so that no
    small count appears in a dossier.
    """

    label = "members readable in the table (low end counts)"
    noun = "number of members readable in the synthetic table"

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return how many members stand in the table; nothing if it was not looked at."""
        statement = super().measure(seen, limit=limit, rng=rng)
        file = seen.evidence.file
        if statement is None or statement.estimate is None or file is None:
            return statement
        smallest = file.smallest_group
        rows, values = file.rows, file.values
        found = []
        if rows is not None and readable(file, rows):
            found.append(
                f"the whole rows of {people(rows.members, smallest)} members and of {people(rows.nonmembers, smallest)} non-members{_besides(rows)}"
            )
        if values is not None and readable(file, values):
            found.append(
                (f"in the column '{values.place}'" if not values.stage else "")
                + f" a value that fewer than {smallest} people have of {people(values.members, smallest)} members and of "
                f"{people(values.nonmembers, smallest)} non-members{_besides(values)}"
            )
        where = (
            "; ".join(words.strip() for words in found)
            or "no row and no rare value of anybody"
        )
        return replace(
            statement,
            words="the number of members who can be read in the synthetic table",
            estimate=replace(statement.estimate, low=_shown_low(statement.estimate)),
            sentences={
                Outcome.BROKEN: f"The synthetic table contains {where}: whoever holds it can read who was in the real one.",
                Outcome.KEPT: "The synthetic table contains no more of the members than coincidence explains.",
            },
        )


def readable(file: FileEvidence, at: FoundInFile | None) -> bool:
    """Return whether more members are found at a place than coincidence explains."""
    if at is None:
        return False
    beyond = found_beyond_chance(
        at, members=file.members, nonmembers=file.nonmembers, level=READABLE_LEVEL
    )
    return beyond.low > 0


def people(count: int, smallest: int) -> str:
    """Return a number of people in words that hide small ones.

    Examples
    --------
    >>> people(3, 20), people(0, 20), people(1200, 20)
    ('fewer than 20', 'fewer than 20', '1,200')
    """
    return f"{count:,}" if count >= smallest else f"fewer than {smallest}"


def _besides(at: FoundInFile) -> str:
    """Return that a place is none of the cells, and which it is; nothing for cells."""
    # Only what stands besides the cells is laid beside people in stages.
    return f", besides its cells ({at.place})" if at.stage else ""


def _shown_low(estimate: Estimate) -> float:
    """Return the low end as it is shown: more than nobody, and fewer than the smallest group, is 0."""
    return estimate.low if estimate.low >= 1 else 0.0
