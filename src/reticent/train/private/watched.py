r"""Train many private models on one of two neighbouring tables each, and record what an observer of every step could use.

The strong adversary of [1]_ (Algorithm 1) knows both tables, the initial weights, which other records take part in a
step, and every noisy sum that is released. So it can compute, at the current weights, what either table would have
released without noise; only the noise is unknown. A few numbers per step hold everything that its
likelihoods need, and :class:`~reticent.pool.Trace` consists of them.

The share of the record in question is measured and not computed from what the clipping states: the training's own sums
are formed with and without it, for the same batch. At some steps they are formed with a record of a very long gradient, too.

The models are never released: initialisation, coins, batches and noise come from seeds.

References
----------
.. [1] D5.3, MOSAICrOWN, 2020, Section 5.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reticent.errors import InvalidInput
from reticent.pool import Side, Trace, Truth
from reticent.product import Departure
from reticent.train._trial import made_with
from reticent.train._vector import replaced_dropout
from reticent.train.engine import stacked_parameters
from reticent.train.losses import loss_of
from reticent.train.modules import laid_out, wants_channels_last
from reticent.train.private._seen import NoiseOfMany
from reticent.train.private.clipping import Scaling
from reticent.train.private.dropout import KeyedDropout, dropout_keys, kept_units
from reticent.train.private.modules import (
    gradients_of_records,
    refuse_mixing,
    trained_layers,
)
from reticent.train.private.networks import Follower, gradients_of_batch
from reticent.train.private.randomness import Batch, SeededRandomness, normal_filler
from reticent.train.private.sums import Piece
from reticent.train.recipes import Private, PrivateNetwork
from reticent.train.stacking import View, batch_order

__all__ = [
    "Neighbours",
    "module_shares_at_start",
    "network_shares_at_start",
    "watch_modules",
    "watch_networks",
]

AS_STATED = Departure()
# Parameters of all models watched in one pass: 16 MB in single precision.
TOGETHER = 2**22
LONG = 1e6  # times a gradient, which is then longer than any clipping may let pass
CHUNK = 256  # records of a module's batch differentiated at once, so that per-record gradients stay small


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Two tables that differ in one record, as rows of one array.

    Parameters
    ----------
    common : array of int
        Records that both tables hold.
    own : int
        The record of the first table that the second one lacks.
    other : int, optional
        The record that the second table holds in its place; None if there is none.
    """

    common: NDArray[np.int64]
    own: int
    other: int | None = None

    def __post_init__(self) -> None:
        if len(self.common) < 1:
            raise InvalidInput(
                "the tables share no record, so the record in question cannot hide among others; use more records."
            )
        if self.own in self.common or self.other in (self.own, *self.common):
            raise InvalidInput(
                f"the records {self.own} and {self.other} should tell the tables apart, but one of them is in both; choose others."
            )


class _Models(Protocol):
    """Models that are trained side by side: they sum clipped gradients and follow what is released."""

    def sums(
        self, index: Tensor, masks: Sequence[Tensor], stretch: Tensor | None = None
    ) -> list[Tensor]:
        """Return the sums of clipped gradients for each mask of who is present, (M, P).

        Gradients are multiplied by ``stretch``, (k,), before they are clipped.
        """
        ...

    def lengths(self, index: Tensor) -> Tensor:
        """Return the lengths of clipped gradients, (M, k)."""
        ...

    def move(self, released: Tensor) -> None:
        """Take a step along the released sums, (M, P)."""
        ...

    @property
    def bound(self) -> float:
        """Largest length of a record's share."""
        ...

    @property
    def sizes(self) -> list[int]:
        """Numbers in each parameter."""
        ...


def watch_networks(
    view: View,
    neighbours: Neighbours,
    recipe: PrivateNetwork,
    seeds: Sequence[int],
    *,
    departure: Departure = AS_STATED,
) -> tuple[Trace, Truth]:
    """Train one network per seed on either table, many in one pass, and return what an observer could use.

    Parameters
    ----------
    view : View
        The records of both tables, as every model sees them.
    neighbours : Neighbours
        Which of the records the two tables hold.
    recipe : PrivateNetwork
        The training.
    seeds : sequence of int
        Seed of each run: the coin that chooses the table, initialisation, batches, noise.
    departure : Departure
        How the training departs from DP-SGD.
    """
    parameters = sum(recipe.sizes(view.inputs.shape[1], view.targets.shape[1]))
    together = max(1, min(len(seeds), TOGETHER // parameters))
    groups = [seeds[at : at + together] for at in range(0, len(seeds), together)]
    return _joined(
        _watch(_Networks(view, recipe, group), neighbours, recipe, group, departure)
        for group in groups
    )


def watch_modules(
    make: Callable[[], nn.Module],
    view: View,
    neighbours: Neighbours,
    recipe: Private,
    seeds: Sequence[int],
    *,
    departure: Departure = AS_STATED,
) -> tuple[Trace, Truth]:
    """Train one module of the user per seed on either table, one after another; see :func:`watch_networks`.

    Parameters
    ----------
    make : callable
        Returns a new module.
    view, neighbours, recipe, seeds, departure
        As in :func:`watch_networks`.
    """
    return _joined(
        _watch(
            _Module(make, view, recipe, int(seed)),
            neighbours,
            recipe,
            [seed],
            departure,
        )
        for seed in seeds
    )


def _joined(watched: Iterable[tuple[Trace, Truth]]) -> tuple[Trace, Truth]:
    traces, truths = zip(*watched, strict=True)
    return Trace.join(list(traces)), Truth.join(list(truths))


def network_shares_at_start(
    view: View, rows: Sequence[int], recipe: PrivateNetwork, *, seed: int
) -> Tensor:
    """Return the clipped gradients of the given records at the initial weights of a network, (rows, P).

    They serve to choose the neighbour with the largest difference of gradients.
    """
    return _shares(_Networks(view, recipe, [seed]), rows)


def module_shares_at_start(
    make: Callable[[], nn.Module],
    view: View,
    rows: Sequence[int],
    recipe: Private,
    *,
    seed: int,
) -> Tensor:
    """Return the clipped gradients of the given records at the initial weights of a module, (rows, P)."""
    return _shares(_Module(make, view, recipe, seed), rows)


def _shares(models: _Models, rows: Sequence[int]) -> Tensor:
    alone = torch.ones(1, 1, dtype=torch.bool)
    return torch.cat([models.sums(torch.tensor([[row]]), [alone])[0] for row in rows])


def _watch(
    models: _Models,
    neighbours: Neighbours,
    recipe: Private,
    seeds: Sequence[int],
    departure: Departure,
) -> tuple[Trace, Truth]:
    """Train one group of models and record what an observer sees of every step."""
    coins = [np.random.default_rng([int(seed), 5]).integers(2) == 1 for seed in seeds]
    first = torch.tensor(coins)
    fills = [normal_filler(int(seed)) for seed in seeds]
    members = torch.tensor([*neighbours.common, neighbours.own])
    course = recipe.course(len(members))
    rate = course.sampling_rate
    shuffled = departure.shuffled
    if shuffled:
        rate = 1 / math.ceil(len(members) / recipe.batch)
    rows: dict[str, list[Tensor]] = {}
    noise_seen = NoiseOfMany(models.sizes, course.steps)
    # Where a record stands in its batch must not matter; at a fixed place it could not be seen that it does.
    places = np.random.default_rng(0)

    def record(**numbers: Tensor) -> None:
        for name, value in numbers.items():
            rows.setdefault(name, []).append(value)

    for batch in _batches(members, recipe, course.steps, rate, seeds, shuffled):
        others = batch.present & (batch.index != neighbours.own)
        taken = (batch.present & (batch.index == neighbours.own)).any(1)
        at = int(places.integers(others.shape[1] + 1))
        common, share, another = _with_and_without(
            models, neighbours, batch.index, others, at
        )
        reach = torch.maximum(_square(share), _square(another)).sqrt() / models.bound
        step = len(rows.get("taken", ()))
        if step & (step - 1) == 0:  # 0, 1, 2, 4, 8, ...
            long = _longest(models, neighbours.own, batch.index, others, at)
            reach = torch.maximum(reach, long / models.bound)
        distance = _square(share - another).sqrt()
        one, two = _scales(models, neighbours, batch, distance, departure.local)
        deviation = recipe.noise_multiplier * torch.where(first, one, two)
        noise = torch.empty_like(share)
        for of_model, fill in zip(noise, fills, strict=True):
            fill(of_model)
        used = torch.where(first[:, None], share, another) * taken[:, None]
        noise_seen.add(
            noise=noise,
            summed=common + used,
            apart=share - another,
            reach=reach,
            records=others.sum(1)
            + (taken & (first | (neighbours.other is not None))).long(),
        )
        # The release without the common sum, which the adversary knows.
        rest = noise.mul_(deviation.float()[:, None]).add_(used)
        record(
            residual=_square(rest),
            inner=_inner(rest, share),
            inner_other=_inner(rest, another),
            square=_square(share),
            square_other=_square(another),
            deviation=recipe.noise_multiplier * one,
            deviation_other=recipe.noise_multiplier * two,
            distance=distance,
            taken=taken,
        )
        models.move(common.add_(rest))

    def recorded(name: str) -> NDArray[np.float64]:
        return torch.stack(rows[name], 1).numpy()

    residual = recorded("residual")
    took_part = torch.stack(rows["taken"], 1).numpy()
    trace = Trace(
        first=Side(
            residual=residual,
            inner=recorded("inner"),
            square=recorded("square"),
            deviation=recorded("deviation"),
        ),
        second=Side(
            residual=residual,
            inner=recorded("inner_other"),
            square=recorded("square_other"),
            deviation=recorded("deviation_other"),
        ),
        distance=recorded("distance"),
        size=common.shape[1],
        rate=rate,
        place=took_part if shuffled else None,
    )
    # A table that lacks the record has one row fewer, unless it holds another in its place.
    held = len(members) - (~first & (neighbours.other is None)).long()
    return trace, Truth(
        first=first.numpy(),
        taken=took_part,
        seen=(noise_seen.noise(held, took_part),),
    )


def _with_and_without(
    models: _Models, neighbours: Neighbours, index: Tensor, others: Tensor, at: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sum over the records that both tables share, and what either table's own record adds to it, each (M, P).

    The sums are the training's own: gradients of the batch, with the record in question among the others at place ``at``.
    """
    own = [neighbours.own, *([] if neighbours.other is None else [neighbours.other])]
    masks = [_joined_at(others, at, [False for _ in own])]
    for chosen in range(len(own)):
        masks.append(
            _joined_at(others, at, [number == chosen for number in range(len(own))])
        )
    common, *sums = models.sums(_joined_at(index, at, own), masks)
    shares = [total - common for total in sums]
    if neighbours.other is None:
        shares.append(torch.zeros_like(common))
    return common, shares[0], shares[1]


def _longest(
    models: _Models, own: int, index: Tensor, others: Tensor, at: int
) -> Tensor:
    """Return how far a record whose gradient is very long would move the sums, (M,)."""
    wider = _joined_at(index, at, [own])
    masks = [_joined_at(others, at, [False]), _joined_at(others, at, [True])]
    stretch = torch.ones(wider.shape[1])
    stretch[at] = LONG
    without, with_it = models.sums(wider, masks, stretch)
    return _square(with_it - without).sqrt()


def _joined_at(rows: Tensor, at: int, values: Sequence[float]) -> Tensor:
    """Return rows with further columns of one value each, at a place among them."""
    more = torch.tensor(values, dtype=rows.dtype).expand(len(rows), -1)
    return torch.cat([rows[:, :at], more, rows[:, at:]], 1)


def _scales(
    models: _Models,
    neighbours: Neighbours,
    batch: Batch,
    distance: Tensor,
    local: str | None,
) -> tuple[Tensor, Tensor]:
    """Return the lengths to which the noise is scaled under either table, each (M,)."""
    if local is None:
        bound = torch.full_like(distance, models.bound)
        return bound, bound
    if local == "pair":
        return distance, distance
    if local != "own":
        raise InvalidInput(
            f"the local sensitivity {local!r} is not known; use 'pair' or 'own', or leave it out."
        )
    lengths = models.lengths(batch.index).double()
    others = batch.present & (batch.index != neighbours.own)
    common = torch.where(others, lengths, 0.0).amax(1)
    m = len(common)
    own = models.lengths(torch.full((m, 1), neighbours.own)).double()[:, 0]
    if neighbours.other is None:
        return torch.maximum(common, own), common
    other = models.lengths(torch.full((m, 1), neighbours.other)).double()[:, 0]
    return torch.maximum(common, own), torch.maximum(common, other)


def _batches(
    members: Tensor,
    recipe: Private,
    steps: int,
    rate: float,
    seeds: Sequence[int],
    shuffled: bool,
) -> Iterator[Batch]:
    if not shuffled:
        yield from SeededRandomness(seeds).batches(
            [members] * len(seeds),
            [rate] * len(seeds),
            steps=steps,
            expected=recipe.batch,
        )
        return
    generators = [torch.Generator().manual_seed(int(seed) + 1) for seed in seeds]
    done = 0
    while done < steps:
        orders = torch.stack([batch_order(members, g) for g in generators])
        for index in torch.split(orders, recipe.batch, 1)[: steps - done]:
            yield Batch(index=index, present=torch.ones_like(index, dtype=torch.bool))
            done += 1


class _Networks:
    """Stacked networks of one shape."""

    def __init__(
        self, view: View, recipe: PrivateNetwork, seeds: Sequence[int]
    ) -> None:
        generators = [torch.Generator().manual_seed(int(seed)) for seed in seeds]
        sizes = [view.inputs.shape[1], *recipe.hidden, view.targets.shape[-1]]
        self._weights, self._biases = stacked_parameters(
            sizes, generators, recipe.initial
        )
        self._view, self._recipe = view, recipe
        self._keys, self._step = dropout_keys(seeds, secret=False), 0
        self._follower = Follower(
            list(zip(self._weights, self._biases, strict=True)),
            [recipe.l2, 0.0] * len(self._weights),
            recipe,
        )

    @property
    def bound(self) -> float:
        return self._follower.bound

    @property
    def sizes(self) -> list[int]:
        return _sizes(self._follower)

    def sums(
        self, index: Tensor, masks: Sequence[Tensor], stretch: Tensor | None = None
    ) -> list[Tensor]:
        pieces = _stretched(self._pieces(index), stretch)
        return [_flat(self._follower, pieces, present) for present in masks]

    def lengths(self, index: Tensor) -> Tensor:
        return _lengths(self._follower, self._pieces(index))

    def _pieces(self, index: Tensor) -> Sequence[Sequence[Piece]]:
        batch = Batch(index=index, present=torch.ones_like(index, dtype=torch.bool))
        # The masks of a record are those of the step, whether it is asked about alone or with others.
        kept = kept_units(self._recipe, self._keys, self._step, index)
        return gradients_of_batch(
            self._weights, self._biases, self._view, batch, self._recipe, kept
        )

    def move(self, released: Tensor) -> None:
        self._follower.move(_parts(self._follower, released))
        self._step += 1


class _Module:
    """One module of the user."""

    def __init__(
        self, make: Callable[[], nn.Module], view: View, recipe: Private, seed: int
    ) -> None:
        module, _ = made_with(make, seed, view.inputs[:1])
        refuse_mixing(module)
        module.train()
        if wants_channels_last(view.inputs, module):
            module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._module, self._view = module, view
        self._loss = loss_of(recipe, view.targets.shape[-1])
        # A watched module is never released, so its own dropout layers are not put back.
        dropped = replaced_dropout(module)
        self._dropout = KeyedDropout(
            module,
            dropped,
            view.batch(torch.zeros(1, 1, dtype=torch.int64))[0][0],
            dropout_keys([seed], secret=False),
        )
        self._step = 0
        layers = trained_layers(module)
        self._follower = Follower(
            [[p.data[None] for p in layer] for _, layer in layers],
            [recipe.l2 if p.ndim >= 2 else 0.0 for _, layer in layers for p in layer],
            recipe,
        )

    @property
    def bound(self) -> float:
        return self._follower.bound

    @property
    def sizes(self) -> list[int]:
        return _sizes(self._follower)

    def sums(
        self, index: Tensor, masks: Sequence[Tensor], stretch: Tensor | None = None
    ) -> list[Tensor]:
        totals = [torch.zeros(1, sum(self.sizes)) for _ in masks]
        # Places without a record need no gradient.
        places = torch.stack([mask[0] for mask in masks]).any(0).nonzero()[:, 0]
        for chunk in torch.split(places, CHUNK) if len(places) else ():
            factor = None if stretch is None else stretch[chunk]
            pieces = _stretched(self._pieces(index[0][chunk]), factor)
            for total, mask in zip(totals, masks, strict=True):
                total.add_(_flat(self._follower, pieces, mask[:, chunk]))
        return totals

    def lengths(self, index: Tensor) -> Tensor:
        return torch.cat(
            [
                _lengths(self._follower, self._pieces(chunk))
                for chunk in torch.split(index[0], CHUNK)
            ],
            1,
        )

    def _pieces(self, rows: Tensor) -> Sequence[Sequence[Piece]]:
        x, y = self._view.batch(rows[None])
        inputs = laid_out(x[0], self._module)
        # The masks of a record are those of the step, whether it is asked about alone or with others.
        kept = self._dropout.chosen(self._step, rows)
        return gradients_of_records(self._module, inputs, y[0], self._loss, kept)

    def move(self, released: Tensor) -> None:
        self._follower.move(_parts(self._follower, released))
        self._step += 1


def _sizes(follower: Follower) -> list[int]:
    return [p[0].numel() for p in follower.descent.parameters]


def _stretched(
    pieces: Sequence[Sequence[Piece]], factor: Tensor | None
) -> Sequence[Sequence[Piece]]:
    if factor is None:
        return pieces
    return [[piece.stretched(factor) for piece in layer] for layer in pieces]


def _flat(
    follower: Follower, pieces: Sequence[Sequence[Piece]], present: Tensor
) -> Tensor:
    sums = follower.sums(pieces, present)
    return torch.cat([part.formed().flatten(1) for layer in sums for part in layer], 1)


def _lengths(follower: Follower, pieces: Sequence[Sequence[Piece]]) -> Tensor:
    """Return the lengths of single clipped gradients, (M, k)."""
    clipping = follower.recipe.clipping
    if not isinstance(clipping, Scaling):
        raise InvalidInput(
            f"the local sensitivity of {type(clipping).__name__} is not known; use a clipping that scales gradients, such as Clip."
        )
    squares = torch.stack([p.squares() for layer in pieces for p in layer]).sum(0)
    norm = squares.sqrt()
    lengths: Tensor = norm * clipping.factor(norm)
    return lengths


def _parts(follower: Follower, released: Tensor) -> list[Tensor]:
    parameters = follower.descent.parameters
    cut = torch.split(released, _sizes(follower), 1)
    return [part.reshape(p.shape) for part, p in zip(cut, parameters, strict=True)]


def _inner(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(1, dtype=torch.float64)


def _square(a: Tensor) -> Tensor:
    return _inner(a, a)
