"""The share of members that are pointed out at a low false-positive rate."""

import numpy as np

from reticent.evidence._estimate import Estimate, split_level
from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.power import records_to_resolve, records_to_settle
from reticent.evidence.statement import Limit, Statement

__all__ = ["TruePositiveRate"]


class TruePositiveRate(Measure):
    """The true-positive rate of the best attack at a false-positive rate, the choice among attacks paid for."""

    name = "tpr"
    label = "members pointed out"
    better = "lower"
    # One wronged outsider in a thousand: the rate at which the field reports (Carlini et al., arXiv:2112.03570).
    parameters = {"fpr": 0.001}  # noqa: RUF012 (read only)
    noun = "share of members pointed out"

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement:
        """Return the largest true-positive rate of any attack."""
        fpr = self.parameter("fpr", limit)
        return self.statement(
            f"the share of members pointed out at a false-positive rate of {100 * fpr:g} %",
            seen.evidence.tpr_at_fpr,
            limit=limit,
            seen=seen,
        )

    def to_settle(self, estimate: Estimate, limit: Limit, seen: Seen) -> str:
        """Return how many records would do: the upper end shrinks like a Poisson count, not like a square root."""
        needed = records_to_settle(estimate, limit.value, seen.records)
        if estimate.value < limit.value:
            each = split_level(
                seen.confidence, seen.statements * len(seen.evidence.attacks)
            )
            floor = records_to_resolve(
                self.parameter("fpr", limit), limit.value, level=each
            )
            needed = max(floor, 2 * seen.records)
        return self.records_sentence(needed, seen)
