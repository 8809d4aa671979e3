"""The filter without noise, as a remedy for exploding gradients: recurrent networks on the adding problem.

A network reads pairs of a number and a mark, and must add the two numbers that are marked, one in each half of the sequence
(Hochreiter and Schmidhuber, 1997); to answer 1 always errs by 1/6 in the mean square. Weights between units start with a
spectral radius above 1, so that gradients explode. The gradient of a batch is left alone, shortened to a norm, or bent
element by element to k tanh(g / k). With c in place of the k in front, c / k is a factor on the learning rate.

All networks are trained at once, in one stack, each by its own remedy, rate and seed.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product

import torch
from torch import Tensor

__all__ = ["CHANCE", "JUDGED", "LENGTH", "STEPS", "TUNED", "run_recurrent"]

LENGTH, UNITS, BATCH, STEPS = 40, 32, 32, 3000
RADIUS = 1.2
EVERY, LAST = 100, 5  # test errors: after so many steps; so many of them are averaged
CHANCE = 1 / 6
CAP = 1.0  # of an error, also of one that is no number any more
RATES = (0.01, 0.03, 0.1, 0.3)
REMEDIES = (
    ("none", 0.0),
    *(("clip", norm) for norm in (0.1, 1.0, 10.0)),
    *(("tanh", k) for k in (0.01, 0.1, 1.0)),
)
TUNED, JUDGED = range(3), range(100, 110)  # seeds, apart from each other


@dataclass(frozen=True, kw_only=True)
class Run:
    """One network.

    Parameters
    ----------
    remedy : str
        ``"none"``, ``"clip"`` or ``"tanh"``.
    size : float
        Norm of the clip, or k of the filter; 0 for none.
    rate : float
        Learning rate of plain SGD.
    seed : int
        Of weights and sequences.
    """

    remedy: str
    size: float
    rate: float
    seed: int


def run_recurrent(
    tuned: Sequence[int] = TUNED, judged: Sequence[int] = JUDGED, steps: int = STEPS
) -> dict:
    """Choose size and rate of each remedy with some seeds; judge the chosen with others.

    Parameters
    ----------
    tuned, judged : sequence of int
        Seeds.
    steps : int
        Of each training.
    """
    started = time.process_time()
    choices = [(*remedy, rate) for remedy, rate in product(REMEDIES, RATES)]
    grid = _trained(_runs(choices, tuned), steps)
    chosen = {}
    for remedy in ("none", "clip", "tanh"):
        own = [c for c in choices if c[0] == remedy]
        chosen[remedy] = min(own, key=lambda c: _mean_error(grid, c))
    # The rate that the clip was given, without a remedy: what the remedy is worth.
    bare = ("none", 0.0, chosen["clip"][2])
    judges = dict.fromkeys([*chosen.values(), bare])
    return {
        "tuning": grid,
        "judged": _trained(_runs(list(judges), judged), steps),
        "minutes": (time.process_time() - started) / 60,
    }


def _runs(
    choices: Sequence[tuple[str, float, float]], seeds: Sequence[int]
) -> list[Run]:
    return [
        Run(remedy=remedy, size=size, rate=rate, seed=seed)
        for (remedy, size, rate), seed in product(choices, seeds)
    ]


def _mean_error(grid: list[dict], choice: tuple[str, float, float]) -> float:
    own = [g["error"] for g in grid if (g["remedy"], g["size"], g["rate"]) == choice]
    return sum(own) / len(own)


def sequences(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return sequences, (count, length, 2), and the sums asked for."""
    numbers = torch.rand(count, LENGTH, generator=generator)
    half = LENGTH // 2
    marks = torch.zeros(count, LENGTH)
    for start in (0, half):
        place = torch.randint(start, start + half, (count,), generator=generator)
        marks[torch.arange(count), place] = 1
    return torch.stack([numbers, marks], 2), (numbers * marks).sum(1)


def _errors(parameters: Sequence[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Return the mean squared error of each network; x is (networks, count, length, 2)."""
    between, inward, bias, outward, shift = parameters
    networks, count = x.shape[:2]
    given = torch.baddbmm(bias, x.reshape(networks, -1, 2), inward)
    h = torch.zeros(networks, count, UNITS)
    for now in given.view(networks, count, LENGTH, UNITS).unbind(2):
        h = torch.tanh(torch.baddbmm(now, h, between))
    answers = torch.baddbmm(shift, h, outward)[..., 0]
    return (answers - y).square().mean(1)


def _initial(runs: Sequence[Run]) -> list[Tensor]:
    """Return normal weights: between units, inward, outward; and biases of zero."""
    made = []
    for run in runs:
        generator = torch.Generator().manual_seed(run.seed)
        between, inward, outward = (
            torch.randn(*shape, generator=generator) * scale
            for shape, scale in (
                ((UNITS, UNITS), RADIUS / math.sqrt(UNITS)),
                ((2, UNITS), 0.5),
                ((UNITS, 1), 1 / math.sqrt(UNITS)),
            )
        )
        shift, bias = torch.zeros(1, 1), torch.zeros(1, UNITS)
        made.append([between, inward, bias, outward, shift])
    return [torch.stack(parts).requires_grad_() for parts in zip(*made, strict=True)]


def _trained(runs: Sequence[Run], steps: int) -> list[dict]:
    """Train a stack of networks; return the errors of each, and what its gradients were like."""
    parameters = _initial(runs)
    column = (-1, 1, 1)
    rates = torch.tensor([r.rate for r in runs]).view(column)
    sizes = torch.tensor([r.size for r in runs])
    clips, bends = (
        torch.tensor([r.remedy == w for r in runs]) for w in ("clip", "tanh")
    )
    draws = {r.seed: torch.Generator().manual_seed(10_000 + r.seed) for r in runs}
    tests = sequences(1000, torch.Generator().manual_seed(9_999))
    errors, lengths, cosines = [], [], []
    for step in range(1, steps + 1):
        drawn = {seed: sequences(BATCH, draw) for seed, draw in draws.items()}
        x, y = (torch.stack([drawn[r.seed][k] for r in runs]) for k in (0, 1))
        gradients = torch.autograd.grad(_errors(parameters, x, y).sum(), parameters)
        length = _length(gradients)
        factor = torch.where(clips, sizes / length.maximum(sizes), 1.0).view(column)
        k = torch.where(bends, sizes, 1.0).view(column)
        taken = [
            torch.where(bends.view(column), k * torch.tanh(g / k), g * factor)
            for g in gradients
        ]
        dots = sum(
            (g * t).flatten(1).sum(1) for g, t in zip(gradients, taken, strict=True)
        )
        lengths.append(length)
        cosines.append(dots / (length * _length(taken)))
        with torch.no_grad():
            for parameter, move in zip(parameters, taken, strict=True):
                parameter.sub_(rates * move)
            if step % EVERY == 0:
                shown = (t.expand(len(runs), *t.shape) for t in tests)
                errors.append(_errors(parameters, *shown))
    capped = torch.stack(errors).nan_to_num(CAP, CAP, CAP).clip(max=CAP)
    length, cosine = torch.stack(lengths), torch.stack(cosines)
    found = []
    for m, run in enumerate(runs):
        own = length[:, m].isfinite()
        of, turned = length[own, m], cosine[own, m]
        longest = of.argsort(descending=True)[: max(1, len(of) // 100)]
        found.append(
            asdict(run)
            | {
                "error": float(capped[-LAST:, m].mean()),
                "path": [round(float(e), 5) for e in capped[:, m]],
                "lost": bool((~own).any()),
                "median_length": float(of.median()),
                "longest": float(of.max()),
                "cosine_of_longest": float(turned[longest].nanmean()),
            }
        )
    return found


def _length(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack([p.flatten(1).square().sum(1) for p in parts]).sum(0).sqrt()
