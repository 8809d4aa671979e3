"""The audit of a synthetic table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.account import Relation
from reticent.attack.synthetic import (
    COMPARISONS,
    CriticScore,
    LearnedTable,
    ShadowTable,
    SyntheticChallenge,
    Tables,
)
from reticent.audits._kind import Answers, Kind, View, Views
from reticent.audits._measures import TABLE_MEASURES
from reticent.audits._sides import Sides
from reticent.audits._table_again import Learned, learn_from, use_of_recipe
from reticent.audits._table_contents import contents_of_table
from reticent.audits._table_evidence import evidence_of_table
from reticent.audits._table_neighbours import (
    NeighbouringTables,
    ordinary_neighbours,
    worst_neighbours,
)
from reticent.audits._table_remedies import remedies_of_table
from reticent.audits._table_utility import ChosenTarget, chosen_target, use_of
from reticent.data import Coded, Coder, Split, Table
from reticent.errors import InvalidInput
from reticent.evidence import (
    Estimate,
    Evidence,
    FileEvidence,
    Joint,
    RecipeUse,
    SyntheticEvidence,
    Utility,
)
from reticent.pool import TablePool
from reticent.product import OpenedFile, SyntheticTable, Trainer
from reticent.report import TABLE_SECTIONS

__all__ = ["SYNTHETIC_TABLE", "SyntheticTableKind"]

COLUMNS = tuple(name for comparison in COMPARISONS for name in comparison.columns)
# Of the members, every tenth is copied into the control: as many as an AUC hardly shows, and as nobody may overlook.
COPIED = 10


@dataclass(frozen=True, kw_only=True)
class _People:
    """The people of one audit, beside which synthetic tables are laid."""

    coder: Coder
    tables: Tables
    units: NDArray[np.int64]

    @classmethod
    def of(cls, split: Split) -> "_People":
        if split.auxiliary is None:
            raise InvalidInput(
                "there is no auxiliary table, without which nobody knows what is common in the population; pass one with --auxiliary, or let half of "
                "the holdout stand for it."
            )
        both = split.defender.join(split.reserved)
        references = pd.concat(
            [both.features, split.auxiliary.features], ignore_index=True
        )
        coder = Coder(references, both.schema)
        auxiliary = coder.code(split.auxiliary.features)
        tables = Tables(
            records=coder.code(both.features),
            # Until a synthetic table is laid beside the people, the auxiliary one stands in its place.
            synthetic=auxiliary,
            auxiliary=auxiliary,
            names=coder.names,
        )
        return cls(coder=coder, tables=tables, units=both.units)


class SyntheticTableKind(Kind):
    """Tables of made-up rows that stand for those of people.

    What a table "answers" on a record is how its rows compare with it: one number per comparison of the battery. So a pool of shadow generators is
    an ordinary pool, and the flow is that of models.

    Parameters
    ----------
    target : str or None
        The column that a user of the table would predict; None to take the one that other people's records predict best.
    """

    name = "synthetic_table"
    noun = "table"
    attacks = (*COMPARISONS, LearnedTable(), ShadowTable(), CriticScore())
    quick_attacks = (ShadowTable(),)
    # Its score is a sign that was learned by least squares, so that 0 is as likely a member as not.
    ratio_attack = "shadow_table"
    posterior_attacks = ()
    measures = TABLE_MEASURES
    sections = TABLE_SECTIONS
    has_file = False
    plays_insider = False
    has_steps = False
    can_run_again = True
    memorising = (
        "A table with the rows of every tenth member among those of other people"
    )
    # Copies of a tenth leave a privacy score of .9 to everybody together, so that to be caught is to be told from chance.
    caught_below = 1.0

    def __init__(self, target: str | None = None) -> None:
        self.target = target
        self._people: _People | None = None
        self._best: tuple[Coded, ChosenTarget] | None = None

    def beside(self, split: Split) -> "SyntheticTableKind":
        """Return the same kind with the people of an audit, by whom records and rows are coded."""
        bound = SyntheticTableKind(self.target)
        bound._people = _People.of(split)
        return bound

    @property
    def people(self) -> _People:
        """The people of the audit."""
        assert self._people is not None, "a case lays the kind beside its people"
        return self._people

    def judged_column(self, challenge: SyntheticChallenge) -> str:
        """Return the column that models predict: the target, or the one that one half of the auxiliary people predicts best for the other half."""
        return self._judged_column(challenge.need_tables("the audit"))

    def _judged_column(self, tables: Tables) -> str:
        if self.target is not None:
            return self.target
        return tables.names[self._chosen(tables).place]

    def _chosen(self, tables: Tables) -> ChosenTarget:
        # Found out once for an audit: a model is trained for every column.
        if self._best is None or self._best[0] is not tables.auxiliary:
            self._best = tables.auxiliary, chosen_target(tables.auxiliary)
        return self._best[1]

    def _why_chosen(self, tables: Tables) -> str:
        """Return how the column that models predict was chosen; nothing if the user named it."""
        if self.target is not None:
            return ""
        why = ", which other people's records predict best"
        untried = self._chosen(tables).untried
        if untried:
            columns = "column" if untried == 1 else "columns"
            why += f" ({untried} {columns} of many values not tried)"
        return why

    def ask(self, product: Any, table: Table, *, looks_inside: bool = True) -> Answers:
        """Return the comparisons of each record with the rows of a synthetic table."""
        released = self.people.coder.code(product.frame)
        tables = self._beside(table).released(released)
        return Answers(
            values=_compared(tables),
            outputs=product.outputs(table.features),
            warnings=product.warnings,
            released=released,
            critic=product.criticised(table.features),
        )

    def can_learn_from(self, table: Table) -> bool:
        """Return whether a generator can be trained on a table: it needs nothing but rows."""
        return True

    def unrelated(self, split: Split, *, rng: np.random.Generator) -> SyntheticTable:
        """Return a table of fresh people: the records of half of the auxiliary ones."""
        assert split.auxiliary is not None, "there are people to compare with"
        rows = rng.permutation(len(split.auxiliary))[
            : max(20, len(split.auxiliary) // 2)
        ]
        return SyntheticTable(split.auxiliary.features.iloc[np.sort(rows)])

    def challenge(
        self, answers: Answers, table: Table, features: NDArray[np.float64] | None
    ) -> SyntheticChallenge:
        """Return the comparisons, and the tables that they compare."""
        assert answers.released is not None, "it is a table that was asked"
        return SyntheticChallenge(
            comparisons=answers.values,
            columns=COLUMNS,
            tables=self._beside(table).released(answers.released),
            critic=answers.critic,
        )

    def memorised(
        self, challenge: SyntheticChallenge, known: NDArray[np.bool_]
    ) -> SyntheticChallenge:
        """Return the challenge of a table in which every tenth member is copied, among rows of other people."""
        tables = challenge.need_tables("the audit")
        units = self.people.units[known]
        chosen = np.isin(units, np.unique(units)[::COPIED])
        copies = tables.records.take(np.flatnonzero(known)[chosen])
        others = np.arange(len(tables.auxiliary))[::2]
        mixed = copies.join(tables.auxiliary.take(others))
        copied = tables.released(mixed)
        return replace(
            challenge,
            comparisons=_compared(copied),
            tables=copied,
            # A critic that memorised as well.
            critic=None if challenge.critic is None else known.astype(np.float64),
        )

    def neighbours(
        self, split: Split, relation: Relation
    ) -> Sequence[tuple[NeighbouringTables, ...]]:
        """Return tables that differ in one person: of people who are all alike, or else of the members."""
        others = [t for t in (split.reserved, split.auxiliary) if t is not None]
        return (
            worst_neighbours(split.defender, others, relation),
            ordinary_neighbours(split.defender, others, relation),
        )

    def train_many(
        self,
        trainer: Trainer,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        memory: float,
    ) -> NDArray[Any]:
        """Return how all records compare with the table that a generator makes of each part of them, shape (M, n, k)."""
        made = []
        for mask, seed in zip(masks, seeds, strict=True):
            product = trainer.train(table.take(np.flatnonzero(mask)), seed=int(seed))
            released = self.people.coder.code(product.frame)
            compared = _compared(self._beside(table).released(released))
            made.append(compared.astype(np.float32))
        return np.stack(made)

    def pool(
        self, masks: NDArray[np.bool_], answers: NDArray[np.float32], table: Table
    ) -> TablePool:
        """Return how the records compare with many tables of the same generator."""
        return TablePool(masks=masks, comparisons=answers)

    def model_challenge(self, pool: TablePool, model: int) -> SyntheticChallenge:
        """Return the comparisons with one table of the pool; its rows are not kept."""
        return SyntheticChallenge(
            comparisons=pool.comparisons[model].astype(np.float64),
            columns=COLUMNS,
            tables=None,
        )

    def utility(
        self,
        challenge: SyntheticChallenge,
        sides: Sides,
        *,
        members: Table | None,
        joint: Joint,
    ) -> Utility:
        """Return how many errors of a constant answer a model saves on non-members that learned from the synthetic table."""
        tables = challenge.need_tables("the audit")
        use = use_of(
            tables,
            sides.tags,
            sides.units,
            target=self.judged_column(challenge),
            level=joint.each,
        )
        nothing = Estimate(
            value=0.0, low=0.0, high=1.0, level=joint.level, method="nothing to predict"
        )
        score = None if use.synthetic is None else joint.state(use.synthetic)
        return Utility(
            score=score or nothing,
            gain=score,
            definition=f"the share of the errors of a constant answer that a model saves on people whom nobody used, if it learned from the synthetic "
            f"table to tell '{use.column}' from the other columns{self._why_chosen(tables)}; 1 is never wrong. The interval is over people and speaks of this table, not of its recipe",
            baseline=0.0,
            baseline_words="a constant answer (the most frequent one of the real table, or its median)",
            beside={}
            if use.real is None
            else {
                "the share that the same model saves if it learned from the real table": use.real
            },
        )

    def further(
        self,
        challenge: SyntheticChallenge,
        sides: Sides,
        scores: NDArray[np.float64],
        *,
        joint: Joint,
        choices: int,
        smallest: int,
        seed: int,
    ) -> SyntheticEvidence | None:
        """Return what each column tells, and how the most isolated people fare."""
        return evidence_of_table(
            challenge,
            sides,
            scores,
            target=self.judged_column(challenge),
            joint=joint,
            choices=choices,
            smallest=smallest,
            seed=seed,
        )

    def settled(self) -> "SyntheticTableKind":
        """Return the same kind with the column that models predict chosen, so that no job chooses it again."""
        chosen = SyntheticTableKind(self._judged_column(self.people.tables))
        chosen._people = self._people
        return chosen

    def learned_again(
        self, trainer: Trainer | None, split: Split, *, seed: int
    ) -> Learned:
        """Return what models say of the non-members after they learned from a table that a generator makes of the members, or from these."""
        rows = None
        if trainer is not None:
            made_again = trainer.train(split.defender, seed=seed)
            rows = self.people.coder.code(made_again.frame)
        tables = self.people.tables
        tags = np.arange(len(tables.records)) < len(split.defender)
        column = self._judged_column(tables)
        return learn_from(rows, tables, tags, target=column, seed=seed)

    def use_of_recipe(
        self, learned: Sequence[Learned], sides: Sides, *, level: float, seed: int
    ) -> RecipeUse:
        """Return what a table of the recipe is good for on average, with intervals over people and tables."""
        tables = self.people.tables
        return use_of_recipe(
            learned[0],
            learned[1:],
            tables,
            sides,
            target=self._judged_column(tables),
            level=level,
            seed=seed,
        )

    def theorems(
        self, challenge: SyntheticChallenge, sides: Sides, *, pool: Any
    ) -> Mapping[str, float]:
        """Return nothing: a table has no loss."""
        return {}

    def views(self, challenge: SyntheticChallenge, sides: Sides) -> Views:
        """Return the distance to the nearest row by ranks, and how frequent the exact values are."""
        return Views(
            density=tuple(
                View(
                    feature=words,
                    stream=f"worst/{name}",
                    values=sides.by_unit(challenge.column(name)),
                )
                for words, name in (
                    ("distance to the nearest row", "rank_distance"),
                    ("frequency of the exact values", "exact_values"),
                )
            )
        )

    def contents(
        self,
        challenge: SyntheticChallenge,
        sides: Sides,
        *,
        smallest_group: int,
        beside: OpenedFile | None = None,
        seed: int = 0,
    ) -> FileEvidence | None:
        """Return how many people stand in the table by their row, or by a value that few have."""
        return contents_of_table(
            challenge.need_tables("the audit"),
            sides.tags,
            sides.units,
            smallest_group=smallest_group,
            beside=beside,
            seed=seed,
        )

    def remedies(self, evidence: Evidence) -> tuple[str, ...]:
        """Return what could be done about what was found, by column."""
        return remedies_of_table(evidence)

    def _beside(self, table: Table) -> Tables:
        """Return the tables with these records; what is known about all records of the audit is not computed again."""
        people = self.people
        if len(table) == len(people.tables.records):
            return people.tables
        return replace(people.tables, records=people.coder.code(table.features))


def _compared(tables: Tables) -> NDArray[np.float64]:
    return np.hstack([comparison.compare(tables) for comparison in COMPARISONS])


SYNTHETIC_TABLE = SyntheticTableKind()
