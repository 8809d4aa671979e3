"""The privacy score against the insider who trains again."""

import numpy as np

from reticent.evidence._estimate import Estimate
from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.power import records_to_settle
from reticent.evidence.statement import Limit, Statement, Threat

__all__ = ["InsiderPrivacy"]


class InsiderPrivacy(Measure):
    """The privacy score against the Leave-Two-Unlabeled insider, in the worst regime of retraining."""

    name = "insider_privacy"
    label = "privacy, insider"
    threat = Threat.INSIDER

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return the score of the worst regime; nothing if it was not played and no limit asks for it."""
        insider = seen.evidence.insider
        if insider is None and limit is None:
            return None
        return self.statement(
            "the privacy score against the retraining insider",
            None if insider is None else insider.privacy,
            limit=limit,
            seen=seen,
        )

    def to_settle(self, estimate: Estimate, limit: Limit, seen: Seen) -> str:
        """Return about how many rounds would do."""
        insider = seen.evidence.insider
        needed = None
        if insider is not None:
            played = min(regime.rounds for regime in insider.regimes)
            needed = records_to_settle(estimate, limit.value, played)
        if needed is None:
            return "Play more rounds of the retraining attacker: give more --rounds and --minutes."
        return (
            f"About {needed:,} rounds of the retraining attacker per regime would settle the insider's privacy "
            f"score: audit with --rounds {needed} and more --minutes."
        )
