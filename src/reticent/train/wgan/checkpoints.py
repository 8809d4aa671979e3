"""Keep a training chunk by chunk, so that one that was interrupted goes on with the steps that are left.

What is kept are the networks after a chunk. They follow from sums that carry their noise, so the guarantee covers them as it covers the table; neither sums nor
records nor the state of secret noise are in it. Steps that were made and not kept were seen by nobody: the steps that are made in their place are the only ones that anything
comes from, and each step of what is released has been paid for once. A chunk is found by all noisy answers before it (:class:`~reticent.train.marginals.noise.Journal`), so that
two processes in one folder never continue each other's.
"""

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reticent.run import content_of, one_thread
from reticent.train.marginals.noise import Journal
from reticent.train.wgan.noise import Source
from reticent.train.wgan.training import Ask, Game, Players, Trained

__all__ = ["Checkpoint", "steps_per_chunk", "trained_in_chunks"]

# Some seconds of work on a usual table: about what an interruption may cost.
FEWEST_STEPS = 50
# A chunk is about half a megabyte, so that even a training of the source's million steps keeps no more than some tens of them.
MOST_CHUNKS = 100


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A training after some of its steps.

    Parameters
    ----------
    players : Players
        Both networks.
    fakes : str
        Where the stream of fakes stands, which protects nobody.
    noise : str
        Where the stream of noise stands if it comes from a seed, for experiments. Empty for secret noise, whose state is never kept.
    """

    players: Players
    fakes: str
    noise: str


def steps_per_chunk(steps: int) -> int:
    """Return how many steps are made before they are kept.

    Examples
    --------
    >>> steps_per_chunk(1_000), steps_per_chunk(200_000)
    (50, 2000)
    """
    return max(FEWEST_STEPS, math.ceil(steps / MOST_CHUNKS))


def trained_in_chunks(
    game: Game,
    asks: Iterator[Ask],
    steps: int,
    *,
    rng: np.random.Generator,
    source: Source,
    journal: Journal,
) -> Trained:
    """Train a critic and a generator, or go on where that was interrupted.

    Parameters
    ----------
    game : Game
        The rules.
    asks : iterator of callable
        One per step of the critic: how the data are asked. Those of steps that were kept are not called.
    steps : int
        How many there are.
    rng : numpy.random.Generator
        Of initial weights, fakes and penalties.
    source : Source
        Of samples and noise.
    journal : Journal
        Keeps the chunks.
    """
    players = game.opening(rng)
    size = steps_per_chunk(steps)
    for start in range(0, steps, size):
        chunk = itertools.islice(asks, min(size, steps - start))
        before = players

        def go_on(chunk: Iterator[Ask] = chunk, before: Players = before) -> Checkpoint:
            with one_thread("blas"):
                after = game.played(before, chunk, rng)
            return Checkpoint(
                players=after,
                fakes=_where(rng),
                noise=_where(source.rng) if journal.repeats else "",
            )

        checkpoint = journal.keep(
            Checkpoint, go_on, content_of("steps of a critic", start)
        )
        players = checkpoint.players
        _put(rng, checkpoint.fakes)
        if journal.repeats:
            _put(source.rng, checkpoint.noise)
        for _ in chunk:
            pass  # steps that were found are passed over
    return game.trained(players)


def _where(rng: np.random.Generator) -> str:
    """Return where a seeded stream stands."""
    return json.dumps(rng.bit_generator.state)


def _put(rng: np.random.Generator, where: str) -> None:
    rng.bit_generator.state = json.loads(where)
