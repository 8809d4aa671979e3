"""The population attack: ask how unusual an answer is among records known not to be members.

References
----------
.. [1] Ye, Maddi, Murakonda, Bindschaedler & Shokri, "Enhanced membership inference attacks against machine
   learning models", arXiv:2111.09679, attack P (Section 4.2).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent.attack._base import Challenge, Knowledge, Need, Scores
from reticent.pool import Pool, logit_of_truth

__all__ = ["Population"]

LEAST_PER_CLASS = (
    5  # with fewer known non-members of a class, a share of them says little
)
# Small enough to order records within one step of the counting, and never across two steps.
TIE_BREAK = 1e-3
LOGIT_SCALE = (
    8  # of the hyperbolic tangent: logits of ordinary answers stay off its flat ends
)


@dataclass(frozen=True, kw_only=True)
class Population:
    """Compare a record's answer with those on known non-members of its class [1]_.

    The threshold of attack P is a quantile of the loss on population records, here those of the same
    class. The matching score is the share of them on which the product does worse. Known non-members
    are taken from other folds: no record is compared with one of its own fold, so its tag does not count.

    Parameters
    ----------
    folds : int
        Number of folds.
    """

    name: str = "population"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})
    folds: int = 5

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the share of known non-members of the class that are answered worse."""
        phi = logit_of_truth(challenge.probabilities, challenge.labels)
        values = np.zeros(len(challenge))
        for learn, tags, judge in knowledge.tags.folds(self.folds, rng=rng):
            population = learn[~tags]
            for label in np.unique(challenge.labels[judge]):
                rows = judge[challenge.labels[judge] == label]
                same = population[challenge.labels[population] == label]
                if len(same) < LEAST_PER_CLASS:
                    same = population
                # Left: a tie counts as not worse.
                below = np.searchsorted(np.sort(phi[same]), phi[rows], side="left")
                within = TIE_BREAK * np.tanh(phi[rows] / LOGIT_SCALE)
                # One more than there are, so that classes of different size have comparable shares below 1.
                values[rows] = (below + within) / (len(same) + 1)
        return Scores(values=values)
