"""Write an attack of your own, check its contract, and let it take part in an audit."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

import reticent
from reticent.attack import Challenge, Knowledge, Need, Scores
from reticent.pool import Pool
from reticent.testing import check_attack


@dataclass(frozen=True, kw_only=True)
class Margin:
    """Guess that a record was trained on if its true class leads by far."""

    name: str = "margin"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the lead of the true class over the most probable other one."""
        others = challenge.probabilities.copy()
        others[np.arange(len(challenge)), challenge.labels] = -np.inf
        return Scores(values=challenge.true_class_probability() - others.max(axis=1))


if __name__ == "__main__":
    check_attack(Margin())
    X, y = load_breast_cancer(return_X_y=True)
    dossier = reticent.audit(
        DecisionTreeClassifier(), X, y, attacks=[Margin()], rounds=1, pool=4
    )
    for attack in dossier.evidence.attacks:
        print(f"{attack.name:20} {attack.auc}")
