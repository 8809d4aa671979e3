"""All randomness that protects records in a marginal generator: integer noise on counts, and choices."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent.run import Content, Run, content_of, stream
from reticent.train.private.exact import choice_by_weight
from reticent.train.private.noise import secure_generator

__all__ = ["STEPS", "Journal", "Noise"]

Answer = TypeVar("Answer")

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


@dataclass(frozen=True)
class Journal(Noise):
    """Noise whose answers are kept before anybody uses them, so that an interrupted fit goes on without asking again.

    Whoever sees two answers to one question has paid for one. Every answer is therefore written to the store before the fit goes on, and found
    there after an interruption. An answer belongs to all that were given before it: its name contains a hash of them, so
    that two fits that ran at the same time are never mixed. Exact counts are neither written nor hashed.

    Parameters
    ----------
    rng : numpy.random.Generator
        That of the source. Its state is not kept.
    source : Noise
        Where the noise comes from.
    run : Run
        The store, and who is told of progress.
    depends : Content
        What the fit depends on: table, recipe and seed.
    steps : int
        Most answers that there are, for the progress.
    """

    source: Noise
    run: Run
    depends: Content
    steps: int
    _hashes: list[str] = field(default_factory=list)  # one for each answer so far

    def on_counts(
        self, counts: NDArray[np.int64], deviation: float
    ) -> NDArray[np.float64]:
        """Return noisy counts, drawn now or before the interruption."""
        question = content_of("counts", list(counts.shape), deviation)
        noisy: NDArray[np.float64] = self._kept(
            NDArray[np.float64],
            lambda: self.source.on_counts(counts, deviation),
            question,
        )
        return noisy

    def choose(self, scores: NDArray[np.float64], epsilon: float) -> int:
        """Return a choice, made now or before the interruption."""
        question = content_of("choice", len(scores), epsilon)
        return self._kept(int, lambda: self.source.choose(scores, epsilon), question)  # fmt: skip

    def _kept(self, kind: Any, make: Callable[[], Answer], question: Content) -> Answer:
        number = len(self._hashes)
        before = content_of(self._hashes[-1] if self._hashes else "first")
        answer: Answer = self.run.keep(
            f"noisy answers/{number}",
            kind,
            make,
            depends=self.depends + before + question,
        )
        text = f"{before.digest} {np.asarray(answer).tobytes().hex()}"
        self._hashes.append(hashlib.sha256(text.encode()).hexdigest())
        self.run.tell("counting with noise", min(number + 1, self.steps), self.steps)
        return answer
