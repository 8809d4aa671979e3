"""How many records a synthetic table needs, and two uses of it: beside the records with soft labels, and as the source from which a network is adapted to records without labels.

    python experiments/synthetic_uses/run.py --data ../shared/data

Every trial has people of its own, for training and for the test. What is finished is kept in results.json, and a killed run goes on
with the next trial. The page docs/experiments/synthetic_uses.md is written when all trials are there.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from page import write_page
from settings import ADAPTATION, AUGMENTATION, DELTA, SIZES
from sklearn.metrics import roc_auc_score

from reticent.account import Budget, Relation
from reticent.data import table_from_frame
from reticent.run import seed_for, stream, write_text
from reticent.train import MarginalGenerator, trainer_of

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parents[2] / "docs/experiments/synthetic_uses.md"
DOMAIN = str(Path(__file__).parent / "domain.toml")
TARGET = "cardio"


def people(folder: Path) -> pd.DataFrame:
    """Return everybody in an order that is drawn once, without impossible blood pressures."""
    frame = pd.read_csv(folder / "cardio70k/cardio.csv.gz")
    possible = frame.ap_hi.between(50, 250) & frame.ap_lo.between(30, 200)
    frame = frame[possible].drop(columns="id", errors="ignore")
    return frame.iloc[stream(0, "people").permutation(len(frame))].reset_index(drop=True)  # fmt: skip


def synthetic(frame: pd.DataFrame, rows: int, epsilon: float, seed: int) -> pd.DataFrame:  # fmt: skip
    """Return synthetic rows that a tree of noisy marginals makes of a frame; seeded noise, so that the experiment repeats."""
    table = table_from_frame(frame, target=None)
    recipe = MarginalGenerator(method="tree", target=TARGET, rows=rows, noise="seeded", domain=DOMAIN).keeping(
        Budget(epsilon=epsilon, delta=DELTA), table, delta=DELTA, relation=Relation.ADD_REMOVE
    )  # fmt: skip
    made = recipe.train(table, seed=seed).frame[list(frame.columns)]
    return made.dropna().astype(
        frame.dtypes
    )  # no record has a gap, so that those are noise


def judged(spec: str, rows: pd.DataFrame, records: pd.DataFrame, test: pd.DataFrame, seed: int, shown: np.ndarray | None = None) -> dict:  # fmt: skip
    """Train on rows; return utility on the test people, and how well the loss tells records from them.

    The labels of the test people that the attacker is shown are as often wrong as those of the records, or the loss would tell both apart without any model.
    """
    if rows[TARGET].nunique() < 2:  # nothing can be learned from one class
        return {"auc": 0.5, "log loss": float(np.log(2)), "membership": 0.5}
    product = trainer_of(spec).train(table_from_frame(rows, target=TARGET), seed=seed)
    members, others = (
        product.predict_proba(frame.drop(columns=TARGET)) for frame in (records, test)
    )
    shown = test[TARGET].to_numpy() if shown is None else shown
    likelihoods = [p[np.arange(len(p)), y] for p, y in ((members, records[TARGET]), (others, shown))]  # fmt: skip
    return {
        "auc": float(roc_auc_score(test[TARGET], others[:, 1])),
        "log loss": float(-np.log(np.maximum(others[np.arange(len(others)), test[TARGET]], 1e-12)).mean()),
        "membership": float(roc_auc_score(np.repeat([1, 0], [len(records), len(test)]), np.concatenate(likelihoods))),
    }  # fmt: skip


def sizes(frame: pd.DataFrame, trial: int) -> dict:
    """Train on records, and on as many synthetic rows of every epsilon, for every number of records."""
    positive = frame[TARGET].to_numpy() == 1
    most, test = max(SIZES["records"]), SIZES["test"]
    parts = []
    for chosen, share in (
        (positive, SIZES["positives"]),
        (~positive, 1 - SIZES["positives"]),
    ):
        count = round(share * (most + test))
        parts.append(frame[chosen].iloc[trial * count : (trial + 1) * count])
    own = pd.concat(parts)
    own = own.iloc[stream(trial, "sizes").permutation(len(own))].reset_index(drop=True)
    asked = own[most:].reset_index(drop=True)
    arms = {}
    for count in SIZES["records"]:
        records = own[:count]
        arms[f"{count} records"] = judged(SIZES["trainer"], records, records, asked, 0)
        for epsilon in SIZES["epsilons"]:
            seed = seed_for(trial, f"sizes {count} {epsilon}")
            made = synthetic(records, count, epsilon, seed)
            arm = judged(SIZES["trainer"], made, records, asked, 0)
            arms[f"{count} {epsilon:g}"] = arm | {"positives": float(made[TARGET].mean())}  # fmt: skip
    return arms


def augmentation(frame: pd.DataFrame, trial: int, flipped: float) -> dict:
    """Train on records, on records and synthetic rows, each with hard and soft labels, and on synthetic rows alone."""
    records, test = _drawn(frame, trial, AUGMENTATION)
    given, shown = (
        np.where(stream(trial, name).random(len(part)) < flipped, 1 - part[TARGET], part[TARGET])
        for name, part in (("wrong labels", records), ("wrong labels of test people", test))
    )  # fmt: skip
    given = records.assign(**{TARGET: given})
    seed = seed_for(trial, f"augmentation {flipped}")
    made = synthetic(given, AUGMENTATION["rows"], AUGMENTATION["epsilon"], seed)
    both = pd.concat([given, made], ignore_index=True)
    hard = AUGMENTATION["trainer"]
    soft = AUGMENTATION["soft"].format(trainer=hard)
    arms = {
        "records": (hard, given),
        "records, soft labels": (soft, given),
        "both": (hard, both),
        "both, soft labels": (soft, both),
        "synthetic rows": (hard, made),
    }
    return {
        name: judged(spec, rows, given, test, seed, shown)
        for name, (spec, rows) in arms.items()
    }


def adaptation(frame: pd.DataFrame, trial: int) -> dict:
    """Train a network on the records and their labels, on synthetic rows alone, and on these and the records without labels."""
    records, test = _drawn(frame.iloc[::-1], trial, ADAPTATION)
    seed = seed_for(trial, "adaptation")
    made = synthetic(records, len(records), ADAPTATION["epsilon"], seed)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "synthetic.csv"
        made.to_csv(source, index=False)
        return {
            name: judged(ADAPTATION[name].format(source=source), records, records, test, seed)
            for name in ("supervised", "source", "adapted")
        }  # fmt: skip


def _drawn(frame: pd.DataFrame, trial: int, settings: dict) -> list[pd.DataFrame]:
    """Return the records and the test people of a trial, who are in no other."""
    size = settings["records"] + settings["test"]
    own = frame.iloc[trial * size : (trial + 1) * size].reset_index(drop=True)
    return [own[: settings["records"]], own[settings["records"] :].reset_index(drop=True)]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))  # where the network is made
    frame = people(options.data)
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    jobs = {
        f"sizes {trial}": lambda t=trial: sizes(frame, t)
        for trial in range(SIZES["trials"])
    }
    jobs |= {
        f"augmentation {share:g} {trial}": lambda t=trial, s=share: augmentation(frame, t, s)
        for trial in range(AUGMENTATION["trials"]) for share in AUGMENTATION["flipped"]
    } | {f"adaptation {trial}": lambda t=trial: adaptation(frame, t) for trial in range(ADAPTATION["trials"])}  # fmt: skip
    for name, job in jobs.items():
        if name in kept:
            continue
        started = time.process_time()
        kept[name] = {"arms": job(), "seconds": time.process_time() - started}
        write_text(RESULTS, json.dumps(kept, indent=1) + "\n")
        print(name, {k: round(v["auc"], 3) for k, v in kept[name]["arms"].items()}, flush=True)  # fmt: skip
    write_page(kept, PAGE)


if __name__ == "__main__":
    main()
