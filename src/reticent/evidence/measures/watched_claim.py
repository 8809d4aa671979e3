"""Whether watching the training refutes the epsilon that is claimed of it."""

import numpy as np

from reticent.evidence.measures._base import Measure, Seen, refuse_limit_on_claim
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["TrainingAgainstClaim"]


class TrainingAgainstClaim(Measure):
    """The lower bound on epsilon by an adversary that watches every step, against the claim."""

    name = "training_refuted"
    label = "epsilon shown by watching, against the claim"
    better = "lower"
    compares = False
    has_interval = False
    # Who shows it, in the middle and at the beginning of a sentence.
    words = "the epsilon that watching the training has shown"
    shown_by = "Watching every step of the training"

    def check(self, limit: Limit) -> None:
        """Refuse every limit: what is judged here is the product's own claim."""
        refuse_limit_on_claim(limit)

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return whether more was shown than is claimed; nothing if nothing was watched or run again."""
        epsilons = seen.epsilons
        if not seen.was_watched or epsilons is None or epsilons.claimed is None:
            return None
        claimed = epsilons.claimed
        under = f"delta {epsilons.delta:.2g}, {epsilons.relation}"
        shown = f"at least {epsilons.audited.low:,.4g}"
        return Statement(
            measure=self.name,
            label=self.label,
            words=self.words,
            better=self.better,
            estimate=epsilons.audited,
            compares=self.compares,
            own_limit=Limit(measure=self.name, at_most=claimed),
            own_outcome=Outcome.BROKEN if epsilons.refuted else Outcome.KEPT,
            sentences={
                Outcome.BROKEN: f"{self.shown_by} shows an epsilon of {shown}, which refutes the claimed "
                f"{claimed:.4g} ({under}).",
                Outcome.KEPT: f"{self.shown_by} does not refute the claimed epsilon of {claimed:.4g} ({under}): "
                f"it shows {shown} (and could have shown {epsilons.ceiling:,.4g}).",
            },
        )
