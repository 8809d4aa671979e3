"""Tables that no setting of a generator was chosen on, with values declared as public, and cells for libraries that need them."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from reticent.evidence import Columns

TARGET = "outcome"
BINS = 16  # of a column of numbers for AIM and MST: sixteenths of the test half


@dataclass(frozen=True, kw_only=True)
class Halves:
    """Training and test half of one draw; generators see the first alone."""

    train: pd.DataFrame
    test: pd.DataFrame


def read(name: str, folder: Path) -> pd.DataFrame:
    """Return a whole table with its outcome as 0 or 1."""
    if name == "stroke":
        frame = pd.read_csv(folder / "stroke/stroke.csv.gz").drop(columns="id")
        return frame.rename(columns={"stroke": TARGET})
    if name == "compas":
        frame = pd.read_csv(folder / "compas/compas_two_years.csv.gz")
        keep = ["sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree", "two_year_recid"]  # fmt: skip
        return frame[keep].rename(columns={"two_year_recid": TARGET})
    if name == "law_school":
        frame = pd.read_csv(folder / "law_school/law_school_admissions.csv.gz")
        # Who did not pass is the rare class.
        frame[TARGET] = (frame.pop("bar").astype(str).str.upper() != "TRUE").astype(int)
        return frame
    if name == "cardio":
        frame = pd.read_csv(folder / "cardio70k/cardio.csv.gz").drop(columns="id")
        frame = frame[frame.ap_hi.between(50, 250) & frame.ap_lo.between(30, 200)]
        frame["age"] = frame["age"] // 365
        return frame.rename(columns={"cardio": TARGET})
    if name == "adult":
        frame = pd.read_csv(folder / "adult/adult.csv.gz").drop(columns="fnlwgt")
        frame[TARGET] = frame.pop("income").str.contains(">").astype(int)
        return frame
    if name == "diabetes":
        frame = pd.read_csv(folder / "diabetes_130us/diabetic_data.csv.gz", keep_default_na=False, na_values="?")  # fmt: skip
        frame = frame.drop_duplicates("patient_nbr")  # one row per person
        keep = ["race", "gender", "age", "admission_type_id", "time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications", "number_outpatient", "number_emergency", "number_inpatient", "number_diagnoses", "insulin", "change", "diabetesMed", "A1Cresult"]  # fmt: skip
        # Back in the hospital at any time, because few are back within 30 days.
        return frame[keep].assign(**{TARGET: (frame.readmitted != "NO").astype(int)})
    frame = pd.read_csv(folder / "framingham/framingham.csv.gz")
    frame = frame[frame.PERIOD == 1]  # one row per person
    keep = ["SEX", "TOTCHOL", "AGE", "SYSBP", "DIABP", "CURSMOKE", "CIGPDAY", "BMI", "DIABETES", "BPMEDS", "HEARTRTE", "GLUCOSE", "educ", "PREVHYP", "CVD"]  # fmt: skip
    return frame[keep].rename(columns={"CVD": TARGET})


def halves(frame: pd.DataFrame, rows: int, seed: int) -> Halves:
    """Return the halves of one draw: as many rows to learn from as are asked for, at most half of all, and up to 10,000 others to test."""
    order = np.random.default_rng([seed, 16]).permutation(len(frame))
    rows = min(rows, len(frame) // 2)
    train, test = order[:rows], order[rows:][:10_000]
    return Halves(
        train=frame.iloc[train].reset_index(drop=True),
        test=frame.iloc[test].reset_index(drop=True),
    )


def is_text(values: pd.Series) -> bool:
    """Whether a column holds categories."""
    return not pd.api.types.is_numeric_dtype(values)


def domain(frame: pd.DataFrame) -> str:
    """Return the declared values of the columns, of the whole table, which stand for public knowledge; in TOML."""
    numbers, categories = ["[numbers]"], ["[categories]"]
    for name in frame:
        if is_text(frame[name]):
            categories.append(f"{json.dumps(name)} = {json.dumps(sorted(frame[name].dropna().unique()))}")  # fmt: skip
        elif not frame[name].dropna().isin([0, 1]).all():
            numbers.append(f"{json.dumps(name)} = [{float(frame[name].min())}, {float(frame[name].max())}]")  # fmt: skip
    return "\n".join([*numbers, *categories]) + "\n"


@dataclass(frozen=True)
class Cells:
    """Columns as cells for libraries that take nothing else: each value of few, or sixteenths of a public sample."""

    whole: pd.DataFrame
    public: pd.DataFrame

    def _ends(self, name: str) -> np.ndarray:
        """Return the ends of the cells of a column of numbers; a cell holds what is at most its end."""
        known = np.unique(self.whole[name].dropna())
        if len(known) <= BINS:
            return known
        inner = self.public[name].quantile(np.arange(1, BINS) / BINS)
        return np.unique([*inner, known[-1]])

    def code(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the cell of each value, -1 for missing ones, and the number of cells of each column."""
        cells, sizes = [], []
        for name in self.whole:
            if is_text(self.whole[name]):
                known = sorted(self.whole[name].dropna().unique())
                cells.append(pd.Categorical(frame[name], categories=known).codes.astype(np.int64))  # fmt: skip
                sizes.append(len(known))
                continue
            ends, values = self._ends(name), frame[name].to_numpy(dtype=np.float64)
            places = np.minimum(np.searchsorted(ends, values), len(ends) - 1)
            cells.append(np.where(np.isnan(values), -1, places))
            sizes.append(len(ends))
        return np.stack(cells, axis=1), np.array(sizes)

    def decode(self, cells: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
        """Return a value of each cell: uniform inside it, whole where the column is."""
        columns = {}
        for j, name in enumerate(self.whole):
            at, missing = np.maximum(cells[:, j], 0), cells[:, j] < 0
            if is_text(self.whole[name]):
                known = np.array(sorted(self.whole[name].dropna().unique()), dtype=object)  # fmt: skip
                columns[name] = pd.Series(known[at]).mask(missing)
                continue
            ends = self._ends(name)
            known = np.unique(self.whole[name].dropna())
            if len(known) <= BINS:
                values = ends[at].astype(np.float64)
            else:
                starts = np.concatenate([[known[0]], ends[:-1]])
                whole = bool((known == np.floor(known)).all())
                # A whole number lies above the end of the cell before.
                low = starts[at] + (1.0 if whole else 0.0) * (at > 0)
                high = ends[at] + (1.0 if whole else 0.0)
                values = low + rng.random(len(at)) * np.maximum(high - low, 0)
                values = np.floor(values) if whole else values
            columns[name] = pd.Series(values).mask(missing)
        return pd.DataFrame(columns)


def coded(frame: pd.DataFrame, like: pd.DataFrame) -> Columns:
    """Return the features of rows as numbers and codes, on the ranges and categories of one frame for all."""
    features = [column for column in like if column != TARGET]
    texts = [c for c in features if is_text(like[c])]
    numbers = [c for c in features if c not in texts]
    codes = [
        pd.Categorical(frame[c], categories=sorted(like[c].dropna().unique())).codes
        for c in texts
    ]
    ends = like[numbers].to_numpy(dtype=np.float64)
    return Columns(
        numbers=frame[numbers].to_numpy(dtype=np.float64),
        codes=np.stack(codes, axis=1).astype(np.int64) if codes else np.empty((len(frame), 0), dtype=np.int64),
        ranges=np.stack([np.nanmin(ends, axis=0), np.nanmax(ends, axis=0)], axis=1),
    )  # fmt: skip
