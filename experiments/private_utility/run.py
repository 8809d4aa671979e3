"""How accurate a private linear classifier is on MNIST, Fashion-MNIST and Adult.

    python experiments/private_utility/run.py --data ../shared/data

Each setting of settings.py gets the least noise for its budget and is trained by the package's engine, once per
seed. What is finished is kept in results.json; a killed run goes on with the next setting, and more seeds are added to
those that are there; to begin anew, remove the file. The page docs/experiments/private_utility.md is written once all
settings are there.
"""

import argparse
import functools
import json
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from page import write_page
from settings import DELTA, SETTINGS, Setting

import data
from reticent.account import Budget, Course, Plan, Terms, make_plan
from reticent.run import write_text
from reticent.train import SGD, PrivateNetwork
from reticent.train.private import Clip
from reticent.train.tensors import Cohort, train_privately

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path("docs/experiments/private_utility.md")
KEPT = Path("build/private_utility")
SPENT = ("steps", "epsilon", "delta", "relation", "epsilon_other")  # of a plan
SEEDS = {"mnist": 3, "fashion_mnist": 5, "adult": 5}  # 0, 1, ...: fixed beforehand


def calibrated(setting: Setting) -> Plan:
    """Return the plan with the least noise for the budget of a setting."""
    course = Course.of_epochs(
        rows=setting.rows, batch=setting.batch, epochs=setting.epochs
    )
    return make_plan(
        Budget(epsilon=setting.epsilon, delta=DELTA), course, Terms(delta=DELTA)
    )


@functools.lru_cache(maxsize=1)  # settings of one data set follow each other
def read(name: str, groups: int | None, folder: Path) -> data.Parts:
    """Return the features of a data set."""
    if name == "adult":
        return data.adult(folder)
    if groups is None:
        raise ValueError(f"the setting of {name} has no groups; scattering needs them.")
    if name == "mnist":
        return data.mnist(folder, groups=groups, kept=KEPT)
    return data.fashion_mnist(groups=groups, kept=KEPT)


def correct_answers(
    setting: Setting, noise: float, parts: data.Parts, seed: int
) -> int:
    """Train one model; return how many test records it gets right."""
    n = len(parts.x_train)
    if n != setting.rows:
        raise ValueError(f"there are {n} records, but the noise is for {setting.rows}.")
    recipe = PrivateNetwork(
        hidden=(),
        batch=setting.batch,
        epochs=setting.epochs,
        optimiser=SGD(rate=setting.rate, momentum=setting.momentum),
        clipping=Clip(norm=setting.clip),
        noise_multiplier=noise,
        rows=n,
        noise="seeded",
    )
    labels = torch.from_numpy(parts.y_train)
    # One model at a time: such wide inputs leave nothing to gain from a stack, which only takes more memory.
    model = train_privately(
        Cohort(
            inputs=torch.from_numpy(parts.x_train),
            targets=torch.nn.functional.one_hot(labels).float(),
            masks=np.ones((1, n), dtype=bool),
            seeds=[seed],
        ),
        recipe,
    )
    answers = model.probabilities(torch.from_numpy(parts.x_test))[0].argmax(axis=1)
    return int((answers == parts.y_test).sum())


def run(setting: Setting, folder: Path, seeds: range, results: dict) -> None:
    """Add what is missing of a setting to the results."""
    name, plan = setting.name, calibrated(setting)
    told = {"setting": asdict(setting), "noise_multiplier": plan.noise_multiplier}
    entry = results["runs"].get(name, {})
    # Figures of another setting or another amount of noise are no part of this one.
    if any(entry.get(key) != value for key, value in told.items()):
        entry = {**told, "correct": {}, "minutes": 0.0}
        entry |= {key: getattr(plan, key) for key in SPENT}
    missing = [seed for seed in seeds if str(seed) not in entry["correct"]]
    if not missing:
        return
    started = time.process_time()
    parts = read(setting.data, setting.groups, folder)
    results["features"].setdefault(setting.data, minutes_since(started))
    n = entry["test_records"] = len(parts.y_test)
    entry["largest_class"] = int(np.bincount(parts.y_test).max())
    started = time.process_time()
    for seed in missing:
        correct = correct_answers(setting, plan.noise_multiplier, parts, seed)
        entry["correct"][str(seed)] = correct
        print(f"{name}, seed {seed}: {100 * correct / n:.2f} %", flush=True)
    entry["minutes"] += minutes_since(started)
    results["runs"][name] = entry
    write_text(RESULTS, json.dumps(results, indent=1) + "\n")


def minutes_since(started: float) -> float:
    return (time.process_time() - started) / 60


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", choices=["mnist", "fashion", "adult"])
    parser.add_argument("--seeds", type=int, help="of each setting, in place of 3 to 5")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the order of additions, hence the figures, depends on it
    found = {"features": {}, "runs": {}}
    if RESULTS.exists():
        found = json.loads(RESULTS.read_text(encoding="utf-8"))
    for one in SETTINGS:
        if one.data.startswith(arguments.only or ""):
            count = arguments.seeds or SEEDS[one.data]
            run(one, arguments.data, range(count), found)
    if all(one.name in found["runs"] for one in SETTINGS):
        write_page(found, PAGE)
