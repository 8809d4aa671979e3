"""Train CTGAN and TVAE on the members of each folder; runs in .venv-generators (torch 2.13.0, ctgan 0.12.1).

.venv-generators/bin/python experiments/synthetic_tables/deep.py FOLDER ...: reads train.csv, writes CTGAN.csv and TVAE.csv.
"""

import os
import sys
from pathlib import Path

# One process, set before joblib reads it: the library starts one per core for columns that take milliseconds.
os.environ["LOKY_MAX_CPU_COUNT"] = "1"

import numpy as np
import pandas as pd
import torch
from ctgan import CTGAN, TVAE

EPOCHS = 150  # of the default 300: on 1,500 rows the losses are flat by then
torch.set_num_threads(1)

for name in sys.argv[1:]:
    folder = Path(name)
    train = pd.read_csv(folder / "train.csv")
    discrete = [c for c in train if not pd.api.types.is_numeric_dtype(train[c])]
    for kind in (CTGAN, TVAE):
        out = folder / f"{kind.__name__}.csv"
        if out.exists():
            continue
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002  # the library draws from it
        model = (
            kind(epochs=EPOCHS, enable_gpu=False)
            if kind is TVAE
            else kind(epochs=EPOCHS, enable_gpu=False, verbose=False)
        )
        model.fit(train, discrete)
        model.sample(len(train)).to_csv(out, index=False)
        print(out, flush=True)
