"""Table 1 of the LTU paper: ten scikit-learn models, three regimes, 100 rounds, 3 trials.

    python experiments/ltu_table_1/run.py [--data ../shared/data] [--rounds 100] [--trials 3]

Each cell (data set, model, trial) is one JSON file under build/ltu_table_1: a killed run goes
on where it was. The table of a complete run is kept in results/table.json. The page docs/experiments/ltu_table_1.md is written when all cells are there.
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
import pandas as pd
from settings import COMPONENTS, DATASETS, MODELS, PART, PROBES, ROUNDS, TRIALS
from sklearn.decomposition import PCA

from reticent.attack import Regime, RetrainingRounds
from reticent.data import Table, table_from_frame
from reticent.run import Serial, seed_for, stream, write_text
from reticent.train import EstimatorTrainer


def features(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a representation learned on other records, as the paper's backbone is."""
    if name == "MNIST":
        z = np.load(data / "mnist/mnist.npz")
        other = z["x_test"].reshape(len(z["x_test"]), -1) / 255.0
        x, y = z["x_train"].reshape(len(z["x_train"]), -1) / 255.0, z["y_train"]
    else:
        z = np.load(data / "cifar10_efflite0/features.npz")
        other = 6 * (z["q_test"].astype(float) / 255) ** 2
        x, y = 6 * (z["q_train"].astype(float) / 255) ** 2, z["y_train"]
    pca = PCA(COMPONENTS, random_state=0).fit(other)
    low = pca.transform(x[:20_000])
    # One scale for all components: the shape of the representation is kept.
    return low / low.std(), y[:20_000].astype(int)


def parts(x: np.ndarray, y: np.ndarray, trial: int) -> tuple[Table, Table]:
    rows = stream(trial, "ltu_table_1/parts").permutation(len(y))[: 2 * PART]
    frame = pd.DataFrame(x[rows], columns=[f"x{j}" for j in range(x.shape[1])])
    table = table_from_frame(frame, target=y[rows])
    return table.take(np.arange(PART)), table.take(np.arange(PART, 2 * PART))


def cell(x, y, dataset: str, model: str, trial: int, rounds: int, out: Path) -> None:
    warnings.simplefilter("ignore")
    started = time.process_time()
    defender, reserved = parts(x, y, trial)
    trainer = EstimatorTrainer.of(MODELS[model], preprocess=False)
    seed = seed_for(trial, f"train/{model}")
    product = trainer.train(defender, seed=seed)
    both = defender.join(reserved)
    answers = product.outputs(both.features)
    right = answers[PART:].argmax(axis=1) == reserved.target
    game = RetrainingRounds(
        trainer=trainer,
        defender=defender,
        reserved=reserved,
        answers=answers,
        train_seed=seed,
        seed=trial,
        probes=PROBES.get(model, 400),
    )
    replica = game.replica()
    wins = {
        regime.value: game.play_many(
            regime, range(rounds), replica=replica, workers=Serial()
        ).tolist()
        for regime in Regime
    }
    result = {
        "dataset": dataset,
        "model": model,
        "trial": trial,
        "correct": int(right.sum()),
        "records": PART,
        "wins": wins,
        "cpu_seconds": time.process_time() - started,
    }
    write_text(out, json.dumps(result))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cells", type=Path, default=Path("build/ltu_table_1"))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    options.cells.mkdir(parents=True, exist_ok=True)
    jobs = []
    for dataset in DATASETS:
        x, y = features(options.data, dataset)
        for trial in range(options.trials):
            for model in MODELS:
                name = f"{dataset}-{model}-{trial}-{options.rounds}.json".replace(
                    " ", "_"
                )
                if not (options.cells / name).exists():
                    jobs.append(
                        (
                            x,
                            y,
                            dataset,
                            model,
                            trial,
                            options.rounds,
                            options.cells / name,
                        )
                    )
    jobs.sort(key=lambda job: job[4])
    print(f"{len(jobs)} cells to compute")
    joblib.Parallel(n_jobs=options.workers, verbose=5)(
        joblib.delayed(cell)(*job) for job in jobs
    )
    from page import sum_up, write_page
    from pairing import main as write_pairing

    write_pairing(options.data, options.cells / "pairing.json")
    sum_up(options.cells, options.rounds)
    write_page(Path("docs/experiments/ltu_table_1.md"))


if __name__ == "__main__":
    main()
