"""The recipe of a marginal generator, as a trainer whose product is a synthetic table."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from reticent.account import (
    Guarantee,
    Relation,
    Target,
    Terms,
    calibrate,
    trade_off,
)
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Provenance, SyntheticTable, versions
from reticent.run import Content, Run, content_of, stream
from reticent.train._plain import PlainTrainer
from reticent.train.constraints import Constraints, parse_constraints
from reticent.train.marginals.budget import Budget, Method
from reticent.train.marginals.domain import (
    Cells,
    Look,
    declared_columns,
    declared_constraints,
    declared_ranges,
    learned_columns,
    lists,
    looks,
)
from reticent.train.marginals.fitted import FittedMarginals, fit_pairs, must_be_rows
from reticent.train.marginals.histograms import noisy_histograms
from reticent.train.marginals.noise import Journal, Noise

__all__ = ["MarginalGenerator", "size_class"]

# Above so many rows pairs are chosen adaptively, below a tree is better. A power of ten, because only the power of ten of the rows is public.
LARGE = 10_000
FEWEST_ROWS = 100  # below, no budget that protects anybody leaves anything
# Bytes for each record and column while a fit runs: four for its cell, two for its bin, and eight at a time for counting.
BYTES_PER_CELL = 4 + 2


def size_class(rows: int) -> int:
    """Return the next power of ten, which is all that is taken as public about the number of rows.

    Examples
    --------
    >>> size_class(2500), size_class(10_000), size_class(10_001)
    (10000, 10000, 100000)
    """
    return int(10 ** math.ceil(math.log10(max(rows, 1))))


@dataclass(frozen=True, kw_only=True)
class MarginalGenerator(PlainTrainer):
    """Make a synthetic table from noisy counts of columns and of pairs of columns.

    Parameters
    ----------
    method : str
        ``"tree"``: every column depends on one other, for up to 10,000 rows; ``"adaptive"``: pairs are chosen where the current model is
        worst; ``"auto"``: by the power of ten of the number of rows.
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
    target: str | None = None
    noise_multiplier: float = 1.0
    failure: float = 1e-8
    domain: str | None = None
    rows: int | None = None
    rows_per_person: int = 1
    constraints: tuple[str, ...] = ()
    noise: Literal["secret", "seeded"] = "secret"

    def __post_init__(self) -> None:
        if self.method not in ("auto", "tree", "adaptive"):
            raise InvalidInput(
                f"the method {self.method!r} is not known; use auto, tree or adaptive."
            )
        if self.noise not in ("secret", "seeded"):
            raise InvalidInput(
                f"the noise {self.noise!r} is not known; use secret for a table that may be released, or seeded."
            )
        if not (self.noise_multiplier > 0 and math.isfinite(self.noise_multiplier)):
            raise InvalidInput(
                f"noise_multiplier must be positive and finite, got {self.noise_multiplier}; without noise there is no guarantee."
            )
        if not 0 < self.failure < 1:
            raise InvalidInput(f"failure must lie inside (0, 1), got {self.failure}.")
        if self.rows is not None:
            must_be_rows(self.rows)
        if isinstance(self.constraints, str):
            raise InvalidInput(
                f"constraints must be a list of texts, got the text {self.constraints!r}; write it as ({self.constraints!r},)."
            )
        # A list is as good, and would make the recipe unhashable.
        object.__setattr__(self, "constraints", tuple(self.constraints))
        if self.rows_per_person < 1:
            raise InvalidInput(
                f"rows_per_person must be at least 1, got {self.rows_per_person}."
            )

    @property
    def recipe(self) -> str:  # type: ignore[override]
        """The call that makes this recipe again."""
        usual = type(self)()
        given = ", ".join(
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if value != getattr(usual, name)
        )
        return f"reticent.MarginalGenerator({given})"

    @property
    def repeatable(self) -> bool:
        """Whether the same table and seed give the same product again: not with secret noise."""
        return self.noise == "seeded"

    def content(self) -> Content:
        """Return all parameters, and what the declared domain says."""
        parts = [str(value) for pair in sorted(vars(self).items()) for value in pair]
        if self.domain is not None:
            parts.append(Path(self.domain).read_text(encoding="utf-8"))
        return content_of("marginal generator", *parts)

    def as_shadow(self) -> "MarginalGenerator":
        """Return the same recipe with seeded noise, for tables that are never released."""
        return replace(self, noise="seeded")

    def budget(self, table: Table) -> Budget:
        """Return the noise of every part for a table; of its records only the power of ten of their number is used."""
        method: Method = "tree"
        if self.method == "adaptive" or (
            self.method == "auto" and size_class(len(table)) > LARGE
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

    def keeping(
        self, target: Target, table: Table, *, delta: float, relation: Relation
    ) -> "MarginalGenerator":
        """Return the recipe with the least noise that meets a target.

        Parameters
        ----------
        target : Target
            What must hold for every person.
        table : Table
            The table, of which columns and the power of ten of the rows are used.
        delta : float
            A hundredth of it is the probability that a category of a single person is listed.
        relation : Relation
            When two tables are neighbours.
        """
        recipe = replace(self, failure=delta / 100)

        def mechanism(noise: float) -> object:
            return replace(recipe, noise_multiplier=noise).budget(table).mechanism(relation)  # fmt: skip

        try:
            noise = calibrate(target, mechanism)  # type: ignore[arg-type]
        except InvalidInput as error:
            raise InvalidInput(
                f"{target.words} leaves nothing of a table with {len(table.schema.columns)} columns but noise; ask for less protection, or leave columns "
                "out with --drop."
            ) from error
        return replace(recipe, noise_multiplier=noise)

    def guarantee_on(self, table: Table, terms: Terms) -> Guarantee:
        """Return what holds for every person of a table, in the given terms."""
        budget = self.budget(table)
        curve = trade_off(budget.mechanism(terms.relation))
        # Exact, because a wrong guess would put numbers between 0 and 1 into a column of answers; so it is said and not paid for.
        caveats: tuple[str, ...] = (
            "which columns hold only 0 and 1, whole numbers or dates was read off the records and is visible in the table: the guarantee takes it as "
            "publicly known",
        )
        if self.noise == "seeded":
            caveats += (
                "the noise came from a seed, so whoever knows the seed can subtract it",
            )
        public = [
            f"that the table has at most {size_class(len(table)):,} rows and more than a tenth of that",
            "names and kinds of the columns, and which hold only 0 and 1, whole numbers or dates",
            "the settings, as long as they were not chosen by looking at these records",
            "the versions of the libraries",
            "a keyed digest of the table, which says nothing without the owner's key",
        ]
        if self.domain is not None:
            public.append("the declared values of the columns")
        if self.rows is not None:
            public.append("the number of rows that were asked for")
        if self.constraints:
            public.append("the constraints that every row keeps")
        if self.rows_per_person > 1:
            public.append(
                f"that no person has more than {self.rows_per_person} rows, or that further rows were left out"
            )
        return Guarantee(
            mechanism=_words(budget),
            holds=self.noise == "secret",
            relation=terms.relation.value,
            epsilon=curve.epsilon(terms.delta),
            delta=terms.delta,
            noise_multiplier=self.noise_multiplier,
            sampling_rate=1.0,
            steps=1 + 2 * budget.choices + bool(budget.lists),
            advantage=curve.advantage,
            belief=curve.belief(terms.delta, prior=terms.prior),
            prior=terms.prior,
            tpr=curve.tpr(terms.fpr),
            fpr=terms.fpr,
            caveats=caveats,
            public=tuple(public),
        )

    def train(self, table: Table, *, seed: int) -> SyntheticTable:
        """Return a synthetic table with the columns of the features.

        Parameters
        ----------
        table : Table
            The records; only their features are used.
        seed : int
            Of the sample, and of the noise only if the recipe says so.

        Raises
        ------
        InvalidInput
            If there are too few records, or the noise hides them.
        """
        frame, warnings = self.fit(table, run=Run(seed=seed)).sample(seed=seed)
        return SyntheticTable(
            frame,
            provenance=Provenance(recipe=self.recipe, versions=versions()),
            warnings=warnings,
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
        self._must_fit(table)
        self._must_be_in_memory(table, run)
        constraints = self.parsed_constraints(table)
        budget = self.budget(table)
        noise = self._noise(table, budget, run)
        cells = self._cells(table, budget, noise)
        columns = cells.columns
        codes = np.empty((len(table), len(columns)), dtype=np.int32)
        for j, column in enumerate(columns):
            codes[:, j] = column.code(table.features[column.name])
        single = noisy_histograms(codes, cells, budget.histogram_deviation, noise)
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
        )

    def parsed_constraints(self, table: Table) -> Constraints:
        """Return what every row keeps, by the recipe and by the declared domain.

        Raises
        ------
        InvalidInput
            If a constraint is not about columns of the table, or no row could keep all of them.
        """
        declared: tuple[str, ...] = ()
        ranges = {}
        if self.domain is not None:
            declared = declared_constraints(self.domain)
            ranges = declared_ranges(self.domain)
        return parse_constraints(
            (*declared, *self.constraints), table.schema, ranges=ranges
        )

    def _noise(self, table: Table, budget: Budget, run: Run) -> Noise:
        source = Noise.secret() if self.noise == "secret" else Noise.seeded(run.seed)
        # What is drawn from the model later, and what is kept of it, does not change what is asked.
        asked = replace(self, rows=None, constraints=())
        return Journal(
            source.rng,
            source=source,
            run=run,
            depends=asked.content() + content_of(table.fingerprint, run.seed),
            steps=budget.looks + budget.columns + 2 * budget.choices,
        )

    def _must_be_in_memory(self, table: Table, run: Run) -> None:
        """Refuse a table that does not fit before the budget is spent."""
        made = len(table) if self.rows is None else self.rows
        columns = len(table.schema.columns)
        # Of a synthetic row, bin, cell and value of each column are held at the same time.
        needed = columns * (BYTES_PER_CELL * len(table) + 3 * 8 * made) / 1e9
        if needed > run.effort.memory:
            raise InvalidInput(
                f"making {made:,} rows takes about {needed:.1f} GB, more than the {run.effort.memory:g} GB allowed; use more --memory, fewer --rows, or leave columns "
                "out with --drop."
            )

    def _must_fit(self, table: Table) -> None:
        if len(table) < FEWEST_ROWS:
            raise InvalidInput(
                f"the table has fewer than {FEWEST_ROWS} rows, of which no synthetic table can be made that protects them; bring more."
            )
        if self.target is not None and self.target not in table.features.columns:
            raise InvalidInput(
                f"there is no column {self.target!r} to use as target; the columns are {', '.join(list(table.features.columns)[:10])}."
            )
        _, counts = np.unique(table.units, return_counts=True)
        if counts.max() > self.rows_per_person:
            raise InvalidInput(
                f"some people have more than {self.rows_per_person} rows, so that the noise would not protect them; say with --rows-per-person how many "
                "rows of each are used at most, which the noise then covers."
            )

    def _cells(self, table: Table, budget: Budget, noise: Noise) -> Cells:
        if self.domain is not None:
            return Cells(columns=declared_columns(self.domain, table))
        look = Look(
            # Without numbers nothing is learned with it.
            deviation=budget.learning_deviation if budget.looks else 1.0,
            of_categories=budget.histogram_deviation,
            failure=self.failure,
            rows_per_person=self.rows_per_person,
        )
        return learned_columns(table, look, noise)


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
