"""An attack model learned from the product's answers: LTU attacker (2).

References
----------
.. [1] Pedersen et al., "LTU attacker for membership inference", arXiv:2202.02278, Figure 2.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, xlogy

from reticent.attack._base import Challenge, Knowledge, Need, Scores, SealedTags
from reticent.attack.boost import Boosting, calibrated_log_odds
from reticent.pool import Pool

__all__ = ["LearnedOutputs", "cross_fitted_log_odds", "outputs_seen"]

# Fewer trees and fuller leaves than the default: it learns from single records, not from many games, and
# what it memorises of them is lost on others.
SMALL = Boosting(steps=60, rate=0.08, leaves=15, leaf_share=0.01, leaf_rows=10)

LEAST_PROBABILITY = (
    1e-6  # probabilities nearer to 0 or 1 differ by rounding in single precision
)
MOST_RANKS = (
    5  # the largest probabilities; smaller ones are close to zero in most answers
)
MOST_CLASSES = 10  # probabilities by class, so that a product with many classes does not swamp the rest


@dataclass(frozen=True, kw_only=True)
class LearnedOutputs:
    """Learn from tagged records what answers on members look like.

    The attack model sees each record's answer (probabilities, sorted and by class), its loss
    and its class. It is cross-fitted by unit: no record's tag reaches the model that
    scores it. Real tags stand in for those of the shadow models that an outsider would train,
    so the attack is at least as well informed as such an outsider.

    Parameters
    ----------
    folds : int
        Number of folds.
    most_rows : int
        Largest number of records to learn from.
    """

    name: str = "learned_outputs"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})
    folds: int = 5
    most_rows: int = 40_000

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the log-odds of membership of each record, cross-fitted."""
        inputs = outputs_seen(challenge)
        odds = cross_fitted_log_odds(
            inputs, knowledge.tags, folds=self.folds, most_rows=self.most_rows, rng=rng
        )
        return Scores(values=odds, probabilities=1 / (1 + np.exp(-odds)))


def cross_fitted_log_odds(
    inputs: NDArray[np.float64],
    known: SealedTags,
    *,
    folds: int,
    most_rows: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the log-odds of membership of each record, learned from the tags of other folds."""
    odds = np.zeros(len(inputs))
    for learn, tags, judge in known.folds(folds, rng=rng):
        if len(learn) > most_rows:
            chosen = rng.choice(len(learn), most_rows, replace=False)
            learn, tags = learn[chosen], tags[chosen]  # noqa: PLW2901
        # Only trees, no linear classifier: where nothing leaks, a cross-fitted linear one does worse than a coin,
        # because a chance difference in the records it learns from is reversed in those it judges.
        odds[judge] = calibrated_log_odds(
            SMALL, inputs[learn], tags, inputs[judge], rng=rng
        )
    return odds


def outputs_seen(challenge: Challenge) -> NDArray[np.float64]:
    """Return the inputs of an attack model for each answer: logit, entropy, class, largest probabilities."""
    p = challenge.probabilities.clip(0.0, 1.0)
    truth = challenge.true_class_probability()
    columns = [
        logit(truth.clip(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)),
        xlogy(p, p).sum(axis=1),
        p.argmax(axis=1) == challenge.labels,
        challenge.labels,
    ]
    ordered = -np.sort(-p, axis=1)[:, : min(MOST_RANKS, p.shape[1])]
    by_class = p[:, :MOST_CLASSES]
    return np.column_stack([*columns, ordered, by_class]).astype(np.float64)
