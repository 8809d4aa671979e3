"""Time the exact LTU accuracy, with its interval and individual scores, against scikit-learn's AUC."""

import resource
import time

import numpy as np
from sklearn.metrics import roc_auc_score

from reticent.evidence import individual_privacy, ltu_accuracy, pair_wins


def run(n: int = 1_000_000, repeats: int = 3) -> list[str]:
    """Time both in turn in one run, and return the lines of a table."""
    rng = np.random.default_rng(0)
    lines = []
    for name, d, r in (
        ("continuous", rng.normal(0.2, 1, n), rng.normal(0, 1, n)),
        (
            "tied (100 values)",
            rng.integers(100, size=n) + 5.0,
            rng.integers(100, size=n) + 0.0,
        ),
    ):
        ours, theirs = [], []
        tags, both = np.repeat([1, 0], n), np.concatenate([d, r])
        for _ in range(repeats):
            started = time.perf_counter()
            wins = pair_wins(d, r)
            estimate = ltu_accuracy(wins, level=0.95)
            individual_privacy(wins)
            ours.append(time.perf_counter() - started)
            started = time.perf_counter()
            auc = roc_auc_score(tags, both)
            theirs.append(time.perf_counter() - started)
            assert abs(auc - estimate.value) < 1e-9
        ratio = min(ours) / min(theirs)
        lines.append(
            f"| LTU accuracy, DeLong interval, individual scores, {n:,} x {n:,}, {name} | "
            f"{min(ours):.2f} s | {ratio:.2f} x the time of roc_auc_score | "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB peak of the process |"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(run()))
