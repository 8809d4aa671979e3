"""Measure how often what reticent states is wrong, and write the page.

python experiments/calibration/run.py [--quick] [--scale 0.1] [--parts accuracy rates] [--seed 1] [--workers 2]

About 30 CPU minutes. Each part is kept in build/calibration as soon as it is measured, and at the end all go to results.json and to
docs/reference/calibration.md. `--collect` writes both from the parts that `make test-all` has measured. `--quick` prints a twentieth of the repeats and
keeps nothing; so does another seed. A page from another `--scale` says so.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from joblib import Parallel, delayed

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from calibrate import page, settings, suite  # noqa: E402

from reticent.run import write_text  # noqa: E402

ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "calibration"
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "reference" / "calibration.md"


def measured(part: str, seed: int, scale: float) -> dict:
    sys.path.insert(0, str(HERE))  # in a new process
    begin = time.process_time()
    result = suite.measure(part, seed=seed, scale=scale)
    print(f"{part}: {time.process_time() - begin:.0f} CPU seconds", flush=True)
    return result


def keep(part: str, result: dict) -> None:
    """Keep a part until all are there."""
    BUILD.mkdir(parents=True, exist_ok=True)
    write_text(BUILD / f"{part}.json", json.dumps(result, indent=1) + "\n")


def collect() -> None:
    """Write results and page from the parts that were measured; those that were not stay as they are."""
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    for part in suite.PARTS:
        if (BUILD / f"{part}.json").is_file():
            results[part] = json.loads((BUILD / f"{part}.json").read_text())
    missing = [part for part in suite.PARTS if part not in results]
    if missing:
        sys.exit(f"no results of {', '.join(missing)}; measure them first.")
    write_text(RESULTS, json.dumps({p: results[p] for p in suite.PARTS}, indent=1) + "\n")  # fmt: skip
    page.write(results, PAGE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the repeats; keeps nothing")  # fmt: skip
    parser.add_argument("--scale", type=float, default=1.0, help="times the repeats of the settings")  # fmt: skip
    parser.add_argument("--collect", action="store_true", help="measure nothing; write what was measured")  # fmt: skip
    parser.add_argument("--parts", nargs="+", choices=suite.PARTS, default=suite.PARTS)
    parser.add_argument("--seed", type=int, default=settings.SEED)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    if asked.collect:
        collect()
        return
    scale = settings.QUICK_SCALE if asked.quick else asked.scale
    is_kept = not asked.quick and asked.seed == settings.SEED
    jobs = (delayed(measured)(part, asked.seed, scale) for part in asked.parts)
    results = Parallel(n_jobs=asked.workers, return_as="generator")(jobs)
    for part, result in zip(asked.parts, results, strict=True):
        if is_kept:
            keep(part, result)
        for row in suite.rows_of(result):
            if row.verdict == "broken" or asked.quick:
                print(f"  {row.verdict}: {row.statement}; {page.line(row)}")
    if is_kept:
        collect()


if __name__ == "__main__":
    main()
