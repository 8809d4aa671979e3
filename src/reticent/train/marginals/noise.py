"""All randomness that protects records in a marginal generator: integer noise on counts, and choices."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent.run import Content, Run, content_of, pack, stream
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
        Most noisy counts and choices that there are, for the progress.
    repeats : bool
        Whether the source draws the same again, as seeded noise does. Counts and choices are then drawn again and not read, so that the source stands where it stood
        before the interruption.
    """

    source: Noise
    run: Run
    depends: Content
    steps: int
    repeats: bool = False
    _hashes: list[str] = field(default_factory=list)  # one for each answer so far

    def on_counts(
        self, counts: NDArray[np.int64], deviation: float
    ) -> NDArray[np.float64]:
        """Return noisy counts, drawn now or before the interruption."""
        question = content_of("counts", list(counts.shape), deviation)
        noisy: NDArray[np.float64] = self._answered(
            NDArray[np.float64],
            lambda: self.source.on_counts(counts, deviation),
            question,
        )
        return noisy

    def choose(self, scores: NDArray[np.float64], epsilon: float) -> int:
        """Return a choice, made now or before the interruption."""
        question = content_of("choice", len(scores), epsilon)
        return self._answered(int, lambda: self.source.choose(scores, epsilon), question)  # fmt: skip

    def keep(self, kind: Any, make: Callable[[], Answer], question: Content) -> Answer:
        """Return a noisy answer of any type, made now or before the interruption.

        Parameters
        ----------
        kind : type
            Type of the answer, by which it is read; see :func:`reticent.run.unpack`.
        make : callable
            Asks the records, and draws the noise.
        question : Content
            What is asked, beside all that the answers before this one decide.
        """
        answer: Answer = self.run.keep(
            f"noisy answers/{len(self._hashes)}",
            kind,
            make,
            depends=self.depends + self._before + question,
        )
        self._note(answer)
        return answer

    @property
    def _before(self) -> Content:
        """All answers before the next one."""
        return content_of(self._hashes[-1] if self._hashes else "first")

    def _note(self, answer: object) -> None:
        digest = hashlib.sha256(self._before.digest.encode() + pack(answer))
        self._hashes.append(digest.hexdigest())

    def _answered(
        self, kind: Any, make: Callable[[], Answer], question: Content
    ) -> Answer:
        if self.repeats:
            answer = make()
            self._note(answer)
        else:
            answer = self.keep(kind, make, question)
        done = min(len(self._hashes), self.steps)
        self.run.tell("counting with noise", done, self.steps)
        return answer
