"""Whether running a generator again on neighbouring tables refutes the epsilon that is claimed of it."""

import numpy as np

from reticent.evidence.measures._base import Seen
from reticent.evidence.measures.watched_claim import TrainingAgainstClaim
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["GeneratorAgainstClaim"]


class GeneratorAgainstClaim(TrainingAgainstClaim):
    """The lower bound on epsilon from tables made with and without one person, against the claim."""

    label = "epsilon shown by running the generator again, against the claim"

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return whether more was shown than is claimed; nothing if the generator was not run again."""
        epsilons = seen.epsilons
        if not seen.was_watched or epsilons is None or epsilons.claimed is None:
            return None
        claimed = epsilons.claimed
        under = f"delta {epsilons.delta:.2g}, {epsilons.relation}"
        shown = f"at least {epsilons.audited.low:,.4g}"
        return Statement(
            measure=self.name,
            label=self.label,
            words="the epsilon that running the generator again has shown",
            better=self.better,
            estimate=epsilons.audited,
            compares=self.compares,
            own_limit=Limit(measure=self.name, at_most=claimed),
            own_outcome=Outcome.BROKEN if epsilons.refuted else Outcome.KEPT,
            sentences={
                Outcome.BROKEN: f"Running the generator again on tables that differ in one person shows an epsilon of {shown}, which refutes the "
                f"claimed {claimed:.4g} ({under}).",
                Outcome.KEPT: f"Running the generator again on tables that differ in one person does not refute the claimed epsilon of {claimed:.4g} "
                f"({under}): it shows {shown} (and could have shown {epsilons.ceiling:,.4g}).",
            },
        )
