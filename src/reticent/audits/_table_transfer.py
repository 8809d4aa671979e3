"""Train on synthetic, test on real: several models that learned from the synthetic table or from the members, tried on people whom nobody used."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic import Tables
from reticent.audits._sides import Sides
from reticent.audits._table_utility import MOST_CLASSES
from reticent.data import UNKNOWN, Coded
from reticent.evidence import (
    JudgeEvidence,
    UseEvidence,
    compare_positive_rates,
    compare_transfer,
)
from reticent.run import stream
from reticent.train import CodedRows, judge_scores

__all__ = ["transfer_of"]

# Rows that a judge learns from, and people whom it ranks: six models are trained, and none of this decides.
MOST_ROWS = 2_000


@dataclass(frozen=True)
class _Rows:
    """Rows whose class is known: what a judge is shown, and the class."""

    shown: CodedRows
    classes: NDArray[np.int64]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, coded: Coded, column: int, names: NDArray[np.int32]) -> "_Rows":
        codes = coded.codes[:, column]
        known = np.flatnonzero(np.isin(codes, names))
        if len(known) > MOST_ROWS:
            known = known[np.linspace(0, len(known) - 1, MOST_ROWS).astype(np.int64)]
        part = coded.take(known)
        return cls(
            _without(part, column),
            np.searchsorted(names, codes[known]).astype(np.int64),
            known,
        )


def transfer_of(
    tables: Tables,
    sides: Sides,
    *,
    target: str,
    level: float,
    smallest: int,
    seed: int,
) -> UseEvidence | None:
    """Return what several models reach on non-members; None if the target is the only column, has many values, or nobody's class differs.

    Parameters
    ----------
    tables : Tables
        Records and synthetic table.
    sides : Sides
        Who is a member.
    target : str
        The column that is predicted.
    level : float
        Confidence of each interval by itself: none of them decides.
    smallest : int
        Number of people from which something may be said of them.
    seed : int
        Of judges and resamples.
    """
    if len(tables.names) == 1:
        return None
    column = tables.names.index(target)
    members = tables.records.take(np.flatnonzero(sides.tags))
    judged = tables.records.take(np.flatnonzero(~sides.tags))
    of_judged = judged.codes[:, column]
    names, counts = np.unique(tables.records.codes[:, column], return_counts=True)
    names, counts = names[names != UNKNOWN], counts[names != UNKNOWN]
    if not 2 <= len(names) <= MOST_CLASSES or len(np.unique(of_judged)) < 2:
        return None
    real = _Rows.of(members, column, names)
    synthetic = _Rows.of(tables.synthetic, column, names)
    asked = _Rows.of(judged, column, names)
    if not len(synthetic.classes):
        return None
    of_real, of_synthetic = (
        judge_scores(
            rows.shown, rows.classes, asked.shown, classes=len(names), seed=seed
        )
        for rows in (real, synthetic)
    )
    rng = stream(seed, "table/transfer")
    units = sides.units[~sides.tags][asked.places]
    # The rarest class that enough people have: a table with hardly any such rows may rank well, and is of no use.
    large = np.flatnonzero(counts >= smallest)
    rare = int(large[np.argmin(counts[large])]) if len(large) else int(counts.argmax())
    return UseEvidence(
        target=target,
        judges=tuple(
            JudgeEvidence(
                judge=name,
                transfer=compare_transfer(
                    asked.classes,
                    of_real[name],
                    [of_synthetic[name]],
                    units=units,
                    level=level,
                    rng=rng,
                ),
            )
            for name in of_real
        ),
        positive=compare_positive_rates(
            members.codes[:, column] == names[rare],
            tables.synthetic.codes[:, column] == names[rare],
            level=level,
        ),
    )


def _without(coded: Coded, column: int) -> CodedRows:
    """Return all columns but one: numbers on the scale of all records, and categories."""
    numeric = np.asarray(coded.numeric, dtype=bool)
    numbers = np.where(coded.scaled > 2, np.nan, coded.scaled.astype(np.float64))
    codes = coded.categories.astype(np.int64)
    place = int(numeric[:column].sum())
    if numeric[column]:
        return CodedRows(numbers=np.delete(numbers, place, axis=1), codes=codes)
    return CodedRows(numbers=numbers, codes=np.delete(codes, column - place, axis=1))
