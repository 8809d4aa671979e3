"""Three tables and the categories of one of them, and the people of one draw: members, non-members, fresh people and people of another generator."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from reticent.evidence import Columns

DATA = Path(__file__).parents[3] / "shared/data"
ROWS = (
    1000  # of every set: enough for the leaks in question, and an audit takes seconds
)
TARGETS = {
    "cardio70k": "cardio",
    "adult": "income",
    "stroke": "stroke",
    "adult_categories": "income",
}


@cache
def read(name: str) -> pd.DataFrame:
    """Return a table without identifiers and without gaps; texts and numbers of few values are categories."""
    if name == "cardio70k":
        frame = pd.read_csv(DATA / "cardio70k/cardio.csv.gz").drop(columns="id")
        # Pressures outside of what a gauge shows; they would stretch the range and drown every distance.
        sane = frame.ap_hi.between(50, 250) & frame.ap_lo.between(30, 200)
        frame = frame[sane]
    elif name == "adult_categories":
        # Coarse data, on which many people are alike: there, strict comparisons of distances go wrong.
        frame = read("adult")
        return frame.drop(columns=numeric(frame))
    elif name == "adult":
        frame = pd.read_csv(DATA / "adult/adult.csv.gz")
        frame = frame.drop(columns=["split", "fnlwgt", "education-num"])
        frame["income"] = frame.income.str.strip().str.rstrip(".")
    else:
        frame = pd.read_csv(DATA / "stroke/stroke.csv.gz").drop(columns="id")
    frame = frame.dropna().reset_index(drop=True)
    for column in frame:
        few = frame[column].nunique() <= 5
        if few or not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = "v" + frame[column].astype(str)
    return frame


@dataclass(frozen=True, kw_only=True)
class People:
    """Four sets of people who do not overlap, and the table they come from."""

    table: pd.DataFrame
    train: pd.DataFrame
    holdout: pd.DataFrame
    fresh: pd.DataFrame


def draw(name: str, repeat: int) -> People:
    """Return the people of one repeat."""
    frame = read(name)
    rng = np.random.default_rng([repeat, len(name)])
    order = rng.permutation(len(frame))
    size = min(ROWS, len(frame) // 3)
    parts = [
        frame.iloc[order[i * size : (i + 1) * size]].reset_index(drop=True)
        for i in range(3)
    ]
    return People(table=frame, train=parts[0], holdout=parts[1], fresh=parts[2])


def numeric(frame: pd.DataFrame) -> list[str]:
    return [c for c in frame if pd.api.types.is_numeric_dtype(frame[c])]


def coded(people: People, frame: pd.DataFrame) -> Columns:
    """Return rows for the statistics: ranges and categories are those of the whole table, which stand for public ones."""
    numbers = numeric(people.table)
    others = [c for c in people.table if c not in numbers]
    levels = {
        c: {v: i for i, v in enumerate(sorted(people.table[c].unique()))}
        for c in others
    }
    codes = [frame[c].map(levels[c]).fillna(-1).to_numpy() for c in others]
    return Columns(
        numbers=frame[numbers].to_numpy(float),
        codes=np.column_stack(codes).astype(int)
        if codes
        else np.empty((len(frame), 0)),
        ranges=[[people.table[c].min(), people.table[c].max()] for c in numbers],
    )
