"""The privacy score of the worst group."""

from dataclasses import replace

import numpy as np

from reticent.evidence._gathered import LongStatistic
from reticent.evidence._measure import worst_privacy
from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["GroupPrivacy"]


class GroupPrivacy(Measure):
    """The smallest privacy score of any group that is large enough to be named, the choice of the group paid for."""

    name = "group_privacy"
    label = "privacy, worst group"
    noun = "privacy score of the worst group"

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return the score of the worst group; nothing if there are no groups and no limit asks for them."""
        groups = seen.evidence.groups
        words = "the privacy score of the worst group"
        if not groups:
            if limit is None:
                return None
            statement = self.statement(words, None, limit=limit, seen=seen)
            skipped = seen.evidence.skipped_statistic(LongStatistic.GROUPS)
            if skipped is None:
                return statement
            return replace(
                statement,
                sentences={
                    Outcome.OPEN: f"{words} must be {limit} but was not measured: {skipped.why}."
                },
                to_settle=f"Give the audit a later --deadline, so that the {self.noun} can be measured.",
            )
        worst = min(groups, key=lambda group: group.privacy.value)
        return self.statement(
            f"{words} ({worst.name})",
            worst_privacy([group.privacy for group in groups], level=seen.confidence),
            limit=limit,
            seen=seen,
        )
