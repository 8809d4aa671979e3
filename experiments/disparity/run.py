"""O'Dell's study of disparate vulnerability (thesis, chapter 7), on Law School and Adult.

    python experiments/disparity/run.py --data ../shared/data --out build/disparity

Each of 200 repeats divides the table anew into 40 % training, 40 % test and 20 % reference records, trains a
network with 8 hidden units for 200 epochs, and attacks it with five shadow models trained on halves of the
reference records. What is finished is kept in the folder; a killed run goes on. The page
docs/experiments/disparity.md is written at the end.
"""

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from page import write_page

from reticent.attack import Challenge, LikelihoodRatio, XGBoosting, score_targets
from reticent.attack.learned import outputs_seen
from reticent.data import Table, table_from_frame
from reticent.pool import Pool
from reticent.run import stream
from reticent.train import SGD, Network, NetworkTrainer, train_many

SHADOWS = 5
CHUNK = 50


@dataclass(frozen=True, kw_only=True)
class Study:
    """One of the two tables."""

    name: str
    file: str
    target: str
    group: str
    drop: tuple[str, ...] = ()

    def read(self, data: Path) -> Table:
        frame = pd.read_csv(data / self.file).drop(columns=list(self.drop))
        return table_from_frame(
            frame.drop(columns=[self.target]),
            target=frame[self.target].astype(str).to_numpy(),
            group=frame[self.group].to_numpy(),
            name=self.name,
        )


STUDIES = (
    Study(
        name="law_school",
        file="law_school/law_school_admissions.csv.gz",
        target="bar",
        group="race1",
    ),
    Study(
        name="adult",
        file="adult/adult.csv.gz",
        target="income",
        group="race",
        drop=("fnlwgt", "split"),  # survey weights are no feature, as in the thesis
    ),
)


def trainer(batch: int) -> NetworkTrainer:
    """Return the thesis's network; the batch size is not stated there."""
    return NetworkTrainer(
        chunk=CHUNK,
        network=Network(hidden=(8,), epochs=200, batch=batch, optimiser=SGD(rate=0.01)),
        recipe=f"reticent.Network(hidden=[8], epochs=200, batch={batch}, optimiser=reticent.SGD(rate=0.01))",
    )


def parts(n: int, repeat: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training, test and reference records of one repeat."""
    order = stream(0, f"disparity/{repeat}").permutation(n)
    cut = round(0.4 * n)
    return order[:cut], order[cut : 2 * cut], order[2 * cut :]


def shadow_masks(n: int, repeat: int) -> np.ndarray:
    """Return who trains each shadow model of a repeat: a random half of the reference records."""
    reference = parts(n, repeat)[2]
    rng = stream(0, f"disparity/shadows/{repeat}")
    masks = np.zeros((SHADOWS, n), dtype=bool)
    for mask in masks:
        mask[rng.permutation(reference)[: len(reference) // 2]] = True
    return masks


def train_chunk(
    table: Table, masks: np.ndarray, first: int, kind: str, workers: int, batch: int
):
    seeds = np.arange(first, first + len(masks)) + (0 if kind == "targets" else 10**6)
    return train_many(trainer(batch), table, masks, seeds, workers=workers)[..., 1]


def kept(path: Path, make) -> np.ndarray:
    if path.exists():
        return np.load(path)
    made = make()
    part = path.with_suffix(".part.npy")
    np.save(part, made)
    part.replace(path)
    return made


def attack_repeat(
    p: np.ndarray,
    shadows: np.ndarray,
    masks: np.ndarray,
    labels: np.ndarray,
    group: np.ndarray,
    repeat: int,
) -> np.ndarray:
    """Return the decisions of three shadow attacks on all records, shape (3, n).

    What the attack classifier (XGBoost, 100 trees) sees: the 0-1 loss alone, as in the thesis; the
    0-1 loss and the group; the whole answer.
    """
    reference = parts(len(labels), repeat)[2]
    both = lambda q: np.column_stack([1 - q, q]).astype(np.float64)  # noqa: E731
    rng = stream(0, f"disparity/attack/{repeat}")
    learn, tags = [], []
    for q, mask in zip(shadows, masks, strict=True):
        learn.append(_seen(both(q[reference]), labels[reference], group[reference]))
        tags.append(mask[reference])
    asked = _seen(both(p), labels, group)
    called = []
    for view in range(3):
        inputs = np.concatenate([seen[view] for seen in learn])
        odds = XGBoosting().learn(inputs, np.concatenate(tags), rng)
        called.append(odds(asked[view]) > 0)
    return np.array(called)


def _seen(p: np.ndarray, labels: np.ndarray, group: np.ndarray) -> list[np.ndarray]:
    wrong = (p.argmax(axis=1) != labels).astype(np.float64)[:, None]
    one_hot = np.eye(group.max() + 1)[group]
    return [
        wrong,
        np.column_stack([wrong, one_hot]),
        outputs_seen(Challenge(probabilities=p, labels=labels)),
    ]


def run(
    study: Study, data: Path, out: Path, repeats: int, workers: int, batch: int
) -> None:
    table = study.read(data)
    n = len(table)
    folder = out / study.name
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    everyone = np.zeros((repeats, n), dtype=bool)
    judged = np.zeros((repeats, n), dtype=bool)
    for k in range(repeats):
        train, test, _ = parts(n, k)
        everyone[k, train] = judged[k, train] = judged[k, test] = True
    answers = np.concatenate(
        [
            kept(
                folder / f"targets-{first}.npy",
                lambda its=its, first=first: train_chunk(
                    table, everyone[its], first, "targets", workers, batch
                ),
            )
            for first in range(0, repeats, 2 * CHUNK)
            for its in [slice(first, min(first + 2 * CHUNK, repeats))]
        ]
    )
    trained = time.perf_counter() - started
    print(f"{study.name}: {repeats} targets in {trained / 60:.1f} min", flush=True)
    group = np.unique(table.groups, return_inverse=True)[1]
    called = []
    per_chunk = 20  # repeats whose shadow models are trained together
    for first in range(0, repeats, per_chunk):
        these = range(first, min(first + per_chunk, repeats))

        def make(these=these) -> np.ndarray:
            masks = np.concatenate([shadow_masks(n, k) for k in these])
            made = train_chunk(
                table, masks, SHADOWS * these.start, "shadows", workers, batch
            )
            made = made.reshape(len(these), SHADOWS, n)
            return np.array(
                joblib.Parallel(n_jobs=workers)(
                    joblib.delayed(attack_repeat)(
                        answers[k],
                        made[k - these.start],
                        masks[SHADOWS * (k - these.start) :][:SHADOWS],
                        table.target,
                        group,
                        k,
                    )
                    for k in these
                )
            )

        called.append(kept(folder / f"called-{first}.npy", make))
    both = np.stack([1 - answers, answers], axis=-1).astype(np.float32)
    pool = Pool(masks=everyone, probabilities=both, labels=table.target)
    lira = kept(
        folder / "lira.npy",
        lambda: (
            score_targets(
                LikelihoodRatio(), pool, most=repeats, rng=np.random.default_rng(0)
            )[1]
            > 0
        ),
    )
    wall = time.perf_counter() - started
    if not (folder / "result.npz").exists():
        np.savez(
            folder / "result.npz",
            answers=answers,
            masks=everyone,
            judged=judged,
            called=np.concatenate(called),
            lira=lira,
            labels=table.target,
            groups=table.groups.astype(str),
            minutes=np.array([wall / 60]),
        )
    print(f"{study.name}: done in {wall / 60:.1f} min", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/disparity"))
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--only", choices=[s.name for s in STUDIES])
    arguments = parser.parse_args()
    for one in STUDIES:
        if arguments.only in (None, one.name):
            run(
                one,
                arguments.data,
                arguments.out,
                arguments.repeats,
                arguments.workers,
                arguments.batch,
            )
    if arguments.only is None and arguments.batch == 128:
        write_page(arguments.out, Path("docs/experiments/disparity.md"))
