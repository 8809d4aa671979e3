"""Soft labels on Adult and Law School, with 0 and 20 % of the labels flipped, for networks and boosted trees.

    python experiments/soft_labels/tables.py --data ../shared/data

One comparison of defences (`reticent.compare`) per table, share of flipped labels and kind of model. A finished one is a file in the folder
tables. Sizes and recipes were fixed before the first run.
"""

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import reticent
from reticent.run import stream, write_text

RESULTS = Path(__file__).parent / "tables"
ROWS = 1_500  # half of which train each model
MODELS = 12  # six independent splits
FLIPS = (0.0, 0.2)
SEED = 0
TABLES = {
    "law_school": ("law_school/law_school_admissions.csv.gz", "bar", ()),
    # Survey weights are no feature, and the parts of the table mean nothing here.
    "adult": ("adult/adult.csv.gz", "income", ("fnlwgt", "split")),
}
_NETWORK = "reticent.Network(hidden=[64], epochs={epochs}, batch=32, optimiser=reticent.SGD(rate=0.1))"
_TREES = "xgboost.XGBClassifier(n_estimators={trees}, max_depth={depth})"
# The undefended model, and a plainly smaller one: a tenth of the epochs, or shallow trees and half of them.
MODELS_OF_KIND = {
    "network": (_NETWORK.format(epochs=60), _NETWORK.format(epochs=6)),
    "boosted trees": (
        _TREES.format(trees=50, depth=6),
        _TREES.format(trees=25, depth=2),
    ),
}
RULES = {
    "alpha 1": "alpha=1.0",
    "alpha 0.5": "alpha=0.5",
    "alpha 0": "alpha=0.0",
    "per record": "alpha=reticent.PerRecord()",
}


def trainers(kind: str) -> dict[str, str]:
    """Return the defences of a kind of model: none, a smaller model, soft labels, and soft labels for the smaller model."""
    plain, smaller = MODELS_OF_KIND[kind]
    return {
        "undefended": plain,
        "smaller model": smaller,
        **{
            name: f"reticent.SoftLabels({plain}, {rule})"
            for name, rule in RULES.items()
        },
        "smaller model, alpha 0.5": f"reticent.SoftLabels({smaller}, alpha=0.5)",
    }


def frame_of(name: str, flipped: float, data: Path) -> tuple[pd.DataFrame, str]:
    """Return some rows of a table, with a share of the labels flipped independently of each other."""
    file, target, drop = TABLES[name]
    frame = pd.read_csv(data / file).drop(columns=list(drop))
    rng = stream(SEED, f"soft_labels/tables/{name}")
    frame = frame.iloc[rng.permutation(len(frame))[:ROWS]].reset_index(drop=True)
    one, other = sorted(frame[target].astype(str).unique())
    labels = frame[target].astype(str).to_numpy()
    wrong = rng.random(ROWS) < flipped
    frame[target] = np.where(wrong, np.where(labels == one, other, one), labels)
    return frame, target


def cells() -> list[tuple[str, float, str]]:
    """Return all comparisons, in the order in which they are run."""
    return [(t, f, k) for k in MODELS_OF_KIND for f in FLIPS for t in TABLES]


def path_of(name: str, flipped: float, kind: str) -> Path:
    """Return where a comparison is kept."""
    return RESULTS / f"{name}-{round(100 * flipped)}-{kind.replace(' ', '_')}.json"


def run(name: str, flipped: float, kind: str, data: Path) -> None:
    """Finish one comparison."""
    frame, target = frame_of(name, flipped, data)
    started = time.process_time()
    named = trainers(kind)
    report = reticent.compare(
        frame, target, list(named.values()), models=MODELS, seed=SEED, workers=1
    )
    comparison = report.comparison
    differences = [None, *comparison.differences]
    rows = [
        {
            "defence": title,
            "recipe": recipe,
            "auc": _numbers(each.auc),
            "tpr": _numbers(each.tpr[0]),
            "gain": _numbers(each.gain),
            "exposed": _numbers(each.exposed),
            "privacy_difference": None if other is None else _numbers(other.privacy),
            "gain_difference": None if other is None else _numbers(other.gain),
            "privacy_p": None if other is None else other.privacy_p,
            "gain_p": None if other is None else other.gain_p,
            "dominated": each.name in comparison.dominated,
        }
        for (title, recipe), each, other in zip(
            named.items(), comparison.defences, differences, strict=True
        )
    ]
    found = {
        "table": name,
        "flipped": flipped,
        "kind": kind,
        "rows": ROWS,
        "models": comparison.models,
        "people": comparison.people,
        "seconds": time.process_time() - started,
        "defences": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    write_text(path_of(name, flipped, kind), json.dumps(found, indent=1) + "\n")
    print(
        f"{name}, {flipped:.0%} flipped, {kind}: {found['seconds']:.0f} s", flush=True
    )


def _numbers(estimate) -> list[float] | None:
    return None if estimate is None else [estimate.value, estimate.low, estimate.high]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    for cell in cells():
        if not path_of(*cell).exists():
            run(*cell, arguments.data)
