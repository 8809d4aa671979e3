"""Tables that a generator makes again of the same members, and what models learn from them: what is known of the recipe, beside this one table."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic import Tables
from reticent.audits._sides import Sides
from reticent.audits._table_statistics import loss_of_recipe, sampled_rows
from reticent.audits._table_transfer import Question
from reticent.audits._table_utility import losses_of
from reticent.data import Coded
from reticent.evidence import Columns, RecipeUse, mean_share_saved
from reticent.run import stream

__all__ = ["Learned", "learn_from", "use_of_recipe"]


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What models say of the non-members after they learned from one table.

    Parameters
    ----------
    scores : array of float, shape (judges, people, classes)
        Class probabilities; empty if nothing can be asked about the target.
    lost, constant : array of float, shape (non-members,)
        Loss of the model by which the utility is measured, and of a constant answer.
    rows : Columns or None
        A sample of the table, to be compared with people; None for the members themselves.
    """

    scores: NDArray[np.float32]
    lost: NDArray[np.float32]
    constant: NDArray[np.float32]
    rows: Columns | None


def learn_from(
    learn: Coded | None,
    tables: Tables,
    tags: NDArray[np.bool_],
    *,
    target: str,
    seed: int,
) -> Learned:
    """Return what models say of the non-members after they learned from some rows.

    Parameters
    ----------
    learn : Coded or None
        The rows; None for the members.
    tables : Tables
        The records.
    tags : array of bool
        Whether each record is a member.
    target : str
        The column that is predicted.
    seed : int
        Of the models.
    """
    members = tables.records.take(np.flatnonzero(tags))
    judged = tables.records.take(np.flatnonzero(~tags))
    rows = members if learn is None else learn
    question = Question.of(tables, tags, target=target)
    scores = None if question is None else question.scores(rows, seed=seed)
    lost, constant = losses_of(
        rows, judged, tables.names.index(target), constant_of=members
    )
    return Learned(
        scores=np.empty((0, 0, 0), np.float32)
        if scores is None
        else scores.astype(np.float32),
        lost=lost.astype(np.float32),
        constant=constant.astype(np.float32),
        rows=None if learn is None else sampled_rows(learn, seed=seed),
    )


def use_of_recipe(
    real: Learned,
    again: Sequence[Learned],
    tables: Tables,
    sides: Sides,
    *,
    target: str,
    level: float,
    seed: int,
) -> RecipeUse:
    """Return what tables of the recipe are like, and what models reach on average that learn from one, with intervals over people and tables.

    Parameters
    ----------
    real : Learned
        What they say after learning from the members.
    again : sequence of Learned
        The same after learning from each of the tables that were made again.
    tables, sides, target, seed
        As for :func:`learn_from`.
    level : float
        Confidence of each interval by itself.
    """
    units = sides.units[~sides.tags]
    question = Question.of(tables, sides.tags, target=target)
    can_rank = all(one.scores.size for one in (real, *again))
    return RecipeUse(
        tables=len(again),
        judges=()
        if question is None or not can_rank
        else question.compared(
            real.scores.astype(np.float64),
            [one.scores.astype(np.float64) for one in again],
            units,
            level=level,
            rng=stream(seed, "table/recipe"),
        ),
        saved=mean_share_saved(
            np.stack([one.lost for one in again]).astype(np.float64),
            real.constant.astype(np.float64),
            units=units,
            level=level,
        )
        if real.constant.any()
        else None,
        loss=loss_of_recipe(
            [one.rows for one in again if one.rows is not None],
            tables,
            sides,
            level=level,
            seed=seed,
        ),
    )
