"""What the commands share: reading the table, workers, and progress on a terminal."""

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent._visible import visible
from reticent.cli._options import TableOptions, WorkerOptions
from reticent.data import Table, builtin_table, read_schema, read_table
from reticent.errors import InvalidInput, InvalidSpec
from reticent.pipeline import results_folder
from reticent.report import terminal
from reticent.run import (
    Cluster,
    Effort,
    Run,
    Store,
    Workers,
    code_of,
    named_by_user,
    workers_of,
)

__all__ = [
    "find_own_modules",
    "own_object",
    "read_subject",
    "running",
    "tell_findings",
]


def read_subject(
    subject: TableOptions, *, group: str | None = None, quantity: bool = False
) -> Table:
    """Return the table that was named, or the built-in one.

    Parameters
    ----------
    subject : TableOptions
        File and columns.
    group : str, optional
        Column with subgroups.
    quantity : bool
        Whether the target is a number to be predicted and not a class.
    """
    if subject.table is None:
        if subject.target or group or subject.unit or subject.part or subject.drop:
            raise InvalidInput(
                "columns are named but no table is; write the file after the command."
            )
        return builtin_table()
    if subject.target is None:
        raise InvalidInput(
            f"{subject.table} has no target yet: name the column that the model predicts with --target."
        )
    return read_table(
        subject.table,
        target=subject.target,
        group=group,
        unit=subject.unit,
        part=subject.part,
        schema=read_schema(subject.schema) if subject.schema else None,
        quantity=quantity,
        drop=subject.drop or (),
    )


def tell_findings(table: Table, say: Callable[[str], None]) -> None:
    """Say what the columns of a table were taken for, and what may have been meant otherwise.

    Parameters
    ----------
    table : Table
        The table that was read.
    say : callable
        Shows a sentence.
    """
    for finding in table.findings:
        say(f"{finding.severity}: {finding.text}")


def find_own_modules() -> None:
    """Let `module:function` name a file of the folder the command was typed in.

    Called only once the user has named something: the folder may hold a stranger's files, and one that is called like a
    library would be imported in its place.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        # First, as Python itself does for a script: the user's file wins over an installed module of the same name.
        sys.path.insert(0, here)


def own_object(text: str, role: str) -> Any:
    """Return an object of a class of the user's own, which is named as ``module:Class``.

    Parameters
    ----------
    text : str
        The name.
    role : str
        What it is, for errors: ``"attack"``.
    """
    find_own_modules()
    maker = named_by_user(text, role=role, what="class")
    try:
        return maker()
    except Exception as error:
        raise InvalidSpec(
            f"the {role} {text!r} cannot be made without arguments ({type(error).__name__}: {error}); give each of them a default."
        ) from error


@contextmanager
def running(
    options: WorkerOptions,
    *,
    out: Path,
    seed: int,
    quiet: bool,
    limits: "Limits | None" = None,
) -> Iterator[Run]:
    """Yield the run of a command; whoever saves the result clears its store.

    Parameters
    ----------
    options : WorkerOptions
        Processes or a cluster.
    out : Path
        Folder of the result, in which finished stages are stored meanwhile.
    seed : int
        Seed of the run.
    quiet : bool
        Whether no progress is shown.
    limits : Limits, optional
        Time and memory.
    """
    limits = limits or Limits()
    workers = _workers(options, limits.own_code)
    try:
        with terminal(quiet=quiet) as screen:
            yield Run(
                seed=seed,
                store=Store(folder=results_folder(out), warn=_warn),
                effort=Effort(
                    minutes=limits.minutes,
                    memory=limits.memory,
                    deadline=limits.deadline,
                    workers=workers,
                ),
                tell=screen.tell,
                say=screen.say,
            )
    finally:
        workers.close()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Minutes and gigabytes, as typed, and the user's own code that workers need."""

    minutes: float | None = None
    memory: float = 2.0
    deadline: float | None = None
    own_code: str = ""  # texts that name modules of the user's own


def _workers(options: WorkerOptions, named: str) -> Workers:
    if options.cluster is None:
        return workers_of(options.workers)
    modules = tuple(_own_files(named))
    return Cluster(options.cluster, count=options.workers, modules=modules)


def _own_files(named: str) -> Iterator[Path]:
    """Yield the single-file modules of the user's own that ``module:name`` in a text reaches, for workers elsewhere."""
    modules: dict[str, None] = {}
    # Texts such as module:Class may stand inside a longer recipe, so they are searched for.
    for name in re.findall(r"([A-Za-z_]\w*):[A-Za-z_]", named):
        for part in code_of(name).parts:
            modules[part.partition(":")[0]] = None
    for module in modules:
        spec = importlib.util.find_spec(module)
        # Dask sends single files; a package must be installed on the workers.
        if spec is not None and spec.origin is not None and "." not in module:
            yield Path(spec.origin)


def _warn(sentence: str) -> None:
    sys.stderr.write(f"warning: {visible(sentence)}\n")
