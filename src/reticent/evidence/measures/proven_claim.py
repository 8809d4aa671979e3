"""Whether the epsilon that is claimed follows from the training as it is described."""

import numpy as np

from reticent.evidence._estimate import Estimate
from reticent.evidence.measures._base import Measure, Seen, refuse_limit_on_claim
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["ProofAgainstClaim"]

# A claim is rounded for people; one that is smaller than the proven epsilon by less than this share is the same number.
ROUNDING = 0.01


class ProofAgainstClaim(Measure):
    """The epsilon that follows from the recipe, worked out again, against the claim."""

    name = "claim_unproven"
    label = "epsilon proven, against the claim"
    better = "lower"
    threat = None
    compares = False
    has_interval = False

    def check(self, limit: Limit) -> None:
        """Refuse every limit: what is judged here is the product's own claim."""
        refuse_limit_on_claim(limit)

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return whether less is claimed than was proven; nothing without a claim, or where nothing could be worked out."""
        claim, epsilons = seen.claim, seen.epsilons
        if claim is None or epsilons is None or epsilons.proven is None:
            return None
        proven = epsilons.proven
        boasts = claim.epsilon < (1 - ROUNDING) * proven
        return Statement(
            measure=self.name,
            label=self.label,
            words="the epsilon that follows from the training as it is described",
            better=self.better,
            estimate=Estimate.exact(
                proven, level=seen.confidence, method="worked out, not measured"
            ),
            compares=self.compares,
            own_limit=Limit(measure=self.name, at_most=claim.epsilon),
            own_outcome=Outcome.BROKEN if boasts else Outcome.KEPT,
            sentences={
                Outcome.BROKEN: f"An epsilon of {claim} is claimed, but the training as it is described guarantees nothing below "
                f"{proven:.4g}, so the claim does not follow from it.",
                Outcome.KEPT: f"The claimed epsilon of {claim} is no less than the {proven:.4g} that the training as it is described "
                "guarantees.",
            },
        )
