"""What the audits of models and of synthetic tables have in common on the command line: the plan, how it is carried out, what is written at the end."""

import csv
import io
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Any

from reticent.cli._common import Limits, own_object, running
from reticent.cli._options import AuditOptions
from reticent.pipeline import AuditPlan, PerRecord
from reticent.report import Dossier, Screen, print_report
from reticent.report.sections.people import posterior_words
from reticent.run import Run, write_text

__all__ = ["carrying_out", "finish", "plan_of", "show", "write_per_record"]

SENSITIVE = "# SENSITIVE: says of single people whether they were in the training data. Do not pass on."


def plan_of(options: AuditOptions, **what: Any) -> AuditPlan:
    """Return the plan of an audit.

    Parameters
    ----------
    options : AuditOptions
        What was typed.
    **what
        What is audited: the further fields of the plan.
    """
    return AuditPlan(
        own_attacks=_own_objects(options.attack, "attack"),
        own_measures=_own_objects(options.measure, "measure"),
        own_sections=_own_objects(options.section, "section"),
        pool=options.pool,
        watch=options.watch,
        claimed_epsilon=options.claimed_epsilon,
        population=options.population,
        by=options.by,
        repeat=shlex.join(["reticent", *sys.argv[1:]]),
        arguments=tuple(sys.argv[1:]),
        **what,
    )


@contextmanager
def carrying_out(options: AuditOptions, *own_code: str | None) -> Iterator[Run]:
    """Yield the run of an audit.

    Parameters
    ----------
    options : AuditOptions
        Processes or a cluster, time, memory, folder.
    *own_code : str or None
        Texts that name further modules of the user's own that workers need.
    """
    named = [*own_code, *(options.attack or ()), *(options.measure or ())]
    with running(
        options.effort,
        out=options.out,
        seed=options.seed,
        quiet=options.json,
        limits=Limits(
            minutes=options.minutes,
            memory=options.memory,
            deadline=options.deadline,
            own_code=" ".join(name or "" for name in named),
        ),
    ) as run:
        yield run


def finish(
    dossier: Dossier, per_record: PerRecord, options: AuditOptions, run: Run
) -> int:
    """Write everything, print the report, and return the exit status."""
    if options.per_record is not None:
        words = posterior_words(dossier.evidence)
        write_per_record(options.per_record, per_record, words)
    dossier.save(options.out)
    # Last, when everything is written: what it holds about single people must not stay on the disk.
    run.store.clear()
    show(dossier, options)
    return dossier.decision.exit_status


def show(dossier: Dossier, options: AuditOptions) -> None:
    """Print the report, or the dossier as JSON."""
    if options.json:
        sys.stdout.write(dossier.to_json())
        return
    console = Screen()
    print_report(dossier, console)
    if options.repair:
        chosen = options.out / "comparison.html"
        console.print(f"  How it was chosen: {chosen}", soft_wrap=True)
    console.print(f"  Report: {options.out / 'report.html'}", soft_wrap=True)


def _own_objects(names: list[str] | None, role: str) -> tuple[Any, ...]:
    """Return the user's own attacks, measures or sections."""
    return tuple(own_object(name, role) for name in names or ())


def write_per_record(path: Path, risk: PerRecord, words: str) -> None:
    text = io.StringIO()
    text.write(f"{SENSITIVE}\n# {words}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "member", "score", "privacy", "posterior"])
    for row, member, score, privacy, posterior in zip(
        risk.row, risk.member, risk.score, risk.privacy, risk.posterior, strict=True
    ):
        writer.writerow(
            [
                int(row),
                int(member),
                f"{score:.9g}",
                f"{privacy:.9g}",
                "" if isnan(posterior) else f"{posterior:.9g}",
            ]
        )
    # Readable by the owner alone, as the first line says that it is sensitive.
    write_text(path, text.getvalue(), mode=0o600)
