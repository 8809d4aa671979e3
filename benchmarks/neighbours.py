"""Time the exact nearest neighbours of the adversarial accuracy against scikit-learn's brute force, and its memory.

python benchmarks/neighbours.py [--rows 20000] [--columns 34] [--whole]: CPU seconds in one run, so trust the ratio. With --whole,
the privacy loss of three sets of that many rows, with permutations and half samples, in place of the search alone.
"""

import argparse
import resource
import time

import numpy as np
from sklearn.neighbors import NearestNeighbors

from reticent.evidence import Columns, adversarial_accuracy, privacy_loss


def rows(rng: np.random.Generator, n: int, columns: int) -> np.ndarray:
    """Numbers to two digits, of which a third are binary, as in tables of people."""
    numbers = rng.normal(0.5, 0.15, (n, columns)).round(2)
    third = columns // 3
    numbers[:, :third] = numbers[:, :third] > 0.5
    return numbers


def table(numbers: np.ndarray) -> Columns:
    return Columns(
        numbers=numbers,
        codes=np.empty((len(numbers), 0)),
        ranges=[[0.0, 1.0]] * numbers.shape[1],
    )


def seconds(work) -> tuple[float, object]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def run(n: int = 20_000, columns: int = 34, *, whole: bool = False) -> list[str]:
    """Measure both in one run, and return the lines of a table."""
    rng = np.random.default_rng(0)
    real, made, test = (rows(rng, n, columns) for _ in range(3))
    made[: n // 50] = real[: n // 50]  # 2 % copies
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if whole:
        ours, _ = seconds(
            lambda: privacy_loss(
                table(real),
                table(test),
                [table(made)],
                level=0.95,
                rng=rng,
                permutations=99,
            )
        )
        what = "privacy loss with 99 permutations and 50 half samples"
    else:
        ours, _ = seconds(
            lambda: adversarial_accuracy(
                table(real), table(made), level=0.95, rng=rng, permutations=19
            )
        )
        what = "adversarial accuracy with 19 permutations and 50 half samples"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def sklearn() -> tuple[np.ndarray, ...]:
        """The four searches that the measure needs: one neighbour inside each set, two in the other."""
        found = []
        for own, other in ((real, made), (made, real)):
            inside = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(own)
            across = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(other)
            found += [inside.kneighbors()[0][:, 0], across.kneighbors(own)[0]]
        return tuple(found)

    theirs, distances = seconds(sklearn)
    copied = distances[3][: n // 50, 0]
    return [
        f"| {what}, {n:,} x {columns} | {ours:.1f} CPU s | {ours / theirs:.2f} x the time of scikit-learn's four brute-force searches | "
        f"{(peak - before) / 1e6:.2f} GB more at the peak | copies at distance 0: 100 %, scikit-learn {np.mean(copied == 0):.0%} |"
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=34)
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    print("\n".join(run(options.rows, options.columns, whole=options.whole)))
