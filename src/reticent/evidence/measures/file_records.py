"""How many members can be read in the product's file."""

import numpy as np

from reticent.evidence._estimate import Estimate
from reticent.evidence.file import (
    READABLE_LEVEL,
    FoundInFile,
    found_beyond_chance,
)
from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["FileRecords"]

NEARLY = 0.9  # of the largest number of members


class FileRecords(Measure):
    """Members whose record, or a value that few people share, stands in the file, beyond what coincidence explains."""

    name = "file_records"
    label = "members readable in the file (low end counts)"
    better = "lower"
    has_interval = False
    bounds = (0.0, float("inf"))
    noun = "number of members readable in the file"

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return how many members stand in the file; nothing if it was not read."""
        file = seen.evidence.file
        if file is None:
            return None
        listed = None
        if file.long_axes:
            # By its shape: whoever knows the order of the table knows whose each entry is.
            everybody = float(file.members)
            listed = FoundInFile(
                place=file.long_axes[0],
                stage="",
                members=file.members,
                nonmembers=0,
                beyond=Estimate(
                    value=everybody,
                    low=everybody,
                    high=everybody,
                    level=READABLE_LEVEL,
                    method="counted by the length of an array",
                ),
            )
        places = [at for at in (file.rows, listed, file.values) if at is not None]
        found = [
            (
                found_beyond_chance(
                    at,
                    members=file.members,
                    nonmembers=file.nonmembers,
                    level=READABLE_LEVEL,
                ),
                at,
            )
            for at in places
            or [FoundInFile(place="", stage="", members=0, nonmembers=0)]
        ]
        # The place with most of them, and of places with nearly as many the one that says most of each: a whole record.
        most = max(estimate.low for estimate, _ in found)
        estimate, at = max(
            found,
            key=lambda pair: (
                pair[0].low >= NEARLY * most and pair[1] is file.rows,
                pair[0].low,
                pair[0].value,
            ),
        )
        outcome = None
        if limit is not None and limit.judges:
            is_broken = estimate.low > limit.value and not seen.queries_only
            outcome = Outcome.BROKEN if is_broken else Outcome.KEPT
        what = (
            "the whole records" if at is file.rows else "values that few people share"
        )
        where = f"{what} of {at.members:,} members and of {at.nonmembers:,} non-members ({at.place})"
        if at is listed:
            where = f"an entry for each of the {at.members:,} members ({at.place})"
        kept = "no more of the members than coincidence explains"
        if estimate.low > 0:
            kept = f"{where}, but only answers to queries are released"
        return Statement(
            measure=self.name,
            label=self.label,
            words="the number of members who can be read in the file",
            better=self.better,
            estimate=estimate,
            threat="" if self.threat is None else self.threat.value,
            compares=self.compares,
            own_limit=limit if outcome is not None else None,
            own_outcome=outcome,
            sentences={
                Outcome.BROKEN: f"The file contains {where}: whoever holds it can read who was in the table.",
                Outcome.KEPT: f"The file contains {kept}.",
            },
        )
