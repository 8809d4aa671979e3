"""The privacy score against the outsider's best attack."""

import numpy as np

from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.statement import Limit, Statement

__all__ = ["Privacy"]


class Privacy(Measure):
    """The LTU privacy score min(2 (1 - A), 1) of the best attack, the choice among attacks paid for."""

    name = "privacy"
    label = "privacy, outsider"
    noun = "privacy score"

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement:
        """Return the score of the attack with the largest LTU accuracy."""
        return self.statement(
            "the privacy score against the outsider's best attack",
            seen.evidence.privacy,
            limit=limit,
            seen=seen,
        )
