"""What recipes of synthetic tables with a guarantee have in common, whatever they fit between their noisy histograms and their rows."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol, Self

import numpy as np

from reticent.account import (
    Guarantee,
    Mechanism,
    Relation,
    Target,
    Terms,
    calibrate,
    trade_off,
)
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Provenance, SyntheticTable, versions
from reticent.run import Content, Run, content_of
from reticent.train._plain import PlainTrainer
from reticent.train.constraints import Constraints, parse_constraints
from reticent.train.marginals.domain import (
    Cells,
    Look,
    declared_columns,
    declared_constraints,
    declared_ranges,
    learned_columns,
)
from reticent.train.marginals.fitted import must_be_rows
from reticent.train.marginals.noise import Journal, Noise
from reticent.train.table_model import TableModel

__all__ = ["PrivateTable", "TableBudget", "size_class"]

FEWEST_ROWS = 100  # below, no budget that protects anybody leaves anything


def size_class(rows: int) -> int:
    """Return the next power of ten, which is all that is taken as public about the number of rows.

    Examples
    --------
    >>> size_class(2500), size_class(10_000), size_class(10_001)
    (10000, 10000, 100000)
    """
    return int(10 ** math.ceil(math.log10(max(rows, 1))))


class TableBudget(Protocol):
    """How a recipe divides its noise."""

    @property
    def looks(self) -> int:
        """Histograms by which cells of numbers are learned; 0 if they are declared."""
        ...

    @property
    def learning_deviation(self) -> float:
        """Standard deviation of the noise on counts from which cells are learned."""
        ...

    @property
    def histogram_deviation(self) -> float:
        """Standard deviation of the noise on the counts of single columns, of which categories are listed."""
        ...

    @property
    def sampling_rate(self) -> float:
        """Probability that a record takes part in a question."""
        ...

    @property
    def answers(self) -> int:
        """Most noisy answers that are kept on the way, for the progress."""
        ...

    @property
    def releases(self) -> int:
        """Noisy answers as the guarantee counts them."""
        ...

    def mechanism(self, relation: Relation) -> Mechanism:
        """Return all parts together, for one person."""
        ...


@dataclass(frozen=True, kw_only=True)
class PrivateTable(PlainTrainer):
    """A recipe of a synthetic table with a guarantee. Derive from it, and say how the budget is divided, in which words, and what is fitted.

    Parameters
    ----------
    target : str, optional
        The column that models will predict.
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
    lenient : bool
        Whether what the noise hides is guessed in place of being refused: for tables that attackers make from fewer people. Not with secret noise.
    """

    target: str | None = None
    noise_multiplier: float = 1.0
    failure: float = 1e-8
    domain: str | None = None
    rows: int | None = None
    rows_per_person: int = 1
    constraints: tuple[str, ...] = ()
    noise: Literal["secret", "seeded"] = "secret"
    lenient: bool = False

    def __post_init__(self) -> None:
        if self.noise not in ("secret", "seeded"):
            raise InvalidInput(
                f"the noise {self.noise!r} is not known; use secret for a table that may be released, or seeded."
            )
        if self.lenient and self.noise == "secret":
            raise InvalidInput(
                "a lenient recipe guesses what its noise hides, which nothing pays for; leave lenient out, or use seeded noise for a table that nobody releases."
            )
        if not (self.noise_multiplier > 0 and math.isfinite(self.noise_multiplier)):
            raise InvalidInput(
                f"noise_multiplier must be positive and finite, got {self.noise_multiplier}; without noise there is no guarantee."
            )
        if not 0 < self.failure < 1:
            raise InvalidInput(f"failure must lie inside (0, 1), got {self.failure}.")
        if self.rows is not None:
            must_be_rows(self.rows)
        if self.rows_per_person < 1:
            raise InvalidInput(
                f"rows_per_person must be at least 1, got {self.rows_per_person}."
            )
        # A list is as good, and would make the recipe unhashable.
        object.__setattr__(self, "constraints", _listed(self.constraints))

    @abstractmethod
    def budget(self, table: Table) -> TableBudget:
        """Return the noise of every part for a table; of its records only the power of ten of their number is used."""

    @abstractmethod
    def fit(self, table: Table, *, run: Run) -> TableModel:
        """Spend the whole budget on a table; return a model from which any number of rows may be drawn."""

    @abstractmethod
    def mechanism_words(self, table: Table) -> str:
        """Return what is released and with which noise, for the guarantee."""

    @abstractmethod
    def must_be_in_memory(self, table: Table, *, memory: float) -> None:
        """Refuse a table, or a number of rows, that does not fit into so many gigabytes, before any of the budget is spent.

        Raises
        ------
        InvalidInput
            If it does not.
        """

    def settled(self, table: Table) -> Self:
        """Return the same recipe with all that it takes from the size of a table written into it, for other tables of any number of rows."""
        return self

    @property
    def recipe(self) -> str:  # type: ignore[override]
        """The call that makes this recipe again."""
        usual = type(self)()
        given = ", ".join(
            f"{name}={value!r}"
            for name, value in sorted(vars(self).items())
            if value != getattr(usual, name)
        )
        return f"reticent.{type(self).__name__}({given})"

    @property
    def repeatable(self) -> bool:
        """Whether the same table and seed give the same product again: not with secret noise."""
        return self.noise == "seeded"

    def content(self) -> Content:
        """Return all parameters, and what the declared domain says."""
        parts = [str(value) for pair in sorted(vars(self).items()) for value in pair]
        if self.domain is not None:
            parts.append(Path(self.domain).read_text(encoding="utf-8"))
        return content_of(type(self).__name__, *parts)

    def as_shadow(self) -> Self:
        """Return the same recipe with seeded noise, for tables that are never released."""
        return replace(self, noise="seeded")

    def keeping(
        self, target: Target, table: Table, *, delta: float, relation: Relation
    ) -> Self:
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

        def mechanism(noise: float) -> Mechanism:
            return replace(recipe, noise_multiplier=noise).budget(table).mechanism(relation)  # fmt: skip

        try:
            noise = calibrate(target, mechanism)
        except InvalidInput as error:
            raise InvalidInput(
                f"the limit that was asked for ({target.words}) leaves nothing of a table with {len(table.schema.columns)} columns but noise; ask for less protection, or leave columns "
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
        return Guarantee(
            mechanism=self.mechanism_words(table),
            holds=self.noise == "secret",
            relation=terms.relation.value,
            epsilon=curve.epsilon(terms.delta),
            delta=terms.delta,
            noise_multiplier=self.noise_multiplier,
            sampling_rate=budget.sampling_rate,
            steps=budget.releases,
            advantage=curve.advantage,
            belief=curve.belief(terms.delta, prior=terms.prior),
            prior=terms.prior,
            tpr=curve.tpr(terms.fpr),
            fpr=terms.fpr,
            caveats=caveats,
            public=tuple(self._public(table)),
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
        model = self.fit(table, run=Run(seed=seed))
        frame, warnings = model.sample(seed=seed)
        return SyntheticTable(
            frame,
            provenance=Provenance(recipe=self.recipe, versions=versions()),
            warnings=warnings,
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

    def must_be_declared(self, table: Table) -> None:
        """Refuse a domain or constraints that cannot be read, or that are about other columns than those of a table.

        Raises
        ------
        InvalidInput
            If they are.
        """
        if self.domain is not None:
            declared_columns(self.domain, table)
        self.parsed_constraints(table)

    def must_fit(self, table: Table) -> None:
        """Refuse a table that the recipe cannot protect, or that lacks the target.

        Raises
        ------
        InvalidInput
            If it does.
        """
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

    def noise_of(self, table: Table, run: Run) -> Journal:
        """Return the noise on counts and choices, whose answers are kept so that none is drawn twice."""
        source = Noise.secret() if self.noise == "secret" else Noise.seeded(run.seed)
        # What is drawn from the model later, and what is kept of it, does not change what is asked.
        asked = replace(self, rows=None, constraints=())
        return Journal(
            source.rng,
            source=source,
            run=run,
            depends=asked.content() + content_of(table.fingerprint, run.seed),
            steps=self.budget(table).answers,
            repeats=self.noise == "seeded",
        )

    def cells_of(self, table: Table, noise: Noise) -> Cells:
        """Return the cells of every column, declared or learned with noise."""
        if self.domain is not None:
            return Cells(columns=declared_columns(self.domain, table))
        budget = self.budget(table)
        look = Look(
            # Without numbers nothing is learned with it.
            deviation=budget.learning_deviation if budget.looks else 1.0,
            of_categories=budget.histogram_deviation,
            failure=self.failure,
            rows_per_person=self.rows_per_person,
            lenient=self.lenient,
        )
        return learned_columns(table, look, noise)

    def _public(self, table: Table) -> list[str]:
        """Return what the guarantee does not cover."""
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
        return public


def _listed(given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise InvalidInput(
            f"constraints must be a list of texts, got the text {given!r}; write it as ({given!r},)."
        )
    return tuple(given)
