"""The epsilon that is claimed of the product."""

import numpy as np

from reticent.evidence._estimate import Estimate
from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["ClaimedEpsilon"]

SETTLES = "Audit a product whose training is described, as `reticent train` does, so that its epsilon can be worked out."


class ClaimedEpsilon(Measure):
    """What whoever trained the product says of its privacy. A claim alone breaks a limit, but only a proof keeps one."""

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
        proven = None if seen.epsilons is None else seen.epsilons.proven
        estimate = None
        if claim is not None:
            # What was worked out from the recipe counts more than what is said.
            number = claim.epsilon if proven is None else max(claim.epsilon, proven)
            estimate = Estimate.exact(
                number,
                level=seen.confidence,
                method="stated, not measured" if proven is None else "worked out",
            )
        outcome = limit.outcome(estimate)
        if outcome == Outcome.KEPT and proven is None:
            outcome = Outcome.OPEN
        sentences: dict[str, str] = {
            Outcome.OPEN: f"No epsilon is claimed, but the policy asks for one of {limit}."
            if claim is None
            else f"The claimed epsilon of {claim} would keep the limit of {limit}, but nothing here proves it.",
            Outcome.KEPT: f"The claimed epsilon of {claim} follows from the training as it is described, and keeps the limit of {limit}.",
            Outcome.BROKEN: f"The epsilon of {claim if proven is None else f'{proven:.4g}'} breaks the limit of {limit}.",
        }
        return Statement(
            measure=self.name,
            label=self.label,
            words="the claimed epsilon",
            better=self.better,
            estimate=estimate,
            compares=self.compares,
            own_limit=limit,
            own_outcome=outcome,
            sentences=sentences,
            to_settle="" if claim is None else SETTLES,
        )
