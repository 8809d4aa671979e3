"""A real table, a synthetic one, and people whom the generator never saw: as callers have them, made ready for an audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import (
    MISSING,
    SMALLEST_PART,
    Finding,
    Schema,
    Severity,
    Table,
    as_frame,
    in_columns_of,
    read_frame,
    table_from_frame,
)
from reticent.errors import InvalidInput, InvalidTable
from reticent.product import SyntheticTable, Trainer, load_synthetic
from reticent.run import Content, named_by_user, stream
from reticent.train import (
    PrivateTable,
    ReleasedCritic,
    generator_of,
    load_critic,
    parse_claimed_generator,
    parse_generator,
)

__all__ = [
    "NO_HOLDOUT",
    "GivenTables",
    "TablesAudit",
    "critic_of",
    "frame_of",
    "synthetic_of",
]

NO_HOLDOUT = (
    "INCONCLUSIVE: there is nobody to compare with. Rows and values of the synthetic table that resemble those of people may have been copied from them, or "
    "be common in the population; only people from the same source whom the generator never saw can tell the two apart. Nothing can be said about "
    "who is exposed, nor how useful the table is for others. Keep some people back before a generator is trained (about half of them) and name them "
    "with --holdout, or mark them as reserved in a column and name it with --part."
)
MOST_NAMED = 8  # things besides the cells; more would hide the rest
PART = "\0part"  # a column that no file can have
DEFENDER, RESERVED, AUXILIARY = "defender", "reserved", "auxiliary"
# Records that recipes of reticent's own need; with fewer in a part, those of the control or of the pool could not be made.
FEWEST_TO_GENERATE = 100


def synthetic_of(thing: Any, *, critic: Any = None) -> SyntheticTable:
    """Return a synthetic table, given itself, a frame of any library, or its file, with the critic of its generator.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    if thing is None:
        raise InvalidInput(
            "there is a real table but no synthetic one, so there is nothing to audit; pass it as synthetic=."
        )
    if critic is not None:
        return replace(synthetic_of(thing), critic=critic_of(critic))
    if isinstance(thing, SyntheticTable):
        return thing
    if isinstance(thing, str | Path):
        return load_synthetic(thing)
    return SyntheticTable(as_frame(thing, name="synthetic").rename(columns=str))


def critic_of(critic: Any) -> Any:
    """Return a critic, given itself, the file that it was saved in, or its name as ``module:function``, which is imported.

    Raises
    ------
    InvalidInput
        If it cannot be read or called.
    """
    if isinstance(critic, Path) or (isinstance(critic, str) and _is_file(critic)):
        return load_critic(critic)
    if isinstance(critic, str):
        return named_by_user(critic, role="critic", what="function")
    if not callable(critic):
        raise InvalidInput(
            f"the critic is a {type(critic).__name__}, which cannot be asked; pass a function from a data frame to one number per record."
        )
    return critic


def _is_file(critic: str) -> bool:
    """Return whether a text names a file and no function: there is such a file, or there is no colon in it."""
    return ":" not in critic or Path(critic).is_file()


def frame_of(thing: Any) -> Any:
    """Return a frame, given itself or its file."""
    if isinstance(thing, str | Path):
        return read_frame(Path(thing), missing=MISSING)[0]
    return thing


@dataclass(frozen=True, kw_only=True)
class TablesAudit:
    """What an audit of a synthetic table needs.

    Parameters
    ----------
    table : Table
        Members, non-members and auxiliary people with a part each, and findings about how the tables differ.
    synthetic : SyntheticTable
        The table that would be released, in the columns of the real one.
    made_by : PrivateTable or None
        The recipe, if the caller has just made the table with it.
    """

    table: Table
    synthetic: SyntheticTable
    made_by: PrivateTable | None = None

    def content(self) -> Content:
        """Return what all findings about the product depend on: the rows, and the critic if it was saved to a file."""
        critic = self.synthetic.critic
        saved = critic.content() if isinstance(critic, ReleasedCritic) else Content(())
        return self.synthetic.content() + saved

    @property
    def rows_per_member(self) -> float:
        """Synthetic rows for each record that the generator was trained on."""
        assert self.table.parts is not None, "every person has a part"
        return len(self.synthetic) / max(int((self.table.parts == DEFENDER).sum()), 1)

    @property
    def members(self) -> Table:
        """The records that the synthetic table was made from."""
        return self._part(DEFENDER)

    def _part(self, part: str) -> Table:
        assert self.table.parts is not None, "every person has a part"
        return self.table.take(np.flatnonzero(self.table.parts == part))

    def generator(self, named: Any) -> Trainer | None:
        """Return what made the synthetic table, so that attackers can make others like it; it samples as many rows per record as the table has.

        Parameters
        ----------
        named : str, recipe or None
            ``"module:function"``, a recipe of reticent's own, or its description. If nobody names one, it is the recipe that has just made the table, or
            the one in the file beside it, if that is one of reticent's own with a guarantee and declares nothing in another file.

        Raises
        ------
        InvalidSpec
            If there is no such generator.
        InvalidInput
            If it cannot have made a table of these records.
        """
        rows = self.rows_per_member
        if isinstance(named, str):
            return parse_generator(named, rows_per_record=rows, members=self.members)
        if named is not None:
            return generator_of(named, rows_per_record=rows, members=self.members)
        if self._smallest_part < FEWEST_TO_GENERATE:
            return None
        if self.made_by is not None:
            return generator_of(
                self.made_by, rows_per_record=rows, members=self.members
            )
        return self._claimed()[0]

    def audited_by(self, trainer: Trainer | None) -> Table:
        """Return the table of the audit, with a note if the file beside the synthetic table states a recipe that attackers cannot use.

        Parameters
        ----------
        trainer : Trainer or None
            What :meth:`generator` returned.
        """
        if trainer is not None or self._smallest_part < FEWEST_TO_GENERATE:
            return self.table
        why_not = self._claimed()[1]
        if not why_not:
            return self.table
        note = Finding(
            name="recipe_not_run",
            severity=Severity.NOTE,
            text=f"the file beside the synthetic table states a guarantee, but no shadow generators were trained and the guarantee was not worked out again: {why_not}",
        )
        return replace(self.table, findings=(*self.table.findings, note))

    def _claimed(self) -> tuple[Trainer | None, str]:
        """Return the generator that the file beside the table describes, or why there is none; neither if the file states no guarantee."""
        stated = self.synthetic.provenance
        # Whoever makes no claim has nothing to prove, and a recipe that a stranger wrote is then not run.
        if stated.guarantee is None:
            return None, ""
        try:
            generator = parse_claimed_generator(
                stated.recipe,
                rows_per_record=self.rows_per_member,
                members=self.members,
            )
        except InvalidInput as error:
            return None, str(error)
        return generator, ""

    @property
    def _smallest_part(self) -> int:
        return min(len(self._part(part)) for part in (DEFENDER, RESERVED, AUXILIARY))


@dataclass(frozen=True, kw_only=True)
class GivenTables:
    """The tables of an audit, as a caller has them: frames of any library.

    Parameters
    ----------
    synthetic : SyntheticTable
        The table that would be released, as it is.
    real : frame
        The records that its generator was trained on; or all records, with a part column.
    holdout : frame or None
        Records of the same source that the generator never saw.
    auxiliary : frame or None
        Further such records, which attackers compare with; by default half of the holdout.
    target, group, unit, part : str or None
        Columns of the real table.
    schema : Schema or None
        What its columns hold.
    drop : sequence of str
        Columns that are left out.
    made_by : PrivateTable or None
        The recipe, if the caller has just made the synthetic table with it. Of a table from elsewhere only its file speaks, which is not believed.
    findings : tuple of Finding
        What is to be said about where they come from.
    """

    synthetic: SyntheticTable
    real: Any
    holdout: Any = None
    auxiliary: Any = None
    target: str | None = None
    group: str | None = None
    unit: str | None = None
    part: str | None = None
    schema: Schema | None = None
    drop: Sequence[str] = ()
    made_by: PrivateTable | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def has_others(self) -> bool:
        """Whether there is anybody whom the generator never saw."""
        return self.holdout is not None or self.part is not None

    def prepared(self, *, seed: int) -> TablesAudit:
        """Return one table with parts, and the synthetic one in its columns.

        Parameters
        ----------
        seed : int
            Decides which half of the holdout is the auxiliary table, if none is given.

        Raises
        ------
        InvalidInput
            If there is nobody to compare with, or people are given twice.
        InvalidTable
            If the tables have no column in common, or a named column is missing.
        """
        if self.real is None:
            raise InvalidInput(
                "there is no real table, so nobody knows whom the synthetic one could expose; pass the records that its generator was trained on."
            )
        if not self.has_others:
            raise InvalidInput(NO_HOLDOUT)
        if self.holdout is not None and self.part is not None:
            raise InvalidInput(
                "the holdout is given twice, as a table and by a part column, so that nobody knows which people the generator never saw; pass one."
            )
        frame = self._one_below_the_other()
        roles = [name for name in (self.unit, self.part) if name is not None]
        released = self.synthetic.frame.rename(columns=str)
        usable = [c for c in frame.columns if c not in (*roles, *self.drop, PART)]
        shared = [c for c in usable if c in released.columns]
        if not shared:
            raise InvalidTable(
                f"the synthetic table has none of the columns {', '.join(usable[:6])} of the real one, so nothing can be compared; write the same names."
            )
        if self.target is not None and self.target not in frame.columns:
            raise InvalidTable(
                f"the real table has no column {self.target!r} to use as target; it has {', '.join(usable[:10])}."
            )
        missing = [c for c in usable if c not in shared]
        extra = [c for c in released.columns if c not in shared]
        left_out = [*missing, *(c for c in self.drop if c in frame.columns)]
        table = table_from_frame(
            frame.drop(columns=PART) if PART in frame else frame,
            target=None,
            group=self.group if self.group in shared else None,
            unit=self.unit,
            part=frame.get(PART, self.part),
            schema=self.schema,
            name="the real table",
            drop=left_out,
        )
        alike = in_columns_of(
            released[shared], table.features, table.schema, not_judged=extra
        )
        findings = [
            *self.findings,
            *alike.findings,
            *_missing(missing, self.target),
            *self._about_critic(),
            *_besides(self.synthetic),
        ]
        table, about_auxiliary = _with_auxiliary(table, seed=seed)
        table = replace(table, findings=(*table.findings, *findings, *about_auxiliary))
        return TablesAudit(
            table=table,
            synthetic=replace(self.synthetic, frame=alike.frame),
            made_by=self.made_by,
        )

    def _about_critic(self) -> list[Finding]:
        """Say whether an epsilon of the table covers its critic as well, if that is released."""
        critic, stated = self.synthetic.critic, self.synthetic.provenance
        if critic is None:
            return []
        guarded = stated.guarantee is not None and stated.guarantee.holds
        says_so = (
            isinstance(critic, ReleasedCritic)
            and critic.table != ""
            and critic.table == self.synthetic.file_digest
        )
        if guarded and self.made_by is not None:
            text = "the critic is released as well. It comes from the training that made the table, so the guarantee of the table covers both together."
        elif guarded and says_so:
            text = (
                "the critic is released as well. Its file says that it comes from the training that made the table; if that is so, the epsilon of the table covers both "
                "together. Nothing but this file says it."
            )
        elif guarded or stated.claimed_epsilon is not None:
            text = (
                "the critic is released as well, and nothing says that it comes from the training that made the table: the epsilon of the table does not cover it. Write both in one "
                "training, with reticent synthesize --critic, or keep the critic back."
            )
        else:
            text = "the critic is released as well, and no epsilon covers it: only what the attacks found speaks of it."
        covered = guarded and (self.made_by is not None or says_so)
        return [
            Finding(
                name="critic_released",
                severity=Severity.NOTE if covered else Severity.WARNING,
                text=text,
            )
        ]

    @property
    def judged_target(self) -> str | None:
        """The target, if the synthetic table has it."""
        return self.target if self.target in self.synthetic.frame.columns else None

    def _one_below_the_other(self) -> pd.DataFrame:
        """Return all people in one frame, with their parts unless a column of the real table has them."""
        given: Mapping[str, Any] = {
            DEFENDER: self.real,
            RESERVED: self.holdout,
            AUXILIARY: self.auxiliary,
        }
        names = {DEFENDER: "real", RESERVED: "holdout", AUXILIARY: "auxiliary"}
        frames = {
            part: as_frame(value, name=names[part]).rename(columns=str)
            for part, value in given.items()
            if value is not None
        }
        real = frames[DEFENDER]
        for part, frame in frames.items():
            absent = [c for c in real.columns if c not in frame.columns and c not in self.drop and c != self.part]  # fmt: skip
            if absent:
                raise InvalidTable(
                    f"the {names[part]} table lacks the column {absent[0]!r} of the real one, so its people cannot be compared; bring it, or leave it out "
                    "with --drop."
                )
        if len(frames) == 1:
            return real.reset_index(drop=True)
        if self.part is not None:
            labels = [real[self.part].map(str)]
        else:
            labels = [pd.Series([DEFENDER] * len(real))]
        labels += [
            pd.Series([part] * len(frame))
            for part, frame in frames.items()
            if part != DEFENDER
        ]
        columns = [c for c in real.columns if c not in (*self.drop, self.part)]
        whole = pd.concat(
            [frame[columns] for frame in frames.values()], ignore_index=True
        )
        whole[PART] = pd.concat(labels, ignore_index=True).to_numpy()
        return whole


def _with_auxiliary(table: Table, *, seed: int) -> tuple[Table, list[Finding]]:
    """Return a table that has auxiliary people: half of the reserved units, if nobody else is."""
    assert table.parts is not None, "every person has a part"
    if (table.parts == AUXILIARY).any():
        return table, []
    reserved = np.flatnonzero(table.parts == RESERVED)
    people = np.unique(table.units[reserved])
    if len(people) < 2 * SMALLEST_PART:
        raise InvalidInput(
            f"the holdout has {len(people)} people, but at least {2 * SMALLEST_PART} are needed, because half of them tell what is common in the "
            "population; bring more, or pass an auxiliary table."
        )
    rng = stream(seed, "auxiliary")
    chosen: NDArray[np.int64] = rng.permutation(people)[: len(people) // 2]
    parts = table.parts.copy()
    is_chosen = np.isin(table.units, chosen) & (table.parts == RESERVED)
    parts[is_chosen] = AUXILIARY
    return replace(table, parts=parts), [
        Finding(
            name="auxiliary",
            severity=Severity.NOTE,
            text=f"no auxiliary table was given, so a random half of the people of the holdout ({len(chosen):,} of {len(people):,}) tells attackers what is "
            "common in the population, and only the others are judged as non-members; with --auxiliary all of them would be.",
        )
    ]


def _besides(synthetic: SyntheticTable) -> list[Finding]:
    """Say what leaves with the table besides its cells, and what of it could not be read: while it is there, nothing is released."""
    parts = dict.fromkeys(synthetic.beside.parts)
    unread = dict.fromkeys(part.place for part in synthetic.beside.contents.unread)
    if not parts and not unread:
        return []
    named = "; ".join([*parts, *(f"what could not be read in {place}" for place in unread)][:MOST_NAMED])  # fmt: skip
    more = len(parts) + len(unread) - MOST_NAMED
    named += f"; {more} more" if more > 0 else ""
    return [
        Finding(
            name="besides_cells",
            severity=Severity.OPEN,
            text=f"the file of the synthetic table holds more than its cells ({named}), and whatever stands there leaves with it; write the cells alone "
            "with reticent clean TABLE OUT, and audit that file.",
        )
    ]


def _missing(columns: Sequence[str], target: str | None) -> list[Finding]:
    if not columns:
        return []
    named = ", ".join(repr(c) for c in columns[:20])
    of_target = (
        f" The target {target!r} is among them, so another column stands for it."
        if target in columns
        else ""
    )
    return [
        Finding(
            name="missing_columns",
            severity=Severity.WARNING,
            text=f"the synthetic table lacks the columns {named}; they are not released, and nothing is compared by them.{of_target}",
        )
    ]
