"""Does a wider filter make training steadier? Accuracy over the epochs for several k and c, on a small network.

    python experiments/tanh/stability.py --data ../shared/data

Figures 7.4 and 7.5 of the thesis show that a larger k takes away the oscillations of the accuracy, and explain it by the wider range in which tanh is not
saturated. But c tanh(g/k) is (c/k) g for small g: with c held fixed, a larger k is also a smaller learning rate. So there are settings in which
the range is wider at the same slope (k and c grow together), and some in which only the rate is smaller.

The network is small so that several seeds can be afforded: one convolution with 8 kernels. How many seeds and epochs there are, which settings, and how unsteadiness
is measured, was fixed before the first training. What is finished is kept in stability.json, so that a run that was stopped goes on.
"""

import argparse
import functools
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

import data
from reticent.run import write_text
from reticent.train import SGD, PrivateModule
from reticent.train.private import Tanh
from reticent.train.tensors import Cohort, train_modules_privately

__all__ = [
    "EPOCHS",
    "RESULTS",
    "ROWS",
    "SEEDS",
    "SETTLED",
    "TESTED",
    "VARIANTS",
    "Variant",
    "unsteadiness",
]

RESULTS = Path(__file__).parent / "stability.json"
ROWS, TESTED, BATCH = 5_000, 2_000, 256
EPOCHS, SEEDS = 30, 5
SETTLED = (
    10  # epochs before which accuracy mostly rises; changes are counted after them
)
NOISE, RATE = 1.1, 0.15  # the thesis's


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Width k and height c of the filter, and the learning rate; the noise stays 1.1, as in the thesis."""

    k: float = 1.0
    c: float = 1.0
    rate: float = RATE

    @property
    def name(self) -> str:
        """By which results are kept."""
        return f"k {self.k:g}, c {self.c:g}, rate {self.rate:g}"


VARIANTS = (
    Variant(),
    Variant(k=3),
    Variant(k=10),
    Variant(k=0.3),
    Variant(c=3),
    Variant(c=0.3),
    # The range of k = 3 and 10 at the slope of k = 1.
    Variant(k=3, c=3),
    Variant(k=10, c=10),
    # The slope of k = 3 and 10 in the range of k = 1, with noise that shrinks along.
    Variant(rate=RATE / 3),
    Variant(rate=RATE / 10),
)


def small(channels: int, side: int) -> nn.Module:
    """Return a network with one convolution and one hidden layer: 13,426 parameters for MNIST."""
    bottom = [nn.Conv2d(channels, 8, 8, stride=4, padding=2), nn.ReLU(), nn.Flatten()]
    with torch.no_grad():
        seen = nn.Sequential(*bottom)(torch.zeros(1, channels, side, side)).shape[1]
    return nn.Sequential(*bottom, nn.Linear(seen, 32), nn.ReLU(), nn.Linear(32, 10))


def unsteadiness(accuracies: np.ndarray) -> tuple[float, float]:
    """Return the mean absolute change from one epoch to the next after the first epochs, and the largest fall."""
    changes = np.diff(accuracies[SETTLED - 1 :])
    return float(np.abs(changes).mean()), float(max(0.0, -changes.min()))


def trained(pictures: data.Pictures, variant: Variant, seed: int) -> list[int]:
    """Train one network; return the right answers at the end of each epoch."""
    correct: list[int] = []
    kept: list[nn.Module] = []
    _, channels, side, _ = pictures.x_train.shape
    size = sum(p.numel() for p in small(channels, side).parameters())
    clipping = Tanh(scale=variant.c, width=variant.k)
    recipe = PrivateModule(
        "stability:small",
        epochs=EPOCHS,
        batch=BATCH,
        optimiser=SGD(rate=variant.rate),
        clipping=clipping,
        # The recipe counts noise in units of the filter's true bound; this is 1.1 in all.
        noise_multiplier=NOISE / clipping.bound([size]),
        noise="seeded",
    )
    steps = recipe.course(ROWS).steps
    ends = {round(steps * (epoch + 1) / EPOCHS) for epoch in range(EPOCHS)}

    def make() -> nn.Module:
        kept.append(small(channels, side))
        return kept[-1]

    def look(done: int) -> None:
        if done in ends:
            with torch.no_grad():
                answers = kept[-1](pictures.x_test).argmax(1)
            correct.append(int((answers == pictures.y_test).sum()))

    train_modules_privately(
        make,
        Cohort(
            inputs=pictures.x_train,
            targets=nn.functional.one_hot(pictures.y_train, 10).float(),
            masks=np.ones((1, ROWS), dtype=bool),
            seeds=[seed],
        ),
        recipe,
        tell=look,
    )
    return correct


@functools.lru_cache(maxsize=1)
def read(name: str, folder: Path) -> data.Pictures:
    """Return the first records of a data set."""
    whole = {"mnist": data.mnist, "cifar10": data.cifar10}[name](folder)
    return whole.first(ROWS, TESTED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--minutes", type=float, default=24 * 60.0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the order of additions, hence the figures, depends on it
    until = time.monotonic() + 60 * arguments.minutes
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in ("cifar10", "mnist"):
        for variant in VARIANTS:
            own = found.setdefault(
                f"{name}/{variant.name}", {"correct": {}, "seconds": 0}
            )
            for seed in range(SEEDS):
                if str(seed) in own["correct"] or time.monotonic() > until:
                    continue
                started = time.process_time()
                own["correct"][str(seed)] = trained(
                    read(name, arguments.data), variant, seed
                )
                own["seconds"] += time.process_time() - started
                write_text(RESULTS, json.dumps(found) + "\n")
