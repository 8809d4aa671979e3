r"""Watch a training by Opacus: the steps of its optimiser, one by one.

What the adversary of :mod:`reticent.train.private.watched` needs to know about a step can be read from the optimiser between
adding noise and taking the step: the clipped sum, and the noisy gradient that is released. The share of the record in
question is measured: the optimiser's own accumulation is run again with or without the record (:mod:`reticent.train.private.replay`), at
the same weights and for the same batch. The run itself is not changed.

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
from reticent.train.private._seen import Batches, NoiseRecorder
from reticent.train.private.replay import Accumulation, Replay, flat

__all__ = ["OpacusObserver"]

# A difference of the record's gradient in a batch and alone that rounding does not explain.
APART = 1e-3
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
        The optimiser that ``make_private`` returned.
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
        If the optimiser does not state one bound on the length of a record's gradient.
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
        # Ghost clipping keeps no gradient of a single record, so its sums cannot be formed again.
        self.replayed = not hasattr(optimiser, "accumulate")
        self.unseen_steps = 0
        self.unmeasured_steps = 0
        self.moved_outside = 0
        self.apart_in_batch = 0.0
        self.is_random = False
        self.bounds: list[float] = []
        self.multipliers: list[float] = []
        self._batches = Batches(loader.dataset, record)
        self._noise = NoiseRecorder(_named_sizes(module, optimiser.params))
        self._parts: list[tuple[int, Accumulation]] = []
        self._records: dict[int, int] = {}  # summed since the last step, by batch
        self._steps: list[dict[str, float]] = []
        self._weights: Tensor | None = None
        self._is_step_watched = False
        self._hooks: list[Any] = []
        self._before: Callable[[Any], None] | None = None
        self._own: Callable[[], None] | None = None

    def __enter__(self) -> "OpacusObserver":
        optimiser = self.optimiser
        self._hooks = [
            self.module.register_forward_pre_hook(self._watch_batch),
            optimiser.original_optimizer.register_step_post_hook(self._after_step),
        ]
        self._before = optimiser.step_hook
        optimiser.attach_step_hook(self._watch_step)
        if self.replayed:
            self._own = vars(optimiser).get("clip_and_accumulate")
            self._replay = Replay(optimiser, self._accumulate)
            optimiser.clip_and_accumulate = self._watch_accumulation
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for hook in self._hooks:
            hook.remove()
        optimiser = self.optimiser
        optimiser.attach_step_hook(self._before)
        current = vars(optimiser).get("clip_and_accumulate")
        if current == self._watch_accumulation:
            del optimiser.clip_and_accumulate
            if self._own is not None:
                optimiser.clip_and_accumulate = self._own

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
        one, two = int(self.rows * share), int((self.rows - 1) * share)
        set_to = self.optimiser.expected_batch_size
        # Any other number was set by hand, and is a constant.
        if set_to is not None and set_to != (one if self.included else two):
            return set_to, set_to
        return one, two

    @property
    def is_mixed(self) -> bool:
        """Whether the record's gradient in a batch was another one than alone, although no layer is random."""
        return self.apart_in_batch > APART and not self.is_random

    @property
    def copies(self) -> int:
        """Rows of the table that equal the record, as far as that had to be looked up; 1 if it did not."""
        return self._batches.copies

    @property
    def steps_compared(self) -> int:
        """Steps whose noise was kept, to be compared with each other."""
        return self._noise.steps_kept

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
        return trace, Truth(
            first=np.array([self.included]),
            taken=taken,
            seen=(
                self._noise.noise(rows=self.rows - (not self.included), taken=taken),
            ),
        )

    def _watch_batch(self, module: nn.Module, given: tuple[Tensor, ...]) -> None:
        """Record where in a batch the record in question is."""
        # Only what is differentiated becomes part of a step.
        if torch.is_grad_enabled() and module.training:
            self._batches.add(given[0].detach(), look=self.included)

    def _accumulate(self) -> None:
        """Run the optimiser's own accumulation, as it was before it was watched."""
        if self._own is not None:
            self._own()
        else:
            type(self.optimiser).clip_and_accumulate(self.optimiser)

    def _watch_accumulation(self) -> None:
        """Accumulate as before, then measure what the record did, or would have done, to the sum."""
        params = self.optimiser.params
        now = flat(params)
        if self._weights is not None and not torch.equal(now, self._weights):
            self.moved_outside += 1
        before = [None if p.summed_grad is None else p.summed_grad.clone() for p in params]  # fmt: skip
        rows = [row.detach() for row in self.optimiser.grad_samples]
        self._accumulate()
        self._records[self._batches.number] = len(rows[0])
        places = self._batches.places(len(rows[0]))
        if places is None or any(len(row) != len(places) for row in rows):
            return  # not one gradient for each record: nothing can be taken out
        alone = self._alone()
        if bool(places.any()):
            self._compare(rows, places, alone)
        part = self._replay.measure(rows, before, places, alone)
        self._parts.append((self._batches.number, part))

    def _compare(self, rows: list[Tensor], places: Tensor, alone: list[Tensor]) -> None:
        """Note how far the record's gradient in the batch is from its gradient alone."""
        inside, outside = flat(row[places][0] for row in rows), flat(alone)
        length = float(outside.norm())
        if length > 0:
            apart = float((inside - outside).norm()) / length
            self.apart_in_batch = max(self.apart_in_batch, apart)
            if apart > APART:  # layers such as dropout give another gradient each time
                again = flat(self._alone(seed=1)) - flat(self._alone(seed=2))
                self.is_random = self.is_random or float(again.norm()) > 0

    def _measured(self) -> Accumulation:
        """Return what the record did to the sum of a step, over all accumulations of it."""
        parts, self._parts = self._parts, []
        with_it = [part for _, part in parts if part.taken]
        if not with_it:
            # The record would have been in one batch; what is accumulated twice from it counts twice.
            with_it = [part for number, part in parts if number == parts[-1][0]]
        if not with_it:
            return self._as_stated()
        share = torch.stack([part.share for part in with_it]).sum(0)
        return Accumulation(
            share=share,
            longest=sum(part.longest for part in with_it),
            taken=with_it[0].taken,
            scale=with_it[-1].scale,
            other_scale=with_it[-1].other_scale,
        )

    def _as_stated(self) -> Accumulation:
        """Return the record's share as the optimiser states it, where it could not be measured."""
        self.unmeasured_steps += 1
        gradient = flat(self._alone())
        bound = float(self.optimiser.max_grad_norm)
        share = gradient * min(1.0, bound / (float(gradient.norm()) + ROUNDING))
        scale = float(self.optimiser.noise_multiplier) * bound
        return Accumulation(
            share=share,
            longest=float(share.norm()),
            taken=self._batches.is_present,
            scale=scale,
            other_scale=scale,
        )

    def _watch_step(self, optimiser: Any) -> None:
        """Store the numbers of a step, then call the hook that was attached before."""
        part = self._measured()
        share, taken = part.share, part.taken and self.included
        summed = flat(p.summed_grad for p in optimiser.params)
        released = flat(p.grad for p in optimiser.params)
        common = summed - share if taken else summed
        one, two = self.denominators
        if optimiser.loss_reduction == "sum":
            one = two = 1
        times = optimiser.accumulated_iterations
        one, two = one * times, two * times
        rest, rest_other = released - common / one, released - common / two
        self._steps.append(
            {
                "residual": float(rest @ rest),
                "residual_other": float(rest_other @ rest_other),
                "inner": float(rest @ share) / one,
                "square": float(share @ share) / one**2,
                "deviation": part.scale / one,
                "deviation_other": part.other_scale / two,
                "taken": float(taken),
            }
        )
        divisor = one if self.included else two
        bound = float(optimiser.max_grad_norm)
        deviation = float(optimiser.noise_multiplier) * bound
        self._noise.add(
            noise=(released * divisor - summed) / max(deviation, 1e-30),
            summed=summed,
            share=share,
            reach=max(float(share.norm()), part.longest) / bound,
            records=self._finish(),
            rounding=float((released * divisor).abs().max()) / max(deviation, 1e-30),
        )
        self.bounds.append(bound)
        self.multipliers.append(float(optimiser.noise_multiplier))
        self._is_step_watched = True
        if self._before is not None:
            self._before(optimiser)

    def _finish(self) -> int:
        """Return the number of records of a step, and begin the next one."""
        passed, summed = self._batches.finish(), sum(self._records.values())
        # What was passed through the module may have been more than what was differentiated.
        is_counted = bool(self._records)
        self._records = {}
        return summed if is_counted else passed

    def _after_step(self, *_: Any) -> None:
        """Remember the weights after a step, and count steps that went past the one that adds noise."""
        if not self._is_step_watched:
            self.unseen_steps += 1
        self._is_step_watched = False
        self._weights = flat(self.optimiser.params)

    def _alone(self, seed: int | None = None) -> list[Tensor]:
        """Return the record's gradient at the current weights, without clipping, by parameter."""
        inner = getattr(self.module, "_module", self.module)
        quiet = getattr(self.module, "disable_hooks", None)
        if quiet is not None:
            quiet()
        try:
            # Dropout in the module must not change the random numbers of the training.
            with torch.enable_grad(), torch.random.fork_rng():
                if seed is not None:
                    torch.manual_seed(seed)
                logits = inner(self.record[None])
                target = torch.tensor([self.target], device=logits.device)
                loss = self.loss(logits, target)
                gradients = torch.autograd.grad(loss, list(self.optimiser.params))
        finally:
            if quiet is not None:
                self.module.enable_hooks()  # type: ignore[operator]
        return [gradient.detach() for gradient in gradients]


def _named_sizes(module: nn.Module, params: list[nn.Parameter]) -> dict[str, int]:
    """Return the number of elements of every parameter by its name, without the prefix of Opacus."""
    names = {
        id(p): name.removeprefix("_module.") for name, p in module.named_parameters()
    }
    return {
        names.get(id(p), f"tensor {number + 1}"): p.numel()
        for number, p in enumerate(params)
    }
