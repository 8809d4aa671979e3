r"""Watch a training by Opacus: the steps of its optimiser, one by one.

What the adversary of :mod:`reticent.train.private.watched` needs to know about a step can be read from the optimiser between
adding noise and taking the step: the clipped sum, and the noisy gradient that is released. The share of the record in
question is computed separately, at the same weights. The run itself is not changed.

Opacus divides by ``int(rows / steps per epoch)``. With one record fewer that may be another number, and then noise and sum
have another scale: the adversary compares both scales.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reticent.account import PrivateTraining
from reticent.errors import InvalidInput
from reticent.pool import Side, Trace, Truth

__all__ = ["OpacusObserver"]

ROUNDING = 1e-6  # the number that Opacus adds to a norm before it divides by it


class OpacusObserver:
    """Watch one run of Opacus as an adversary who asks whether one record was used.

    Use it in a ``with`` block around the training loop; every hook is removed at its end. The second table is the first
    one without the record.

    Parameters
    ----------
    module : GradSampleModule
        The module that ``make_private`` returned.
    optimiser : DPOptimizer
        The optimiser that ``make_private`` returned, with flat clipping.
    loader : DataLoader
        The loader that ``make_private`` returned.
    record : Tensor
        The record in question, as the module takes it, without the batch dimension.
    target : int
        Class of the record.
    loss : callable
        The loss of the training, from logits (1, classes) and a target (1,).
    included : bool
        Whether the record is in the table. If not, the run is one on the second table, and the loader has one row fewer
        than the first table.

    Raises
    ------
    InvalidInput
        If gradients are not clipped by one norm, because then the share of a record cannot be computed.
    """

    def __init__(
        self,
        module: nn.Module,
        optimiser: Any,
        loader: Any,
        *,
        record: Tensor,
        target: int,
        loss: Callable[[Tensor, Tensor], Tensor] = nn.functional.cross_entropy,
        included: bool = True,
    ) -> None:
        if not isinstance(optimiser.max_grad_norm, int | float):
            raise InvalidInput(
                f"gradients are clipped by the norms {optimiser.max_grad_norm}, but only one norm for the whole gradient can be watched; train with "
                'clipping="flat".'
            )
        self.poisson = hasattr(loader, "sample_rate")
        if not (self.poisson or included):
            raise InvalidInput(
                "a shuffled table without the record has no place for it, so no step can be compared with one that holds it; watch a run with the record."
            )
        self.module, self.optimiser = module, optimiser
        self.record, self.target, self.loss = record, target, loss
        self.included = included
        self.steps_per_epoch = len(loader)
        self.rows = len(loader.dataset) + (not included)
        self._present = False  # whether the record was in a batch since the last step
        self._steps: list[dict[str, float]] = []
        self._hook: Any = None
        self._before: Callable[[Any], None] | None = None

    def __enter__(self) -> "OpacusObserver":
        self._hook = self.module.register_forward_pre_hook(self._watch_batch)
        self._before = self.optimiser.step_hook
        self.optimiser.attach_step_hook(self._watch_step)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hook.remove()
        self.optimiser.attach_step_hook(self._before)

    @property
    def steps(self) -> int:
        """Number of steps that were observed."""
        return len(self._steps)

    @property
    def stated(self) -> PrivateTraining:
        """The mechanism that the optimiser states."""
        return PrivateTraining(
            noise_multiplier=float(self.optimiser.noise_multiplier),
            sampling_rate=1 / self.steps_per_epoch,
            steps=max(self.steps, 1),
        )

    @property
    def denominators(self) -> tuple[int, int]:
        """Numbers by which sums are divided with the record in the table, and without it."""
        share = 1 / self.steps_per_epoch
        return int(self.rows * share), int((self.rows - 1) * share)

    def seen(self) -> tuple[Trace, Truth]:
        """Return what was observed of the run so far, and the truth about it."""
        if not self._steps:
            raise InvalidInput(
                "no step was observed; train inside the observer's `with` block, with the optimiser it was given."
            )

        def numbers(name: str) -> NDArray[np.float64]:
            return np.array([[step[name] for step in self._steps]])

        zero = np.zeros((1, self.steps))
        taken = numbers("taken").astype(bool)
        trace = Trace(
            first=Side(
                residual=numbers("residual"),
                inner=numbers("inner"),
                square=numbers("square"),
                deviation=numbers("deviation"),
            ),
            second=Side(
                residual=numbers("residual_other"),
                inner=zero,
                square=zero,
                deviation=numbers("deviation_other"),
            ),
            distance=np.sqrt(numbers("square")),
            size=sum(p.numel() for p in self.optimiser.params),
            rate=1 / self.steps_per_epoch,
            place=None if self.poisson else taken,
        )
        return trace, Truth(first=np.array([self.included]), taken=taken)

    def _watch_batch(self, module: nn.Module, given: tuple[Tensor, ...]) -> None:
        """Record whether the record in question is in a batch."""
        batch = given[0].detach()
        if len(batch):
            same = (batch == self.record.to(batch)[None]).flatten(1).all(1)
            self._present = self._present or bool(same.any())

    def _watch_step(self, optimiser: Any) -> None:
        """Store the numbers of a step, then call the hook that was attached before."""
        taken, self._present = self._present and self.included, False
        share = self._share()
        summed = _flat(p.summed_grad for p in optimiser.params)
        released = _flat(p.grad for p in optimiser.params)
        common = summed - share if taken else summed
        one, two = self.denominators
        if optimiser.loss_reduction == "sum":
            one = two = 1
        times = optimiser.accumulated_iterations
        one, two = one * times, two * times
        noise = float(optimiser.noise_multiplier) * float(optimiser.max_grad_norm)
        rest, rest_other = released - common / one, released - common / two
        self._steps.append(
            {
                "residual": float(rest @ rest),
                "residual_other": float(rest_other @ rest_other),
                "inner": float(rest @ share) / one,
                "square": float(share @ share) / one**2,
                "deviation": noise / one,
                "deviation_other": noise / two,
                "taken": float(taken),
            }
        )
        if self._before is not None:
            self._before(optimiser)

    def _share(self) -> Tensor:
        """Return the record's clipped gradient at the current weights."""
        inner = getattr(self.module, "_module", self.module)
        quiet = getattr(self.module, "disable_hooks", None)
        if quiet is not None:
            quiet()
        try:
            with torch.enable_grad():
                logits = inner(self.record[None])
                loss = self.loss(logits, torch.tensor([self.target]))
                gradients = torch.autograd.grad(loss, list(self.optimiser.params))
        finally:
            if quiet is not None:
                self.module.enable_hooks()  # type: ignore[operator]
        gradient = _flat(gradients)
        norm = float(gradient.norm())
        clip = float(self.optimiser.max_grad_norm) / (norm + ROUNDING)
        return gradient * min(1.0, clip)


def _flat(parts: Any) -> Tensor:
    return torch.cat([part.detach().flatten().double() for part in parts])
