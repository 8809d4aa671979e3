"""By which answers does the retraining attacker compare models? The same rounds under several rules.

    python experiments/ltu_table_1/rules.py --data ../shared/data

In each round one model M1 is trained with the member d and one, M2, with the other record r in its place, the rest as in Table 1.
Four rules then say which of the two is nearer to the product M:

- Figure 2 of the paper: the answer of M1 on d against the answer of M2 on r, each compared with M's;
- the rule of this package: the answers of both on both records;
- answers on all 3,200 records;
- hard labels on all 3,200 records: how many of them differ from M's.

Each cell is one file in the folder results, so that a run that was stopped goes on.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import joblib
import numpy as np
from settings import DUAL, MODELS, PART, ROUNDS, RULED
from sklearn.svm import LinearSVC

from reticent.attack import Regime
from reticent.data import Table
from reticent.run import seed_for, stream, write_text
from reticent.train import EstimatorTrainer
from run import features, parts

__all__ = ["RULES", "result_file"]

RESULTS = Path(__file__).parent / "results"
RULES = ("figure 2", "both records", "all records", "labels")
ROUNDING = 1e-12  # smaller differences may be rounding alone, and count as ties


def result_file(dataset: str, model: str, regime: Regime) -> Path:
    """Return where a cell is kept."""
    name = f"rules-{dataset}-{model}-{regime}.json".replace(", ", "-").replace(" ", "_")
    return RESULTS / name


def trainer_of(model: str) -> EstimatorTrainer:
    """Return the trainer of a model of the table, or of LinearSVC with the paper's default."""
    estimator = LinearSVC(dual=True) if model == DUAL else MODELS[model]
    return EstimatorTrainer.of(estimator, preprocess=False)


def wins(
    first: np.ndarray, second: np.ndarray, truth: np.ndarray, d: int, r: int
) -> dict[str, float]:
    """Return for each rule 1 if the model with the member is nearer to the product, 0 if not, 1/2 for a tie."""
    noise = ROUNDING * (np.linalg.norm(truth) + 1)

    def nearer(right: float, wrong: float) -> float:
        return 0.5 if abs(right - wrong) <= noise else float(right < wrong)

    def length(answers: np.ndarray, rows: list[int] | slice) -> float:
        return float(np.linalg.norm(answers[rows] - truth[rows]))

    def flips(answers: np.ndarray) -> float:
        return float((answers.argmax(axis=1) != truth.argmax(axis=1)).sum())

    both, everyone = [d, r], slice(None)
    return {
        "figure 2": nearer(length(first, [d]), length(second, [r])),
        "both records": nearer(length(first, both), length(second, both)),
        "all records": nearer(length(first, everyone), length(second, everyone)),
        "labels": nearer(flips(first), flips(second)),
    }


def cell(
    x: np.ndarray, y: np.ndarray, dataset: str, model: str, regime: Regime
) -> None:
    """Play the rounds of one cell and keep what each rule won."""
    warnings.simplefilter(
        "ignore"
    )  # the dual solver stops at its largest number of iterations
    started = time.process_time()
    defender, reserved = parts(x, y, 0)
    everybody = defender.join(reserved)
    trainer, seed = trainer_of(model), seed_for(0, f"rules/train/{model}")

    def answers(table: Table, its: int) -> np.ndarray:
        product = trainer.train(table, seed=its)
        return np.asarray(product.outputs(everybody.features), dtype=np.float64)

    truth = answers(defender, seed)
    played: dict[str, list[float]] = {rule: [] for rule in RULES}
    for number in range(ROUNDS):
        rng = stream(0, f"rules/{dataset}/{model}/{regime}/{number}")
        d, r = int(rng.integers(PART)), PART + int(rng.integers(PART))
        exchanged = np.arange(PART)
        exchanged[d] = r
        made = []
        for rows in (np.arange(PART), exchanged):
            its = seed
            if regime == Regime.SHUFFLED_UNSEEDED:
                its = int(rng.integers(2**31 - 1))
            made.append(answers(everybody.take(rows[rng.permutation(PART)]), its))
        for rule, won in wins(made[0], made[1], truth, d, r).items():
            played[rule].append(won)
    order = stream(0, "rules/order").permutation(PART)
    result = {
        "dataset": dataset,
        "model": model,
        "regime": regime.value,
        "wins": played,
        # How far answers move, at most, if nothing but the seed or nothing but the order is another; and their largest.
        "another_seed": float(np.abs(answers(defender, seed + 1) - truth).max()),
        "another_order": float(
            np.abs(answers(defender.take(order), seed) - truth).max()
        ),
        "largest_answer": float(np.abs(truth).max()),
        "cpu_seconds": time.process_time() - started,
    }
    write_text(result_file(dataset, model, regime), json.dumps(result) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most", type=int, help="cells to run now; all by default")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    read: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    jobs = []
    for name, known, datasets in RULED:
        for data in datasets:
            if not result_file(data, name, known).exists():
                if data not in read:
                    read[data] = features(options.data, data)
                jobs.append((*read[data], data, name, known))
    joblib.Parallel(n_jobs=options.processes, verbose=5, batch_size=1)(
        joblib.delayed(cell)(*job) for job in jobs[: options.most]
    )
    from page import write_page

    write_page(Path("docs/experiments/ltu_table_1.md"))
