"""Attacks that look at one answer of the product at a time: LTU attacker (1) and its kin.

References
----------
.. [1] Yeom, Giacomelli, Fredrikson & Jha, "Privacy risk in machine learning: analyzing the
   connection to overfitting", arXiv:1709.01604.
.. [2] Song & Mittal, "Systematic evaluation of privacy risks of machine learning models",
   arXiv:2003.10595, Section 4.1 and Eq. 8.
.. [3] Salem et al., "ML-Leaks", arXiv:1806.01246, adversary 3.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from reticent.attack._base import Challenge, Knowledge, Scores

__all__ = ["Confidence", "Entropy", "Gap", "Loss", "ModifiedEntropy"]

FLOOR = 1e-12  # smallest probability told apart from zero


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Gap attacker: a record that the product predicts well was trained on [1]_.

    The score is the logarithm of the true class's probability: minus the loss.
    """

    name: str = "loss"

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the log-probability of each record's true class."""
        return Scores(values=np.log(challenge.true_class_probability().clip(FLOOR)))


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Label-only gap attacker: a record that is classified rightly was trained on [1]_.

    It sees the predicted class and nothing else; its advantage is the gap between the errors on
    members and on non-members.
    """

    name: str = "gap"

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return 1 where the predicted class is the true one, else 0."""
        right = challenge.probabilities.argmax(axis=1) == challenge.labels
        return Scores(values=right.astype(np.float64))


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """A record about which the product is sure, rightly or not, was trained on [3]_.

    Unlike the loss this needs no label; ties of the loss at certainty stay ties.
    """

    name: str = "confidence"

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the largest probability of each record."""
        return Scores(values=challenge.probabilities.max(axis=1))


@dataclass(frozen=True, kw_only=True)
class Entropy:
    """A record whose answer has little entropy was trained on (Section 4.1 of [2]_)."""

    name: str = "entropy"

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return minus the entropy of each answer."""
        p = challenge.probabilities.clip(0.0, 1.0)
        return Scores(values=xlogy(p, p).sum(axis=1))


@dataclass(frozen=True, kw_only=True)
class ModifiedEntropy:
    """Entropy that knows the label: sure and right is low, sure and wrong is high.

    Eq. 8 of [2]_: ``Mentr = -(1 - p_y) log p_y - sum_{i != y} p_i log(1 - p_i)``.
    """

    name: str = "modified_entropy"

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return minus the modified entropy of each answer."""
        p = challenge.probabilities.clip(0.0, 1.0)
        rows = np.arange(len(challenge))
        own = p[rows, challenge.labels]
        others = p * np.log((1 - p).clip(FLOOR))
        others[rows, challenge.labels] = 0.0
        return Scores(values=(1 - own) * np.log(own.clip(FLOOR)) + others.sum(axis=1))
