"""An attack model learned from the product's answers: LTU attacker (2).

References
----------
.. [1] Pedersen et al., "LTU attacker for membership inference", arXiv:2202.02278, Figure 2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, xlogy
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from reticent._threads import one_thread
from reticent.attack._base import Challenge, Knowledge, Scores

__all__ = ["LearnedOutputs", "outputs_seen"]


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
            odds[judge] = _log_odds(inputs[learn], tags, inputs[judge], rng=rng)
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


def _log_odds(
    learn: NDArray[np.float64],
    tags: NDArray[np.bool_],
    judge: NDArray[np.float64],
    *,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Boost on one part, calibrate on the other, and score new records.

    Boosted log-odds are too sure of themselves; a logistic regression of the tags on them,
    learned on records the booster did not see, sets their scale (Platt 1999).
    """
    held = np.zeros(len(learn), dtype=bool)
    for tag in (False, True):  # a quarter of each, so that both are always there
        its = rng.permutation(np.flatnonzero(tags == tag))
        held[its[::4]] = True
    model = HistGradientBoostingClassifier(
        max_iter=60,
        learning_rate=0.08,
        max_leaf_nodes=15,
        min_samples_leaf=max(10, len(learn) // 100),
        early_stopping=False,
        random_state=int(rng.integers(2**31 - 1)),
    )
    with one_thread():
        model.fit(learn[~held], tags[~held])
        rehearsed = model.decision_function(learn[held])
        judged = model.decision_function(judge)
    scale = LogisticRegression().fit(rehearsed[:, None], tags[held])
    # A negative slope would turn the attack round on noise: the order is the booster's.
    slope = max(float(scale.coef_[0, 0]), 1e-3)
    return np.asarray(slope * judged + float(scale.intercept_[0]))
