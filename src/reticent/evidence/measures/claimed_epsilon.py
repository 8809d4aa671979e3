"""The epsilon that is claimed of the product."""

import numpy as np

from reticent.evidence._estimate import Estimate
from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["ClaimedEpsilon"]


class ClaimedEpsilon(Measure):
    """What whoever trained the product says of its privacy: stated, not measured."""

    name = "claimed_epsilon"
    label = "claimed epsilon"
    better = "lower"
    threat = None
    compares = False
    has_interval = False
    bounds = (0.0, float("inf"))

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return the claim as it stands; nothing if none is made and no limit asks for one."""
        if limit is None or not limit.judges:
            return None
        claim = seen.claim
        estimate = None
        if claim is not None:
            estimate = Estimate(
                value=claim.epsilon,
                low=claim.epsilon,
                high=claim.epsilon,
                level=seen.confidence,
                method="stated, not measured",
            )
        sentences: dict[str, str] = {
            Outcome.OPEN: f"No epsilon is claimed, but the policy asks for one of {limit}.",
            Outcome.KEPT: f"The claimed epsilon of {claim} keeps the limit of {limit}.",
            Outcome.BROKEN: f"The claimed epsilon of {claim} breaks the limit of {limit}.",
        }
        return Statement(
            measure=self.name,
            label=self.label,
            words="the claimed epsilon",
            better=self.better,
            estimate=estimate,
            compares=self.compares,
            sentences=sentences,
        )
