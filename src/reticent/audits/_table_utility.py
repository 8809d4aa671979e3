"""What a synthetic table is good for: a model trained on it, tried on people whom nobody used."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from reticent.attack.synthetic import Tables
from reticent.data import UNKNOWN, Coded
from reticent.evidence import Estimate, share_saved
from reticent.run import one_thread

__all__ = ["ChosenTarget", "Use", "chosen_target", "losses_of", "use_of"]

MOST_ROWS = (
    10_000  # that a model learns from: more change its errors little, and take longer
)
# A numeric column with no more values than this is predicted as a class: marks, stages and yes or no are often written as numbers.
MOST_CLASSES = 20
# Fewest people of the auxiliary table that a target is chosen on; below, the first column that varies is taken.
FEWEST = 40
# Rows times trees per step, over all columns that a target is chosen among: a few minutes. Where people have codes of diagnoses, a model with a tree for
# each of them would take most of the time of an audit, and is not what anybody makes such a table for.
MOST_WORK = 4_000_000


@dataclass(frozen=True, kw_only=True)
class Use:
    """How well a model that learned from one table does on other people.

    Parameters
    ----------
    column : str
        What is predicted from all other columns.
    synthetic, real : Estimate or None
        Share of the errors of a constant answer that it saves, trained on the synthetic and on the real table; None if the constant answer is
        never wrong.
    """

    column: str
    synthetic: Estimate | None
    real: Estimate | None


def use_of(
    tables: Tables,
    tags: NDArray[np.bool_],
    units: NDArray[np.int64],
    *,
    target: str,
    level: float,
) -> Use:
    """Train on the synthetic rows, and on the members; try both on the non-members.

    Parameters
    ----------
    tables : Tables
        Records, synthetic and auxiliary table.
    tags : array of bool
        Whether each record is a member.
    units : array of int
        Unit of each record.
    target : str
        The column that is predicted.
    level : float
        Confidence of each share.
    """
    place = tables.names.index(target)
    judged = tables.records.take(np.flatnonzero(~tags))
    members = tables.records.take(np.flatnonzero(tags))

    def share(learn: Coded) -> Estimate | None:
        # The constant is that of the real table in both cases, so that the two shares can be compared.
        lost, constant = losses_of(learn, judged, place, constant_of=members)
        if not constant.any():
            return None
        return share_saved(lost, constant, units=units[~tags], level=level)

    return Use(
        column=tables.names[place],
        synthetic=share(tables.synthetic),
        real=share(members),
    )


@dataclass(frozen=True, kw_only=True)
class ChosenTarget:
    """The column that a user of the table is taken to predict.

    Parameters
    ----------
    place : int
        The column.
    untried : int
        Columns that were no candidates, because models for all of them would take too long.
    """

    place: int
    untried: int = 0


def chosen_target(auxiliary: Coded) -> ChosenTarget:
    """Return the column that one half of the auxiliary people predicts best for the other half.

    Neither the synthetic table nor anybody whose membership is in question has a part in the choice. Columns are tried in the order of the trees that a
    model for them needs, as long as there is work left; which are tried depends on their numbers of values alone. One that could not become the best, because too many
    people have values that nobody in the first half has, needs no model.
    """
    half = len(auxiliary) // 2
    varies = [j for j in range(auxiliary.codes.shape[1]) if len(np.unique(auxiliary.codes[:, j])) > 1]  # fmt: skip
    if half < FEWEST or not varies:
        return ChosenTarget(place=varies[0] if varies else 0)
    learn = auxiliary.take(np.arange(half))
    judged = auxiliary.take(np.arange(half, len(auxiliary)))
    part = _some(learn)
    trees = np.array([_trees(part, judged, j) for j in varies])
    order = np.argsort(trees, kind="stable")
    tried = order[len(part) * np.cumsum(trees[order]) <= MOST_WORK]
    saved = np.full(len(varies), -np.inf)
    for k in tried:
        j = varies[k]
        if _most_saved(part, judged, j, constant_of=learn) < saved.max():
            continue
        lost, constant = losses_of(part, judged, j, constant_of=learn)
        if constant.any():
            saved[k] = 1 - lost.sum() / constant.sum()
    return ChosenTarget(
        place=varies[int(np.argmax(saved))], untried=len(varies) - len(tried)
    )


def _trees(learn: Coded, judged: Coded, place: int) -> int:
    """Return how many trees a model for a column grows in each step: one per class, unless there are two."""
    if _is_quantity(learn, judged, place):
        return 1
    classes = len(np.unique(learn.codes[:, place]))
    return classes if classes > 2 else 1


def _most_saved(
    learn: Coded, judged: Coded, place: int, *, constant_of: Coded
) -> float:
    """Return a share of errors that no model saves more than, because it answers no class that it did not learn."""
    if _is_quantity(learn, judged, place):
        return 1.0
    truth = judged.codes[:, place]
    unlearned = np.count_nonzero(~np.isin(truth, learn.codes[:, place]))
    wrong = np.count_nonzero(truth != _most_frequent(constant_of, place))
    return 1 - unlearned / wrong if wrong else 1.0


def _is_quantity(learn: Coded, judged: Coded, place: int) -> bool:
    """Return whether a column is predicted as a number and not as a class."""
    return bool(
        learn.numeric[place] and len(np.unique(judged.codes[:, place])) > MOST_CLASSES
    )


def _most_frequent(coded: Coded, place: int) -> int:
    return int(np.bincount(coded.codes[:, place] + 1).argmax()) - 1


def _some(learn: Coded) -> Coded:
    """Return as many rows as a model learns from."""
    if len(learn) <= MOST_ROWS:
        return learn
    return learn.take(np.linspace(0, len(learn) - 1, MOST_ROWS).astype(np.int64))


def losses_of(
    learn: Coded, judged: Coded, place: int, *, constant_of: Coded
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each judged record's loss by a model and by a constant answer: wrong or not, or the absolute error of a number.

    Parameters
    ----------
    learn, judged : Coded
        Rows that the model learns from, and records that it is tried on.
    place : int
        The column that is predicted.
    constant_of : Coded
        Rows whose most frequent value, or median, is the constant answer.
    """
    learn = _some(learn)
    inputs, is_category = _inputs(learn, place)
    asked, _ = _inputs(judged, place)
    if _is_quantity(learn, judged, place):
        number = int(learn.numeric[:place].sum())
        truth = judged.ranks[:, number].astype(np.float64).clip(0, 1)
        known = learn.ranks[:, number] <= 1
        middle = float(np.median(constant_of.ranks[:, number].clip(0, 1)))
        constant = np.abs(truth - middle)
        if known.sum() < 2:
            return constant, constant
        model = HistGradientBoostingRegressor(
            loss="absolute_error", categorical_features=is_category, random_state=0
        )
        with one_thread():
            model.fit(inputs[known], learn.ranks[known, number])
            return np.abs(model.predict(asked) - truth), constant
    labels = learn.codes[:, place]
    truth = judged.codes[:, place]
    usual = _most_frequent(constant_of, place)
    constant = (truth != usual).astype(np.float64)
    known = labels != UNKNOWN
    present = np.unique(labels[known])
    if len(present) < 2:
        only = present[0] if len(present) else usual
        return (truth != only).astype(np.float64), constant
    model = HistGradientBoostingClassifier(
        categorical_features=is_category, random_state=0, early_stopping=False
    )
    with one_thread():
        model.fit(inputs[known], labels[known])
        return (model.predict(asked) != truth).astype(np.float64), constant


def _inputs(coded: Coded, place: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return all columns but one as inputs: ranks of numbers, and bins of categories."""
    columns, is_category = [], []
    number = 0
    for j, numeric in enumerate(coded.numeric):
        if numeric:
            values = coded.ranks[:, number].astype(np.float64)
            columns.append(np.where(values > 1, np.nan, values))
            number += 1
        else:
            columns.append(coded.bins[:, j].astype(np.float64))
        is_category.append(not numeric)
    kept = [j for j in range(len(columns)) if j != place]
    if not kept:
        return np.zeros((len(coded), 1)), np.zeros(1, dtype=bool)
    return np.column_stack([columns[j] for j in kept]), np.array(is_category)[kept]
