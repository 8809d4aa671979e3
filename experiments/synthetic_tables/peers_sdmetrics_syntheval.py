"""Scores of SDMetrics and SynthEval for each job; runs in .venv-tablepeers (sdmetrics 0.32.0, syntheval 1.7.3).

Reads one job per line from standard input, as JSON {"key", "folder", "table"}; prints one JSON line per tool and job.
"""

import contextlib
import io
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")
from sdmetrics.single_table import (  # noqa: E402
    DCROverfittingProtection,
    NewRowSynthesis,
)
from syntheval import SynthEval  # noqa: E402


def sdmetrics(train, holdout, made):
    metadata = {
        "columns": {
            c: {
                "sdtype": "numerical"
                if pd.api.types.is_numeric_dtype(train[c])
                else "categorical"
            }
            for c in train
        }
    }
    overfitting = DCROverfittingProtection.compute_breakdown(
        train, made, holdout, metadata, None
    )
    return {
        "DCROverfittingProtection": overfitting["score"],
        "closer to training": overfitting["synthetic_data_percentages"][
            "closer_to_training"
        ],
        "NewRowSynthesis": NewRowSynthesis.compute(train, made, metadata),
    }


def syntheval(train, holdout, made):
    discrete = [c for c in train if not pd.api.types.is_numeric_dtype(train[c])]
    judge = SynthEval(
        train,
        holdout,
        cat_cols=discrete,
        verbose=False,
        enable_plots=False,
        console="off",
        show_warnings=False,
    )
    found = judge.evaluate(
        made,
        nnaa={"n_resample": 5},
        dcr={},
        hit_rate={},
        eps_risk={},
        mia={"num_eval_iter": 3},
    )
    return {str(row.metric): float(row.val) for row in found.itertuples()}


for line in sys.stdin:
    job = json.loads(line)
    folder = Path(job["folder"])
    train, holdout, made = (
        pd.read_csv(folder / f"{part}.csv")
        for part in ("train", "holdout", job["table"])
    )
    for tool in (sdmetrics, syntheval):
        np.random.seed(0)  # noqa: NPY002  # the libraries draw from it
        started = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                scores = tool(train, holdout, made)
            except Exception as error:  # a peer that fails is a finding
                scores = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(
            json.dumps(
                {
                    "key": f"{job['key']}/{tool.__name__}",
                    "scores": scores,
                    "seconds": time.process_time() - started,
                }
            ),
            flush=True,
        )
