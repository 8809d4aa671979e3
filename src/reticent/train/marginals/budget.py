r"""How the budget of a marginal generator is divided, and what all of its parts guarantee together.

All noise follows from one number z, the noise multiplier. In units of :math:`1/z^2`, counts with deviation s cost the number of
histograms over :math:`s^2`, and a choice costs about :math:`\varepsilon^2/3` (:mod:`reticent.account.choice`); the shares below add up to one. The guarantee is
not taken from these units but from the privacy loss distribution of all parts.
"""

import math
from dataclasses import dataclass
from typing import Literal

from reticent.account import (
    Choice,
    Composition,
    Failure,
    Gaussian,
    Group,
    Mechanism,
    Relation,
)

__all__ = ["Budget", "Method"]

Method = Literal["tree", "adaptive"]
# Shares of histograms, choices and measurements of pairs, as measured best on Framingham and Adult.
SHARES: dict[Method, tuple[float, float, float]] = {
    "tree": (0.3, 0.2, 0.5),
    "adaptive": (0.3, 0.1, 0.6),
}
LEARNING = 0.1  # share for learning the cells, if they are not declared


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The noise of every part.

    Parameters
    ----------
    noise_multiplier : float
        z: more noise protects more.
    method : str
        ``"tree"`` or ``"adaptive"``.
    columns : int
        Number of columns.
    looks : int
        Histograms by which cells of numbers are learned; 0 if they are declared.
    lists : int
        Columns whose categories are listed by their histograms; 0 if they are declared.
    failure : float
        Probability that a category of a single person is listed.
    rows_per_person : int
        The most rows of one person.
    """

    noise_multiplier: float
    method: Method
    columns: int
    looks: int
    failure: float
    lists: int = 0
    rows_per_person: int = 1

    @property
    def choices(self) -> int:
        """Number of pairs that are chosen, at most."""
        if self.columns == 1:
            return 0
        return self.columns - 1 if self.method == "tree" else 2 * self.columns

    @property
    def _shares(self) -> tuple[float, float, float, float]:
        """Shares of learning, histograms, choices and measurements."""
        learning = LEARNING if self.looks else 0.0
        if not self.choices:
            return learning, 1 - learning, 0.0, 0.0
        one, choose, measure = (s * (1 - learning) for s in SHARES[self.method])
        return learning, one, choose, measure

    @property
    def sampling_rate(self) -> float:
        """Probability that a record takes part in a question: every record does."""
        return 1.0

    @property
    def answers(self) -> int:
        """Most noisy answers that are kept on the way."""
        return self.looks + self.columns + 2 * self.choices

    @property
    def releases(self) -> int:
        """Noisy answers as the guarantee counts them: all histograms are one, and so are all looks."""
        return 1 + 2 * self.choices + bool(self.lists)

    @property
    def learning_deviation(self) -> float:
        """Standard deviation of the noise on counts from which cells are learned."""
        return self.noise_multiplier * math.sqrt(self.looks / self._shares[0])

    @property
    def histogram_deviation(self) -> float:
        """Standard deviation of the noise on the counts of single columns."""
        return self.noise_multiplier * math.sqrt(self.columns / self._shares[1])

    @property
    def choice_epsilon(self) -> float:
        """Epsilon of each choice."""
        share = self._shares[2] / self.choices
        return math.sqrt(3 * share) / self.noise_multiplier

    @property
    def pairs_mu_squared(self) -> float:
        """The sum of 1 / deviation^2 over all pairs that are measured."""
        return self._shares[3] / self.noise_multiplier**2

    @property
    def pair_deviation(self) -> float:
        """Standard deviation of the noise on the counts of a pair, if all have the same."""
        return math.sqrt(self.choices / self.pairs_mu_squared)

    def mechanism(self, relation: Relation) -> Mechanism:
        """Return all parts together, for one person."""
        learning, one, _, measure = self._shares
        noise = self.noise_multiplier / math.sqrt(learning + one + measure)
        if relation == Relation.REPLACE:
            # Replacing a record moves two cells of a histogram by one each, a distance of the root of 2, where Gaussian counts 2.
            noise *= math.sqrt(2)
        parts: list[tuple[Mechanism, int]] = [
            (Gaussian(noise_multiplier=noise, relation=relation), 1)
        ]
        if self.choices:
            chosen = Choice(epsilon=self.choice_epsilon, relation=relation)
            parts.append((chosen, self.choices))
        if self.rows_per_person > 1:
            parts = [
                (Group(mechanism=part, size=self.rows_per_person), times)
                for part, times in parts
            ]
        if self.lists:
            # Under replace-one there are two persons whose categories could be listed.
            chance = self.failure * (2 if relation == Relation.REPLACE else 1)
            parts.append((Failure(probability=chance, relation=relation), 1))
        return Composition(parts=tuple(parts))
