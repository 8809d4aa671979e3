"""Distances by mostlyai-qa for each job; runs in .venv-mostlyai (mostlyai-qa 1.10.11, torch 2.13.0).

Reads one job per line from standard input, as JSON {"key", "folder", "table"}; prints one JSON line per job.
"""

import contextlib
import io
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pandas as pd

warnings.filterwarnings("ignore")
from mostlyai import qa  # noqa: E402

for line in sys.stdin:
    job = json.loads(line)
    folder = Path(job["folder"])
    train, holdout, made = (
        pd.read_csv(folder / f"{part}.csv")
        for part in ("train", "holdout", job["table"])
    )
    started = time.process_time()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        tempfile.TemporaryDirectory() as out,
    ):
        try:
            _, metrics = qa.report(
                syn_tgt_data=made,
                trn_tgt_data=train,
                hol_tgt_data=holdout,
                report_path=Path(out) / "report.html",
            )
            found = metrics.distances
            scores = {
                "DCR share": found.dcr_share,
                "IMS training": found.ims_training,
                "IMS holdout": found.ims_holdout,
            }
        except Exception as error:  # a peer that fails is a finding
            scores = {"error": f"{type(error).__name__}: {error}"[:200]}
    print(
        json.dumps(
            {
                "key": f"{job['key']}/mostlyai-qa",
                "scores": scores,
                "seconds": time.process_time() - started,
            }
        ),
        flush=True,
    )
