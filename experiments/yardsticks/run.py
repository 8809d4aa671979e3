"""Our marginal generators beside AIM and MST of another library, on the same halves.

    python experiments/yardsticks/run.py --data ../shared/data --theirs path/to/their/python

Their environment is that of requirements.txt; without --theirs only ours run. What is made of each draw of a table is judged at once, and kept in results/; a run that was
killed goes on with the next one. Values of the columns are declared to all methods. AIM and MST get cells as well, cut at the sixteenths of the test half, as if a public
sample had told them; ours cuts by what it hears through its noise, and pays for it. Their budget is converted from rho by the tight bound of Canonne, Kamath and Steinke.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from settings import DELTA, EPSILONS, LIMITS, OURS, SEEDS, TABLES, THEIRS, Cell, cells
from sklearn.metrics import roc_auc_score
from tables import TARGET, Cells, Halves, coded, domain, halves, read

from reticent.account import Budget, Relation
from reticent.data import table_from_frame
from reticent.run import write_text
from reticent.train import CodedRows, MarginalGenerator, judge_scores

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def rho_of(epsilon: float, delta: float) -> float:
    """Return the rho of zero-concentrated privacy that implies (epsilon, delta): Corollary 13 of arXiv:2004.00010."""

    def excess(rho: float) -> float:
        def log_delta(alpha: float) -> float:
            return (
                (alpha - 1) * (alpha * rho - epsilon)
                + (alpha - 1) * math.log1p(-1 / alpha)
                - math.log(alpha)
            )

        found = minimize_scalar(log_delta, bounds=(1 + 1e-6, 1e4), method="bounded")
        return float(found.fun) - math.log(delta)

    # A little less, so that the end of the search lies on the safe side.
    return brentq(excess, 1e-8, epsilon, xtol=1e-12) * (1 - 1e-6)


def ours(cell: Cell, frame: pd.DataFrame, parts: Halves) -> tuple[pd.DataFrame, float]:
    """Return rows of one of our methods, and their CPU seconds, calibration included."""
    with tempfile.TemporaryDirectory() as folder:
        declared = Path(folder) / "domain.toml"
        declared.write_text(domain(frame))
        started = time.process_time()
        table = table_from_frame(parts.train, target=None)
        recipe = MarginalGenerator(
            method=cell.method,  # type: ignore[arg-type]
            target=TARGET,
            domain=str(declared),
            rows=len(parts.train),
        ).keeping(
            Budget(epsilon=cell.epsilon, delta=DELTA),
            table,
            delta=DELTA,
            relation=Relation.ADD_REMOVE,
        )
        rows = recipe.train(table, seed=cell.seed).frame
        return rows, time.process_time() - started


class Theirs:
    """A process of their environment that makes one table after the other."""

    def __init__(self, python: Path) -> None:
        self.process = subprocess.Popen(
            [python, HERE / "theirs.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def make(
        self, cell: Cell, frame: pd.DataFrame, parts: Halves
    ) -> tuple[pd.DataFrame, float]:
        """Return rows of one of their methods, and their CPU seconds without imports."""
        coding = Cells(frame, parts.test)
        codes, sizes = coding.code(parts.train)
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            job = Path(folder) / "job.npz"
            np.savez(job, cells=codes, sizes=sizes, limits=json.dumps(LIMITS[cell.method]), method=cell.method, rho=rho_of(cell.epsilon, DELTA))  # fmt: skip
            stdin.write(f"{job}\n")
            stdin.flush()
            # The library may print lines of its own.
            while (line := stdout.readline()) and line != "made\n":
                print(line, end="", file=sys.stderr)
            if not line:
                sys.exit(f"their process ended at {cell}.")
            answer = np.load(f"{job}.rows.npz")
            rows = coding.decode(answer["cells"], np.random.default_rng(cell.seed))
            return rows, float(answer["seconds"])


def judged(rows: pd.DataFrame, test: pd.DataFrame, like: pd.DataFrame) -> dict:
    """Return how well models that learned from rows predict the test half: areas under the curve."""
    numbers = [coded(frame, like) for frame in (rows, test)]
    learned, asked = (CodedRows(numbers=c.numbers, codes=c.codes) for c in numbers)
    y = rows[TARGET].fillna(0).to_numpy().astype(np.int64)
    scores = judge_scores(learned, y, asked, classes=2, seed=0)
    truth = test[TARGET].to_numpy()
    return {k: float(roc_auc_score(truth, p[:, 1])) for k, p in scores.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--theirs", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--methods", nargs="+", default=[*OURS, *THEIRS])
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--again", action="store_true", help="make what is kept anew")
    options = parser.parse_args()
    methods = tuple(m for m in options.methods if options.theirs or m in OURS)
    RESULTS.mkdir(exist_ok=True)
    for name in options.tables:
        frame = read(name, options.data).reset_index(drop=True)
        for seed in options.seeds:
            parts = halves(frame, TABLES[name], seed)
            file = RESULTS / f"{name}-{seed}.json"
            kept = json.loads(file.read_text()) if file.exists() else {}
            if "real" not in kept:
                kept["real"] = {
                    "rows": len(parts.train),
                    "columns": frame.shape[1],
                    "positives": float(parts.train[TARGET].mean()),
                    "auc": judged(parts.train, parts.test, frame),
                }
            # A process for each draw: jax keeps what it compiled in memory, some gigabytes of it.
            others = None
            for cell in cells(name, seed, methods):
                is_kept = cell.name in kept and not options.again
                if is_kept or cell.epsilon not in options.epsilons:
                    continue
                if cell.method in THEIRS:
                    others = others or Theirs(options.theirs)
                    rows, seconds = others.make(cell, frame, parts)
                else:
                    rows, seconds = ours(cell, frame, parts)
                kept[cell.name] = {
                    "seconds": round(seconds, 3),
                    "positives": float(rows[TARGET].mean()),
                    "auc": judged(rows[list(frame)], parts.test, frame),
                }
                write_text(file, json.dumps(kept, indent=1) + "\n")
                print(name, seed, cell.name, kept[cell.name], flush=True)
            if others:
                others.process.terminate()


if __name__ == "__main__":
    main()
