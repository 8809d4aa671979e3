"""How much better the product is than an answer that looks at nothing."""

import numpy as np

from reticent.evidence.measures._base import Measure, Seen
from reticent.evidence.statement import Limit, Statement

__all__ = ["Gain"]


class Gain(Measure):
    """The share of the errors of a constant answer that the product saves, on records that did not train it.

    A utility of .9 means little where nine of ten people have the same answer; the gain is 0 there for a product that always gives it.
    """

    name = "gain"
    label = "gain over a constant answer"
    threat = None
    compares = False
    noun = "gain over a constant answer"
    if_broken = (
        "A constant answer does nearly the same and tells nothing about anybody. Possible, not tried: a model or a generator that learns more from these "
        "columns, other columns, more people, or a target about which these columns tell more."
    )

    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement:
        """Return the gain that the kind of product defines."""
        utility = seen.evidence.utility
        return self.statement(
            f"the gain over {utility.baseline_words}",
            utility.gain,
            limit=limit,
            seen=seen,
        )
