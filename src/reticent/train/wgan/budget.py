r"""How the budget of a generator with a critic is divided, and what all of its parts guarantee together.

As for marginal generators, everything follows from one number z: counts with deviation s cost the number of histograms over
:math:`s^2` in units of :math:`1/z^2`. The T steps of a training that samples with rate q and has noise multiplier :math:`\sigma` cost about :math:`T q^2/\sigma^2` in the same units, so
:math:`\sigma = z q \sqrt{T/\text{share}}`. That only divides the budget: the guarantee is taken from the privacy loss distribution of all parts.
"""

import math
from dataclasses import dataclass

from reticent.account import (
    Composition,
    Failure,
    Gaussian,
    Group,
    Mechanism,
    PrivateTraining,
    Relation,
)

__all__ = ["CriticBudget"]

LEARNING = 0.1  # share for learning the cells, if they are not declared
HISTOGRAMS = 0.2  # share of the histograms: number of rows, ranks, and what columns are matched to
PHASES = 5  # of falling noise: within each it is constant, so that few distributions are composed


@dataclass(frozen=True, kw_only=True)
class CriticBudget:
    """The noise of every part.

    Parameters
    ----------
    noise_multiplier : float
        z: more noise protects more.
    columns : int
        Number of columns.
    looks : int
        Histograms by which cells of numbers are learned; 0 if they are declared.
    lists : int
        Columns whose categories are listed by their histograms; 0 if they are declared.
    failure : float
        Probability that a category of a single person is listed.
    steps : int
        Steps of the critic in each training.
    sampling_rate : float
        Probability that a record takes part in a step.
    trainings : int
        Number of trainings, of which one is kept. All of them are paid for.
    fall : float
        Noise of the first steps over that of the last ones.
    rows_per_person : int
        The most rows of one person.
    """

    noise_multiplier: float
    columns: int
    looks: int
    failure: float
    steps: int
    sampling_rate: float
    lists: int = 0
    trainings: int = 1
    fall: float = 1.0
    rows_per_person: int = 1

    @property
    def _shares(self) -> tuple[float, float, float]:
        """Shares of learning, histograms and steps."""
        learning = LEARNING if self.looks else 0.0
        return learning, HISTOGRAMS, 1 - learning - HISTOGRAMS

    @property
    def answers(self) -> int:
        """Most noisy counts that are kept on the way, for the progress; sums of gradients are counted apart."""
        return self.looks + self.columns

    @property
    def releases(self) -> int:
        """Noisy answers as the guarantee counts them: the sums of all trainings."""
        return self.steps * self.trainings

    @property
    def learning_deviation(self) -> float:
        """Standard deviation of the noise on counts from which cells are learned."""
        return self.noise_multiplier * math.sqrt(self.looks / self._shares[0])

    @property
    def histogram_deviation(self) -> float:
        """Standard deviation of the noise on the counts of single columns."""
        return self.noise_multiplier * math.sqrt(self.columns / self._shares[1])

    @property
    def phases(self) -> tuple[tuple[float, int], ...]:
        """Noise multiplier and number of steps of each phase of one training."""
        level = self.noise_multiplier * self.sampling_rate
        level *= math.sqrt(self.steps * self.trainings / self._shares[2])
        if self.fall == 1:
            return ((level, self.steps),)
        sizes = [self.steps // PHASES] * PHASES
        sizes[-1] += self.steps - sum(sizes)
        # In geometric descent, scaled so that the sum of steps over squared noise is that of constant noise.
        factors = [self.fall ** (-k / (PHASES - 1)) for k in range(PHASES)]
        costs = math.fsum(n / f**2 for n, f in zip(sizes, factors, strict=True))
        scale = math.sqrt(costs / self.steps)
        return tuple(
            (level * scale * f, n) for f, n in zip(factors, sizes, strict=True) if n
        )

    def mechanism(self, relation: Relation) -> Mechanism:
        """Return all parts together, for one person."""
        learning, histograms, _ = self._shares
        noise = self.noise_multiplier / math.sqrt(learning + histograms)
        if relation == Relation.REPLACE:
            # Replacing a record moves two cells of a histogram by one each, a distance of the root of 2, where Gaussian counts 2.
            noise *= math.sqrt(2)
        parts: list[tuple[Mechanism, int]] = [
            (Gaussian(noise_multiplier=noise, relation=relation), 1)
        ]
        for level, steps in self.phases:
            training = PrivateTraining(
                noise_multiplier=level,
                sampling_rate=self.sampling_rate,
                steps=steps * self.trainings,
                relation=relation,
            )
            parts.append((training, 1))
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
