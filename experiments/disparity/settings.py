"""The tables, the grid of batch sizes and codings, and how often each cell is repeated; fixed before the first repeat."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from reticent.data import Table, table_from_frame
from reticent.train import SGD, Network, NetworkTrainer

__all__ = ["BATCHES", "CELLS", "CODINGS", "REPEATS", "SHADOWS", "STUDIES", "Cell"]

REPEATS = 200  # as in the thesis
SHADOWS = 5
EPOCHS, RATE, HIDDEN = 200, 0.01, 8
TOGETHER = 50  # models trained in one pass: the batches of more do not fit into the cache. It changes the time, not the result

# The thesis states neither. Its initial weights, uniform in +-1/sqrt(10), are what PyTorch draws for ten inputs:
# Law School has ten columns, so that its categories may have been numbered.
BATCHES = (128, 32, 16, 8)
CODINGS = ("one-hot", "labels")


@dataclass(frozen=True, kw_only=True)
class Study:
    """One of the two tables."""

    name: str
    title: str
    file: str
    target: str
    group: str
    drop: tuple[str, ...] = ()

    def read(self, data: Path, coding: str) -> Table:
        """Read the table; with the coding ``"labels"``, categories are numbered in alphabetical order."""
        frame = pd.read_csv(data / self.file).drop(columns=list(self.drop))
        features = frame.drop(columns=[self.target])
        if coding == "labels":
            for column in features.columns:
                if not pd.api.types.is_numeric_dtype(features[column]):
                    codes = features[column].astype("category").cat.codes
                    features[column] = codes.astype(float)
        return table_from_frame(
            features,
            target=frame[self.target].astype(str).to_numpy(),
            group=frame[self.group].to_numpy(),
            name=self.name,
        )


STUDIES = {
    "law_school": Study(
        name="law_school",
        title="Law School",
        file="law_school/law_school_admissions.csv.gz",
        target="bar",
        group="race1",
    ),
    "adult": Study(
        name="adult",
        title="Adult",
        file="adult/adult.csv.gz",
        target="income",
        group="race",
        drop=("fnlwgt", "split"),  # survey weights are no feature, as in the thesis
    ),
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of the grid.

    Parameters
    ----------
    study : str
        The table.
    batch : int
        Records per step.
    coding : str
        How categories enter: ``"one-hot"`` or ``"labels"``.
    """

    study: str
    batch: int
    coding: str

    @property
    def name(self) -> str:
        """By which results are kept."""
        return f"{self.study}-{self.batch}-{self.coding}"

    def trainer(self) -> NetworkTrainer:
        """Return the thesis's network."""
        network = Network(
            hidden=(HIDDEN,),
            epochs=EPOCHS,
            batch=self.batch,
            optimiser=SGD(rate=RATE),
        )
        return NetworkTrainer(
            chunk=TOGETHER,
            network=network,
            recipe=f"reticent.Network(hidden=[{HIDDEN}], epochs={EPOCHS}, batch={self.batch}, optimiser=reticent.SGD(rate={RATE}))",
        )


def _grid(study: str) -> list[Cell]:
    return [Cell(study=study, batch=b, coding=c) for c in CODINGS for b in BATCHES]


# In the order in which they are run: the small table first, then the two cells of Adult that differ most and are affordable.
_FIRST = [Cell(study="adult", batch=b, coding="one-hot") for b in (128, 16)]
CELLS = (
    *_grid("law_school"),
    *_FIRST,
    *(cell for cell in _grid("adult") if cell not in _FIRST),
)
