"""Train on synthetic, test on real: several models that learned from the synthetic table or from the members, tried on people whom nobody used."""

from collections.abc import Sequence
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
from reticent.train import JUDGES, CodedRows, judge_scores

__all__ = ["Question", "transfer_of"]

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


@dataclass(frozen=True, kw_only=True)
class Question:
    """What judges are asked: the class of people whom nobody used.

    Parameters
    ----------
    column : int
        The place of the target.
    names : array of int
        Codes of its classes.
    asked : _Rows
        The non-members, up to 2,000 of them.
    """

    column: int
    names: NDArray[np.int32]
    asked: _Rows

    @classmethod
    def of(
        cls, tables: Tables, tags: NDArray[np.bool_], *, target: str
    ) -> "Question | None":
        """Return the question about non-members; None if the target is the only column, has many values, or nobody's class differs."""
        if len(tables.names) == 1:
            return None
        column = tables.names.index(target)
        names = np.unique(tables.records.codes[:, column])
        names = names[names != UNKNOWN]
        judged = tables.records.take(np.flatnonzero(~tags))
        varies = len(np.unique(judged.codes[:, column])) > 1
        if not 2 <= len(names) <= MOST_CLASSES or not varies:
            return None
        return cls(column=column, names=names, asked=_Rows.of(judged, column, names))

    def scores(self, learn: Coded, *, seed: int) -> NDArray[np.float64] | None:
        """Return the class probabilities by each judge that learned from some rows, shape (judges, people, classes); None if no row has a class."""
        rows = _Rows.of(learn, self.column, self.names)
        if not len(rows.classes):
            return None
        by_judge = judge_scores(
            rows.shown,
            rows.classes,
            self.asked.shown,
            classes=len(self.names),
            seed=seed,
        )
        return np.stack([by_judge[name] for name in JUDGES])

    def compared(
        self,
        real: NDArray[np.float64],
        synthetic: Sequence[NDArray[np.float64]],
        units: NDArray[np.int64],
        *,
        level: float,
        rng: np.random.Generator,
    ) -> tuple[JudgeEvidence, ...]:
        """Return what each judge reaches, by the scores that it gives after learning from the members and from each table.

        Parameters
        ----------
        real : array of float, shape (judges, people, classes)
            Scores after learning from the members.
        synthetic : sequence of such arrays
            Scores after learning from each table.
        units : array of int
            The person of each non-member.
        level : float
            Confidence of each interval by itself.
        rng : numpy.random.Generator
            Resamples people.
        """
        return tuple(
            JudgeEvidence(
                judge=name,
                transfer=compare_transfer(
                    self.asked.classes,
                    real[k],
                    [scores[k] for scores in synthetic],
                    units=units[self.asked.places],
                    level=level,
                    rng=rng,
                ),
            )
            for k, name in enumerate(JUDGES)
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
    """Return what several models reach on non-members; None if nothing can be asked about the target.

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
    question = Question.of(tables, sides.tags, target=target)
    if question is None:
        return None
    members = tables.records.take(np.flatnonzero(sides.tags))
    real = question.scores(members, seed=seed)
    synthetic = question.scores(tables.synthetic, seed=seed)
    if real is None or synthetic is None:
        return None
    rng = stream(seed, "table/transfer")
    column, names = question.column, question.names
    codes = tables.records.codes[:, column]
    counts = np.array([np.count_nonzero(codes == name) for name in names])
    # The rarest class that enough people have: a table with hardly any such rows may rank well, and is of no use.
    large = np.flatnonzero(counts >= smallest)
    rare = int(large[np.argmin(counts[large])]) if len(large) else int(counts.argmax())
    return UseEvidence(
        target=target,
        judges=question.compared(
            real, [synthetic], sides.units[~sides.tags], level=level, rng=rng
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
