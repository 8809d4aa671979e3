"""Tables 3.1 to 3.4 of Pedersen's thesis on health tables that may be passed on.

    python experiments/health/run.py --data ../shared/data --tables stroke --models 3

Every model is trained on one half, and judged by the other: area under the curve of a model that learned from the synthetic rows alone (and from the real ones, as
a yardstick), rate of positives, resemblance and privacy loss. What is finished is kept in results.json; a killed run goes on with the next model, and more
models are added to those that are there. It ends with a table over the models that there are, with the standard error over models. The measures read real
rows: they are for this page, and choosing a release by them would spend privacy.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import pandas as pd
from settings import DELTA, STEPS, TABLES, Cell, cells
from sklearn.metrics import average_precision_score, roc_auc_score
from tables import TARGET, coded, halves

from reticent.account import Budget, Gaussian, Relation, Terms
from reticent.data import table_from_frame
from reticent.evidence import privacy_loss
from reticent.run import write_text
from reticent.train import (
    CodedRows,
    HealthGAN,
    MarginalGenerator,
    WassersteinGenerator,
    judge_scores,
)
from reticent.train.wgan import (
    LeakyReLU,
    Region,
    blocks_of,
    bounds_of,
    critic_of,
    spectral_penalty_bounds,
)

RESULTS = Path(__file__).parent / "results.json"


def synthetic(cell: Cell, train: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Return the rows that a generator makes of the training half, and the epsilon that is proven about them."""
    table = table_from_frame(train, target=None)
    if cell.generator == "healthgan":
        made = HealthGAN(steps=cell.steps, level=cell.noise)
        return made.train(table, seed=cell.model).frame, honest_epsilon(cell)
    kind = WassersteinGenerator if cell.generator == "wgan" else MarginalGenerator
    recipe = kind(target=TARGET, rows=len(train), noise="secret").keeping(
        Budget(epsilon=cell.noise, delta=DELTA), table, delta=DELTA, relation=Relation.ADD_REMOVE
    )  # fmt: skip
    epsilon = recipe.guarantee_on(table, Terms(delta=DELTA)).epsilon
    return recipe.train(table, seed=cell.model).frame, epsilon


def honest_epsilon(cell: Cell) -> float:
    """Return the epsilon that the thesis's noise proves: infinite without noise, and otherwise from the bound at the initial weights, which later ones exceed.

    Batches have a fixed size and their noise is on the sum, so the steps are Gaussian mechanisms; five of them for each step of the generator, a tenth of the
    records in each. Without any credit for sampling, epsilon is at least mu^2 / 2 of all steps together.
    """
    if not cell.noise:
        return math.inf
    critic = critic_of((12, 64, 128, 256, 1), LeakyReLU(0.2), np.random.default_rng(0))
    bounds = bounds_of(critic, Region.cube(12))
    values = math.hypot(*(block.radius for block in blocks_of(bounds)))
    reach = values + math.hypot(*spectral_penalty_bounds(bounds, 10.0))
    mu = Gaussian(noise_multiplier=2 * cell.noise / reach).mu
    return 5 * cell.steps * mu**2 / 2


def judged(rows: pd.DataFrame, test: pd.DataFrame, like: pd.DataFrame) -> dict:
    """Return how well a model that learned from rows predicts the test half."""
    numbers = [coded(frame, like) for frame in (rows, test)]
    learned, asked = (CodedRows(numbers=c.numbers, codes=c.codes) for c in numbers)
    y = rows[TARGET].fillna(0).to_numpy().astype(np.int64)
    scores = judge_scores(learned, y, asked, classes=2, seed=0)
    truth = test[TARGET].to_numpy()
    return {
        name: {"auc": float(roc_auc_score(truth, p[:, 1])), "precision": float(average_precision_score(truth, p[:, 1]))}
        for name, p in scores.items()
    }  # fmt: skip


def result(cell: Cell, folder: Path) -> dict:
    """Train and judge one model."""
    started = time.process_time()
    parts = halves(cell.table, folder, draw=0)
    rows, epsilon = synthetic(cell, parts.train)
    seconds = time.process_time() - started
    rows = rows[list(parts.train.columns)]
    both = pd.concat([parts.train, parts.test], ignore_index=True)
    loss = privacy_loss(
        coded(parts.train, both), coded(parts.test, both), [coded(rows, both)], level=0.95, rng=np.random.default_rng(cell.model), permutations=19
    )  # fmt: skip
    return {
        "epsilon": epsilon,
        "seconds": seconds,
        "positives": float(rows[TARGET].mean()),
        "synthetic": judged(rows, parts.test, both),
        "real": judged(parts.train, parts.test, both),
        "real_positives": float(parts.train[TARGET].mean()),
        "train": loss.train.mean.value,
        "test": loss.test.mean.value,
        "loss": [loss.loss.low, loss.loss.value, loss.loss.high],
    }


def summary(kept: dict) -> str:
    """Return a table with one line per setting: means over models, and standard errors of the mean."""
    lines = [
        "| table | generator | noise or epsilon | proven epsilon | models | AUC of logistic regression, boosting, forest | positives | resemblance train / test | privacy loss | CPU s |",
        "|---|---|---:|---:|---:|---|---:|---|---:|---:|",
    ]
    groups: dict[str, list[dict]] = {}
    for name, value in kept.items():
        groups.setdefault(name.rsplit(" ", 1)[0], []).append(value)
    for name, models in groups.items():
        table, generator, noise, steps = name.split(" ")
        aucs = " / ".join(
            _spread([m["synthetic"][judge]["auc"] for m in models])
            for judge in models[0]["synthetic"]
        )
        real = " / ".join(f"{v['auc']:.3f}" for v in models[0]["real"].values())
        lines.append(
            f"| {table} | {generator}{f', {steps} steps' if steps != '0' else ''} | {noise} | {models[0]['epsilon']:.3g} | {len(models)} | {aucs} (real {real}) "
            f"| {_spread([m['positives'] for m in models])} (real {models[0]['real_positives']:.3f}) | {np.mean([m['train'] for m in models]):.3f} / "
            f"{np.mean([m['test'] for m in models]):.3f} | {_spread([m['loss'][1] for m in models])} | {np.mean([m['seconds'] for m in models]):.1f} |"
        )
    return "\n".join(lines) + "\n"


def _spread(values: list[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.3f}"
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{np.mean(values):.3f}±{error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--models", type=int, default=2)
    parser.add_argument("--generators", nargs="+", default=["healthgan", "wgan", "tree"])  # fmt: skip
    parser.add_argument("--curve", action="store_true", help=f"other numbers of steps than {STEPS}, without noise")  # fmt: skip
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for cell in cells(tuple(options.tables), options.models, curve=options.curve):
        if cell.name in kept or cell.generator not in options.generators:
            continue
        kept[cell.name] = result(cell, options.data)
        write_text(RESULTS, json.dumps(kept, indent=1) + "\n")
        print(cell.name, kept[cell.name]["synthetic"], flush=True)
    print(summary(kept))


if __name__ == "__main__":
    main()
