"""An attack model learned from the product's answers: LTU attacker (2).

References
----------
.. [1] Pedersen et al., "LTU attacker for membership inference", arXiv:2202.02278, Figure 2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, xlogy

from reticent.attack._base import Challenge, Knowledge, Scores
from reticent.attack._boost import Boosting, calibrated_log_odds

__all__ = ["LearnedOutputs", "outputs_seen"]

SMALL = Boosting(steps=60, rate=0.08, leaves=15, leaf_share=0.01, leaf_rows=10)


@dataclass(frozen=True, kw_only=True)
class LearnedOutputs:
    """Learn from tagged records what answers on members look like.

    The attack model sees each record's answer (probabilities, sorted and by class), its loss
    and its class. It is cross-fitted by unit: the tag of no record reaches the model that
    scores it. Real tags stand in for those of shadow models that an outsider would train:
    the attack is at least as well informed as such an outsider.

    Parameters
    ----------
    folds : int
        Number of folds.
    most_rows : int
        Largest number of records to learn from.
    """

    name: str = "learned_outputs"
    folds: int = 5
    most_rows: int = 40_000

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the log-odds of membership of each record, cross-fitted."""
        inputs = outputs_seen(challenge)
        odds = np.zeros(len(challenge))
        for learn, tags, judge in knowledge.tags.folds(self.folds, rng=rng):
            if len(learn) > self.most_rows:
                chosen = rng.choice(len(learn), self.most_rows, replace=False)
                learn, tags = learn[chosen], tags[chosen]  # noqa: PLW2901
            odds[judge] = calibrated_log_odds(
                SMALL, inputs[learn], tags, inputs[judge], rng=rng
            )
        return Scores(values=odds, probabilities=1 / (1 + np.exp(-odds)))


def outputs_seen(challenge: Challenge) -> NDArray[np.float64]:
    """Return what an attack model is shown of each answer: logit, entropy, class, ranks."""
    p = challenge.probabilities.clip(0.0, 1.0)
    own = challenge.true_class_probability()
    columns = [
        logit(own.clip(1e-6, 1 - 1e-6)),
        xlogy(p, p).sum(axis=1),
        p.argmax(axis=1) == challenge.labels,
        challenge.labels,
    ]
    ordered = -np.sort(-p, axis=1)[:, : min(5, p.shape[1])]
    by_class = p[:, :10]
    return np.column_stack([*columns, ordered, by_class]).astype(np.float64)
