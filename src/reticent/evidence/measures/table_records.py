"""How many members can be read in a synthetic table."""

from dataclasses import replace

import numpy as np

from reticent.evidence._estimate import Estimate
from reticent.evidence.file import FileEvidence, FoundInFile, found_beyond_chance
from reticent.evidence.measures._base import Seen
from reticent.evidence.measures.file_records import LEVEL, FileRecords
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["TableRecords", "people", "readable"]


class TableRecords(FileRecords):
    """Members whose row, or a value that few people share, stands in a synthetic table, beyond what coincidence explains.

    The judgement is that of :class:`FileRecords`. What is shown is rounded outwards to multiples of the smallest group, so that no small count
    appears in a report.
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
                f"the whole rows of {people(rows.members, smallest)} members and of {people(rows.nonmembers, smallest)} non-members"
            )
        if values is not None and readable(file, values):
            found.append(
                f"in the column '{values.place}' a value that fewer than {smallest} people have of {people(values.members, smallest)} members and of "
                f"{people(values.nonmembers, smallest)} non-members"
            )
        where = "; ".join(found) or "no row and no rare value of anybody"
        return replace(
            statement,
            words="the number of members who can be read in the synthetic table",
            estimate=_rounded(statement.estimate, smallest),
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
        at, members=file.members, nonmembers=file.nonmembers, level=LEVEL
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


def _rounded(estimate: Estimate, smallest: int) -> Estimate:
    """Return an estimate of people in multiples of a number, its interval rounded outwards."""
    low = smallest * np.floor(estimate.low / smallest)
    high = smallest * np.ceil(estimate.high / smallest)
    return replace(
        estimate,
        value=float(smallest * np.round(estimate.value / smallest)),
        low=float(low),
        high=float(high),
        method=f"{estimate.method}, in multiples of {smallest}",
    )
