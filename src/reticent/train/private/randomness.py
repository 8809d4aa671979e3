r"""Which records take part in a private step, and the noise on what it releases: from a seed, or from system entropy.

:class:`SeededRandomness` can be repeated by everyone who knows the seed. It serves experiments and the pools of an
audit and carries no guarantee. :class:`SecretRandomness` draws batches and noise from a cryptographic
generator with a key that is never stored, and releases integers on a public grid, so that no bit of a floating-point
number betrays what was added to what: for an integer query, rounding the noise is the same as rounding
the sum, which is post-processing of the Gaussian mechanism. Rounding the query moves each of n
coordinates by at most half a grid step; the grid is so fine that this, and the rounding of the arithmetic
before it, stays within :func:`margin`, by which clipped gradients stay below their bound.

What the grid does not settle: a record's gradient is computed together with others, and how a matrix product rounds
may depend on their number. Such differences are within the margin in every test; that is a measurement,
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

from reticent.train.private.noise import secure_generator
from reticent.train.private.sums import Sum

__all__ = [
    "Batch",
    "Randomness",
    "SecretRandomness",
    "SeededRandomness",
    "margin",
    "mixed_seed",
    "normal_filler",
]

# Members of batches drawn at once, so that small batches are not drawn one by one.
BLOCK = 2**14
# Normal numbers drawn at once, so that small models do not spend their time on calls.
DRAWN = 2**16


def margin(batch: float) -> float:
    """Return the share by which clipped gradients stay below their bound, to leave room for rounding.

    Sums of B gradients in single precision err by about B 2^-24 of one gradient's bound. The margin is four times
    that, and a ten-thousandth for the grid.

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
        Rows; places without a record repeat a member of the model.
    present : Tensor of bool, (M, k)
        Places that hold a record. A batch may be empty.
    """

    index: Tensor
    present: Tensor

    def without_padding(self) -> "Batch":
        """Return the batch with as many places as the largest of its models has records, and at least one."""
        width = max(1, int(self.present.sum(1).max()))
        return Batch(index=self.index[:, :width], present=self.present[:, :width])


class Randomness(Protocol):
    """The source of batches and noise of a private training."""

    @property
    def secret(self) -> bool:
        """Whether nobody can draw the same numbers again; otherwise there is no guarantee."""
        ...

    def batches(
        self,
        members: Sequence[Tensor],
        rates: Sequence[float],
        *,
        steps: int,
        expected: int,
    ) -> Iterator[Batch]:
        """Yield the batch of every step: each member takes part independently, with the rate of its model.

        The expected size of a batch determines how many are drawn at once.
        """
        ...

    def release(
        self, sums: Sequence[Sum], *, bound: float, noise_multiplier: float
    ) -> list[Tensor]:
        """Return the sums with normal noise of ``noise_multiplier`` times the bound on a record's share.

        The next release overwrites the returned tensors.
        """
        ...

    def add_to(
        self,
        parameters: Sequence[Tensor],
        keeps: Sequence[float],
        *,
        deviation: float,
    ) -> bool:
        """Change each parameter in place to ``keep * parameter - deviation * z``, with the same draws z as a release.

        This saves two passes over the memory of large models. False, and nothing changes, if sums must be released instead.
        """
        ...


class SeededRandomness:
    """Randomness that follows from a seed, separately for each model. It carries no guarantee.

    With the extra ``compiled``, noise is drawn by a compiled generator, whose numbers differ from PyTorch's.

    Parameters
    ----------
    seeds : sequence of int
        Seed of each model.
    """

    secret = False

    def __init__(self, seeds: Sequence[int]) -> None:
        self._samplers = [_generator(seed, 1) for seed in seeds]
        self._fills = [normal_filler(seed) for seed in seeds]
        self._places: list[
            Tensor
        ] = []  # memory of the released sums, reused by each step
        self._ahead: list[Tensor] = []  # noise of later steps
        self._parameters: Sequence[Tensor] = ()  # to which noise was added last,
        self._flat: list[list[NDArray[np.float32]]] = []  # and their memory

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
            sampler = self._samplers[model]
            return drawn.geometric_(rates[model], generator=sampler).numpy()

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

    def add_to(
        self,
        parameters: Sequence[Tensor],
        keeps: Sequence[float],
        *,
        deviation: float,
    ) -> bool:
        """Shrink the parameters and add noise, if that is compiled and the noise is not drawn ahead."""
        if self._parameters is not parameters:
            self._parameters, self._flat = parameters, self._memory_of(parameters)
        for places, keep in zip(self._flat, keeps, strict=False):
            for place, fill in zip(places, self._fills, strict=True):
                fill.add(place, keep, -deviation)
        return bool(self._flat)

    def _memory_of(
        self, parameters: Sequence[Tensor]
    ) -> list[list[NDArray[np.float32]]]:
        """Return the memory of each parameter, by model; nothing if noise cannot be added there."""
        size = sum(parameter[0].numel() for parameter in parameters)
        compiled = all(fill.adds for fill in self._fills)
        contiguous = all(parameter.is_contiguous() for parameter in parameters)
        if not (compiled and contiguous) or _steps_ahead(size) > 1:
            return []
        return [[p.view(-1).numpy() for p in parameter] for parameter in parameters]

    def _fill(self) -> None:
        """Fill the places with standard normal draws; for small models, draw several steps ahead."""
        size = sum(place[0].numel() for place in self._places)
        ahead = _steps_ahead(size)
        if ahead == 1:
            for place in self._places:
                for of_model, fill in zip(place, self._fills, strict=True):
                    fill(of_model)
            return
        if not self._ahead:
            drawn = torch.empty(len(self._fills), ahead, size)
            for of_model, fill in zip(drawn, self._fills, strict=True):
                fill(of_model)
            self._ahead = list(drawn.unbind(1))
        noise, at = self._ahead.pop(), 0
        for place in self._places:
            width = place[0].numel()
            place.view(len(place), -1).copy_(noise[:, at : at + width])
            at += width


class SecretRandomness:
    """Randomness that nobody can repeat, on an integer grid, for one model.

    A separate thread draws the noise of the next step while this one is computed.
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
        """Return the sums with noise, as multiples of the grid step."""
        formed = [total.formed() for total in sums]
        size = sum(total.numel() for total in formed)
        grid = _grid(bound, size)
        noise = self._whole_noise(size, noise_multiplier * bound / grid)
        released, at = [], 0
        for total in formed:
            query = total.flatten().double().div_(grid).round_()
            # Integers below 2^53, so that their sum is exact, and so is its product with a power of two.
            query.add_(noise[at : at + len(query)]).mul_(grid)
            released.append(query.float().view(total.shape))
            at += len(query)
        return released

    def _whole_noise(self, size: int, deviation: float) -> Tensor:
        """Return integer noise with a standard deviation, and start to draw the next."""

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

    def add_to(
        self,
        parameters: Sequence[Tensor],
        keeps: Sequence[float],
        *,
        deviation: float,
    ) -> bool:
        """Change nothing: what carries a guarantee is released on a grid, before any parameter follows it."""
        return False


def _steps_ahead(size: int) -> int:
    """Return for how many steps the noise of a model with this many parameters is drawn at once.

    It must not depend on the number of models, so that each model has the same noise in every pool.
    """
    return max(1, DRAWN // size)


def _grid(bound: float, parameters: int) -> float:
    """Return a power of two so small that rounding all parameters moves the sum by at most 1e-5 of the bound."""
    return float(2.0 ** math.floor(math.log2(1e-5 * bound / math.sqrt(parameters))))


def mixed_seed(seed: int, stream: int) -> int:
    """Return a different seed for each stream of a seed."""
    state = np.random.SeedSequence([int(seed), stream]).generate_state(1, np.uint64)
    return int(state[0]) >> 1  # 63 bits, because PyTorch takes a signed integer


def _generator(seed: int, stream: int) -> torch.Generator:
    return torch.Generator().manual_seed(mixed_seed(seed, stream))


class Filler(Protocol):
    """The next standard normal draws of one model."""

    def __call__(self, place: Tensor) -> object:
        """Fill a tensor."""
        ...

    @property
    def adds(self) -> bool:
        """Whether noise can be drawn and added in one pass."""
        ...

    def add(self, place: NDArray[np.float32], keep: float, spread: float) -> None:
        """Change an array in place to ``keep * place + spread * z``."""
        ...


class _Drawn:
    """Draws of PyTorch's generator."""

    adds = False

    def __init__(self, seed: int) -> None:
        self._generator = _generator(seed, 2)

    def __call__(self, place: Tensor) -> object:
        return place.normal_(generator=self._generator)

    def add(self, place: NDArray[np.float32], keep: float, spread: float) -> None:
        drawn = self(torch.empty(len(place)))
        place *= np.float32(keep)
        place += np.float32(spread) * np.asarray(drawn)


class _Compiled:
    """Draws of the compiled generator."""

    adds = True

    def __init__(self, seed: int) -> None:
        from reticent.train.private import compiled

        self._compiled, self._state = compiled, compiled.new_state(mixed_seed(seed, 2))

    def __call__(self, place: Tensor) -> object:
        return self._compiled.fill_normal(place.view(-1).numpy(), self._state)

    def add(self, place: NDArray[np.float32], keep: float, spread: float) -> None:
        self._compiled.add_normal(
            place, self._state, np.float32(keep), np.float32(spread)
        )


def normal_filler(seed: int) -> Filler:
    """Return what fills a tensor with a model's next standard normal draws, compiled if the extra is installed."""
    try:
        return _Compiled(seed)
    except ImportError:
        return _Drawn(seed)


def _batches(
    gaps: Callable[[int, int], NDArray[np.int64]],
    members: Sequence[Tensor],
    rates: Sequence[float],
    steps: int,
    ahead: int,
) -> Iterator[Batch]:
    """Yield the batch of every step from the gaps between records that take part, drawn several steps ahead."""
    for start in range(0, steps, ahead):
        block = np.arange(min(ahead, steps - start))
        rows, cuts = [], []
        for m, of_model in enumerate(members):
            size = len(of_model)
            row = _taken(functools.partial(gaps, m), size, rates[m], len(block))
            rows.append(row)
            cuts.append(np.searchsorted(row, size * np.arange(len(block) + 1)))
        counts = np.diff(np.stack(cuts), axis=1)
        # Widths are multiples of eight, because others are slow, and at least eight, because an empty batch is a batch.
        widths = 8 * np.maximum(1, -(-counts.max(axis=0) // 8))
        widest = int(widths.max())
        index = np.empty((len(members), len(block), widest), dtype=np.int64)
        for m, (of_model, row) in enumerate(zip(members, rows, strict=True)):
            index[m] = int(of_model[0])
            who = row - np.repeat(len(of_model) * block, counts[m])
            shift = np.repeat(widest * block - cuts[m][:-1], counts[m])
            index[m].ravel()[np.arange(len(row)) + shift] = of_model.numpy()[who]
        indices = torch.from_numpy(index)
        for step in block:
            width = int(widths[step])
            yield Batch(
                index=indices[:, step, :width],
                present=torch.arange(width)[None]
                < torch.from_numpy(counts[:, step])[:, None],
            )


def _taken(
    gaps: Callable[[int], NDArray[np.int64]], members: int, rate: float, steps: int
) -> NDArray[np.int64]:
    """Return which members take part in several steps, as positions in one long row that repeats the members for each step.

    The row is a sequence of coin flips, in which the gap between two successes is geometric.
    """
    length, last, places = steps * members, -1, []
    if rate == 1:
        return np.arange(length)
    while last < length:
        # Four standard deviations more than expected, so that one draw almost always suffices.
        count = int(rate * (length - last) + 4 * math.sqrt(rate * length)) + 8
        places.append(last + np.cumsum(gaps(count)))
        last = int(places[-1][-1])
    row = np.concatenate(places)
    return row[: np.searchsorted(row, length)]
