"""Health tables of about 2,000 rows with a rare outcome, in place of the three of MIMIC-III, which may not be passed on."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from reticent.evidence import Columns

TARGET = "outcome"
# Rows of the training half, as in Table 3.1, and the share of positives if the table is cut to it, as in Table 3.2.
SHAPES = {"stroke": (2_085, None), "framingham": (2_119, None), "cardio": (1_719, 0.0303)}  # fmt: skip
FRAMINGHAM = ["SEX", "TOTCHOL", "AGE", "SYSBP", "DIABP", "CURSMOKE", "CIGPDAY", "BMI", "DIABETES", "BPMEDS", "HEARTRTE", "GLUCOSE", "educ", "PREVHYP"]  # fmt: skip
CARDIO = ["age", "height", "weight", "ap_hi", "ap_lo", "cholesterol"]


@dataclass(frozen=True, kw_only=True)
class Halves:
    """Training and test half of one draw; the generator sees the first alone."""

    train: pd.DataFrame
    test: pd.DataFrame


def read(name: str, folder: Path) -> pd.DataFrame:
    """Return a whole table with its outcome as 0 or 1."""
    if name == "stroke":
        frame = pd.read_csv(folder / "stroke/stroke.csv.gz").drop(columns="id")
        return frame.rename(columns={"stroke": TARGET})
    if name == "framingham":
        frame = pd.read_csv(folder / "framingham/framingham.csv.gz")
        frame = frame[frame.PERIOD == 1]  # one row per person
        return frame[[*FRAMINGHAM, "CVD"]].rename(columns={"CVD": TARGET})
    frame = pd.read_csv(folder / "cardio70k/cardio.csv.gz")
    frame = frame[frame.ap_hi.between(50, 250) & frame.ap_lo.between(30, 200)]
    return frame[[*CARDIO, "cardio"]].rename(columns={"cardio": TARGET})


def halves(name: str, folder: Path, draw: int) -> Halves:
    """Return the halves of one draw."""
    rows, rate = SHAPES[name]
    frame = read(name, folder).reset_index(drop=True)
    rng = np.random.default_rng([draw, len(name)])
    order = rng.permutation(len(frame))
    if rate is not None:
        positive = frame[TARGET].to_numpy()[order] == 1
        wanted = round(2 * rows * rate)
        order = np.concatenate([order[positive][:wanted], order[~positive][: 2 * rows - wanted]])  # fmt: skip
        order = rng.permutation(order)
    frame = frame.iloc[order[: 2 * rows]].reset_index(drop=True)
    half = len(frame) // 2
    return Halves(train=frame[:half], test=frame[half:].reset_index(drop=True))


def coded(frame: pd.DataFrame, like: pd.DataFrame) -> Columns:
    """Return rows as numbers and codes, on the ranges and categories of one frame for all sets."""
    features = [column for column in like if column != TARGET]
    texts = [c for c in features if not pd.api.types.is_numeric_dtype(like[c])]
    numbers = [c for c in features if c not in texts]
    codes = [
        pd.Categorical(frame[c], categories=sorted(like[c].dropna().unique())).codes
        for c in texts
    ]
    values = frame[numbers].to_numpy(dtype=np.float64)
    ends = like[numbers].to_numpy(dtype=np.float64)
    return Columns(
        numbers=values,
        codes=np.stack(codes, axis=1).astype(np.int64)
        if codes
        else np.empty((len(frame), 0), dtype=np.int64),
        ranges=np.stack([np.nanmin(ends, axis=0), np.nanmax(ends, axis=0)], axis=1),
    )
