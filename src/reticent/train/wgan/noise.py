"""All randomness that protects records in the training of a critic: who takes part in a step, and the noise on its sum."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.run import stream
from reticent.train.private.noise import secure_generator
from reticent.train.wgan.critics import Sums
from reticent.train.wgan.shapes import Allotment

__all__ = ["Source"]

Array = NDArray[np.float64]
# Rounding sums to the grid moves a block by at most this share of what a record moves it: a tenth of the margin that reaches are widened by.
FINE = 1e-5


@dataclass(frozen=True)
class Source:
    """The source of samples and noise of one training.

    Parameters
    ----------
    rng : numpy.random.Generator
        Cryptographic if the product may be released.
    """

    rng: np.random.Generator

    @classmethod
    def secret(cls) -> "Source":
        """Return samples and noise from the system's entropy, which nobody can draw again."""
        return cls(secure_generator())

    @classmethod
    def seeded(cls, seed: int) -> "Source":
        """Return samples and noise that anybody can draw again who knows the seed: they protect nothing."""
        return cls(stream(seed, "noise of a critic"))

    def sample(self, records: int, rate: float) -> NDArray[np.int64]:
        """Return the records of one step: each takes part by itself with the same probability, so that their number varies."""
        taking_part = self.rng.binomial(records, rate)
        return np.asarray(
            self.rng.choice(records, taking_part, replace=False, shuffle=False),
            dtype=np.int64,
        )

    def pairs(self, records: int, fakes: int) -> tuple[NDArray[np.int64], Array]:
        """Return a fake for each record and a place between the two, all independent: in secret, so that a record changes only its own part."""
        return self.rng.integers(fakes, size=records), self.rng.random(records)

    def release(self, sums: Sums, allotment: Allotment) -> Sums:
        """Return sums with normal noise, in whole steps of a public grid.

        For whole numbers, adding rounded noise is rounding the sum, a function of what the Gaussian mechanism releases. What rounding the
        sums adds to the sensitivity is within the margin of the reaches.
        """
        noisy = []
        for block, reach, deviation in zip(
            sums, allotment.reaches, allotment.deviations, strict=True
        ):
            # A block that is bounded in norm moves by up to the root of its size times the grid.
            spread = np.sqrt(block.size) if reach.ndim == 0 else 1.0
            grid = np.ldexp(0.5, np.frexp(FINE * reach / spread)[1])
            noise = np.rint(deviation / grid * self.rng.standard_normal(block.shape))
            noisy.append((np.rint(block / grid) + noise) * grid)
        return tuple(noisy)
