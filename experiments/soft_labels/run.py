"""Pedersen's experiment on optimally soft labels (thesis, chapter 5), in his setting and beside it.

    python experiments/soft_labels/run.py --data ../shared/data

Each split divides 800 records into two halves of 400. On each half, 25 halvings give 50 teachers, their answers give targets, and one
student is trained for each treatment of the labels. Every model is later attacked with the models of all other splits as shadows, so
that the attacker runs the whole procedure. A finished split is one file under build/soft_labels; a run that was stopped goes on, and
several processes share the splits (``--part 0 --of 2``). page.py writes docs/experiments/soft_labels.md from what is finished.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from numpy.typing import NDArray
from settings import (
    ALPHAS,
    BLOCK,
    CLASSES,
    EPOCHS,
    FEWER,
    FLOOR,
    HALVINGS,
    MORE_NOISE,
    MORE_TREATMENTS_UNTIL,
    RECURSION_SERIES,
    RECURSION_UNTIL,
    ROUNDS,
    SEED,
    SERIES,
    TEACHER_EPOCHS,
    Series,
    network,
)

from data import Records, halves, read
from reticent import Network, PrivateNetwork
from reticent.run import seed_for, stream
from reticent.train.soft import (
    LeaveOut,
    leave_out,
    mixed_targets,
    repaired_targets,
    shift_alphas,
    shifted_targets,
)
from reticent.train.tensors import Cohort, Networks, train_networks, train_privately

TOGETHER = 10  # plain networks in one pass; changes the time, not the result
SMOOTHED = (0.5, 0.9)  # shares that are spread over the classes
AT_LABEL = (0.7, 0.9)  # targets of the labelled class, the other reading


def train(
    series: Series,
    inputs: NDArray[np.float32],
    targets: NDArray[np.floating],
    masks: NDArray[np.bool_],
    recipe: Network | PrivateNetwork,
    *,
    seeds: NDArray[np.int64],
    rotate: bool = False,
) -> list[Networks]:
    """Train one network per mask; targets are common, (n, c), or one set per network, (M, n, c)."""
    trained = []
    for at in range(0, len(masks), TOGETHER):
        some = slice(at, at + TOGETHER)
        own = targets if targets.ndim == 2 else targets[some]
        cohort = Cohort(
            inputs=torch.from_numpy(inputs),
            targets=torch.from_numpy(np.asarray(own, dtype=np.float32)),
            masks=masks[some],
            seeds=[int(seed) for seed in seeds[some]],
        )
        if isinstance(recipe, PrivateNetwork):
            trained.append(train_privately(cohort, recipe, rotate=rotate))
        else:
            trained.append(train_networks(cohort, recipe, rotate=rotate))
    return trained


def teach(
    series: Series,
    inputs: NDArray[np.float32],
    targets: NDArray[np.floating],
    *,
    labels: NDArray[np.int64],
    name: str,
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return what the 50 teachers of one training set answer for its records, (50, 400, 10), and whom they trained on."""
    taught = np.zeros((2 * HALVINGS, len(labels)), dtype=bool)
    rng = stream(SEED, f"soft_labels/halvings/{name}")
    for k in range(HALVINGS):
        for label in range(CLASSES):
            own = rng.permutation(np.flatnonzero(labels == label))
            taught[2 * k, own[: len(own) // 2]] = True
        taught[2 * k + 1] = ~taught[2 * k]
    seeds = rng.integers(2**31 - 1, size=len(taught))
    recipe = network(series, epochs=TEACHER_EPOCHS)
    models = train(series, inputs, targets, taught, recipe, seeds=seeds, rotate=True)
    answers = [part.probabilities(torch.from_numpy(inputs)) for part in models]
    return np.concatenate(answers), taught


def treatments(
    answers: NDArray[np.float32],
    taught: NDArray[np.bool_],
    labels: NDArray[np.int64],
    *,
    more: bool,
    name: str,
) -> tuple[LeaveOut, dict[str, NDArray[np.float64]]]:
    """Return what teachers that did not see a record say of it, and the targets of each treatment of the labels."""
    said = leave_out(answers, taught, labels, floor=FLOOR)
    hard = said.one_hot()
    targets = {"hard": hard}
    for alpha in ALPHAS:
        targets[f"alpha {alpha:g}"] = shifted_targets(said, alpha)
    if not more:
        return said, targets
    alphas = shift_alphas(said, most=1.0, tau=0.5)
    mixed = stream(SEED, f"soft_labels/permuted/{name}").permutation(alphas)
    fewer = leave_out(answers[: 2 * FEWER], taught[: 2 * FEWER], labels, floor=FLOOR)
    seen = leave_out(answers, ~taught, labels, floor=FLOOR)
    targets |= {
        "per record": shifted_targets(said, alphas),
        "per record, permuted": shifted_targets(said, mixed),
        "repaired": repaired_targets(said)[0],
        "mixture 0.5": mixed_targets(said, 0.5),
        f"alpha 1, {FEWER} halvings": shifted_targets(fewer, 1.0),
        "distilled from teachers that saw the record": shifted_targets(seen, 0.0),
    }
    for share in SMOOTHED:
        targets[f"smoothed by {share:g}"] = (1 - share) * hard + share / CLASSES
    for goal in AT_LABEL:
        others = (1 - goal) / (CLASSES - 1)
        targets[f"smoothed to {goal:g}"] = np.where(hard == 1, goal, others)
    return said, targets


def run_half(
    series: Series, records: Records, rows: NDArray[np.int64], split: int, half: int
) -> dict[str, NDArray]:
    """Return everything that is kept of one half of a split."""
    name = f"{series.name}/{split}/{half}"
    more = split < MORE_TREATMENTS_UNTIL
    inputs, labels = records.inputs[rows], records.labels[rows]
    hard = np.eye(CLASSES)[labels]
    answers, taught = teach(series, inputs, hard, labels=labels, name=name)
    said, targets = treatments(answers, taught, labels, more=more, name=name)
    kept: dict[str, NDArray] = {
        "mean": said.mean.astype(np.float32),
        "deviation": said.deviation.astype(np.float32),
        "shift": said.shift.astype(np.float32),
    }
    if split < RECURSION_UNTIL and series.name == RECURSION_SERIES:
        for number in range(2, ROUNDS + 1):
            before = targets["alpha 1" if number == 2 else f"round {number - 1}"]
            again, taught = teach(
                series, inputs, before, labels=labels, name=f"{name}/{number}"
            )
            said = leave_out(again, taught, labels, floor=FLOOR)
            targets[f"round {number}"] = shifted_targets(said, 1.0)
            kept[f"target round {number}"] = targets[f"round {number}"]
    everyone = np.ones((len(targets), len(rows)), dtype=bool)
    # The same seed for all treatments: they are compared in pairs.
    seeds = np.full(len(targets), seed_for(SEED, f"soft_labels/student/{name}"))
    students = dict.fromkeys(targets)
    models = train(
        series,
        inputs,
        np.stack(list(targets.values())),
        everyone,
        network(series, epochs=EPOCHS),
        seeds=seeds,
    )
    one_by_one = [part.of(k) for part in models for k in range(len(part))]
    students = dict(zip(targets, one_by_one, strict=True))
    if more:
        part = np.zeros((1, len(rows)), dtype=bool)
        part[0, np.flatnonzero(taught[0])] = True
        alone = everyone[:1]
        for title, mask, recipe in (
            ("hard, half of the records", part, network(series, epochs=EPOCHS)),
            ("hard, 3 epochs", alone, network(series, epochs=3)),
            ("hard, 12 epochs", alone, network(series, epochs=12)),
            (
                f"hard, 12 epochs, noise {MORE_NOISE:g}",
                alone,
                network(series, epochs=12, noise=MORE_NOISE),
            ),
        ):
            if "noise" in title and not series.private:
                continue
            students[title] = train(
                series, inputs, hard, mask, recipe, seeds=seeds[:1]
            )[0]
    for title, model in students.items():
        kept[f"answers {title}"] = model.probabilities(
            torch.from_numpy(records.inputs)
        )[0]
        for part, x, y in (
            ("validation", records.validation, records.validation_labels),
            ("test", records.test, records.test_labels),
        ):
            answer = model.probabilities(torch.from_numpy(x))[0].argmax(axis=1)
            kept[f"{part} {title}"] = np.packbits(answer != y)
    return kept


def run_split(series: Series, records: Records, split: int, path: Path) -> None:
    """Train the models of one split and keep what they say."""
    started = time.process_time()
    kept: dict[str, NDArray] = {}
    for half, rows in enumerate(halves(records.labels, split)):
        made = run_half(series, records, rows, split, half)
        kept |= {f"{half} {key}": value for key, value in made.items()}
    part = path.with_suffix(f".{os.getpid()}.part.npz")
    np.savez_compressed(part, seconds=time.process_time() - started, **kept)
    part.replace(path)


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/soft_labels"))
    parser.add_argument("--series", nargs="*", default=[s.name for s in SERIES])
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [series for series in SERIES if series.name in arguments.series]
    for start in range(0, max(series.splits for series in chosen), BLOCK):
        for series in chosen:
            block = range(start, min(start + BLOCK, series.splits))
            run_block(
                series,
                [k for k in block if k % arguments.of == arguments.part],
                arguments.data,
                arguments.out,
            )


def run_block(series: Series, splits: list[int], data: Path, out: Path) -> None:
    """Finish some splits of a series."""
    folder = out / series.name
    folder.mkdir(parents=True, exist_ok=True)
    missing = [k for k in splits if not (folder / f"{k:02d}.npz").exists()]
    if not missing:
        return
    records = read(series, data, out)
    for split in missing:
        run_split(series, records, split, folder / f"{split:02d}.npz")
        print(f"{series.name}: split {split}", flush=True)


if __name__ == "__main__":
    main()
