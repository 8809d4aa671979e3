"""Utility and privacy of networks trained with and without the labels of the defender's digits: Table 2 of the LTU paper.

    python experiments/domain_adaptation/run.py --data ../shared/data

The writers of MNIST's training digits are divided at random into as many pairs of parts as there are trials. Each part is the defender's
once and reserved once. Each product of settings.py is trained and attacked in every trial and both directions; what is
finished is kept in results.json, and a killed run goes on with the next. The page docs/experiments/domain_adaptation.md
is written once all are there.
"""

import argparse
import functools
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from page import write_page
from settings import FLIPPED, PART, PRODUCTS, SHARE, SOURCE, TRIALS, network
from strokes import draw
from torch import Tensor

from reticent.attack import (
    Challenge,
    GradientNorm,
    Knowledge,
    LearnedWhiteBox,
    SealedTags,
)
from reticent.evidence import Estimate, ltu_accuracy
from reticent.run import seed_for, stream, write_text
from reticent.train.tensors import (
    Adaptation,
    Cohort,
    Modules,
    internals_of_module,
    train_adapted,
    train_modules,
)

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path("docs/experiments/domain_adaptation.md")
LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Digits:
    """The records of a trial in one direction, defender's first, then as many reserved ones.

    Parameters
    ----------
    inputs : Tensor, shape (n, 1, 28, 28)
        Images, from 0 to 1.
    labels, flipped : array of int, shape (n,)
        What they show; and the same with a share of them changed to another class.
    writers : array of int, shape (n,)
        Who wrote them.
    """

    inputs: Tensor
    labels: np.ndarray
    flipped: np.ndarray
    writers: np.ndarray

    @property
    def members(self) -> np.ndarray:
        return np.arange(len(self.labels)) < len(self.labels) // 2


@functools.lru_cache(maxsize=1)
def read(folder: Path) -> tuple[np.ndarray, ...]:
    """Return MNIST's training digits, their labels and writers."""
    with np.load(folder / "mnist/mnist.npz") as z:
        images, labels = z["x_train"], z["y_train"].astype(np.int64)
    with np.load(folder / "mnist/mnist_writers.npz") as z:
        writers = z["writer_train"].astype(np.int64)
    return images, labels, writers


def digits(folder: Path, trial: int, direction: int) -> Digits:
    """Return the records of a trial; its two directions have the same, with the parts exchanged."""
    images, labels, writers = read(folder)
    people = stream(0, "writers").permutation(np.unique(writers))
    groups = np.array_split(people, 2 * TRIALS)[2 * trial : 2 * trial + 2]
    rng = stream(trial, "digits")
    parts = [
        rng.permutation(np.flatnonzero(np.isin(writers, group)))[:PART]
        for group in groups
    ]
    other = (labels + rng.integers(1, 10, len(labels))) % 10
    flipped = np.where(rng.random(len(labels)) < SHARE, other, labels)
    rows = np.concatenate(parts if direction == 0 else parts[::-1])
    return Digits(
        inputs=as_inputs(images[rows]),
        labels=labels[rows],
        flipped=flipped[rows],
        writers=writers[rows],
    )


def as_inputs(images: np.ndarray) -> Tensor:
    return torch.from_numpy(images).float()[:, None] / 255


def one_hot(labels: np.ndarray) -> Tensor:
    return torch.nn.functional.one_hot(torch.from_numpy(labels), 10).float()


def trained(name: str, own: Digits, trial: int, direction: int) -> Modules:
    """Return a product; of the defender's digits, an adapted one sees the images alone."""
    recipe = PRODUCTS[name]
    seed = seed_for(trial, f"train/{direction}/{name}")
    inputs = own.inputs[:PART]
    if isinstance(recipe, Adaptation):
        images, shown = draw(SOURCE, stream(trial, f"source/{direction}"))
        return train_adapted(
            network, as_inputs(images), one_hot(shown), inputs, recipe, seed
        )
    labels = own.flipped if name == FLIPPED else own.labels
    return train_modules(
        network,
        Cohort(
            inputs=inputs,
            targets=one_hot(labels[:PART]),
            masks=np.ones((1, PART), dtype=bool),
            seeds=[seed],
        ),
        recipe,
    )


def attacked(product: Modules, own: Digits, labels: np.ndarray, seed: int) -> dict:
    """Return how often each attack wins a pair, of digits and of writers, with DeLong's interval."""
    answers = product.probabilities(own.inputs)[0].astype(np.float64)
    seen = internals_of_module(product.modules[0], own.inputs, labels)
    challenge = Challenge(probabilities=answers, labels=labels, internals=seen)
    guessed = answers.argmax(axis=1)
    unlabelled = Challenge(
        probabilities=answers,
        labels=guessed,
        internals=internals_of_module(product.modules[0], own.inputs, guessed),
    )
    knowledge = Knowledge(tags=SealedTags(own.members, own.writers))

    def scores(attack: GradientNorm | LearnedWhiteBox, asked: Challenge) -> np.ndarray:
        rng = stream(seed, f"attack/{attack.name}")
        return attack.score(asked, knowledge=knowledge, rng=rng).values

    found = {
        "gradient": scores(GradientNorm(), challenge),
        "loss": -seen.losses,
        "gradient_unlabelled": scores(GradientNorm(), unlabelled),
        "learned": scores(LearnedWhiteBox(), challenge),
    }
    return {attack: pairs(values, own) for attack, values in found.items()}


def pairs(scores: np.ndarray, own: Digits) -> dict:
    """Return the accuracy over all pairs of a member and another, of digits and of writers."""
    people, who = np.unique(own.writers, return_inverse=True)
    means = np.bincount(who, scores) / np.bincount(who)
    inside = np.isin(people, own.writers[own.members])
    sides = {"digits": (scores, own.members), "writers": (means, inside)}
    return {
        unit: spelled(ltu_accuracy(values[tags], values[~tags], level=LEVEL))
        for unit, (values, tags) in sides.items()
    }


def spelled(estimate: Estimate) -> list[float]:
    return [estimate.value, estimate.low, estimate.high]


def cell(name: str, folder: Path, trial: int, direction: int) -> dict:
    """Train one product and attack it."""
    started = time.process_time()
    own = digits(folder, trial, direction)
    product = trained(name, own, trial, direction)
    spent = time.process_time() - started
    labels = own.flipped if name == FLIPPED else own.labels
    right = product.probabilities(own.inputs)[0].argmax(axis=1) == labels
    found = {
        "recipe": repr(PRODUCTS[name]),
        "records": PART,
        "writers": [len(np.unique(own.writers[side])) for side in (own.members, ~own.members)],
        "correct": [int(right[side].sum()) for side in (own.members, ~own.members)],
        "attacks": attacked(product, own, labels, trial),
    }  # fmt: skip
    if name == "adapted":
        # The same product, asked about with labels of which a share is wrong, as in the sanity check.
        found["attacks_flipped"] = attacked(product, own, own.flipped, trial)
    return found | {
        "training_seconds": spent,
        "cpu_seconds": time.process_time() - started,
    }


def keep(results: dict) -> None:
    """Write the results, one product a line."""
    lines = [f"{json.dumps(key)}: {json.dumps(made)}" for key, made in results.items()]
    write_text(RESULTS, "{\n" + ",\n".join(lines) + "\n}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    folder = parser.parse_args().data
    torch.set_num_threads(1)  # the order of additions, hence the figures, depends on it
    results = {}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    for trial in range(TRIALS):
        for direction in (0, 1):
            for name, recipe in PRODUCTS.items():
                key = f"{name}-{trial}-{direction}"
                if results.get(key, {}).get("recipe") == repr(recipe):
                    continue
                results[key] = made = cell(name, folder, trial, direction)
                keep(results)
                accuracy = made["attacks"]["gradient"]["digits"][0]
                print(
                    f"{key}: {made['correct'][1] / PART:.4f}, {accuracy:.4f}, {made['cpu_seconds']:.0f} s",
                    flush=True,
                )
    write_page(results, PAGE)


if __name__ == "__main__":
    main()
