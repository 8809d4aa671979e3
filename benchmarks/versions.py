"""Time the same audits by two versions of reticent, in turn on idle cores: wall and CPU time, and their ratios.

    git archive c05dbb9^ src | tar -x -C /elsewhere        (version 0.1.0, before the inside was rebuilt)
    python benchmarks/versions.py adult.csv.gz --before /elsewhere/src

Ten minutes are allowed to each, so that both play all rounds and do the same trainings; with two, how much is played would depend on the clock.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRAINERS = (
    "sklearn.linear_model.LogisticRegression()",
    "sklearn.ensemble.HistGradientBoostingClassifier()",
    "sklearn.ensemble.RandomForestClassifier()",
)
OPTIONS = [
    "--target",
    "income",
    "--group",
    "race",
    "--pool",
    "16",
    "--rounds",
    "8",
    "--minutes",
    "10",
]
HERE = Path(__file__).resolve().parents[1] / "src"


def environment(source: Path) -> dict[str, str]:
    """Return what a process needs to import the code in a folder, and to keep what it compiled."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(source)}


def audit(source: Path, table: Path, trainer: str) -> tuple[float, float]:
    """Return the wall and the CPU seconds of one audit by the code in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "reticent", "audit", table, *OPTIONS, "--trainer", trainer, "--out", f"{folder}/out"]  # fmt: skip
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()  # fmt: skip
        status = subprocess.run(command, env=environment(source), stdout=subprocess.DEVNULL, cwd=folder, check=False).returncode  # fmt: skip
        seconds = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status not in (0, 1, 3):
        sys.exit(f"the audit by {source} ended with status {status}.")
    return seconds, sum(after[:2]) - sum(before[:2])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--trainers", nargs="+", default=TRAINERS)
    options = parser.parse_args()
    sources, table = (options.before.resolve(), HERE), options.table.resolve()
    for source in sources:  # whose first import compiles
        subprocess.run([sys.executable, "-c", "import reticent.pipeline"], env=environment(source), check=True)  # fmt: skip
    print("| trainer | before | now | ratio | CPU time before | now |")
    print("|---|---:|---:|---:|---:|---:|")
    for trainer in options.trainers:
        (old, old_cpu), (new, new_cpu) = (audit(s, table, trainer) for s in sources)
        print(f"| `{trainer}` | {old:.1f} s | {new:.1f} s | {new / old:.2f} | {old_cpu:.0f} s | {new_cpu:.0f} s |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
