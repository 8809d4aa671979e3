r"""Who takes part in a private step, and the noise on what it releases: from a seed, or from system entropy.

:class:`SeededRandomness` can be repeated by everyone who knows the seed. It serves experiments and the pools of an
audit and carries no guarantee. :class:`SecretRandomness` draws batches and noise from a cryptographic
generator with a key that is never kept, and releases integers on a public grid, so that no bit of a floating-point
number betrays what was added to what: on an integer query, rounding the noise is rounding
the sum, which is post-processing of the Gaussian mechanism. Rounding the query moves each of n
coordinates by half a grid step at most; the grid is so fine that this, and the rounding of the arithmetic
before it, stays within :func:`margin`, by which clipped gradients are kept short.

What the grid does not settle: a record's own gradient is computed beside others, and how a matrix product rounds
may depend on how many they are. Such differences are within the margin in every test; that is a measurement,
not a proof.

References
----------
.. [1] Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
.. [2] Haney et al., "Precision-based attacks and interval refining", arXiv:2207.13793.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.train.private._sums import Sum
from reticent.train.private.noise import secure_generator

__all__ = [
    "Batch",
    "Randomness",
    "SecretRandomness",
    "SeededRandomness",
    "margin",
    "normal_filler",
]

BLOCK = 2**14  # places of a batch drawn at once
DRAWN = (
    2**16
)  # normal numbers drawn at once, so that small models do not wait for calls


def margin(batch: float) -> float:
    """Return by what share clipped gradients stay below their bound, to leave room for rounding.

    Sums of B gradients in single precision err by about B 2^-24 of one gradient's bound; four times
    that is left, and a ten-thousandth for the grid.

    Examples
    --------
    >>> round(margin(256), 6)
    0.000161
    """
    return 1e-4 + batch * 2.0**-22


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The records of one step of each model.

    Parameters
    ----------
    index : Tensor, (M, k)
        Rows; places without a record repeat one of the model's own.
    present : Tensor of bool, (M, k)
        Places that hold a record. A batch may be empty.
    """

    index: Tensor
    present: Tensor


class Randomness(Protocol):
    """The secret side of private training."""

    @property
    def secret(self) -> bool:
        """Whether nobody can draw it again; without that there is no guarantee."""
        ...

    def batches(
        self,
        members: Sequence[Tensor],
        rates: Sequence[float],
        *,
        steps: int,
        expected: int,
    ) -> Iterator[Batch]:
        """Yield the batch of every step: each member takes part with a probability, by itself.

        The expected size of a batch says how many are worth drawing at once.
        """
        ...

    def release(
        self, sums: Sequence[Sum], *, bound: float, noise_multiplier: float
    ) -> list[Tensor]:
        """Return the sums with normal noise added, so many times the bound on a record's share.

        What is returned is the caller's until the next release.
        """
        ...


class SeededRandomness:
    """Randomness that a seed repeats, for each model by itself. Carries no guarantee.

    With the extra ``compiled`` noise is drawn by a compiled generator, whose numbers are others than PyTorch's.

    Parameters
    ----------
    seeds : sequence of int
        One for each model.
    """

    secret = False

    def __init__(self, seeds: Sequence[int]) -> None:
        self._samplers = [_generator(seed, 1) for seed in seeds]
        self._fills = [normal_filler(seed) for seed in seeds]
        self._places: list[Tensor] = []  # where what is released lies, until the next
        self._ahead: list[Tensor] = []  # noise of steps to come

    def batches(
        self,
        members: Sequence[Tensor],
        rates: Sequence[float],
        *,
        steps: int,
        expected: int,
    ) -> Iterator[Batch]:
        """Yield the batch of every step."""

        def gaps(model: int, count: int) -> NDArray[np.int64]:
            drawn = torch.empty(count, dtype=torch.int64)
            own = self._samplers[model]
            return drawn.geometric_(rates[model], generator=own).numpy()

        return _batches(gaps, members, rates, steps, max(1, BLOCK // expected))

    def release(
        self, sums: Sequence[Sum], *, bound: float, noise_multiplier: float
    ) -> list[Tensor]:
        """Return the sums with noise."""
        shapes = [total.shape for total in sums]
        if [tuple(place.shape) for place in self._places] != shapes:
            self._places = [torch.empty(shape) for shape in shapes]
        self._fill()
        return [
            total.onto(place, noise_multiplier * bound)
            for total, place in zip(sums, self._places, strict=True)
        ]

    def _fill(self) -> None:
        """Put normal numbers into all places, for small models those of some steps at once."""
        size = sum(place[0].numel() for place in self._places)
        # How many steps must not depend on how many models: a model's noise is its own.
        ahead = DRAWN // size
        if ahead < 2:
            for place in self._places:
                for own, fill in zip(place, self._fills, strict=True):
                    fill(own)
            return
        if not self._ahead:
            drawn = torch.empty(len(self._fills), ahead, size)
            for own, fill in zip(drawn, self._fills, strict=True):
                fill(own)
            self._ahead = list(drawn.unbind(1))
        noise, at = self._ahead.pop(), 0
        for place in self._places:
            width = place[0].numel()
            place.view(len(place), -1).copy_(noise[:, at : at + width])
            at += width


class SecretRandomness:
    """Randomness that nobody can repeat, on an integer grid. For one model.

    The noise of the next step is drawn while this one is computed, by a thread of its own.
    """

    secret = True

    def __init__(self) -> None:
        self._sampler, self._noise = secure_generator(), secure_generator()
        self._thread = ThreadPoolExecutor(1)
        self._next: tuple[float, Future[Tensor]] | None = None

    def batches(
        self,
        members: Sequence[Tensor],
        rates: Sequence[float],
        *,
        steps: int,
        expected: int,
    ) -> Iterator[Batch]:
        """Yield the batch of every step."""

        def gaps(model: int, count: int) -> NDArray[np.int64]:
            return self._sampler.geometric(rates[model], count)

        return _batches(gaps, members, rates, steps, max(1, BLOCK // expected))

    def release(
        self, sums: Sequence[Sum], *, bound: float, noise_multiplier: float
    ) -> list[Tensor]:
        """Return the sums with noise, each a multiple of the grid."""
        formed = [total.formed() for total in sums]
        size = sum(total.numel() for total in formed)
        grid = _grid(bound, size)
        noise = self._whole_noise(size, noise_multiplier * bound / grid)
        released, at = [], 0
        for total in formed:
            query = total.flatten().double().div_(grid).round_()
            # Integers below 2^53: their sum is exact, and so is its product with a power of two.
            query.add_(noise[at : at + len(query)]).mul_(grid)
            released.append(query.float().view(total.shape))
            at += len(query)
        return released

    def _whole_noise(self, size: int, deviation: float) -> Tensor:
        """Return whole noise of a deviation, and have the next drawn."""

        def draw() -> Tensor:
            drawn = self._noise.standard_normal(size)
            drawn *= deviation
            return torch.from_numpy(np.rint(drawn, out=drawn))

        ready = self._next
        self._next = deviation, self._thread.submit(draw)
        if ready is not None and ready[0] == deviation:
            noise = ready[1].result()
            if len(noise) == size:
                return noise
        noise = self._next[1].result()
        self._next = deviation, self._thread.submit(draw)
        return noise


def _grid(bound: float, parameters: int) -> float:
    """Return a power of two so fine that rounding all parameters moves the sum by 1e-5 of the bound."""
    return float(2.0 ** math.floor(math.log2(1e-5 * bound / math.sqrt(parameters))))


def _mixed(seed: int, stream: int) -> int:
    """Return a seed of its own for each use of a seed."""
    found = np.random.SeedSequence([int(seed), stream]).generate_state(1, np.uint64)
    return int(found[0]) >> 1


def _generator(seed: int, stream: int) -> torch.Generator:
    return torch.Generator().manual_seed(_mixed(seed, stream))


def normal_filler(seed: int) -> Callable[[Tensor], object]:
    """Return what fills a tensor with a model's next normal numbers, compiled if it can be."""
    try:
        from reticent.train.private._compiled import fill_normal, new_state
    except ImportError:
        generator = _generator(seed, 2)
        return lambda place: place.normal_(generator=generator)
    state = new_state(_mixed(seed, 2))
    return lambda place: fill_normal(place.view(-1).numpy(), state)


def _batches(
    gaps: Callable[[int, int], NDArray[np.int64]],
    members: Sequence[Tensor],
    rates: Sequence[float],
    steps: int,
    ahead: int,
) -> Iterator[Batch]:
    """Yield the batch of every step from the gaps between those who take part, drawn some steps ahead."""
    for start in range(0, steps, ahead):
        some = np.arange(min(ahead, steps - start))
        rows, cuts = [], []
        for m, own in enumerate(members):
            row = _taken(functools.partial(gaps, m), len(own), rates[m], len(some))
            rows.append(row)
            cuts.append(np.searchsorted(row, len(own) * np.arange(len(some) + 1)))
        counts = np.diff(np.stack(cuts), axis=1)
        # Whole vectors of eight: odd widths are slow, and an empty batch is a batch.
        widths = 8 * np.maximum(1, -(-counts.max(axis=0) // 8))
        width = int(widths.max())
        index = np.empty((len(members), len(some), width), dtype=np.int64)
        for m, (own, row) in enumerate(zip(members, rows, strict=True)):
            index[m] = int(own[0])
            who = row - np.repeat(len(own) * some, counts[m])
            shift = np.repeat(width * some - cuts[m][:-1], counts[m])
            index[m].ravel()[np.arange(len(row)) + shift] = own.numpy()[who]
        taken = torch.from_numpy(index)
        for s in some:
            own_width = int(widths[s])
            yield Batch(
                index=taken[:, s, :own_width],
                present=torch.arange(own_width)[None]
                < torch.from_numpy(counts[:, s])[:, None],
            )


def _taken(
    gaps: Callable[[int], NDArray[np.int64]], members: int, rate: float, steps: int
) -> NDArray[np.int64]:
    """Return who takes part in some steps, as places in one long row of members after members.

    The row is one of coin flips; between two successes lies a geometric number.
    """
    length, last, places = steps * members, -1, []
    if rate == 1:
        return np.arange(length)
    while last < length:
        count = int(rate * (length - last) + 4 * math.sqrt(rate * length)) + 8
        places.append(last + np.cumsum(gaps(count)))
        last = int(places[-1][-1])
    row = np.concatenate(places)
    return row[: np.searchsorted(row, length)]
