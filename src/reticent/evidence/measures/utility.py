"""What the product is good for."""

import numpy as np

from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.statement import Limit, Statement

__all__ = ["UtilityScore"]


class UtilityScore(Measure):
    """The utility on records that did not train the product: 0 is a guess, 1 is never wrong."""

    name = "utility"
    label = "utility"
    threat = None
    compares = False

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement:
        """Return the utility that the kind of product defines."""
        return self.statement(
            "the utility score", seen.evidence.utility.score, limit=limit, seen=seen
        )
