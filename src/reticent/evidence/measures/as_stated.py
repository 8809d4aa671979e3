"""Whether the watched training did what is stated of it: the record's share, the noise, and who takes part."""

import numpy as np

from reticent.evidence._estimate import Estimate
from reticent.evidence.checks import failed
from reticent.evidence.measures._base import Measure, Seen, refuse_limit_on_claim
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["TrainingAsStated"]


class TrainingAsStated(Measure):
    """How many things that are stated of a training were found to be false by watching it."""

    name = "training_departs"
    label = "false statements about the training"
    better = "lower"
    compares = False
    has_interval = False

    def check(self, limit: Limit) -> None:
        """Refuse every limit: what is judged here is what is stated of the product's own training."""
        refuse_limit_on_claim(limit)

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return how many checks stop the audit; nothing if no training was watched."""
        checks = seen.checks
        if not seen.was_watched or not checks:
            return None
        wrong = failed(checks)
        each = "; ".join(
            f"it is stated that {check.asked}, but found was: {check.found}"
            for check in wrong
        )
        error = sum(check.alarm for check in checks)
        count = float(len(wrong))
        return Statement(
            measure=self.name,
            label=self.label,
            words="the number of false statements about the training",
            better=self.better,
            estimate=Estimate(
                value=count,
                low=count,
                high=count,
                level=1 - error if error > 0 else 1 - 1e-12,
                method=f"{len(checks)} checks",
                covers="trainer",
            ),
            compares=self.compares,
            own_limit=Limit(measure=self.name, at_most=0.0),
            own_outcome=Outcome.BROKEN if wrong else Outcome.KEPT,
            sentences={
                Outcome.BROKEN: f"The training is not the one that its guarantee speaks of: {each}.",
                Outcome.KEPT: f"Watching the training, {len(checks)} checks of the record's share, the noise and the sampling found nothing "
                "that contradicts what is stated; what they cannot see is listed.",
            },
        )
