"""The population attack: how unusual an answer is among records known not to be members.

References
----------
.. [1] Ye, Maddi, Murakonda, Bindschaedler & Shokri, "Enhanced membership inference attacks against machine
   learning models", arXiv:2111.09679, attack P (Section 4.2).
"""

from dataclasses import dataclass

import numpy as np

from reticent.attack._base import Challenge, Knowledge, Scores
from reticent.pool import logit_of_truth

__all__ = ["Population"]


@dataclass(frozen=True, kw_only=True)
class Population:
    """Compare a record's answer with those on known non-members of its class [1]_.

    The threshold of attack P is the quantile of the loss on population records, here of the same
    class. As a score it is the share of them on which the product does worse. Known non-members are
    those of other folds: no record is compared with one of its own fold, so its tag does not count.

    Parameters
    ----------
    folds : int
        Number of folds.
    """

    name: str = "population"
    folds: int = 5

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the share of known non-members of the class that are answered worse."""
        phi = logit_of_truth(challenge.probabilities, challenge.labels)
        values = np.zeros(len(challenge))
        for learn, tags, judge in knowledge.tags.folds(self.folds, rng=rng):
            population = learn[~tags]
            for label in np.unique(challenge.labels[judge]):
                its = judge[challenge.labels[judge] == label]
                same = population[challenge.labels[population] == label]
                if len(same) < 5:  # too few of the class: all classes must do
                    same = population
                below = np.searchsorted(np.sort(phi[same]), phi[its], side="left")
                # Within a step of the counting, the answer itself orders.
                values[its] = (below + 1e-3 * np.tanh(phi[its] / 8)) / (len(same) + 1)
        return Scores(values=values)
