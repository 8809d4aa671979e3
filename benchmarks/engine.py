"""Compare many networks trained at once with the same networks trained one after another.

Ratios are taken within one run. Times are CPU time per model-step on one thread, unless wall time
is named; the variants take turns, and the smallest time of each counts.
"""

import math
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import torch
from torch import nn

from reticent.data import table_from_frame
from reticent.train import SGD, Network, NetworkTrainer, Training, train_many
from reticent.train.engine import train_networks
from reticent.train.modules import train_modules
from reticent.train.stacking import Cohort

ROWS = 4_000
COLUMNS = 100
EPOCHS = 4
ROUNDS = 4  # of which the fastest counts: other work on a shared machine only adds time


def run() -> list[str]:
    """Return lines of a table."""
    torch.set_num_threads(1)
    return [
        *_networks(),
        _two_processes(),
        _tabular_modules(),
        _convolutions(),
        *_growth(),
    ]


def _networks() -> list[str]:
    X, targets = _table()
    lines = []
    for width, batch in ((8, 128), (64, 128)):
        recipe = Network(hidden=(width,), epochs=EPOCHS, batch=batch, optimiser=SGD())
        best = _fastest(
            {
                "loop": lambda r=recipe: _loop(_perceptron(r), X, targets, r.batch),
                **{
                    f"{models} together": lambda r=recipe, m=models: _together(
                        X, targets, r, m
                    )
                    for models in (10, 25, 50)
                },
            }
        )
        loop = best.pop("loop")
        name, fastest = min(best.items(), key=lambda item: item[1])
        lines.append(
            f"| MLP {COLUMNS}-{width}-2, batch {batch}, plain SGD, {name} | {1e6 * fastest:.0f} us per model-step | "
            f"{loop / fastest:.1f} x as fast as the PyTorch loop ({1e6 * loop:.0f} us) |"
        )
    return lines


def _two_processes(models: int = 100, epochs: int = 10) -> str:
    """Give both sides two warm processes, and measure the wall time until both are done."""
    recipe = Network(hidden=(8,), epochs=epochs, batch=128, optimiser=SGD())
    best: dict[str, float] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        list(pool.map(_warm_up, range(2)))
        for _ in range(ROUNDS):
            for name, work in (("loop", _loop_models), ("together", _group)):
                started = time.perf_counter()
                list(pool.map(work, [models // 2] * 2, [recipe] * 2))
                seconds = time.perf_counter() - started
                best[name] = min(best.get(name, math.inf), seconds)
    return (
        f"| {models} MLPs {COLUMNS}-8-2, batch 128, {epochs} epochs of {ROWS // 2} records, two processes | "
        f"{best['together']:.2f} s of wall time | {best['loop'] / best['together']:.1f} x as fast as the PyTorch loop in two "
        f"processes ({best['loop']:.1f} s) |"
    )


def _tabular_modules() -> str:
    X, targets = _table()
    training = Training(epochs=EPOCHS, batch=128, optimiser=SGD())
    best = _fastest(
        {
            "loop": lambda: _loop(_layer_normed(), X, targets, 128),
            "one by one": lambda: _modules(
                _layer_normed, X, targets, training, 5, together=False
            ),
            **{
                f"{models} together": lambda m=models: _modules(
                    _layer_normed, X, targets, training, m, together=True
                )
                for models in (10, 25, 50)
            },
        }
    )
    loop, each = best.pop("loop"), best.pop("one by one")
    name, fastest = min(best.items(), key=lambda item: item[1])
    return (
        f"| module {COLUMNS}-32-LayerNorm-2, batch 128, vectorised, {name} | {1e6 * fastest:.0f} us per model-step | "
        f"{loop / fastest:.1f} x as fast as the PyTorch loop ({1e6 * loop:.0f} us), {each / fastest:.1f} x as fast as our own "
        f"({1e6 * each:.0f} us) |"
    )


def _convolutions() -> str:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(1_280, 1, 28, 28, generator=generator)
    y = torch.randint(10, (len(X),), generator=generator)
    targets = nn.functional.one_hot(y, 10).float()
    training = Training(epochs=4, batch=64, optimiser=SGD())
    best = _fastest(
        {
            "loop": lambda: _loop(_convolving(), X, targets, 64, epochs=4),
            "ours": lambda: _modules(_convolving, X, targets, training, 2),
            "stacked": lambda: _modules(
                _convolving, X, targets, training, 2, together=True
            ),
        }
    )
    return (
        f"| convolutions 16, 32, fully connected 64, 10; 28x28, batch 64, one by one | {1e3 * best['ours']:.1f} ms per "
        f"model-step | {best['loop'] / best['ours']:.2f} x as fast as the PyTorch loop ({1e3 * best['loop']:.1f} ms), "
        f"{best['stacked'] / best['ours']:.2f} x as fast as two stacked |"
    )


def _growth() -> list[str]:
    """Time of a whole pool, encoding and answers included, as one of its sizes doubles."""
    base = {"models": 50, "records": 4_000, "epochs": 8}
    # The number of epochs starts higher, because encoding and answers, which do not grow with it,
    # would make the slope look smaller.
    starts = base | {"epochs": 32}
    best: dict[tuple[str, int], float] = {}
    for _ in range(2):
        for what, size in starts.items():
            for factor in (1, 2, 4, 8):
                seconds = _pool(**base | {what: size * factor})
                key = (what, factor)
                best[key] = min(best.get(key, math.inf), seconds)
    lines = []
    for what, size in starts.items():
        seconds = [best[what, factor] for factor in (1, 2, 4, 8)]
        slope = np.polyfit(np.log([1, 2, 4, 8]), np.log(seconds), 1)[0]
        lines.append(
            f"| pool of MLPs {COLUMNS}-8-2 with {size} to {8 * size} {what} | {seconds[0]:.2f} to {seconds[-1]:.2f} s | "
            f"slope {slope:.2f} in logarithms (1 is linear) |"
        )
    return lines


def _pool(*, models: int, records: int, epochs: int) -> float:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        rng.normal(size=(records, COLUMNS)), columns=[f"x{k}" for k in range(COLUMNS)]
    )
    table = table_from_frame(frame, target=(frame["x0"] > 0).astype(int).to_numpy())
    network = Network(hidden=(8,), epochs=epochs, batch=128, optimiser=SGD())
    trainer = NetworkTrainer(network=network, recipe="benchmark")
    masks = _halves(models, records)
    started = time.process_time()
    train_many(trainer, table, masks, np.arange(models), workers=1)
    return time.process_time() - started


def _fastest(variants: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Return the smallest time of each variant; they take turns."""
    best = dict.fromkeys(variants, math.inf)
    for _ in range(ROUNDS):
        for name, variant in variants.items():
            best[name] = min(best[name], variant())
    return best


def _table() -> tuple[torch.Tensor, torch.Tensor]:
    X = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(0))
    return X, nn.functional.one_hot((X[:, 0] > 0).long(), 2).float()


def _halves(models: int, records: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    masks = np.zeros((models, records), dtype=bool)
    for mask in masks:
        mask[rng.permutation(records)[: records // 2]] = True
    return masks


def _perceptron(recipe: Network) -> nn.Module:
    (width,) = recipe.hidden
    return nn.Sequential(nn.Linear(COLUMNS, width), nn.ReLU(), nn.Linear(width, 2))


def _layer_normed() -> nn.Module:
    return nn.Sequential(
        nn.Linear(COLUMNS, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 2)
    )


def _convolving() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 49, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def _together(
    X: torch.Tensor, targets: torch.Tensor, recipe: Network, models: int
) -> float:
    masks = _halves(models, len(X))
    started = time.process_time()
    train_networks(
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(models)), recipe
    )
    steps = recipe.epochs * math.ceil(len(X) / 2 / recipe.batch) * models
    return (time.process_time() - started) / steps


def _modules(
    make: Callable[[], nn.Module],
    X: torch.Tensor,
    targets: torch.Tensor,
    recipe: Training,
    models: int,
    *,
    together: bool | None = None,
) -> float:
    masks = _halves(models, len(X))
    started = time.process_time()
    train_modules(
        make,
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(models)),
        recipe,
        together=together,
    )
    steps = recipe.epochs * math.ceil(len(X) / 2 / recipe.batch) * models
    return (time.process_time() - started) / steps


def _loop(
    net: nn.Module,
    X: torch.Tensor,
    targets: torch.Tensor,
    batch: int,
    epochs: int = 2 * EPOCHS,
) -> float:
    """Return the time per step of an ordinary PyTorch training loop."""
    y = targets.argmax(1)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    loss = nn.CrossEntropyLoss()
    steps = 0
    started = time.process_time()
    for _ in range(epochs):
        order = torch.randperm(len(X))[: len(X) // 2]
        for start in range(0, len(order), batch):
            index = order[start : start + batch]
            optimiser.zero_grad()
            loss(net(X[index]), y[index]).backward()
            optimiser.step()
            steps += 1
    return (time.process_time() - started) / steps


def _warm_up(_: int) -> None:
    torch.set_num_threads(1)
    recipe = Network(hidden=(8,), epochs=1, batch=128, optimiser=SGD())
    _loop_models(1, recipe)
    _group(2, recipe)
    time.sleep(1)  # so that one process does not take the warm-up of the other as well


def _loop_models(models: int, recipe: Network) -> None:
    X, targets = _table()
    for _ in range(models):
        _loop(_perceptron(recipe), X, targets, recipe.batch, recipe.epochs)


def _group(models: int, recipe: Network) -> None:
    X, targets = _table()
    _together(X, targets, recipe, models)


if __name__ == "__main__":
    print("\n".join(run()))
