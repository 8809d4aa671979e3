"""All randomness that protects records in a marginal generator: integer noise on counts, and choices."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.run import stream
from reticent.train.private.exact import choice_by_weight
from reticent.train.private.noise import secure_generator

__all__ = ["STEPS", "Noise"]

# Scores are integer multiples of 1/STEPS: a power of two, so that their sums are exact and the sensitivity is what theory says.
STEPS = 4_096


@dataclass(frozen=True)
class Noise:
    """The source of noise of one fit.

    Parameters
    ----------
    rng : numpy.random.Generator
        Cryptographic if the table may be released.
    """

    rng: np.random.Generator

    @classmethod
    def secret(cls) -> "Noise":
        """Return noise from the system's entropy, which nobody can draw again."""
        return cls(secure_generator())

    @classmethod
    def seeded(cls, seed: int) -> "Noise":
        """Return noise that anybody can draw again who knows the seed: it protects nothing."""
        return cls(stream(seed, "noise of marginals"))

    def on_counts(
        self, counts: NDArray[np.int64], deviation: float
    ) -> NDArray[np.float64]:
        """Return counts with rounded normal noise.

        The sum of an integer and rounded noise is the rounded sum, a function of what the Gaussian mechanism releases: its whole guarantee
        holds.
        """
        noise = np.rint(deviation * self.rng.standard_normal(counts.shape))
        return np.asarray(counts + noise, dtype=np.float64)

    def choose(self, scores: NDArray[np.float64], epsilon: float) -> int:
        """Return the position of a score, by the exponential mechanism; adding a record must move no score by more than 1.

        Parameters
        ----------
        scores : array of float
            Multiples of 1/STEPS.
        epsilon : float
            As in :class:`reticent.account.Choice`.
        """
        whole = np.rint(scores * STEPS).astype(np.int64)
        return choice_by_weight(
            whole.max() - whole, math.ceil(2 * STEPS / epsilon), self.rng
        )
