"""Many small networks in one pass against the same networks one after another."""

import math
import time

import numpy as np
import torch

from reticent.train.engine import train_networks
from reticent.train.recipes import SGD, Network

ROWS, COLUMNS, EPOCHS, ROUNDS = 4_000, 100, 4, 4


def run() -> list[str]:
    """Return lines of a table; CPU time per model-step, variants in turn, the smallest kept."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(ROWS, COLUMNS, generator=generator)
    y = (X[:, 0] > 0).long()
    targets = torch.nn.functional.one_hot(y, 2).float()
    lines = []
    for width, batch in ((8, 128), (64, 128)):
        recipe = Network(hidden=(width,), epochs=EPOCHS, batch=batch, optimiser=SGD())
        best: dict[str, float] = {}
        for _ in range(ROUNDS):
            _keep(best, "loop", _loop(X, y, width, batch))
            for models in (10, 25, 50):
                _keep(best, f"{models} together", _together(X, targets, recipe, models))
        loop = best.pop("loop")
        name, fastest = min(best.items(), key=lambda item: item[1])
        lines.append(
            f"| MLP {COLUMNS}-{width}-2, batch {batch}, plain SGD, {name} | {1e6 * fastest:.0f} us per model-step | "
            f"{loop / fastest:.1f} x as fast as the PyTorch loop ({1e6 * loop:.0f} us) |"
        )
    return lines


def _keep(best: dict[str, float], name: str, seconds: float) -> None:
    best[name] = min(best.get(name, math.inf), seconds)


def _together(
    X: torch.Tensor, targets: torch.Tensor, recipe: Network, models: int
) -> float:
    rng = np.random.default_rng(0)
    masks = np.zeros((models, ROWS), dtype=bool)
    for mask in masks:
        mask[rng.permutation(ROWS)[: ROWS // 2]] = True
    started = time.process_time()
    train_networks(X, targets, masks, range(models), recipe)
    steps = EPOCHS * math.ceil(ROWS / 2 / recipe.batch) * models
    return (time.process_time() - started) / steps


def _loop(X: torch.Tensor, y: torch.Tensor, width: int, batch: int) -> float:
    net = torch.nn.Sequential(
        torch.nn.Linear(COLUMNS, width), torch.nn.ReLU(), torch.nn.Linear(width, 2)
    )
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    loss = torch.nn.CrossEntropyLoss()
    steps = 0
    started = time.process_time()
    for _ in range(2 * EPOCHS):
        order = torch.randperm(ROWS)[: ROWS // 2]
        for start in range(0, len(order), batch):
            index = order[start : start + batch]
            optimiser.zero_grad()
            loss(net(X[index]), y[index]).backward()
            optimiser.step()
            steps += 1
    return (time.process_time() - started) / steps


if __name__ == "__main__":
    print("\n".join(run()))
