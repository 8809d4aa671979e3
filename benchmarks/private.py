"""Compare private steps with plain ones, and with those of Opacus.

Ratios are taken within one run. Times are CPU time per model-step on one thread; the variants take turns, and
the smallest time of each counts. Both sides see the same records in batches of the same expected size. Opacus
gets its batches directly, without its data loader.
"""

import itertools
import math
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from reticent.train.engine import train_networks
from reticent.train.modules import train_modules
from reticent.train.private.clipping import TanhThenClip
from reticent.train.private.modules import train_modules_privately
from reticent.train.private.networks import train_privately
from reticent.train.recipes import SGD, Network, PrivateModule, PrivateNetwork, Training
from reticent.train.stacking import Cohort

ROUNDS = 8  # of which the fastest counts: other work on a shared machine only adds time
Run = Callable[[], int]  # trains, and returns how many model-steps it took


def run() -> list[str]:
    """Return lines of a table."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    return [
        *_one_step(),
        *_small_pool(),
        *_large_pool(),
        *_tanh(),
        *_convolutions(),
    ]


def _one_step() -> list[str]:
    """Time a single network, 784-512-256-10 at batch 256."""
    shape, batch, steps = (784, 512, 256, 10), 256, 40
    X, y = _records(batch * 20, shape[0], shape[-1])
    masks = np.ones((1, len(X)), dtype=bool)
    epochs = steps // 20
    common = {"hidden": shape[1:-1], "epochs": epochs, "batch": batch}

    def private(noise: str) -> Run:
        recipe = PrivateNetwork(noise=noise, optimiser=SGD(rate=0.01), **common)
        return lambda: _count(
            train_privately(
                Cohort(inputs=X, targets=y, masks=masks, seeds=[0]), recipe
            ),
            steps,
        )

    plain = Network(optimiser=SGD(rate=0.01), **common)
    best = _fastest(
        {
            "PyTorch": lambda: _torch_loop(_perceptron(shape), X, y, batch, steps),
            "engine": lambda: _count(
                train_networks(
                    Cohort(inputs=X, targets=y, masks=masks, seeds=[0]), plain
                ),
                steps,
            ),
            "seeded": private("seeded"),
            "secret": private("secret"),
            "Opacus ghost": lambda: _opacus(shape, X, y, batch, steps, "ghost"),
            "Opacus": lambda: _opacus(shape, X, y, batch, 6, "hooks"),
        }
    )
    layers = "-".join(map(str, shape))
    step = min(best["PyTorch"], best["engine"])
    return [
        f"| one private step, MLP {layers}, batch {batch}, {name} | {1e3 * best[key]:.1f} ms | {best[key] / best['PyTorch']:.2f} x a plain "
        f"step of PyTorch ({1e3 * best['PyTorch']:.1f} ms), {best[key] / best['engine']:.2f} x one of the engine |"
        for name, key in (
            ("reticent, seeded noise", "seeded"),
            ("reticent, secret noise", "secret"),
            ("Opacus, ghost clipping", "Opacus ghost"),
            ("Opacus, default", "Opacus"),
        )
        if step > 0
    ]


def _small_pool() -> list[str]:
    """Time a pool of tabular networks, 100-8-2 at batch 128."""
    return _pool((100, 8, 2), batch=128, rows=4_000, models=(25, 50), theirs=60)


def _large_pool() -> list[str]:
    """Time a pool of networks 1280-512-256-128-10 at batch 20, 120 steps each."""
    return _pool(
        (1280, 512, 256, 128, 10),
        batch=20,
        rows=400,
        models=(10,),
        theirs=20,
        epochs=6,
    )


def _pool(
    shape: tuple[int, ...],
    *,
    batch: int,
    rows: int,
    models: tuple[int, ...],
    theirs: int,
    epochs: int = 2,
) -> list[str]:
    X, y = _records(rows, shape[0], shape[-1])
    recipe = PrivateNetwork(
        hidden=shape[1:-1],
        epochs=epochs,
        batch=batch,
        noise="seeded",
        optimiser=SGD(rate=0.01),
    )
    steps = recipe.course(rows).steps

    def together(m: int, *, rotate: bool = False) -> Run:
        masks = np.ones((m, rows), dtype=bool)
        return lambda: _count(
            train_privately(
                Cohort(inputs=X, targets=y, masks=masks, seeds=list(range(m))),
                recipe,
                rotate=rotate,
            ),
            m * steps,
        )

    best = _fastest(
        {
            **{f"{m} together": together(m) for m in models},
            **(
                {f"{m} together, rotated": together(m, rotate=True) for m in models}
                if rows < 0.7 * shape[0]
                else {}
            ),
            "Opacus": lambda: _opacus(shape, X, y, batch, theirs, "hooks"),
            "Opacus ghost": lambda: _opacus(shape, X, y, batch, theirs, "ghost"),
        }
    )
    hooks, ghost = best.pop("Opacus"), best.pop("Opacus ghost")
    plain = {name: t for name, t in best.items() if "rotated" not in name}
    chosen = [min(plain.items(), key=lambda item: item[1])]
    if len(plain) < len(best):
        chosen.append(min(best.items(), key=lambda item: item[1]))
    return [
        f"| MLP {'-'.join(map(str, shape))}, batch {batch}, DP-SGD, {name} | {1e6 * ours:.0f} us per model-step | {hooks / ours:.1f} x as "
        f"fast as Opacus ({1e3 * hooks:.2f} ms), {ghost / ours:.1f} x as its ghost clipping ({1e3 * ghost:.2f} ms) |"
        for name, ours in chosen
    ]


def _tanh() -> list[str]:
    """Time the tanh filter and a clip on the large network, against explicit gradients per record.

    With width 1 a polynomial with few terms suffices; with width 0.1 elements of gradients are large, and the compiled loop is used.
    """
    return [line for width in (1.0, 0.1) for line in _tanh_of(width)]


def _tanh_of(width: float) -> list[str]:
    shape, batch, rows = (1280, 512, 256, 128, 10), 20, 400
    X, y = _records(rows, shape[0], shape[-1])
    clipping = TanhThenClip(scale=1.0, width=width, norm=1.0)
    recipe = PrivateNetwork(
        hidden=shape[1:-1],
        epochs=2,
        batch=batch,
        noise="seeded",
        optimiser=SGD(rate=0.01),
        clipping=clipping,
    )
    steps, models = recipe.course(rows).steps, 4
    masks = np.ones((models, rows), dtype=bool)
    best = _fastest(
        {
            "ours": lambda: _count(
                train_privately(
                    Cohort(inputs=X, targets=y, masks=masks, seeds=list(range(models))),
                    recipe,
                ),
                models * steps,
            ),
            "explicit": lambda: _explicit(shape, X, y, batch, 6, clipping),
        }
    )
    return [
        f"| tanh filter of width {width:g} then clip on the same MLP | {1e3 * best['ours']:.1f} ms per model-step | "
        f"{best['explicit'] / best['ours']:.1f} x as fast as vmap(grad) ({1e3 * best['explicit']:.0f} ms) |"
    ]


def _convolutions() -> list[str]:
    lines = []
    for name, make, batch in (
        ("16@8x8, 32@4x4, 32", _strided, 256),
        ("16@3x3, 32@3x3, 64", _pooled, 64),
    ):
        X, y = _records(batch * 6, 784, 10)
        images = X.view(-1, 1, 28, 28)
        masks = np.ones((1, len(X)), dtype=bool)
        plain = Training(epochs=1, batch=batch, optimiser=SGD(rate=0.01))
        recipe = PrivateModule(
            "nets:make", epochs=1, batch=batch, noise="seeded", optimiser=SGD(rate=0.01)
        )

        best = _fastest(
            {
                "PyTorch": lambda m=make, i=images, t=y, b=batch: _torch_loop(
                    m(), i, t, b, 6
                ),
                "engine": lambda m=make, i=images, t=y, k=masks, r=plain: _count(
                    train_modules(
                        m,
                        Cohort(inputs=i, targets=t, masks=k, seeds=[0]),
                        r,
                        together=False,
                    ),
                    6,
                ),
                "ours": lambda m=make, i=images, t=y, k=masks, r=recipe: _count(
                    train_modules_privately(
                        m, Cohort(inputs=i, targets=t, masks=k, seeds=[0]), r
                    ),
                    6,
                ),
                "Opacus": lambda m=make, i=images, t=y, b=batch: _opacus_module(
                    m(), i, t, b, 6, "hooks"
                ),
                "Opacus ghost": lambda m=make, i=images, t=y, b=batch: _opacus_module(
                    m(), i, t, b, 6, "ghost"
                ),
            }
        )
        ours = best["ours"]
        lines.append(
            f"| convolutions {name}, batch {batch}, DP-SGD | {1e3 * ours:.1f} ms per step | {ours / best['PyTorch']:.2f} x a plain step of PyTorch "
            f"({1e3 * best['PyTorch']:.1f} ms), {ours / best['engine']:.2f} x one of ours; {best['Opacus'] / ours:.1f} x as fast as Opacus, "
            f"{best['Opacus ghost'] / ours:.1f} x as its ghost clipping |"
        )
    return lines


def _strided() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def _pooled() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1568, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def _perceptron(shape: tuple[int, ...]) -> nn.Module:
    layers: list[nn.Module] = []
    for below, above in itertools.pairwise(shape):
        layers += [nn.Linear(below, above), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _torch_loop(
    module: nn.Module, X: torch.Tensor, y: torch.Tensor, batch: int, steps: int
) -> int:
    optimiser = torch.optim.SGD(module.parameters(), lr=0.01)
    for index in _batches(len(X), batch, steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(X[index]), y[index]).backward()
        optimiser.step()
    return steps


def _opacus(
    shape: tuple[int, ...],
    X: torch.Tensor,
    y: torch.Tensor,
    batch: int,
    steps: int,
    mode: str,
) -> int:
    return _opacus_module(_perceptron(shape), X, y, batch, steps, mode)


def _opacus_module(
    module: nn.Module,
    X: torch.Tensor,
    y: torch.Tensor,
    batch: int,
    steps: int,
    mode: str,
) -> int:
    """Take steps with the module, the optimiser and the noise of Opacus, on batches of the expected size."""
    from opacus.grad_sample import GradSampleModule
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import (
        GradSampleModuleFastGradientClipping,
    )
    from opacus.optimizers import DPOptimizer
    from opacus.optimizers.optimizer_fast_gradient_clipping import (
        DPOptimizerFastGradientClipping,
    )
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    given = {
        "noise_multiplier": 1.0,
        "max_grad_norm": 1.0,
        "expected_batch_size": batch,
        "loss_reduction": "mean",
    }
    if mode == "hooks":
        wrapped = GradSampleModule(module)
        optimiser = DPOptimizer(torch.optim.SGD(wrapped.parameters(), lr=0.01), **given)
        criterion = nn.CrossEntropyLoss()
    else:
        wrapped = GradSampleModuleFastGradientClipping(
            module, max_grad_norm=1.0, use_ghost_clipping=True
        )
        optimiser = DPOptimizerFastGradientClipping(
            torch.optim.SGD(wrapped.parameters(), lr=0.01), **given
        )
        criterion = DPLossFastGradientClipping(
            wrapped, optimiser, nn.CrossEntropyLoss(reduction="mean")
        )
    labels = y.argmax(1)
    for index in _batches(len(X), batch, steps):
        optimiser.zero_grad()
        criterion(wrapped(X[index]), labels[index]).backward()
        optimiser.step()
    return steps


def _explicit(
    shape: tuple[int, ...],
    X: torch.Tensor,
    y: torch.Tensor,
    batch: int,
    steps: int,
    clipping: TanhThenClip,
) -> int:
    """Compute the gradient of every record by vmap(grad), filter and clip it, and add noise: the direct way."""
    module = _perceptron(shape)
    parameters = {name: p.detach().clone() for name, p in module.named_parameters()}

    def loss(
        p: dict[str, torch.Tensor], x: torch.Tensor, t: torch.Tensor
    ) -> torch.Tensor:
        return nn.functional.cross_entropy(
            functional_call(module, p, (x[None],)), t[None]
        )

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))
    for index in _batches(len(X), batch, steps):
        by_record = gradients(parameters, X[index], y[index])
        filtered = {
            name: clipping.scale * torch.tanh(g / clipping.width)
            for name, g in by_record.items()
        }
        squares = sum(g.flatten(1).square().sum(1) for g in filtered.values())
        factor = clipping.norm / squares.sqrt().clip(min=clipping.norm)
        for name, g in filtered.items():
            total = torch.einsum("b,b...->...", factor, g)
            total += torch.randn_like(total)
            parameters[name] -= 0.01 / batch * total
    return steps


def _records(rows: int, inputs: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(rows, inputs, generator=generator)
    y = torch.randint(classes, (rows,), generator=generator)
    return X, nn.functional.one_hot(y, classes).float()


def _batches(rows: int, batch: int, steps: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(rows, (batch,), generator=generator) for _ in range(steps)]


def _count(_: object, steps: int) -> int:
    return steps


def _fastest(runs: dict[str, Run]) -> dict[str, float]:
    """Return the smallest CPU time per model-step of each variant; they take turns."""
    best = dict.fromkeys(runs, math.inf)
    for _ in range(ROUNDS):
        for name, work in runs.items():
            started = time.process_time()
            steps = work()
            best[name] = min(best[name], (time.process_time() - started) / steps)
    return best


def main() -> None:
    """Print the table."""
    print("| what | time | ratio |\n|---|---|---|")
    for line in run():
        print(line, flush=True)


if __name__ == "__main__":
    main()
