"""An attack of somebody else's on synthetic tables: one file, nothing of reticent is changed."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent.attack import Need, Scores


@dataclass(frozen=True, kw_only=True)
class Oldest:
    """A record whose first value stands in the synthetic table was used."""

    name: str = "oldest"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.SYNTHETIC})

    def score(self, challenge, *, knowledge, rng):
        tables = challenge.tables
        found = np.isin(tables.records.codes[:, 0], tables.synthetic.codes[:, 0])
        return Scores(values=found.astype(float))
