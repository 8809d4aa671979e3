"""The tanh filter of Amian's thesis in place of clipping: accuracy, the epsilon it claims, and the one it has.

    python experiments/tanh/run.py --data ../shared/data

Each setting of settings.py is trained by the package's engine with seeded noise, so that figures repeat and models have
no guarantee; then come the recurrent part of recurrent.py and the audits of audit.py. What is finished is kept in results.json: a killed run
goes on with the next setting; to begin anew, remove the file. The page docs/experiments/tanh.md is written at the end.
"""

import argparse
import functools
import json
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from audit import audited
from page import write_page
from recurrent import run_recurrent
from settings import BATCH, CURVES, DELTA, SETTINGS, Setting, convolutional
from torch import Tensor, nn

import data
from reticent.account import renyi_epsilon, trade_off
from reticent.run import write_text
from reticent.train import SGD, PrivateModule
from reticent.train.private import Tanh
from reticent.train.tensors import (
    Cohort,
    gradients_of_records,
    train_modules_privately,
)

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path("docs/experiments/tanh.md")
KEPT = Path("build/tanh")
LOOKED_AT = 1000  # training records whose clipped gradients are measured


@functools.lru_cache(maxsize=1)  # settings of one data set follow each other
def read(name: str, folder: Path) -> data.Pictures:
    """Return a data set."""
    return {"mnist": data.mnist, "cifar10": data.cifar10}[name](folder)


class Watch:
    """Looks at a network now and then while it is trained.

    Parameters
    ----------
    pictures : data.Pictures
        On whose test records it answers.
    setting : Setting
        What it is trained by.
    """

    def __init__(self, pictures: data.Pictures, setting: Setting) -> None:
        self.pictures, self.setting = pictures, setting
        self.moments = set(setting.moments())
        self.correct: list[int] = []
        self.lengths: list[dict[str, float]] = []

    def make(self) -> nn.Module:
        """Make the network, and keep it in sight."""
        _, channels, side, _ = self.pictures.x_train.shape
        self.module = convolutional(channels, side)
        return self.module

    def __call__(self, done: int) -> None:
        """Count correct answers, and measure filtered gradients."""
        if done not in self.moments:
            return
        with torch.no_grad():
            answers = torch.cat(
                [self.module(x).argmax(1) for x in self.pictures.x_test.split(500)]
            )
        self.correct.append(int((answers == self.pictures.y_test).sum()))
        if isinstance(self.setting.clipping, Tanh):
            self.lengths.append(self._lengths(self.setting.clipping))

    def _lengths(self, clipping: Tanh) -> dict[str, float]:
        x, y = self.pictures.x_train[:LOOKED_AT], self.pictures.y_train[:LOOKED_AT]
        found = []
        for some, classes in zip(x.split(250), one_hot(y).split(250), strict=True):
            layers = gradients_of_records(self.module, some, classes)
            inner = torch.full((1, len(some)), 1 / clipping.width)
            squares = sum(p.bent_squares(inner)[0] for layer in layers for p in layer)
            found.append(clipping.scale * squares.sqrt())
        lengths = torch.cat(found)
        return {
            "median": float(lengths.median()),
            "above_one": int((lengths > 1).sum()),
            "largest": float(lengths.max()),
        }


def one_hot(classes: Tensor) -> Tensor:
    return nn.functional.one_hot(classes, 10).float()


def trained(setting: Setting, pictures: data.Pictures, seed: int) -> Watch:
    """Train one network; return what was seen of it."""
    watch = Watch(pictures, setting)
    recipe = PrivateModule(
        "settings:convolutional",
        epochs=setting.epochs,
        batch=BATCH,
        optimiser=SGD(rate=setting.rate),
        clipping=setting.clipping,
        noise_multiplier=setting.noise_multiplier,
        noise="seeded",
    )
    n = len(pictures.x_train)
    train_modules_privately(
        watch.make,
        Cohort(
            inputs=pictures.x_train,
            targets=one_hot(pictures.y_train),
            masks=np.ones((1, n), dtype=bool),
            seeds=[seed],
        ),
        recipe,
        tell=watch,
    )
    return watch


def epsilons(setting: Setting) -> dict[str, list[float]]:
    """Return what is spent at each moment, by who counts: the thesis, the thesis on an exact accountant, the truth."""
    claimed = [setting.training(setting.noise, steps) for steps in setting.moments()]
    proven = [
        replace(one, noise_multiplier=setting.noise_multiplier) for one in claimed
    ]
    return {
        "renyi": [renyi_epsilon(one, DELTA) for one in claimed],
        "claimed": [trade_off(one).epsilon(DELTA) for one in claimed],
        "proven": [trade_off(one).epsilon(DELTA) for one in proven],
    }


def run(setting: Setting, folder: Path, results: dict) -> None:
    """Add a setting to the results."""
    told = {**asdict(setting), "clipping": repr(setting.clipping)}
    told["seeds"] = list(setting.seeds)
    if results["runs"].get(setting.key, {}).get("setting") == told:
        return
    pictures = read(setting.data, folder)
    started = time.process_time()
    watches = [trained(setting, pictures, seed) for seed in setting.seeds]
    entry = {
        "setting": told,
        "bound": setting.bound,
        "noise_multiplier": setting.noise_multiplier,
        "test_records": len(pictures.y_test),
        "steps": setting.moments(),
        "correct": {
            str(s): w.correct for s, w in zip(setting.seeds, watches, strict=True)
        },
        "lengths": watches[0].lengths,
        "epsilon": epsilons(setting),
        "minutes": (time.process_time() - started) / 60,
    }
    keep(results, "runs", results["runs"] | {setting.key: entry})
    last = [f"{w.correct[-1] / entry['test_records']:.2%}" for w in watches]
    print(
        f"{setting.key}: {', '.join(last)}, claimed {entry['epsilon']['claimed'][-1]:.3g}, proven "
        f"{entry['epsilon']['proven'][-1]:.3g}, {entry['minutes']:.1f} min",
        flush=True,
    )


def keep(results: dict, name: str, value: dict) -> None:
    """Put something among the results, on disk too."""
    results[name] = value
    write_text(RESULTS, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the order of additions, hence the figures, depends on it
    found = {"runs": {}, "audited": {}}
    if RESULTS.exists():
        found |= json.loads(RESULTS.read_text(encoding="utf-8"))
    for one in SETTINGS:
        run(one, arguments.data, found)
    if "recurrent" not in found:
        keep(found, "recurrent", run_recurrent())
    for one in CURVES:
        if one.key not in found["audited"]:
            watched = audited(one, read(one.data, arguments.data), KEPT)
            keep(found, "audited", found["audited"] | {one.key: watched})
    write_page(found, PAGE)
