"""Flaws of private trainings, planted for real: each changes an Opacus training, and nothing that is stated of it.

The first nine are those that an observer which believes the stated clipping cannot see. The next were chosen for this experiment, before
any of them was run; the smaller doses at the end after it had turned out that all of these are always caught or never.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType

import torch
from opacus.optimizers import optimizer as opacus_optimizer
from torch import nn

BOUND = 1.0


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """A flaw, and how it is planted.

    Parameters
    ----------
    name : str
        What is wrong.
    plant : callable
        Changes a training before it begins.
    expected : str
        The check that was expected to find it, written down before the runs; empty if none was.
    """

    name: str
    plant: Callable
    expected: str


# --- sums ----------------------------------------------------------------------------------


def _sum_by(training, factors):
    """Let the optimiser sum gradients with factors of their norms, by parameter: from (n, tensors) to the same."""

    def accumulate(self):
        rows = self.grad_samples
        norms = torch.stack([row.flatten(1).norm(dim=1) for row in rows], 1)
        weights = factors(norms)
        for p, row, weight in zip(self.params, rows, weights.unbind(1), strict=True):
            total = torch.einsum("i,i...", weight, row)
            p.summed_grad = total if p.summed_grad is None else p.summed_grad + total
            opacus_optimizer._mark_as_processed(p.grad_sample)

    training.optimiser.clip_and_accumulate = MethodType(accumulate, training.optimiser)


def _flat_factor(norms):
    return (BOUND / (norms.norm(dim=1, keepdim=True) + 1e-6)).clamp(max=1.0)


def no_clip(training):
    _sum_by(training, torch.ones_like)


def clip_of_the_mean(training):
    """Clip the mean of the batch, as a loop over whole batches would."""

    def accumulate(self):
        rows = self.grad_samples
        n = max(len(rows[0]), 1)
        means = [row.sum(0) / n for row in rows]
        norm = torch.cat([mean.flatten() for mean in means]).norm()
        factor = min(1.0, BOUND / (float(norm) + 1e-6))
        for p, mean in zip(self.params, means, strict=True):
            p.summed_grad = mean * factor * n
            opacus_optimizer._mark_as_processed(p.grad_sample)

    training.optimiser.clip_and_accumulate = MethodType(accumulate, training.optimiser)


def half_unclipped(training):
    def factors(norms):
        clipped = _flat_factor(norms).expand_as(norms).clone()
        clipped[: len(norms) // 2] = 1.0
        return clipped

    _sum_by(training, factors)


def clip_by_tensor(training):
    _sum_by(training, lambda norms: (BOUND / (norms + 1e-6)).clamp(max=1.0))


def counted_twice(training):
    _sum_by(training, lambda norms: 2 * _flat_factor(norms).expand_as(norms))


def microbatches(training):
    """Clip the means of groups of four gradients to the bound, each standing for four records."""

    def accumulate(self):
        rows = self.grad_samples
        n = len(rows[0])
        group = torch.arange(n) // 4
        groups = int(group[-1]) + 1 if n else 0
        sums = [
            torch.zeros(groups, *row.shape[1:]).index_add_(0, group, row)
            for row in rows
        ]
        counts = torch.bincount(group, minlength=groups).clamp(min=1)
        means = [s / counts.view(-1, *[1] * (s.ndim - 1)) for s in sums]
        norms = torch.stack([m.flatten(1).norm(dim=1) for m in means], 1)
        factor = _flat_factor(norms)[:, 0] * counts
        for p, mean in zip(self.params, means, strict=True):
            p.summed_grad = torch.einsum("i,i...", factor, mean)
            opacus_optimizer._mark_as_processed(p.grad_sample)

    training.optimiser.clip_and_accumulate = MethodType(accumulate, training.optimiser)


def bound_from_the_batch(training):
    """Clip to the median norm of each batch, and scale the noise to it: nothing accounts for the median."""
    own = training.optimiser.clip_and_accumulate

    def accumulate(self):
        rows = self.grad_samples
        norms = torch.stack([row.flatten(1).norm(dim=1) for row in rows], 1)
        if len(norms):
            self.max_grad_norm = float(norms.norm(dim=1).median())
        own()

    training.optimiser.clip_and_accumulate = MethodType(accumulate, training.optimiser)


# --- noise ---------------------------------------------------------------------------------


def _noise_by(training, draw):
    """Let noise be drawn by a function of the optimiser, the number of the step and the parameter."""
    training.optimiser.noisy_steps = 0

    def add_noise(self):
        step = self.noisy_steps
        self.noisy_steps += 1
        for number, p in enumerate(self.params):
            deviation = self.noise_multiplier * self.max_grad_norm
            noise = draw(self, step, number, p.summed_grad) * deviation
            p.grad = (p.summed_grad + noise).view_as(p)
            opacus_optimizer._mark_as_processed(p.summed_grad)

    training.optimiser.add_noise = MethodType(add_noise, training.optimiser)


def missing_on_a_tensor(training):
    """No noise on the bias of the last layer: 3 numbers of 115."""

    def draw(optimiser, step, number, total):
        last = number == len(optimiser.params) - 1
        return torch.zeros_like(total) if last else torch.randn_like(total)

    _noise_by(training, draw)


def missing_in_a_step(training):
    def draw(optimiser, step, number, total):
        return torch.zeros_like(total) if step == 7 else torch.randn_like(total)

    _noise_by(training, draw)


def same_in_every_step(training):
    kept = {}

    def draw(optimiser, step, number, total):
        return kept.setdefault(number, torch.randn_like(total))

    _noise_by(training, draw)


def uniform(training):
    def draw(optimiser, step, number, total):
        return (torch.rand_like(total) - 0.5) * math.sqrt(12)

    _noise_by(training, draw)


def seed_set_every_epoch(training):
    """A generator that is made anew in every epoch, from the same seed."""
    seed = int(torch.randint(2**31, (1,)))

    def draw(optimiser, step, number, total):
        if step % training.epoch == 0 and number == 0:
            optimiser.own_noise = torch.Generator().manual_seed(seed)
        return torch.randn(total.shape, generator=optimiser.own_noise)

    _noise_by(training, draw)


def scaled_to_the_batch(training):
    """A bound that no gradient reaches, and noise as large as the longest gradient of the batch asks for."""
    own = training.optimiser.clip_and_accumulate
    training.optimiser.max_grad_norm = training.optimiser.longest = 20 * BOUND

    def accumulate(self):
        rows = self.grad_samples
        norms = torch.stack([row.flatten(1).norm(dim=1) for row in rows], 1)
        own()
        if len(norms):
            self.longest = min(self.max_grad_norm, float(norms.norm(dim=1).max()))

    training.optimiser.clip_and_accumulate = MethodType(accumulate, training.optimiser)

    def draw(optimiser, step, number, total):
        return torch.randn_like(total) * optimiser.longest / optimiser.max_grad_norm

    _noise_by(training, draw)


def dropped_at_random(training):
    """One step in ten, chosen by chance, has no noise."""

    def draw(optimiser, step, number, total):
        if number == 0:
            optimiser.is_dropped = float(torch.rand(1)) < 0.1
        return torch.zeros_like(total) if optimiser.is_dropped else torch.randn_like(total)  # fmt: skip

    _noise_by(training, draw)


def truncated(training):
    """Noise beyond three deviations is drawn again."""

    def draw(optimiser, step, number, total):
        noise = torch.randn_like(total)
        while bool((noise.abs() > 3).any()):
            noise = torch.where(noise.abs() > 3, torch.randn_like(total), noise)
        return noise

    _noise_by(training, draw)


def half_precision(training):
    def draw(optimiser, step, number, total):
        return torch.randn_like(total).half().to(total)

    _noise_by(training, draw)


def opposite_in_turn(training):
    """Every second step subtracts the noise of the step before it."""
    kept = {}

    def draw(optimiser, step, number, total):
        if step % 2 == 0:
            kept[number] = torch.randn_like(total)
            return kept[number]
        return -kept[number]

    _noise_by(training, draw)


def same_on_every_tensor(training):
    """A generator that is made anew for each tensor of a step."""

    def draw(optimiser, step, number, total):
        if number == 0:
            optimiser.step_seed = int(torch.randint(2**31, (1,)))
        generator = torch.Generator().manual_seed(optimiser.step_seed)
        return torch.randn(total.shape, generator=generator)

    _noise_by(training, draw)


def carried_over(training):
    """Noise of which 0.2 is taken over from the step before."""
    kept = {}

    def draw(optimiser, step, number, total):
        fresh = torch.randn_like(total)
        before = kept.get(number, torch.randn_like(total))
        kept[number] = 0.2 * before + math.sqrt(1 - 0.2**2) * fresh
        return kept[number]

    _noise_by(training, draw)


def six_directions(training):
    """Noise with the right scale, in six directions of the 115."""
    size = sum(p.numel() for p in training.optimiser.params)
    ways = torch.linalg.qr(torch.randn(size, 6))[0] * math.sqrt(size / 6)

    def draw(optimiser, step, number, total):
        if number == 0:
            whole = ways @ torch.randn(6)
            sizes = [p.numel() for p in optimiser.params]
            optimiser.whole = torch.split(whole, sizes)
        return optimiser.whole[number].view_as(total)

    _noise_by(training, draw)


def a_tenth_unclipped(training):
    """What is released holds a tenth of the gradients as they are, beside the clipped sum."""
    own = training.optimiser.add_noise

    def add_noise(self):
        own()
        for p, rows in zip(self.params, self.grad_samples, strict=True):
            p.grad += 0.1 * rows.sum(0)

    training.optimiser.add_noise = MethodType(add_noise, training.optimiser)


# --- steps, sampling, accounting ---------------------------------------------------------------


def realised_batch_size(training):
    """Divide by the number of records in the batch, not by the expected one."""

    def scale_grad(self):
        n = max(len(self.grad_samples[0]), 1)
        for p in self.params:
            p.grad /= n

    training.optimiser.scale_grad = MethodType(scale_grad, training.optimiser)


class _Shuffled:
    """Batches of a shuffled table, in the place of Poisson samples."""

    def __init__(self, rows, batches):
        self.rows, self.batches = rows, batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        order = torch.randperm(self.rows)
        yield from (part.tolist() for part in torch.tensor_split(order, self.batches))


def shuffled_as_poisson(training):
    sampler = _Shuffled(len(training.loader.dataset), len(training.loader))
    object.__setattr__(training.loader, "batch_sampler", sampler)


def step_past_the_noise(training):
    """Every tenth step moves the weights by the clipped sum itself."""
    own = training.optimiser.step
    training.optimiser.calls = 0

    def step(self, closure=None):
        self.calls += 1
        if self.calls % 10:
            return own(closure)
        self.clip_and_accumulate()
        for p in self.params:
            p.grad = p.summed_grad / self.expected_batch_size
        return self.original_optimizer.step()

    training.optimiser.step = MethodType(step, training.optimiser)


def counted_less(training):
    """The accountant hears of every second step only."""
    own = training.optimiser.step_hook
    training.optimiser.heard = 0

    def hook(optimiser):
        optimiser.heard += 1
        if optimiser.heard % 2:
            own(optimiser)

    training.optimiser.attach_step_hook(hook)


class _Centred(nn.Module):
    def forward(self, x):
        return x - x.mean(0) if len(x) > 1 else x


def layers_that_mix(training):
    """A layer that subtracts the batch's mean: each record changes the gradients of all others."""
    training.insert(_Centred())


# --- smaller doses --------------------------------------------------------------------------------


def a_little_less(training):
    """Noise that is 3 % too small everywhere."""
    _noise_by(training, lambda optimiser, step, number, total: 0.97 * torch.randn_like(total))  # fmt: skip


def less_on_a_tensor(training):
    """Noise that is 30 % too small on the bias of the last layer: 3 numbers of 115."""

    def draw(optimiser, step, number, total):
        last = number == len(optimiser.params) - 1
        return (0.7 if last else 1.0) * torch.randn_like(total)

    _noise_by(training, draw)


def less_in_a_step(training):
    """Noise that is 20 % too small in one step."""
    _noise_by(training, lambda optimiser, step, number, total: (0.8 if step == 7 else 1.0) * torch.randn_like(total))  # fmt: skip


def carried_over_a_little(training):
    """Noise of which 0.1 is taken over from the step before."""
    kept = {}

    def draw(optimiser, step, number, total):
        fresh = torch.randn_like(total)
        before = kept.get(number, torch.randn_like(total))
        kept[number] = 0.1 * before + math.sqrt(1 - 0.1**2) * fresh
        return kept[number]

    _noise_by(training, draw)


def student(training):
    """Noise by Student's distribution with ten degrees of freedom, of the right deviation."""
    law = torch.distributions.StudentT(10.0)
    _noise_by(training, lambda optimiser, step, number, total: law.sample(total.shape) * math.sqrt(0.8))  # fmt: skip


def a_fiftieth_unclipped(training):
    """What is released holds a fiftieth of the gradients as they are, beside the clipped sum."""
    own = training.optimiser.add_noise

    def add_noise(self):
        own()
        for p, rows in zip(self.params, self.grad_samples, strict=True):
            p.grad += 0.02 * rows.sum(0)

    training.optimiser.add_noise = MethodType(add_noise, training.optimiser)


# --- what no check sees -------------------------------------------------------------------------


def bound_set_by_the_loop(training):
    """The training loop sets the clipping bound from the gradients of the last batch."""

    def after(training):
        rows = [p.grad_sample for p in training.optimiser.params]
        norms = torch.stack([row.flatten(1).norm(dim=1) for row in rows], 1)
        if len(norms):
            training.optimiser.max_grad_norm = float(norms.norm(dim=1).median())

    training.after_step = after


def known_seed(training):
    """The noise comes from a generator whose seed everybody knows."""
    training.optimiser.generator = torch.Generator().manual_seed(training.number)


def moved_by_hand(training):
    """After every step the loop moves the weights along the gradients as they are."""

    def after(training):
        with torch.no_grad():
            for p in training.optimiser.params:
                p.sub_(0.01 * p.grad_sample.mean(0))

    training.after_step = after


def another_record_unclipped(training):
    """One record is never clipped, and it is not the one that is followed."""
    other = training.loader.dataset[5][0]

    def watch(module, given):
        training.optimiser.spared = (given[0] == other).flatten(1).all(1)
        training.optimiser.is_new = True

    training.module.register_forward_pre_hook(watch)

    def factors(norms):
        clipped = _flat_factor(norms).expand_as(norms).clone()
        spared = training.optimiser.spared
        if training.optimiser.is_new:
            training.optimiser.is_new = False
            training.optimiser.spared_norms = norms[spared]
        # By its norms, so that it is spared wherever in a batch it stands.
        for known in training.optimiser.spared_norms:
            clipped[torch.isclose(norms, known, rtol=1e-4).all(1)] = 1.0
        return clipped

    _sum_by(training, factors)


NAMED = (
    Flaw(name="no clip at all", plant=no_clip, expected="share"),
    Flaw(name="a clip of the batch's mean", plant=clip_of_the_mean, expected="share"),
    Flaw(name="half a batch unclipped", plant=half_unclipped, expected="share"),
    Flaw(name="a clip of each tensor, accounted as one", plant=clip_by_tensor, expected="share"),
    Flaw(name="every gradient counted twice", plant=counted_twice, expected="share"),
    Flaw(name="no noise on one tensor", plant=missing_on_a_tensor, expected="noise by tensor"),
    Flaw(name="no noise in one step", plant=missing_in_a_step, expected="noise by step"),
    Flaw(name="the same noise in every step", plant=same_in_every_step, expected="repeats"),
    Flaw(name="uniform noise", plant=uniform, expected="law"),
)  # fmt: skip
CHOSEN = (
    Flaw(name="a clip of means of four records", plant=microbatches, expected="share"),
    Flaw(name="a bound that follows each batch", plant=bound_from_the_batch, expected="epsilon"),
    Flaw(name="a divisor that follows the realised batch", plant=realised_batch_size, expected="even noise"),
    Flaw(name="noise scaled to the longest gradient of the batch", plant=scaled_to_the_batch, expected="noise"),
    Flaw(name="a seed that is set again every epoch", plant=seed_set_every_epoch, expected="repeats"),
    Flaw(name="noise dropped in one step of ten, at random", plant=dropped_at_random, expected="noise by step"),
    Flaw(name="noise cut off at three deviations", plant=truncated, expected="tails"),
    Flaw(name="noise rounded to half precision", plant=half_precision, expected="equal values"),
    Flaw(name="noise that the next step subtracts", plant=opposite_in_turn, expected="repeats"),
    Flaw(name="the same noise on every tensor", plant=same_on_every_tensor, expected="tensors"),
    Flaw(name="noise that is carried over, 0.2 of it", plant=carried_over, expected="lags"),
    Flaw(name="noise in six directions only", plant=six_directions, expected="directions"),
    Flaw(name="a tenth of the gradients released unclipped", plant=a_tenth_unclipped, expected="noise along the sum"),
    Flaw(name="shuffled batches, accounted as Poisson samples", plant=shuffled_as_poisson, expected="sampling"),
    Flaw(name="every tenth step without noise, past the optimiser", plant=step_past_the_noise, expected="steps"),
    Flaw(name="every second step not accounted for", plant=counted_less, expected="accounting"),
    Flaw(name="a layer that mixes records", plant=layers_that_mix, expected="gradient"),
)  # fmt: skip
UNSEEN = (
    Flaw(name="a bound that the training loop sets from the data", plant=bound_set_by_the_loop, expected=""),
    Flaw(name="noise from a seed that everybody knows", plant=known_seed, expected=""),
    Flaw(name="weights moved by hand between the steps", plant=moved_by_hand, expected=""),
    Flaw(name="another record that is never clipped", plant=another_record_unclipped, expected=""),
)  # fmt: skip
SMALL = (
    Flaw(name="noise 3 % too small", plant=a_little_less, expected="noise"),
    Flaw(name="noise 30 % too small on three numbers", plant=less_on_a_tensor, expected="noise by tensor"),
    Flaw(name="noise 20 % too small in one step", plant=less_in_a_step, expected="noise by step"),
    Flaw(name="noise that is carried over, 0.1 of it", plant=carried_over_a_little, expected="lags"),
    Flaw(name="noise by Student's distribution, ten degrees of freedom", plant=student, expected="tails"),
    Flaw(name="a fiftieth of the gradients released unclipped", plant=a_fiftieth_unclipped, expected="noise along the sum"),
)  # fmt: skip
FLAWS = (*NAMED, *CHOSEN, *UNSEEN, *SMALL)
