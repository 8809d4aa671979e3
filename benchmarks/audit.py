"""Time the whole audit of a table, and show how the time grows with the number of records."""

import time

import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from reticent.data import table_from_frame
from reticent.pipeline import AuditPlan, run_audit
from reticent.train import EstimatorTrainer


def run(sizes: tuple[int, ...] = (5_000, 20_000, 80_000)) -> list[str]:
    """Audit tables of growing size without retraining; return lines of a table."""
    lines, first = [], 0.0
    trainer = EstimatorTrainer.of(LogisticRegression(), preprocess=False)
    for n in sizes:
        X, y = make_classification(n, n_features=20, random_state=0)
        table = table_from_frame(pd.DataFrame(X).add_prefix("x"), target=y)
        started = time.perf_counter()
        run_audit(table, AuditPlan(trainer=trainer, rounds=1))
        seconds = time.perf_counter() - started
        first = first or seconds / n
        lines.append(
            f"| audit of {n:,} records, logistic regression, one round per regime | {seconds:.1f} s | "
            f"{seconds / n / first:.2f} x the time per record of the first line |"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(run()))
