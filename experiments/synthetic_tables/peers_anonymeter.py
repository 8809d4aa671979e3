"""Risks by anonymeter for each job; runs in .venv-anonymeter (anonymeter 1.1.0, numpy 1.26.4).

Reads one job per line from standard input, as JSON {"key", "folder", "table", "target"}; prints one JSON line per job.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")
from anonymeter.evaluators import (  # noqa: E402
    InferenceEvaluator,
    LinkabilityEvaluator,
    SinglingOutEvaluator,
)

ATTACKS = 300


def evaluate(train, holdout, made, target):
    columns = list(train)
    half = len(columns) // 2
    rest = [c for c in columns if c != target]
    attacks = {
        "singling out, univariate": (
            SinglingOutEvaluator(train, made, ATTACKS, control=holdout),
            {"mode": "univariate"},
        ),
        "singling out, multivariate": (
            SinglingOutEvaluator(train, made, ATTACKS, n_cols=3, control=holdout),
            {"mode": "multivariate"},
        ),
        "linkability": (
            LinkabilityEvaluator(
                train,
                made,
                (columns[:half], columns[half:]),
                ATTACKS,
                n_neighbors=1,
                control=holdout,
            ),
            {"n_jobs": 1},
        ),
        "inference": (
            InferenceEvaluator(
                train, made, rest, target, False, n_attacks=ATTACKS, control=holdout
            ),
            {"n_jobs": 1},
        ),
    }
    scores = {}
    for name, (attack, options) in attacks.items():
        try:
            attack.evaluate(**options)
            risk = attack.risk(confidence_level=0.95)
            scores[name] = [risk.value, risk.ci[0], risk.ci[1]]
        except Exception as error:  # a peer that fails is a finding
            scores[name] = f"{type(error).__name__}: {error}"[:200]
    return scores


for line in sys.stdin:
    job = json.loads(line)
    folder = Path(job["folder"])
    train, holdout, made = (
        pd.read_csv(folder / f"{part}.csv")
        for part in ("train", "holdout", job["table"])
    )
    np.random.seed(0)  # noqa: NPY002  # the library draws from it
    started = time.process_time()
    scores = evaluate(train, holdout, made, job["target"])
    print(
        json.dumps(
            {
                "key": f"{job['key']}/anonymeter",
                "scores": scores,
                "seconds": time.process_time() - started,
            }
        ),
        flush=True,
    )
