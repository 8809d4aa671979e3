"""Tables 3.1 to 3.4 of Pedersen's thesis on health tables that may be passed on.

    python experiments/health/run.py --data ../shared/data --tables framingham
    python experiments/health/page.py

Every model is trained on one half, and judged by the other: area under the curve of a model that learned from the synthetic rows alone (and from the real ones, as
a yardstick), rate of positives, distance of the columns, resemblance and privacy loss. What is finished is kept in results.json, and a killed run goes on with the next model. page.py
writes the page. The measures read real rows: they are for this page, and choosing a release by them would spend privacy.
"""

import argparse
import json
import math
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from settings import DELTA, RATE, TABLES, Cell, cells
from sklearn.metrics import average_precision_score, roc_auc_score
from tables import TARGET, Halves, coded, halves

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
BINS = 10  # of a column of numbers, when distributions are compared


def synthetic(
    cell: Cell, train: pd.DataFrame
) -> dict[Cell, tuple[pd.DataFrame, float]]:
    """Return the rows that a generator makes of the training half, and the epsilon that is proven about them; of HealthGAN, after each mark on the way."""
    table = table_from_frame(train, target=None)
    if cell.generator == "healthgan":
        recipe = HealthGAN(level=cell.noise, rate=RATE)
        made = recipe.train_along(table, cell.marks, seed=cell.model)
        return {
            at: (one.frame, honest_epsilon(at))
            for at, one in zip(cell.along, made, strict=True)
        }
    kind = (
        WassersteinGenerator
        if cell.generator == "wgan"
        else partial(MarginalGenerator, method="tree")
    )
    recipe = kind(target=TARGET, rows=len(train), noise="secret").keeping(
        Budget(epsilon=cell.noise, delta=DELTA), table, delta=DELTA, relation=Relation.ADD_REMOVE
    )  # fmt: skip
    epsilon = recipe.guarantee_on(table, Terms(delta=DELTA)).epsilon
    return {cell: (recipe.train(table, seed=cell.model).frame, epsilon)}


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


def results(cell: Cell, folder: Path) -> dict[str, dict]:
    """Train one model, and judge it and what it was on the way."""
    started = time.process_time()
    parts = halves(cell.table, folder, draw=0)
    made = synthetic(cell, parts.train)
    seconds = time.process_time() - started
    return {
        at.name: {"epsilon": epsilon, "seconds": seconds * at.steps / cell.steps if cell.steps else seconds}
        | measured(rows[list(parts.train.columns)], parts, cell.model)
        for at, (rows, epsilon) in made.items()
    }  # fmt: skip


def measured(rows: pd.DataFrame, parts: Halves, seed: int) -> dict:
    """Return every measure of one table."""
    both = pd.concat([parts.train, parts.test], ignore_index=True)
    loss = privacy_loss(
        coded(parts.train, both), coded(parts.test, both), [coded(rows, both)], level=0.95, rng=np.random.default_rng(seed), permutations=39
    )  # fmt: skip
    return {
        "positives": float(rows[TARGET].mean()),
        "synthetic": judged(rows, parts.test, both),
        "train": loss.train.mean.value,
        "test": loss.test.mean.value,
        "sides": [loss.test.real.value, loss.test.synthetic.value],
        "loss": [loss.loss.low, loss.loss.value, loss.loss.high],
        "far": far(rows, parts.test),
    }


def real(table: str, folder: Path) -> dict:
    """Return the yardstick: a model that learned from the training half itself, and that half judged as if it were synthetic."""
    parts = halves(table, folder, draw=0)
    both = pd.concat([parts.train, parts.test], ignore_index=True)
    return {
        "positives": [float(half[TARGET].mean()) for half in (parts.train, parts.test)],
        "rows": [len(parts.train), len(parts.test)],
        "columns": len(parts.train.columns),
        "synthetic": judged(parts.train, parts.test, both),
        "far": far(parts.train, parts.test),
    }


def far(rows: pd.DataFrame, test: pd.DataFrame) -> float:
    """Return how far the columns are from those of the test half: the mean total variation over tenths of numbers and over categories.

    A generator that lost modes is far, whatever its rows look like one by one.
    """
    distances = []
    for name in test:
        if pd.api.types.is_numeric_dtype(test[name]) and test[name].nunique() > BINS:
            edges = np.unique(np.nanquantile(test[name], np.linspace(0, 1, BINS + 1)[1:-1]))  # fmt: skip
            shares = [
                np.bincount(np.where(f[name].isna(), len(edges) + 1, np.searchsorted(edges, f[name])), minlength=len(edges) + 2) / len(f)
                for f in (rows, test)
            ]  # fmt: skip
        else:
            # Synthetic rows may lack a value that no real row lacks.
            kind = np.float64 if pd.api.types.is_numeric_dtype(test[name]) else object
            values, others = (f[name].astype(kind).astype("string").fillna("") for f in (test, rows))  # fmt: skip
            names = sorted(set(values) | set(others))
            shares = [f.value_counts(normalize=True).reindex(names, fill_value=0.0).to_numpy() for f in (others, values)]  # fmt: skip
        distances.append(float(np.abs(shares[0] - shares[1]).sum() / 2))
    return float(np.mean(distances))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for table in options.tables:
        if table not in kept:
            kept[table] = real(table, options.data)
        for cell in cells(table):
            if cell.name in kept:
                continue
            kept |= results(cell, options.data)
            write_text(RESULTS, json.dumps(kept, indent=1) + "\n")
            print(cell.name, {k: round(v["auc"], 3) for k, v in kept[cell.name]["synthetic"].items()}, flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
