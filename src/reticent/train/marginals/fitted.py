"""What a marginal generator has learned: noisy counts and a model of pairs, from which rows are drawn at no further cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.run import one_thread, stream
from reticent.train.constraints import Constraints
from reticent.train.marginals.adaptive import Spending, fit_adaptive
from reticent.train.marginals.budget import Budget, Method
from reticent.train.marginals.columns import Column
from reticent.train.marginals.histograms import Histograms, binned, number_of_bins
from reticent.train.marginals.noise import Noise
from reticent.train.marginals.pairs import Binned
from reticent.train.marginals.plausible import Measured
from reticent.train.marginals.sampling import decoded, rows_in_cells
from reticent.train.marginals.tree import fit_tree

__all__ = ["FittedMarginals", "fit_pairs", "kept_rows", "must_be_rows"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]
SCARCITY: dict[Method, float] = {"tree": 2.0, "adaptive": 4.0}
FEWEST_MADE, MOST_MADE = 20, 10**9  # rows of a synthetic table
# A constraint that fewer of the drawn rows keep is worth a word: either it is wrong, or the model knows little of it.
RARELY = 0.5
# An answer of the target that is heard in fewer records than so many standard deviations of the noise is worth a word. For a dozen columns, 8 deviations are 200 people
# at epsilon 1, from where on models learned about it; at 4, 100 people, it vanished from most tables (docs/how-to/synthetic-tables.md).
FAINT = 8.0
MOST_ANSWERS = 10  # a target with more values is a quantity, which has no rarest answer


class PairModel(Protocol):
    """A distribution of bins."""

    def sample(self, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return bins of new rows, shape (rows, d)."""
        ...


def must_be_rows(rows: int) -> None:
    """Refuse a number of rows that no table should have.

    Raises
    ------
    InvalidInput
        If there are too few or too many.
    """
    if not FEWEST_MADE <= rows <= MOST_MADE:
        raise InvalidInput(
            f"rows must be between {FEWEST_MADE} and {MOST_MADE:,}, got {rows}."
        )


def kept_rows(
    constraints: Constraints,
    draw: Callable[[int], pd.DataFrame],
    rows: int,
    rng: np.random.Generator,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return rows that keep all constraints, and a word if few of those that were drawn did.

    Parameters
    ----------
    constraints : Constraints
        What every row keeps.
    draw : callable
        Returns so many new rows.
    rows : int
        How many are wanted.
    rng : numpy.random.Generator
        Of what is moved.
    """
    if not constraints:
        return draw(rows), ()
    kept = constraints.kept(draw, rows, rng=rng)
    if kept.share >= RARELY:
        return kept.frame, ()
    moved = f", and {kept.moved:,} rows had to be moved" if kept.moved else ""
    return kept.frame, (
        f"of the rows that were drawn {100 * kept.share:.0f} % keep all constraints{moved}; either a constraint does not hold for the records, or "
        "the noise hides that it does.",
    )


@dataclass(frozen=True, kw_only=True)
class FittedMarginals:
    """A model of a table, all of which has been paid for: any number of rows may be drawn from it under one guarantee.

    Parameters
    ----------
    columns : tuple of Column
        The cells of every column.
    single : Histograms
        Noisy counts of the cells.
    places : tuple of array
        The bin of each cell.
    model : PairModel
        The distribution of bins.
    constraints : Constraints
        What every row keeps.
    rows : int
        Rows to draw if nobody says how many: the noisy number of records, or as many as were asked for.
    target : str, optional
        The column that models will predict.
    """

    columns: tuple[Column, ...]
    single: Histograms
    places: tuple[Places, ...]
    model: PairModel
    constraints: Constraints
    rows: int
    target: str | None = None

    @property
    def critic(self) -> None:
        """None: it was not trained against one."""
        return None

    def sample(
        self, rows: int | None = None, *, seed: int = 0
    ) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Return new rows, and what users should know about them.

        Parameters
        ----------
        rows : int, optional
            How many; by default about as many as there are records.
        seed : int
            Of the sample, which protects nobody: the guarantee rests on the noise of the fit.

        Raises
        ------
        InvalidInput
            If there are too few or too many rows.
        """
        number = self.rows if rows is None else rows
        must_be_rows(number)
        rng = stream(seed, "sample of marginals")
        warnings = (
            *_pooled(self.columns, self.single),
            *_faint(self.columns, self.single, self.target),
        )
        frame, more = kept_rows(
            self.constraints, lambda n: self._drawn(n, rng), number, rng
        )
        return frame, (*warnings, *more)

    def _drawn(self, rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Return rows: bins from the model of pairs, cells inside bins from the histograms, values inside cells at random."""
        in_bins = self.model.sample(rows, rng)
        cells = rows_in_cells(in_bins, self.places, self.single.counts, rng)
        return pd.DataFrame(decoded(cells, self.columns, rng))


def fit_pairs(
    columns: Sequence[Column],
    codes: NDArray[np.int32],
    single: Histograms,
    budget: Budget,
    randomness: tuple[Noise, np.random.Generator],
    target: str | None,
) -> tuple[tuple[Places, ...], PairModel]:
    """Cut bins by the noisy histograms, and fit a model of pairs; return the bin of each cell, and the model.

    Parameters
    ----------
    columns : sequence of Column
        The cells of every column.
    codes : array of int, shape (n, d)
        Cell of each record and column.
    single : Histograms
        Noisy counts of the cells.
    budget : Budget
        The noise of every part.
    randomness : tuple
        The noise, and the stream of samples of the model, which protects nobody.
    target : str or None
        The column whose pairs matter most.
    """
    noise, rng = randomness
    deviation = budget.pair_deviation if budget.choices else 1.0
    scarcity = SCARCITY[budget.method]
    bins = number_of_bins(single.total, deviation, scarcity)
    places = tuple(
        binned(column, counts, single.deviation, bins, fewest=scarcity * deviation)
        for column, counts in zip(columns, single.counts, strict=True)
    )
    margins = tuple(
        np.bincount(where, weights=counts).astype(np.float64)
        for where, counts in zip(places, single.counts, strict=True)
    )
    names = [column.name for column in columns]
    data = Binned(
        bins=_in_bins(codes, places),
        sizes=tuple(len(margin) for margin in margins),
        target=None if target is None else names.index(target),
    )
    if budget.method == "tree" or not budget.choices:
        epsilon = budget.choice_epsilon if budget.choices else 1.0
        return places, fit_tree(
            data, margins, noise, epsilon=epsilon, deviation=deviation
        )
    spending = Spending(
        choices=budget.choices,
        epsilon=budget.choice_epsilon,
        mu_squared=budget.pairs_mu_squared,
    )
    known = tuple(
        _margin(j, margins[j], where, single.deviation)
        for j, where in enumerate(places)
    )
    # Its products of vectors are too short for threads, which would wait for each other on a second core.
    with one_thread("blas"):
        model = fit_adaptive(data, known, noise, spending, total=single.total, rng=rng)
    return places, model


def _in_bins(codes: NDArray[np.int32], places: tuple[Places, ...]) -> NDArray[np.int16]:
    """Return the bin of each record and column, in two bytes: there are at most some dozens."""
    bins = np.empty(codes.shape, dtype=np.int16, order="F")  # counted by columns
    for j, where in enumerate(places):
        bins[:, j] = where[codes[:, j]]
    return bins


def _margin(column: int, counts: Array, places: Places, deviation: float) -> Measured:
    """Return the counts of a column's bins, with a variance for each cell that they are made of."""
    cells = np.bincount(places, minlength=len(counts))
    return Measured((column,), counts, deviation**2 * np.maximum(cells, 1))


def _pooled(columns: tuple[Column, ...], single: Histograms) -> tuple[str, ...]:
    """Say in which columns much was not heard; from noisy counts alone."""
    pooled = [
        column.name
        for column, counts in zip(columns, single.counts, strict=True)
        if not column.ordered and counts[-2] > single.total / 2
    ]
    if not pooled:
        return ()
    return (
        f"more than half of the values of {', '.join(map(repr, pooled[:5]))} are too rare to be listed and are written as (other); leave such columns out, "
        "or declare their values.",
    )


def _faint(
    columns: tuple[Column, ...], single: Histograms, target: str | None
) -> tuple[str, ...]:
    """Say that an answer of the target is hardly heard through the noise, or only one is; from noisy counts alone."""
    for column, counts in zip(columns, single.raw, strict=True):
        answers = np.delete(counts, column.doubtful)
        if column.name != target or len(answers) > MOST_ANSWERS:
            continue
        if len(answers) < 2:
            return (
                f"the noise hides all answers of {target!r} but one, so that no model can learn from this table what it depends on; ask for a larger epsilon, or make it "
                "of more records.",
            )
        rarest = float(answers.min()) / single.deviation
        if rarest < FAINT:
            return (
                f"the rarest answer of {target!r} is heard in about {max(0.0, answers.min()):,.0f} records, {max(0.0, rarest):.1f} times the noise on that count. Models learn little "
                f"about an answer below {FAINT:.0f} times, and below {FAINT / 2:.0f} it may vanish from the table; ask for a larger epsilon, or leave columns out.",
            )
    return ()
