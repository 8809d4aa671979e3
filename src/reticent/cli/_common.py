"""What the commands share: the table, a folder that can be written, bars on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from reticent.data import Table, builtin_table, read_schema, read_table
from reticent.errors import InvalidInput, OutputRefused

__all__ = [
    "Subject",
    "find_own_modules",
    "must_be_writable",
    "progress_bars",
    "read_subject",
    "silent",
]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The table and its columns, as typed."""

    table: Path | None
    target: str | None
    group: str | None = None
    unit: str | None = None
    part: str | None = None
    schema: Path | None = None

    @property
    def name(self) -> str:
        """The table's file; empty for the built-in one."""
        return self.table.name if self.table else ""

    @property
    def divided(self) -> dict[str, str]:
        """How the table is divided into parts."""
        return {"by": "part" if self.part else "unit" if self.unit else "row"}


def read_subject(subject: Subject) -> Table:
    """Return the table that was named, or the built-in one."""
    if subject.table is None:
        if subject.target or subject.group or subject.unit or subject.part:
            raise InvalidInput(
                "columns are named but no table is; put the file after the command."
            )
        return builtin_table()
    if subject.target is None:
        raise InvalidInput(
            f"it is not said what the product predicts from {subject.table}; name the column with --target."
        )
    return read_table(
        subject.table,
        target=subject.target,
        group=subject.group,
        unit=subject.unit,
        part=subject.part,
        schema=read_schema(subject.schema) if subject.schema else None,
    )


def find_own_modules() -> None:
    """Let `module:function` name a file of the folder the command was typed in."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def must_be_writable(out: Path) -> None:
    """Fail before hours of work, not after."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".writable"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise OutputRefused(
            f"the folder {out} cannot be written ({error.strerror or error}), so what is made would be lost; "
            "choose another with --out."
        ) from error


def silent(stage: str, done: int, total: int, note: str = "") -> None:
    """Show nothing."""


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Callable[..., None]]:
    """Show bars with the time left, and a note if there is one, on a terminal's error stream; else nothing."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield silent
        return
    bars = Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
    )
    tasks: dict[str, TaskID] = {}

    def show(stage: str, done: int, total: int, note: str = "") -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total, note="")
        bars.update(tasks[stage], completed=done, total=total)
        if note:
            bars.update(tasks[stage], note=note)

    with bars:
        yield show
