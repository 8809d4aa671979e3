"""What `reticent compare` does once its options are parsed."""

import shlex
import sys

from reticent.cli._common import (
    Limits,
    find_own_modules,
    read_subject,
    running,
    tell_findings,
)
from reticent.cli._options import CompareOptions, TableOptions
from reticent.data import BUILTIN_NAME, BUILTIN_TARGET
from reticent.errors import InvalidInput
from reticent.pipeline import (
    ComparePlan,
    candidates_of,
    defences_around,
    must_be_writable,
    run_comparison,
)
from reticent.policy import read_policy
from reticent.report import Screen, comparison_json, print_comparison
from reticent.train import parse_trainer

__all__ = ["run"]


def run(options: CompareOptions) -> int:
    """Compare, save, print; return the exit status."""
    policy = read_policy(options.policy)
    named = options.trainer or []
    if named and options.around is not None:
        raise InvalidInput(
            "--around asks for a usual set of defences, and --trainer names other ones; give one of the two."
        )
    if named or options.around is not None:
        find_own_modules()
    around = None if options.around is None else parse_trainer(options.around)
    first = around if not named else parse_trainer(named[0])
    table = read_subject(options.subject, quantity=first is not None and first.quantity)
    if named:
        candidates = candidates_of(named)
    else:
        candidates = defences_around(around, rows=len(table) // 2)
    subject = options.subject
    plan = ComparePlan(
        candidates=candidates,
        policy=policy,
        models=options.models,
        subject={
            "table": subject.name or BUILTIN_NAME,
            "target": f"target {subject.target or BUILTIN_TARGET}",
        },
        repeat=shlex.join(["reticent", *sys.argv[1:]]),
        audit=shlex.join(["reticent", "audit", *_table_words(subject), "--trainer"]),
    )
    must_be_writable(options.out)
    limits = Limits(
        minutes=options.minutes,
        memory=options.memory,
        own_code=" ".join([options.around or "", *named]),
    )
    with running(
        options.effort,
        out=options.out,
        seed=options.seed,
        quiet=options.json,
        limits=limits,
    ) as carried_out:
        tell_findings(table, carried_out.say)
        report = run_comparison(table, plan, run=carried_out)
    report.save(options.out)
    # Last, when everything is written: what it holds about single people must not stay on the disk.
    carried_out.store.clear()
    if options.json:
        sys.stdout.write(comparison_json(report))
    else:
        console = Screen()
        print_comparison(report, console)
        console.print(f"  Page: {options.out / 'comparison.html'}", soft_wrap=True)
    return report.status


def _table_words(subject: TableOptions) -> list[str]:
    """Return the table and its columns as they were typed."""
    if subject.table is None:
        return []
    words = [str(subject.table), "--target", str(subject.target)]
    columns = {"unit": subject.unit, "part": subject.part, "schema": subject.schema}
    for name, value in columns.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    for column in subject.drop or ():
        words += ["--drop", column]
    return words
