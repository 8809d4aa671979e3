"""Measure what watching a training costs, and what training many at once saves, as ratios of CPU time in one run.

python benchmarks/watched.py
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from reticent.train import SGD, PrivateModule, PrivateNetwork
from reticent.train.private import Clip
from reticent.train.private.modules import train_modules_privately
from reticent.train.private.watched import Neighbours, watch_modules, watch_networks
from reticent.train.stacking import Cohort, View

RECORDS = 100
STEPS = 30
ROUNDS = 4  # of which the fastest counts: other work on a shared machine only adds time
PAIR = Neighbours(common=np.arange(RECORDS - 1), own=RECORDS - 1)


def convolutional() -> nn.Module:
    """Return a network of two convolutions with 16 channels, norms and pools, as in experiments/identifiability."""
    layers: list[nn.Module] = []
    for channels in (1, 16):
        layers += [
            nn.Conv2d(channels, 16, 3),
            nn.ReLU(),
            nn.GroupNorm(4, 16),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(400, 10))


def cpu(work: Callable[[], object], runs: int) -> float:
    """Return the smallest CPU time of several rounds, divided by the number of runs in one."""
    least = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        least = min(least, time.process_time() - started)
    return least / runs


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images, rows = torch.rand(RECORDS, 1, 28, 28), torch.randn(RECORDS, 20)
    targets = torch.eye(10)[torch.randint(10, (RECORDS,))]
    how = {
        "epochs": STEPS,
        "batch": RECORDS,
        "noise": "seeded",
        "noise_multiplier": 5.7,
        "clipping": Clip(norm=3.0),
        "optimiser": SGD(rate=0.005),
    }
    module = PrivateModule("nets:make", **how)
    everyone = np.ones((1, RECORDS), dtype=bool)
    alone = cpu(
        lambda: train_modules_privately(
            convolutional,
            Cohort(inputs=images, targets=targets, masks=everyone, seeds=[0]),
            module,
        ),
        1,
    )
    watched = cpu(
        lambda: watch_modules(
            convolutional, View(inputs=images, targets=targets), PAIR, module, [0]
        ),
        1,
    )
    print("| training on 100 records, 30 full-batch steps | CPU s per run | ratio |")
    print("|---|---|---|")
    print(f"| convolutional network, not watched | {alone:.3f} | 1 |")
    print(f"| the same, watched | {watched:.3f} | {watched / alone:.2f} |")
    network = PrivateNetwork(hidden=(32,), **how)
    single = cpu(
        lambda: watch_networks(View(inputs=rows, targets=targets), PAIR, network, [0]),
        1,
    )
    many = cpu(
        lambda: watch_networks(
            View(inputs=rows, targets=targets), PAIR, network, range(200)
        ),
        200,
    )
    print(f"| 20-32-10 network, watched one by one | {single:.4f} | 1 |")
    print(f"| the same, 200 in one pass | {many:.4f} | {many / single:.3f} |")
    print(
        f"\n1,000 watched runs of the convolutional network: {1000 * watched / 60:.1f} CPU minutes, half of that on two cores."
    )


if __name__ == "__main__":
    main()
