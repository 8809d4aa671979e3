"""Whether people who are said to be held out really were."""

import numpy as np

from reticent.errors import InvalidPolicy
from reticent.evidence._estimate import Estimate
from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["HeldOutPeople"]


class HeldOutPeople(Measure):
    """Whether held-out people stand in the product whom its maker must have seen.

    It is a reason to refuse by itself: no comparison with such people is worth anything, so no other statement and no control may outweigh it.
    """

    name = "held_out_people"
    label = "held-out people who were seen"
    better = "lower"
    threat = None
    compares = False
    has_interval = False
    bounds = (0.0, float("inf"))

    def check(self, limit: Limit) -> None:
        """Refuse every limit: people who were held out must not have been seen at all."""
        raise InvalidPolicy(
            f"the policy limits {self.name}, but people who were seen were not held out, whatever a limit says, so it would be ignored; leave it out."
        )

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return that held-out people were seen; nothing if there is no sign of it."""
        file = seen.evidence.file
        found = None if file is None else file.held_out
        if found is None or not found.seen:
            return None
        return Statement(
            measure=self.name,
            label=self.label,
            words="the number of held-out people who stand in it beyond coincidence",
            better=self.better,
            estimate=Estimate.exact(
                float(max(found.found - found.factor * found.alike, 1.0)),
                level=seen.confidence,
                method="exact test on records that do one and not the other",
            ),
            compares=self.compares,
            own_limit=Limit(measure=self.name, at_most=0.0),
            own_outcome=Outcome.BROKEN,
            sentences={
                Outcome.BROKEN: f"People said to be held out stand in what would be released ({found.place}) far more often than they coincide with "
                "members: whoever made it saw them. No comparison with them is worth anything, and they are people, too."
            },
            if_broken="Make it again without the people who are held out, and audit it with people whom its maker cannot reach.",
        )
