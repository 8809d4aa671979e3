"""When to take adaptive pairs in place of a tree: the rule of `auto`, chosen on tables that are not among the yardsticks.

    python experiments/yardsticks/choice.py --data ../shared/data

Makes the same tables with both methods at four budgets and several sizes, and keeps in results/choice.json how well models learn from them.
"""

import argparse
import json
from pathlib import Path

from settings import EPSILONS, OURS, SEEDS, Cell
from tables import TARGET, halves, read

from reticent.run import write_text
from run import RESULTS, judged, ours

# Fixed before the first run. Only the power of ten of the rows may be used, so each class of sizes is looked at near its ends where the tables allow it.
SIZES = {
    "framingham": (800, 2_000),
    "adult": (800, 2_000, 8_000, 20_000),
    "diabetes": (800, 2_000, 8_000, 20_000),
}
FILE = RESULTS / "choice.json"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name, sizes in SIZES.items():
        frame = read(name, options.data).reset_index(drop=True)
        for rows in sizes:
            for seed in SEEDS:
                parts = halves(frame, rows, seed)
                for epsilon in EPSILONS:
                    for method in OURS:
                        key = f"{name} {rows} {epsilon:g} {seed} {method}"
                        if key in kept:
                            continue
                        cell = Cell(table=name, seed=seed, method=method, epsilon=epsilon)  # fmt: skip
                        made, seconds = ours(cell, frame, parts)
                        kept[key] = {
                            "seconds": round(seconds, 2),
                            "positives": float(made[TARGET].mean()),
                            "auc": judged(made[list(frame)], parts.test, frame),
                        }
                        write_text(FILE, json.dumps(kept, indent=1) + "\n")
                print(name, rows, seed, flush=True)


if __name__ == "__main__":
    main()
