"""Compare reticent with the strongest peers that can be installed: equal targets, equal pools, one run.

    python benchmarks/peers.py --python path/to/the/peers/python

The peers live in an environment of their own (peers_requirements.txt), named by --python or by
PEERS_PYTHON; without it only reticent's attacks run. Every attack, ours or theirs, gives one
score per record; AUC and true-positive rates are computed here, by one implementation. Shadow
models have the same recipe and training size everywhere; SACRO-ML trains its own, and PrivacyGuard
gets the answers of ours. CPU seconds include the training of the shadow models.
"""

import argparse
import json
import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from peers_theirs import RECIPES, cpu_seconds
from scipy.stats import t as student
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from reticent.attack import (
    Challenge,
    CombinedPool,
    Knowledge,
    LikelihoodRatio,
    LikelihoodRatioOffline,
    RelativeRatio,
    SealedTags,
)
from reticent.evidence import ltu_accuracy, tpr_at_fpr
from reticent.pool import Pool, balanced_masks
from reticent.run import stream

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "shared" / "data"
OURS = (RelativeRatio(), LikelihoodRatio(), LikelihoodRatioOffline(), CombinedPool())
SIZES = (4, 16, 20)
MEASURES = ("AUC", "TPR at 1 %", "TPR at 0.1 %")

Records = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Members then non-members in equal number with their classes; a population with its classes."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One attack on one target with one seed."""

    target: str
    seed: int
    side: str
    attack: str
    models: int
    values: tuple[float, float, float]
    low: float
    high: float
    cpu: float


class Absent(Exception):
    """The data of a target are missing on this machine."""


def forest(seed: int) -> Records:
    """Return the made-up data and split that the peers were first measured on (seed 0)."""
    X, y = make_classification(
        8000, n_features=20, n_informative=10, n_redundant=4, n_classes=3, flip_y=0.15,
        class_sep=0.8, random_state=seed,
    )  # fmt: skip
    z, X, yz, y = train_test_split(X, y, test_size=0.75, stratify=y, random_state=seed)
    a, b, ya, yb = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    return np.concatenate([a, b]), np.concatenate([ya, yb]), z, yz


def adult(seed: int) -> Records:
    """Return 5,000 + 5,000 records of Adult, one-hot encoded and without duplicates."""
    path = DATA / "adult" / "adult.csv.gz"
    if not path.exists():
        raise Absent("the Adult table is not beside the project")
    table = pd.read_csv(path).drop(columns="split").drop_duplicates()
    target = (table.pop("income") == ">50K").to_numpy().astype(np.int64)
    X = pd.get_dummies(table, dtype=float).to_numpy()
    return _drawn(X, target, 10_000, seed)


def location(seed: int) -> Records:
    """Return binary records like Location-30: 446 places and 30 kinds of people, who differ in few places."""
    rng = np.random.default_rng(seed)
    popular = rng.beta(0.6, 3.0, size=446)
    peculiar = rng.permuted(np.tile(popular, (30, 1)), axis=1)
    visits = np.where(rng.random((30, 446)) < 0.91, popular, peculiar)
    y = rng.integers(30, size=3400)
    X = (rng.random((3400, 446)) < visits[y]).astype(float)
    return _drawn(X, y, 2400, seed)


def cifar10(seed: int) -> Records:
    """Return 2,000 + 2,000 images of CIFAR-10, as features of a network that was trained on other images."""
    path = DATA / "cifar10_efflite0" / "features.npz"
    if not path.exists():
        raise Absent("the CIFAR-10 features are not beside the project")
    with np.load(path) as stored:
        q, y = stored["q_train"], stored["y_train"].astype(np.int64)
    chosen = np.random.default_rng(seed).permutation(len(y))[:5000]
    X = 6 * (q[chosen].astype(np.float64) / 255) ** 2
    return _drawn(X, y[chosen], 4000, seed)


def _drawn(X: np.ndarray, y: np.ndarray, audited: int, seed: int) -> Records:
    """Return the audited records in random order, and 1,000 others as the population."""
    order = np.random.default_rng(seed).permutation(len(y))
    first, rest = order[:audited], order[audited : audited + 1000]
    return X[first], y[first], X[rest], y[rest]


TARGETS: dict[str, Callable[[int], Records]] = {
    "forest": forest,
    "adult": adult,
    "location": location,
    "cifar10": cifar10,
}
TITLES = {
    "forest": "random forest, 3,000 + 3,000 made-up records",
    "adult": "Adult, random forest, 5,000 + 5,000 records",
    "location": "Location-like binary records, network, 1,200 + 1,200",
    "cifar10": "CIFAR-10 features, network, 2,000 + 2,000",
}


def play(name: str, seed: int, python: str | None, folder: Path) -> list[Row]:
    """Train the released model and the pool of one target, and attack it from both sides."""
    X, y, Z, yz = TARGETS[name](seed)
    n, most = len(y), max(SIZES)
    tags = np.arange(n) < n // 2
    rows, others = np.arange(n), np.arange(len(yz))
    masks = balanced_masks(most, np.arange(n), rng=stream(seed, "peers/masks"))
    classes = int(y.max()) + 1

    spent = 0.0
    p, z = [], []
    for k, mask in enumerate([tags, *masks]):
        started = cpu_seconds()
        model = RECIPES[name](1000 * seed + k).fit(X[mask], y[mask])
        answers = np.zeros((n, classes))
        answers[:, model.classes_] = model.predict_proba(X)
        spent += (cpu_seconds() - started) * (k > 0)
        p.append(answers)
        beside = np.zeros((len(yz), classes))
        beside[:, model.classes_] = model.predict_proba(Z)
        z.append(beside[others, yz])
        if k == 0:
            train, test = (model.score(X[part], y[part]) for part in (tags, ~tags))
            print(
                f"{name}, seed {seed}: train {train:.3f}, test {test:.3f}", flush=True
            )
    each = spent / most
    judged: list[Row] = []

    def judge(side: str, attack: str, models: int, cpu: float, s: np.ndarray) -> None:
        scored = np.isfinite(s) | np.isinf(s)  # NaN: the attack gave no score
        d, r = s[tags & scored], s[~tags & scored]
        auc = ltu_accuracy(d, r, level=0.95)
        rates = [tpr_at_fpr(d, r, fpr=f, level=0.95).value for f in (0.01, 0.001)]
        values = (auc.value, rates[0], rates[1])
        judged.append(
            Row(
                target=name, seed=seed, side=side, attack=attack, models=models, values=values,
                low=auc.low, high=auc.high, cpu=cpu,
            )
        )  # fmt: skip

    challenge = Challenge(probabilities=p[0], labels=y, features=X)
    stacked = np.stack(p[1:]).astype(np.float32)
    for models in SIZES:
        pool = Pool(masks=masks[:models], probabilities=stacked[:models], labels=y)
        knowledge = Knowledge(tags=SealedTags(tags, rows), pool=pool)
        for attack in OURS:
            started = cpu_seconds()
            scores = attack.score(
                challenge, knowledge=knowledge, rng=stream(seed, "peers")
            )
            cpu = cpu_seconds() - started + models * each
            judge("reticent", attack.name, models, cpu, scores.values)

    if python is not None:
        source, goal = folder / f"{name}-{seed}.npz", folder / f"{name}-{seed}.json"
        np.savez(
            source, X=X, y=y, tags=tags, masks=masks, recipe=name, seed=1000 * seed,
            truth=p[0][rows, y], truth_of_pool=np.stack([a[rows, y] for a in p[1:]]),
            truth_of_population=np.stack(z), sizes=np.array(SIZES), seconds_per_model=each,
            answers=np.stack(p).astype(np.float32),
        )  # fmt: skip
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(
            [python, HERE / "peers_theirs.py", source, goal],
            check=True,
            env={**os.environ, **one_thread},
        )
        theirs = json.loads(goal.read_text())
        for failure in theirs["failures"]:
            print(f"a peer failed: {failure}", flush=True)
        for answer in theirs["answers"]:
            scores = np.asarray(answer["scores"], dtype=np.float64)
            judge("peer", answer["attack"], answer["models"], answer["cpu"], scores)
    return judged


def interval(values: list[float]) -> tuple[float, float, float]:
    """Return the mean over seeds and Student's 95 % interval; with one seed there is no interval."""
    v = np.asarray(values)
    if len(v) < 2:
        return float(v.mean()), float("nan"), float("nan")
    half = student.ppf(0.975, len(v) - 1) * v.std(ddof=1) / np.sqrt(len(v))
    return float(v.mean()), float(v.mean() - half), float(v.mean() + half)


def table(rows: list[Row]) -> list[str]:
    """Return the table of one target, with means over seeds and the strongest attack first."""
    cells: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        cells.setdefault((row.side, row.attack, row.models), []).append(row)
    ranked = sorted(
        cells.items(), key=lambda it: -np.mean([r.values[0] for r in it[1]])
    )
    lines = [
        "| attack | models | AUC [95 %] | TPR at 1 % | TPR at 0.1 % | CPU s |",
        "|---|---|---|---|---|---|",
    ]
    for (side, attack, models), cell in ranked:
        auc, low, high = interval([r.values[0] for r in cell])
        if len(cell) == 1:
            low, high = cell[0].low, cell[0].high
        one, tenth, cpu = (
            float(np.mean(v))
            for v in (
                [r.values[1] for r in cell],
                [r.values[2] for r in cell],
                [r.cpu for r in cell],
            )
        )
        name = f"**reticent {attack}**" if side == "reticent" else attack
        lines.append(
            f"| {name} | {models} | {auc:.3f} [{low:.3f}, {min(high, 1):.3f}] | {one:.3f} | {tenth:.3f} | {cpu:.1f} |"
        )
    return lines


def compare(rows: list[Row], ours: int, theirs: int) -> list[str]:
    """Return, per measure, the difference between our best attack and theirs, paired by seed.

    The best attack has the largest mean over seeds; there is one per side and measure, chosen in
    the same way on both sides. Attacks without shadow models compete as well.
    """
    lines = []
    for k, measure in enumerate(MEASURES):
        best = {}
        for side, models in (("reticent", ours), ("peer", theirs)):
            by_attack: dict[str, dict[int, float]] = {}
            for row in rows:
                if row.side == side and row.models in (0, models):
                    by_attack.setdefault(row.attack, {})[row.seed] = row.values[k]
            if not by_attack:
                return []
            best[side] = max(
                by_attack.items(), key=lambda it: np.mean(list(it[1].values()))
            )
        (mine, a), (other, b) = best["reticent"], best["peer"]
        mean, low, high = interval([a[s] - b[s] for s in a if s in b])
        span = "" if np.isnan(low) else f" [{low:+.3f}, {high:+.3f}]"
        lines.append(
            f"- {measure}: {mine} {np.mean(list(a.values())):.3f}, {other} "
            f"{np.mean(list(b.values())):.3f}, difference {mean:+.3f}{span}"
        )
    return lines


def main() -> None:
    """Run, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=os.environ.get("PEERS_PYTHON"))
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--keep", type=Path, help="folder for targets and raw answers")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*Maximum iterations.*")
    if not options.python:
        print(
            "The peers were not run, because neither --python nor PEERS_PYTHON names their interpreter. These are reticent's attacks:"
        )
    with tempfile.TemporaryDirectory() as scratch, threadpool_limits(1):
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.targets:
            rows: list[Row] = []
            try:
                for seed in range(options.first, options.first + options.seeds):
                    rows += play(name, seed, options.python, folder)
            except Absent as reason:
                print(f"\n## {name}: skipped, {reason}")
                continue
            print(f"\n## {TITLES[name]}; seeds {sorted({r.seed for r in rows})}\n")
            print("\n".join(table(rows)))
            for ours, theirs in ((20, 20), (4, 4), (4, 16)):
                lines = compare(rows, ours, theirs)
                if lines:
                    print(f"\n{ours} models of ours against {theirs} of theirs:\n")
                    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
