"""Run an optimiser's own accumulation again, with and without one record, and leave nothing behind.

What a record adds to a sum is what the optimiser's own code makes of it, not what its documentation says: the per-record gradients of a batch
are handed to the same code once more, less the record or with it, and the two sums are compared. A second question is asked of every batch: how far
would a record with a very long gradient move the sum? A bound has to hold for that one, too.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["Accumulation", "Replay", "flat"]

# A gradient this many times the bound is longer than any clipping may let pass.
LONG = 1e3


def flat(parts: Any) -> Tensor:
    """Return tensors as one long vector, in double precision and in main memory."""
    return torch.cat([part.detach().flatten().double().cpu() for part in parts])


@dataclass(frozen=True, kw_only=True)
class Accumulation:
    """What one record did, or would have done, to one accumulation.

    Parameters
    ----------
    share : Tensor, (P,)
        The sum with the record less the sum without it.
    longest : float
        How far a record with a very long gradient would have moved the sum.
    taken : bool
        Whether the record took part.
    scale, other_scale : float
        Noise multiplier times clipping bound after the accumulation, with the record and without it.
    """

    share: Tensor
    longest: float
    taken: bool
    scale: float
    other_scale: float


class Replay:
    """The accumulation of an optimiser of Opacus, run again on other rows.

    Parameters
    ----------
    optimiser : DPOptimizer
        The optimiser.
    accumulate : callable
        Its own accumulation, from ``p.grad_sample`` to ``p.summed_grad``.
    """

    def __init__(self, optimiser: Any, accumulate: Callable[[], None]) -> None:
        self.optimiser, self.accumulate = optimiser, accumulate
        # Where an absent record would have stood: its own stream, so that the training's is not touched.
        self._rng = np.random.default_rng(0)

    def measure(
        self,
        rows: Sequence[Tensor],
        before: Sequence[Tensor | None],
        places: Tensor,
        alone: Sequence[Tensor],
    ) -> Accumulation:
        """Return what the record did to the accumulation that has just been run.

        Parameters
        ----------
        rows : sequence of Tensor, (n, ...)
            The per-record gradients of every parameter.
        before : sequence of Tensor or None
            The sums before the accumulation.
        places : Tensor of bool, (n,)
            Rows of the record; none if it did not take part.
        alone : sequence of Tensor
            The record's gradient, for a batch that lacks it.
        """
        taken = bool(places.any())
        at = int(self._rng.integers(len(places) + 1))
        actual, scale = flat(p.summed_grad for p in self.optimiser.params), self._scale
        rest = [row[~places] for row in rows] if taken else list(rows)
        if taken:
            without, other_scale = self._again(rest, before)
            share = actual - without
        else:
            without, other_scale = actual, scale
            added, scale = self._again(_inserted(rest, alone, at), before)
            share = added - without
        length = float(flat(alone).norm())
        bound = float(self.optimiser.max_grad_norm)
        if length > 0:
            long = [part * (LONG * max(bound, 1.0) / length) for part in alone]
        else:
            long = [torch.full_like(part, LONG * max(bound, 1.0)) for part in alone]
        probed, _ = self._again(_inserted(rest, long, min(at, len(rest[0]))), before)
        return Accumulation(
            share=share,
            longest=float((probed - without).norm()),
            taken=taken,
            scale=scale,
            other_scale=other_scale,
        )

    @property
    def _scale(self) -> float:
        return float(self.optimiser.noise_multiplier) * float(
            self.optimiser.max_grad_norm
        )

    def _again(
        self, rows: Sequence[Tensor], before: Sequence[Tensor | None]
    ) -> tuple[Tensor, float]:
        """Return the sums that the accumulation makes of other rows, and the scale of noise after it."""
        params = self.optimiser.params
        if not len(rows[0]):  # the sum of nothing, which not every optimiser can form
            sums = [torch.zeros_like(p) if t is None else t for p, t in zip(params, before, strict=True)]  # fmt: skip
            return flat(sums), self._scale
        with _untouched(self.optimiser), torch.no_grad():
            for p, row, total in zip(params, rows, before, strict=True):
                p.grad_sample = row
                p.summed_grad = None if total is None else total.clone()
            self.accumulate()
            return flat(p.summed_grad for p in params), self._scale


def _inserted(
    rows: Sequence[Tensor], record: Sequence[Tensor], at: int
) -> list[Tensor]:
    """Return rows with one more, at a place among them."""
    return [
        torch.cat([row[:at], one[None].to(row), row[at:]])
        for row, one in zip(rows, record, strict=True)
    ]


@contextmanager
def _untouched(optimiser: Any) -> Iterator[None]:
    """Put back, at the end, gradients, sums, the optimiser's own attributes and the state of random generators."""
    gradients = [(p, p.grad, p.grad_sample, p.summed_grad) for p in optimiser.params]
    attributes = dict(vars(optimiser))
    copies = {
        name: value.clone() if isinstance(value, Tensor) else copy.copy(value)
        for name, value in attributes.items()
        if isinstance(value, Tensor | list | dict | set)
    }
    generator = getattr(optimiser, "generator", None)
    state = None if generator is None else generator.get_state()
    with torch.random.fork_rng():
        try:
            yield
        finally:
            for p, *values in gradients:
                p.grad, p.grad_sample, p.summed_grad = values
            vars(optimiser).clear()
            vars(optimiser).update({**attributes, **copies})
            if generator is not None:
                generator.set_state(state)
