"""What models that are trained together share, whatever their shape: epochs, batches, optimisers."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.errors import InvalidInput
from reticent.train.recipes import SGD, Adam

__all__ = ["Cohort", "Descent", "Epoch", "View", "batch_order", "rotated"]


def batch_order(members: Tensor, generator: torch.Generator) -> Tensor:
    """Return a model's members in a random order, for one epoch."""
    return members[torch.randperm(len(members), generator=generator)]


@dataclass(frozen=True, kw_only=True)
class View:
    """The records as each model sees them.

    Parameters
    ----------
    inputs : Tensor, shape (n, ...)
        Records.
    targets : Tensor, shape (n, c) or (M, n, c)
        Class probabilities of each record (one-hot for hard labels), common to all models or per model; or, for a
        quantity, its standardised value in a single column.
    centres, scales : Tensor, shape (M, ...) or (1, ...), optional
        Each model sees ``(inputs - centre) / scale``, its own standardisation or a common one. A missing value (NaN)
        then counts as the centre.
    """

    inputs: Tensor
    targets: Tensor
    centres: Tensor | None = None
    scales: Tensor | None = None

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs (M, k, ...) and targets (M, k, c) of an index (M, k); the next call overwrites the inputs."""
        m, k = index.shape
        flat = index.reshape(-1)
        x = self._taken(flat).view(m, k, *self.inputs.shape[1:])
        if self.centres is not None and self._inverse is not None:
            # In place, because a second array of this size would be requested from the system in each step.
            x.sub_(self.centres[:, None]).mul_(self._inverse[:, None])
            if self._missing:
                x.nan_to_num_(0.0)  # a missing value is NaN and becomes the centre
        if self.targets.ndim == 2:
            y = self.targets.index_select(0, flat).view(m, k, -1)
        else:
            y = self.targets[torch.arange(m)[:, None], index]
        return x, y

    def lengths(self, index: Tensor) -> Tensor | None:
        """Return the squared lengths (M, k) of the inputs, or None if they differ between models."""
        return None if self.centres is not None else self._lengths[index]

    @functools.cached_property
    def _lengths(self) -> Tensor:
        return self.inputs.flatten(1).square().sum(1)

    def _taken(self, rows: Tensor) -> Tensor:
        """Return the given records, in memory that is reused for every batch, whatever its size."""
        size = len(rows) * self.inputs[:1].numel()
        if not self._place or self._place[0].numel() < size:
            # A quarter more than needed: otherwise batches of changing size would request memory from the system each time.
            self._place[:] = [torch.empty(size + size // 4, dtype=self.inputs.dtype)]
        place = self._place[0][:size].view(len(rows), *self.inputs.shape[1:])
        return torch.index_select(self.inputs, 0, rows, out=place)

    @functools.cached_property
    def _place(self) -> list[Tensor]:
        return []

    @functools.cached_property
    def _inverse(self) -> Tensor | None:
        return None if self.scales is None else 1 / self.scales

    @functools.cached_property
    def _missing(self) -> bool:
        return not bool(torch.isfinite(self.inputs).all())

    def of(self, model: int) -> "View":
        """Return the view of one model."""

        def own(values: Tensor | None) -> Tensor | None:
            if values is None or len(values) == 1:  # common to all models
                return values
            return values[model : model + 1]

        return View(
            inputs=self.inputs,
            targets=self.targets
            if self.targets.ndim == 2
            else self.targets[model : model + 1],
            centres=own(self.centres),
            scales=own(self.scales),
        )


@dataclass(frozen=True, kw_only=True)
class Cohort(View):
    """Models that are trained together: the records as each of them sees them, its members and its seed.

    Parameters
    ----------
    masks : array of bool, shape (M, n)
        Members of each model.
    seeds : sequence of int
        Seed of each model: initialisation, then whatever else its training draws.
    """

    masks: NDArray[np.bool_]
    seeds: Sequence[int]

    def members(self) -> list[Tensor]:
        """Return the rows of each model's members, after checking that all shapes fit.

        Raises
        ------
        InvalidInput
            If masks, seeds, records and targets do not fit, or a model has no member.
        """
        models, records = len(self.seeds), len(self.inputs)
        if self.masks.shape != (models, records):
            raise InvalidInput(
                f"masks of shape {self.masks.shape} do not fit {models} seeds and {records} records; pass one row per "
                "model and one column per record."
            )
        if self.targets.shape[:-1] not in ((records,), (models, records)):
            raise InvalidInput(
                f"targets of shape {tuple(self.targets.shape)} do not fit {models} models and {records} records; pass "
                "class probabilities of shape (records, classes) or (models, records, classes)."
            )
        members = [torch.from_numpy(np.flatnonzero(mask)) for mask in self.masks]
        if any(len(m) == 0 for m in members):
            raise InvalidInput(
                "a model of the pool has no member, so it cannot be trained; give each mask at least one."
            )
        return members


def rotated(view: View) -> tuple[Tensor, View]:
    """Return a basis of the records' span, (d, r), and the view of their coordinates in it.

    Raises
    ------
    InvalidInput
        If models see the records in different scales.
    """
    records = view.inputs
    if view.centres is not None and view.scales is not None:
        if bool(
            (view.centres != view.centres[:1]).any()
            or (view.scales != view.scales[:1]).any()
        ):
            raise InvalidInput(
                "each model sees the records in its own scale, so there is no common basis; leave rotate out."
            )
        records = ((records - view.centres[0]) / view.scales[0]).nan_to_num(0.0)
    basis, coordinates = torch.linalg.qr(records.double().T)
    return basis.float(), View(
        inputs=coordinates.T.float().contiguous(), targets=view.targets
    )


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """The order of all models' members in one epoch, padded to the longest.

    Parameters
    ----------
    index : Tensor, shape (M, longest)
        Rows; a model with fewer members is padded with its first one, which then has weight 0.
    lengths : tuple of int
        Number of members of each model.
    """

    index: Tensor
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, orders: Sequence[Tensor]) -> "Epoch":
        """Return the epoch in which models take their members in these orders."""
        lengths = tuple(len(order) for order in orders)
        longest = max(lengths)
        # Padded with a member of the same model: a record that the model was not trained on could
        # have an infinite gradient, and zero times infinity would reach the parameters.
        rows = [
            torch.cat([order, order[:1].expand(longest - len(order))])
            for order in orders
        ]
        return cls(index=torch.stack(rows), lengths=lengths)

    def counts(self, start: int, width: int) -> list[int]:
        """Return the number of records that each model has in the batch that begins at ``start``."""
        return [max(0, min(length - start, width)) for length in self.lengths]

    def weights(self, start: int, width: int) -> Tensor | None:
        """Return the weight (M, width) of each record in its model's mean loss.

        ``None`` if all models have a full batch: then each weight is 1 / width.
        """
        if start + width <= min(self.lengths):
            return None
        counts = torch.tensor(self.counts(start, width))
        filled = torch.arange(width)[None] < counts[:, None]
        return filled / counts.clamp_min(1)[:, None]

    def active(self, start: int) -> Tensor | None:
        """Return which models still have members at ``start``; ``None`` if all do."""
        if start < min(self.lengths):
            return None
        return torch.tensor([start < length for length in self.lengths])


class Descent:
    """Let stacked parameters follow their gradients, as PyTorch's optimisers do.

    A model that has no members left in an epoch does not change: no step, no decay, no momentum.

    Parameters
    ----------
    parameters : sequence of Tensor, each (M, ...)
        The parameters, which are changed in place.
    optimiser : SGD or Adam
        The rule by which parameters follow gradients.
    """

    def __init__(self, parameters: Sequence[Tensor], optimiser: SGD | Adam) -> None:
        self.parameters, self.optimiser = list(parameters), optimiser
        self._steps = torch.zeros(len(self.parameters[0]))
        self._memories = [
            [torch.zeros_like(p) for p in parameters] for _ in range(optimiser.memories)
        ]

    def begin(self, active: Tensor | None) -> None:
        """Count one step for the active models."""
        self._steps += 1.0 if active is None else active.float()

    def follow(self, slot: int, gradient: Tensor, active: Tensor | None) -> None:
        """Update one parameter of the active models, given its gradient."""
        parameter = self.parameters[slot]
        here = None
        if active is not None:
            here = active.view(-1, *[1] * (parameter.ndim - 1))

        def remember(which: int, keep: float, value: Tensor, share: float) -> Tensor:
            """Change a memory m in place to ``keep m + share value`` for the active models, and return it."""
            memory = self._memories[which][slot]
            if here is None:
                return memory.mul_(keep).add_(value, alpha=share)
            moved = (keep * memory).add_(value, alpha=share)
            return memory.copy_(torch.where(here, moved, memory))

        step = self.optimiser.step(gradient, remember, self._steps)
        parameter.sub_(step if here is None else step * here, alpha=self.optimiser.rate)
