"""The share of members who are exposed one by one."""

from dataclasses import replace

import numpy as np

from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.statement import Limit, Statement

__all__ = ["Exposed"]


class Exposed(Measure):
    """The share of members whose individual privacy is low, by the attack that exposes most."""

    name = "exposed"
    label = "exposed members"
    better = "lower"
    # A member below 0.1 outranks 95 % of the non-members; without a leak one in twenty does.
    parameters = {"below": 0.1}  # noqa: RUF012 (read only)
    noun = "share of exposed members"

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement:
        """Return the largest share of any attack."""
        below = self.parameter("below", limit)
        # A member's wins are uniform without a leak, so half of ``below`` is the share that chance gives.
        chance = f"{below / 2:g} without a leak"
        statement = self.statement(
            f"the share of members with individual privacy below {below:g} ({chance})",
            seen.evidence.exposed,
            limit=limit,
            seen=seen,
        )
        return replace(statement, label=f"{self.label} ({chance})")
