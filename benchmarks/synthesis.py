"""Time and memory of `reticent synthesize` on a table of a million rows, each method in a process of its own.

    python benchmarks/synthesis.py [--rows 1000000] [--methods tree adaptive wgan] [--memory 2]

The table is made up: 15 columns of all kinds (whole and real numbers, spikes, categories of 2 to 60 levels, answers, dates, missing values), most of which depend on
others. The command runs as a user runs it, from the CSV file to the synthetic one, without the audit; what it takes is counted by the system for the whole process.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd


def made_up(rows: int, *, rng: np.random.Generator) -> pd.DataFrame:
    """Return a table of 15 columns of mixed kinds."""
    age = rng.integers(18, 95, rows)
    sex = rng.choice(["female", "male"], rows)
    town = rng.zipf(1.6, rows).clip(max=60)
    schooling = np.clip((age // 12) + rng.integers(-3, 4, rows), 1, 8)
    work = np.where(age > 66, "none", rng.choice(["office", "field", "shop", "care", "none"], rows, p=[0.35, 0.15, 0.2, 0.15, 0.15]))  # fmt: skip
    income = np.where(work == "none", 0.0, np.round(np.exp(rng.normal(9.6 + 0.12 * schooling, 0.5)), 2))  # fmt: skip
    weight = np.round(rng.normal(64 + 12 * (sex == "male"), 11), 1)
    systolic = np.round(rng.normal(100 + 0.5 * age, 14))
    diastolic = np.round(0.55 * systolic + rng.normal(10, 7, rows))
    sugar = np.round(rng.gamma(9, 0.6, rows) + 0.01 * weight, 2)
    smoker = rng.random(rows) < 0.35 - 0.03 * schooling
    visits = rng.poisson(1 + age / 25)
    odds = 0.03 * (age - 55) + 0.04 * (systolic - 130) + 0.8 * smoker - 0.5
    ill = rng.random(rows) < 1 / (1 + np.exp(-odds))
    seen = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3_000, rows), unit="D")  # fmt: skip
    region = np.array(["north", "east", "south", "west"])[(town + rng.integers(0, 2, rows)) % 4]  # fmt: skip
    frame = pd.DataFrame({
        "age": age, "sex": sex, "town": np.char.add("t", town.astype(str)), "region": region, "schooling": schooling, "work": work, "income": income, "weight": weight,
        "systolic": systolic, "diastolic": diastolic, "sugar": sugar, "smoker": smoker, "visits": visits, "seen": seen, "ill": ill,
    })  # fmt: skip
    frame.loc[rng.random(rows) < 0.07, "sugar"] = np.nan
    return frame


def measured(table: Path, method: str, memory: float, epsilon: float) -> str:
    """Return one row of a table: what the command with a method takes."""
    out = table.with_name(f"{method}.csv")
    command = [
        sys.executable, "-m", "reticent", "synthesize", str(table), "--target", "ill", "--epsilon", str(epsilon), "--method", method, "--no-audit", "--memory", str(memory), "--out", str(out), "--json",
    ]  # fmt: skip
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        return f"| {method} | refused or failed (status {process.returncode}) | | |"
    cpu = used.ru_utime + used.ru_stime
    out.unlink()
    # Linux counts the largest resident set in kilobytes.
    return f"| {method} | {cpu:.0f} s | {time.perf_counter() - started:.0f} s | {used.ru_maxrss / 1e6:.2f} GB |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--methods", nargs="+", default=["tree", "adaptive", "wgan"])
    parser.add_argument("--memory", type=float, default=2.0)
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        frame = made_up(options.rows, rng=np.random.default_rng(0))
        frame.to_csv(table, index=False)
        del frame
        print("| method | CPU time | wall time | largest resident set |\n|---|---:|---:|---:|")  # fmt: skip
        for method in options.methods:
            print(measured(table, method, options.memory, options.epsilon), flush=True)


if __name__ == "__main__":
    main()
