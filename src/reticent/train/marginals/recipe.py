"""The recipe of a marginal generator, as a trainer whose product is a synthetic table."""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from reticent.account import Relation, Target
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.run import Run, stream
from reticent.train.marginals.budget import Budget, Method
from reticent.train.marginals.domain import lists, looks
from reticent.train.marginals.fitted import FittedMarginals, fit_pairs
from reticent.train.marginals.histograms import noisy_histograms
from reticent.train.marginals.private_table import PrivateTable, size_class

__all__ = ["MarginalGenerator"]

# Pairs are chosen adaptively if the power of ten of the rows, over the noise multiplier, is larger; otherwise a tree is as good, and quicker. With delta 1e-5 that is from an epsilon of about 4 for up to 1,000
# rows, and from less than 0.5 beyond (docs/experiments/yardsticks.md; chosen on Framingham, Adult and Diabetes).
LARGE = 1_000
# Bytes for each record and column while a fit runs: four for its cell, two for its bin, and eight at a time for counting.
BYTES_PER_CELL = 4 + 2


@dataclass(frozen=True, kw_only=True)
class MarginalGenerator(PrivateTable):
    """Make a synthetic table from noisy counts of columns and of pairs of columns.

    Parameters
    ----------
    method : str
        ``"tree"``: every column depends on one other, for few rows or much noise; ``"adaptive"``: pairs are chosen where the current model is
        worst; ``"auto"``: by the power of ten of the number of rows, and by the noise.
    target : str, optional
        The column that models will predict: pairs with it count four times as much when pairs are chosen.
    noise_multiplier : float
        Scale of all noise; :meth:`keeping` finds it for a target.
    failure : float
        Probability that a category which a single person has is listed; it is part of the guarantee. Not used with a declared domain.
    domain : str, optional
        File that declares the values of the columns; by default they are learned with a part of the budget.
    rows : int, optional
        Rows to make; by default the noisy number of records.
    rows_per_person : int
        The most rows that one person has in the table; larger persons are refused.
    constraints : tuple of str
        What every row keeps, such as ``"systolic > diastolic"``, ``"0 <= age <= 120"`` or ``"total = rent + food"``; beside those that the domain declares. They are
        taken as publicly known, and keeping them costs no privacy.
    noise : str
        ``"secret"`` for a table that may be released; ``"seeded"`` for experiments, which carries no guarantee.

    Examples
    --------
    >>> from reticent.data import builtin_table
    >>> generator = MarginalGenerator(noise_multiplier=0.5, noise="seeded")
    >>> made = generator.train(builtin_table(), seed=0)
    >>> list(made.frame.columns) == list(builtin_table().features.columns)
    True
    """

    method: Literal["auto", "tree", "adaptive"] = "auto"

    def __post_init__(self) -> None:
        if self.method not in ("auto", "tree", "adaptive"):
            raise InvalidInput(
                f"the method {self.method!r} is not known; use auto, tree or adaptive."
            )
        super().__post_init__()

    def keeping(
        self, target: Target, table: Table, *, delta: float, relation: Relation
    ) -> Self:
        """Return the recipe with the least noise that meets a target, its method settled; see :meth:`PrivateTable.keeping`."""
        if self.method != "auto":
            return super().keeping(target, table, delta=delta, relation=relation)
        # The method depends on the noise, and the noise, a little, on the method: that of adaptive pairs decides.
        pairs, tree = (replace(self, method=method) for method in ("adaptive", "tree"))
        pairs = pairs.keeping(target, table, delta=delta, relation=relation)
        if self._takes_pairs(table, pairs.noise_multiplier):
            return pairs
        return tree.keeping(target, table, delta=delta, relation=relation)

    def _takes_pairs(self, table: Table, noise_multiplier: float) -> bool:
        return size_class(len(table)) > LARGE * noise_multiplier

    def settled(self, table: Table) -> "MarginalGenerator":
        """Return the same recipe with the method that it takes for a table, for other tables of any number of rows."""
        return replace(self, method=self.budget(table).method)

    def budget(self, table: Table) -> Budget:
        """Return the noise of every part for a table; of its records only the power of ten of their number is used."""
        method: Method = "tree"
        if self.method == "adaptive" or (
            self.method == "auto" and self._takes_pairs(table, self.noise_multiplier)
        ):
            method = "adaptive"
        return Budget(
            noise_multiplier=self.noise_multiplier,
            method=method,
            columns=len(table.schema.columns),
            looks=0 if self.domain is not None else looks(table),
            lists=0 if self.domain is not None else lists(table),
            failure=self.failure,
            rows_per_person=self.rows_per_person,
        )

    def fit(self, table: Table, *, run: Run) -> FittedMarginals:
        """Spend the whole budget on a table; return a model from which any number of rows may be drawn.

        Parameters
        ----------
        table : Table
            The records; only their features are used.
        run : Run
            Where noisy answers are kept, so that a fit that is interrupted goes on without drawing any of them again; its seed is that of samples of
            the model, and of the noise only if the recipe says so.

        Raises
        ------
        InvalidInput
            If there are too few records, the noise hides them, or a constraint cannot be kept.
        """
        self.must_fit(table)
        self.must_be_in_memory(table, memory=run.effort.memory)
        constraints = self.parsed_constraints(table)
        budget = self.budget(table)
        noise = self.noise_of(table, run)
        cells = self.cells_of(table, noise)
        columns = cells.columns
        codes = np.empty((len(table), len(columns)), dtype=np.int32, order="F")
        for j, column in enumerate(columns):
            codes[:, j] = column.code(table.features[column.name])
        single = noisy_histograms(
            codes,
            cells,
            budget.histogram_deviation,
            noise,
            lenient=self.lenient,
        )
        rng = stream(run.seed, "fit of marginals")
        places, model = fit_pairs(
            columns, codes, single, budget, (noise, rng), self.target
        )
        return FittedMarginals(
            columns=columns,
            single=single,
            places=places,
            model=model,
            constraints=constraints,
            rows=round(single.total) if self.rows is None else self.rows,
            target=self.target,
        )

    def mechanism_words(self, table: Table) -> str:
        """Return what is released and with which noise."""
        return _words(self.budget(table))

    def must_be_in_memory(self, table: Table, *, memory: float) -> None:
        """Refuse a table, or a number of rows, that does not fit; see :meth:`PrivateTable.must_be_in_memory`."""
        made = len(table) if self.rows is None else self.rows
        columns = len(table.schema.columns)
        # Of a synthetic row, bin, cell and value of each column are held at the same time.
        needed = columns * (BYTES_PER_CELL * len(table) + 3 * 8 * made) / 1e9
        if needed > memory:
            raise InvalidInput(
                f"making {made:,} rows takes about {needed:.1f} GB, more than the {memory:g} GB allowed; use more --memory, fewer --rows, or leave columns "
                "out with --drop."
            )


def _words(budget: Budget) -> str:
    words = f"Gaussian mechanism on {budget.columns} histograms (deviation {budget.histogram_deviation:.3g})"
    if budget.choices:
        words += (
            f", at most {budget.choices} pairs of columns chosen by the exponential mechanism (epsilon {budget.choice_epsilon:.3g} each) and measured "
            f"(deviation {budget.pair_deviation:.3g})"
        )
    if budget.looks:
        words += (
            f"; ranges of numbers learned (deviation {budget.learning_deviation:.3g})"
        )
    if budget.lists:
        words += "; categories listed where their count exceeds a threshold"
    if budget.rows_per_person > 1:
        words += f"; for people with up to {budget.rows_per_person} rows"
    return words
