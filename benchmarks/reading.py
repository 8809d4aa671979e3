"""Time how long it takes to read the files of products and to look for every record in them, by two versions of reticent in turn.

    git archive 8d3c9bf src | tar -x -C /elsewhere        (before the bytes themselves were read)
    python benchmarks/reading.py --before /elsewhere/src

What is timed is what an audit does with a product that it is given: before, the loaded model was saved anew and that was read; now its folder is.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROWS = 20_000  # members, and as many others
RUNS = 3
HERE = Path(__file__).resolve().parents[1] / "src"

MAKE = f"""
import sys, numpy as np, pandas as pd, skops.io
from pathlib import Path
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
rng, n, folder = np.random.default_rng(0), {ROWS}, Path(sys.argv[1])
x = np.column_stack([rng.normal(size=(2 * n, 6)), rng.integers(0, 90, (2 * n, 4)), rng.integers(0, 3, (2 * n, 4))]).round(3)
y = (x[:, 0] + x[:, 1] + rng.normal(size=2 * n) > 0).astype(int)
frame = pd.DataFrame(x, columns=[f"c{{j}}" for j in range(14)])
frame.assign(outcome=y).to_parquet(folder / "table.parquet")
models = dict(forest=RandomForestClassifier(100, random_state=0), boosting=HistGradientBoostingClassifier(random_state=0), logistic=LogisticRegression(max_iter=1000))
for name, model in models.items():
    (folder / name).mkdir()
    skops.io.dump(model.fit(frame[:n], y[:n]), folder / name / "product.skops")
(folder / "folder").mkdir()
skops.io.dump(models["logistic"], folder / "folder" / "product.skops")
for k in range(8):
    rows = pd.DataFrame(rng.normal(size=(n // 4, 14)))
    rows.to_csv(folder / "folder" / f"figures{{k}}.csv", index=False)
"""  # fmt: skip

TIME = """
import sys, time, pandas as pd
from pathlib import Path
from reticent.attack import search_file
from reticent.data import table_from_frame
from reticent.product import FittedProduct, open_file, read_contents
import skops.io
folder, name, way = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
frame = pd.read_parquet(folder / "table.parquet")
table = table_from_frame(frame.drop(columns="outcome"), target=frame["outcome"].to_numpy())
file = folder / name / "product.skops"
model = skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))
product = FittedProduct(estimator=model, classes=table.classes)
search_file(open_file(product, table.take(range(200))))
started = time.perf_counter()
contents = None if way == "copy" else read_contents(folder / name)
opened = open_file(product, table, contents=contents)
between = time.perf_counter()
search_file(opened)
print(between - started, time.perf_counter() - between)
"""


def seconds(source: Path, folder: str, name: str, way: str) -> tuple[float, float]:
    """Return the seconds to open a product's file, and those to search it."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TIME, folder, name, way],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    opening, searching = map(float, found.stdout.split())
    return opening, searching


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path, required=True)
    options = parser.parse_args()
    before = options.before.resolve()
    print("| product | opened before | now | ratio | searched before | now | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", MAKE, folder], check=True)
        for name in ("forest", "boosting", "logistic", "folder"):
            runs = [
                (*seconds(before, folder, name, "copy"), *seconds(HERE, folder, name, "bytes"))
                for _ in range(RUNS)
            ]  # fmt: skip
            o, s, n_o, n_s = (min(column) for column in zip(*runs, strict=True))
            print(f"| {name} | {o:.2f} s | {n_o:.2f} s | {n_o / o:.2f} | {s:.2f} s | {n_s:.2f} s | {n_s / s:.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
