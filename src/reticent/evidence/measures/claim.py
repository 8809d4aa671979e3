"""Whether attacks on the product refute the epsilon that is claimed of it."""

import math

import numpy as np

from reticent.evidence.measures._base import Claim, Measure, Seen, refuse_limit_on_claim
from reticent.evidence.statement import Limit, Outcome, Statement

__all__ = ["AttacksAgainstClaim"]


class AttacksAgainstClaim(Measure):
    """The lower bound on epsilon that attacks have shown, against the claim."""

    name = "claim_refuted"
    label = "epsilon shown, against the claim"
    better = "lower"
    has_interval = False

    def check(self, limit: Limit) -> None:
        """Refuse every limit: what is judged here is the product's own claim."""
        refuse_limit_on_claim(limit)

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return whether more was shown than is claimed; nothing without a claim that attacks on people can refute."""
        claim = seen.claim
        if claim is None or seen.people_repeat:
            return None
        estimate, ceiling = seen.evidence.epsilon, seen.evidence.epsilon_ceiling
        is_refuted = estimate.low > largest_epsilon_shown(claim, ceiling)
        shown = f"at least {estimate.low:.2f}"
        return Statement(
            measure=self.name,
            label=self.label,
            words="the epsilon that attacks have shown",
            better=self.better,
            estimate=estimate,
            own_limit=Limit(measure=self.name, at_most=claim.epsilon),
            own_outcome=Outcome.BROKEN if is_refuted else Outcome.KEPT,
            sentences={
                Outcome.BROKEN: f"The attacks show an epsilon of {shown}, which refutes the claimed {claim}.",
                Outcome.KEPT: f"The claimed epsilon of {claim} is not refuted: the attacks show {shown} (and could have shown "
                f"at most {ceiling:.2f}).",
            },
        )


def largest_epsilon_shown(claim: Claim, ceiling: float) -> float:
    """Return the largest epsilon that attacks may show for delta 0 while a claim is true.

    A true-positive rate is at most e^epsilon times the false-positive rate plus delta, and no false-positive rate
    below e^-ceiling can be shown.

    Examples
    --------
    >>> round(largest_epsilon_shown(Claim(epsilon=1.0, delta=0.01), 5.0), 3)
    1.436
    """
    # The exponential of an epsilon above 500 is too large to be a number; a delta then changes nothing.
    if claim.delta == 0 or claim.epsilon > 500:
        return claim.epsilon
    return math.log(math.exp(claim.epsilon) + claim.delta * math.exp(ceiling))
