"""Audit a synthetic table that was just made, by people whom its generator never saw."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import (
    SMALLEST_PART,
    Finding,
    Schema,
    Severity,
    Table,
    number_of_people,
    table_from_frame,
)
from reticent.errors import InvalidInput
from reticent.pipeline._api import _tables_plan
from reticent.pipeline._audit import run_audit
from reticent.pipeline._bind import bound_to_product
from reticent.pipeline._coins import HeldOut
from reticent.pipeline._tables import AUXILIARY, DEFENDER, RESERVED, GivenTables
from reticent.policy import Policy, read_policy
from reticent.product import ProductFiles, SyntheticTable
from reticent.report import Dossier
from reticent.run import Run
from reticent.train import PrivateTable

__all__ = ["CHOOSING_SPENDS", "SHADOWS", "HeldOutAudit", "RealTable", "divided"]

# Half of them are judged and half tell what is common, so that a tenth of the people is on either side; more would cost the table more than the audit gains.
USUAL_SHARE = 0.2
# Tables that attackers make with the recipe. As many as an audit of a table asks for at least: whoever wants more runs that, with --pool.
SHADOWS = 8
CHOOSING_SPENDS = (
    "The audit counts on real records without noise, and the guarantee covers the synthetic table alone. Whoever makes several tables and chooses one by such "
    "measures, or passes the report on, spends privacy that the guarantee does not count."
)


@dataclass(frozen=True, kw_only=True)
class RealTable:
    """The records that a synthetic table is made from, as a caller has them.

    Parameters
    ----------
    frame : pandas.DataFrame
        The records, in the types of their columns.
    unit, part : str or None
        Columns with the person a row belongs to, and with defender, reserved and auxiliary.
    schema : Schema or None
        What the columns hold.
    drop : tuple of str
        Columns that are left out.
    name : str
        What errors call it.
    """

    frame: pd.DataFrame
    unit: str | None = None
    part: str | None = None
    schema: Schema | None = None
    drop: tuple[str, ...] = ()
    name: str = "the real table"

    @cached_property
    def table(self) -> Table:
        """The records with all columns that are imitated as features."""
        return table_from_frame(
            self.frame,
            target=None,
            unit=self.unit,
            part=self.part,
            schema=self.schema,
            name=self.name,
            drop=self.drop,
        )


@dataclass(frozen=True, kw_only=True)
class HeldOutAudit:
    """How a table that was just made is audited.

    Parameters
    ----------
    share : float
        Share of the people who are held out, in (0, 1), if no part column says who is.
    policy : Policy
        The rules of release.
    report : Path or None
        Folder for dossier and report.
    subject : mapping of str to str
        Names for the report.
    repeat : str
        How to do it again.
    table_digest : str
        Keyed digest of the real table's file; by default one of its content.
    """

    share: float = USUAL_SHARE
    policy: Policy = field(default_factory=lambda: read_policy("default"))
    report: Path | None = None
    subject: Mapping[str, str] = field(default_factory=dict)
    repeat: str = ""
    table_digest: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidInput(
                f"the share of people who are held out must lie between 0 and 1, got {self.share:g}; use about {USUAL_SHARE:g}, or --no-audit to hold out nobody."
            )

    def judge(
        self,
        made: SyntheticTable,
        real: RealTable,
        members: NDArray[np.bool_],
        *,
        recipe: PrivateTable,
        file: Path | None,
        run: Run,
    ) -> Dossier:
        """Return what an audit finds about a table, and its verdict.

        Parameters
        ----------
        made : SyntheticTable
            The table, as it would be released.
        real : RealTable
            The records.
        members : array of bool
            Whether each of them was used.
        recipe : PrivateTable
            What made it, with which attackers make tables of their own.
        file : Path or None
            Where the synthetic table was written.
        run : Run
            Seed, store, effort.
        """
        rows = real.table.ids
        divided_by_column = real.part is not None
        given = GivenTables(
            synthetic=made,
            real=real.frame if divided_by_column else real.frame.iloc[rows[members]],
            holdout=None if divided_by_column else real.frame.iloc[rows[~members]],
            target=recipe.target,
            unit=real.unit,
            part=real.part,
            schema=real.schema,
            drop=real.drop,
            made_by=recipe,
        )
        table, plan = _tables_plan(
            given,
            generator=None,
            policy=self.policy,
            seed=run.seed,
            own_attacks=(),
            own_measures=(),
            own_sections=(),
            claimed_epsilon=None,
            pool=SHADOWS,
            watch=None,
            by="",
        )
        spends = Finding(
            name="choosing_spends", severity=Severity.NOTE, text=CHOOSING_SPENDS
        )
        table = replace(table, findings=(*table.findings, spends))
        plan = replace(
            plan,
            repeat=self.repeat or plan.repeat,
            subject=self.subject or plan.subject,
            table_digest=self.table_digest,
        )
        dossier = run_audit(table, plan, run=run).dossier
        if file is not None:
            dossier = bound_to_product(dossier, ProductFiles.of(file))
        if self.report is not None:
            dossier.save(self.report)
        return dossier


def divided(
    real: RealTable, audit: HeldOutAudit | None, *, seed: int
) -> NDArray[np.bool_]:
    """Return which records a generator may use.

    By a part column those of the defender; else, if there is to be an audit, all but those of people who are held out by a coin each. The
    coins are independent and thrown by the owner's key, so that nobody else knows them. Of two tables that differ by one person, each other person's coin can then be
    thrown once for both: the records that are used differ by that person at most, and whatever is guaranteed for neighbours holds for everybody in the
    table. A split into parts of a fixed size would not do, because one more person could change who else is used.

    Parameters
    ----------
    real : RealTable
        The records.
    audit : HeldOutAudit or None
        The audit that is planned.
    seed : int
        Other coins for another seed.

    Raises
    ------
    InvalidInput
        If too few people would be left to audit with.
    """
    table = real.table
    if table.parts is not None:
        used = table.parts == DEFENDER
        if not used.any():
            raise InvalidInput(
                f"the part column {real.part!r} of {real.name} calls nobody {DEFENDER!r}, so there is no record to make a synthetic table from; write {DEFENDER}, "
                f"{RESERVED} or {AUXILIARY} into it, or leave out --part."
            )
        others = {p: _people(table, table.parts == p) for p in (RESERVED, AUXILIARY)}
        too_few = others[RESERVED] < SMALLEST_PART * (1 if others[AUXILIARY] else 2)
    else:
        used = np.ones(len(table), dtype=np.bool_)
        if audit is None:
            return used
        used = HeldOut.by_seed(audit.share, seed=seed).members(table)
        too_few = _people(table, ~used) < 2 * SMALLEST_PART
    if audit is not None and too_few:
        raise InvalidInput(
            f"fewer than {2 * SMALLEST_PART} people would be held out, which is too few to audit the synthetic table with; bring more records, hold out a larger share with "
            "--held-out, or make the table without a verdict by --no-audit."
        )
    return np.asarray(used, dtype=np.bool_)


def _people(table: Table, rows: NDArray[np.bool_]) -> int:
    return number_of_people(table.units[rows])
