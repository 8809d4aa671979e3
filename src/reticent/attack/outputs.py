"""Attacks that look at one answer of the product at a time: LTU attacker (1) and its relatives.

References
----------
.. [1] Yeom, Giacomelli, Fredrikson & Jha, "Privacy risk in machine learning: analyzing the
   connection to overfitting", arXiv:1709.01604.
.. [2] Song & Mittal, "Systematic evaluation of privacy risks of machine learning models",
   arXiv:2003.10595, Section 4.1 and Eq. 8.
.. [3] Salem et al., "ML-Leaks", arXiv:1806.01246, adversary 3.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from reticent.attack._base import Challenge, Knowledge, Need, Scores
from reticent.pool import Pool

__all__ = ["Confidence", "Entropy", "Gap", "Loss", "ModifiedEntropy"]

FLOOR = 1e-12  # smaller probabilities count as this one, so that logarithms stay finite


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Guess that a record was trained on if the product predicts it well: the gap attacker [1]_.

    The score is the logarithm of the true class's probability, which is minus the loss.
    """

    name: str = "loss"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the log-probability of each record's true class."""
        return Scores(values=np.log(challenge.true_class_probability().clip(FLOOR)))


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Guess that a record was trained on if it is classified correctly: the label-only gap attacker [1]_.

    It sees only the predicted class; its advantage is the gap between the errors on
    members and on non-members.
    """

    name: str = "gap"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return 1 where the predicted class is the true one, else 0."""
        right = challenge.probabilities.argmax(axis=1) == challenge.labels
        return Scores(values=right.astype(np.float64))


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """Guess that a record was trained on if the product is sure of its answer, right or wrong [3]_.

    Unlike the loss, this needs no label. Answers of probability 1 are ties, as they are for the loss.
    """

    name: str = "confidence"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the largest probability of each record."""
        return Scores(values=challenge.probabilities.max(axis=1))


@dataclass(frozen=True, kw_only=True)
class Entropy:
    """Guess that a record was trained on if its answer has little entropy (Section 4.1 of [2]_)."""

    name: str = "entropy"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return minus the entropy of each answer."""
        p = challenge.probabilities.clip(0.0, 1.0)
        return Scores(values=xlogy(p, p).sum(axis=1))


@dataclass(frozen=True, kw_only=True)
class ModifiedEntropy:
    """Use an entropy that knows the label: low if the answer is sure and right, high if it is sure and wrong.

    Eq. 8 of [2]_: ``Mentr = -(1 - p_y) log p_y - sum_{i != y} p_i log(1 - p_i)``.
    """

    name: str = "modified_entropy"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return minus the modified entropy of each answer."""
        p = challenge.probabilities.clip(0.0, 1.0)
        rows = np.arange(len(challenge))
        truth = p[rows, challenge.labels]
        others = p * np.log((1 - p).clip(FLOOR))
        others[rows, challenge.labels] = 0.0
        of_truth = (1 - truth) * np.log(truth.clip(FLOOR))
        return Scores(values=of_truth + others.sum(axis=1))
