"""What `reticent synthesize` does once its options are parsed."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

from reticent._codec import encode
from reticent._json import write_json
from reticent.cli._common import Limits, running, tell_findings
from reticent.cli._options import SynthesizeOptions
from reticent.data import MISSING, read_frame, read_schema
from reticent.errors import InvalidInput
from reticent.pipeline import (
    SHADOWS,
    HeldOutAudit,
    Method,
    RealTable,
    Risk,
    SynthesisPlan,
    Synthesized,
    run_synthesis,
    table_file_digest,
)
from reticent.policy import read_policy
from reticent.report import (
    Dossier,
    Screen,
    SynthesisSummary,
    print_report,
    print_synthesis,
)
from reticent.run import Run, Store

__all__ = ["run"]


def run(options: SynthesizeOptions) -> int:
    """Make a synthetic table, write it, audit it, say what it guarantees; return the exit status."""
    subject = options.subject
    if subject.table is None:
        raise InvalidInput(
            "there is no table to imitate; write its file after the command."
        )
    plan = _plan(options)
    plan.risk.target(None if options.risk.delta else 1)  # refused before anything is read  # fmt: skip
    real = _real(options)
    with _running(options) as carried_out:
        tell_findings(real.table, carried_out.say)
        made = run_synthesis(real, plan, out=options.out, run=carried_out)
    # Last, when everything is written: until then an interrupted command finds its noisy answers again.
    carried_out.store.clear()
    _show(options, made)
    return 0 if made.dossier is None else made.dossier.decision.exit_status


def _plan(options: SynthesizeOptions) -> SynthesisPlan:
    if options.method not in get_args(Method):
        raise InvalidInput(
            f"the method {options.method!r} is not known; use {', '.join(get_args(Method))}."
        )
    return SynthesisPlan(
        risk=Risk(**asdict(options.risk)),
        method=options.method,  # type: ignore[arg-type]
        target=options.subject.target,
        rows=options.rows,
        rows_per_person=options.rows_per_person,
        domain=options.domain,
        constraints=tuple(options.constraint or ()),
        audit=_audit(options) if options.audit else None,
        seeded=options.seeded,
        seed=options.seed,
        critic=options.critic,
    )


def _audit(options: SynthesizeOptions) -> HeldOutAudit:
    subject = options.subject
    assert subject.table is not None, "there is a real table"
    return HeldOutAudit(
        share=options.held_out,
        policy=read_policy(options.policy),
        report=options.report,
        subject={
            "table": subject.name,
            "target": f"target {subject.target}" if subject.target else "",
            "product": str(options.out),
        },
        # Making the table again would be another table, and spend the budget a second time.
        repeat=_audit_line(options) or "",
        table_digest=table_file_digest(subject.table),
    )


def _real(options: SynthesizeOptions) -> RealTable:
    subject = options.subject
    assert subject.table is not None, "there is a real table"
    schema = read_schema(subject.schema) if subject.schema else None
    exact = [name for name in (subject.unit, subject.part) if name is not None]
    missing = MISSING if schema is None else schema.missing
    frame, _ = read_frame(subject.table, missing=missing, exact=exact)
    return RealTable(
        frame=frame,
        unit=subject.unit,
        part=subject.part,
        schema=schema,
        drop=tuple(subject.drop or ()),
        name=subject.name,
    )


@contextmanager
def _running(options: SynthesizeOptions) -> Iterator[Run]:
    """Yield a run whose steps are kept in the folder of the report, or beside the table if there is none."""
    limits = Limits(minutes=options.minutes, memory=options.memory)
    with running(
        options.effort,
        out=options.report,
        seed=options.seed,
        quiet=options.json,
        limits=limits,
    ) as carried_out:
        if options.audit:
            yield carried_out
            return
        beside = Path(f"{options.out}.unfinished")
        yield replace(
            carried_out, store=Store(folder=beside, warn=carried_out.store.warn)
        )


def _show(options: SynthesizeOptions, made: Synthesized) -> None:
    if options.json:
        sys.stdout.write(_json(options, made))
        return
    console = Screen()
    print_synthesis(
        SynthesisSummary(
            subject=options.subject.name,
            rows=len(made.frame),
            columns=made.frame.shape[1],
            target=made.target,
            guarantee=made.guarantee,
            warnings=made.table.warnings,
            file=str(options.out),
            dossier=made.dossier,
            audit=_audit_line(options),
        ),
        console,
    )
    if made.dossier is not None:
        print_report(made.dossier, console)
        console.print(f"  Report: {options.report / 'report.html'}", soft_wrap=True)


def _audit_line(options: SynthesizeOptions) -> str | None:
    """Return the command that audits the table, again if it was audited; None if nobody is left to compare with."""
    subject = options.subject
    if subject.part is None and not options.audit:
        return None
    words = ["reticent", "audit", str(subject.table)]
    columns = {
        "target": subject.target,
        "unit": subject.unit,
        "part": subject.part,
        "schema": subject.schema,
    }
    for name, value in columns.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    for column in subject.drop or ():
        words += ["--drop", column]
    words += ["--synthetic", str(options.out)]
    if options.critic is not None:
        words += ["--critic", str(options.critic)]
    if options.audit:
        # As in the audit that follows the making.
        words += ["--policy", options.policy, "--pool", str(SHADOWS)]
        words += ["--seed", str(options.seed)]
    return shlex.join(words)


def _json(options: SynthesizeOptions, made: Synthesized) -> str:
    return write_json(
        {
            "guarantee": encode(made.guarantee),
            "rows": len(made.frame),
            "recipe": made.table.provenance.recipe,
            "synthetic": str(options.out),
            "warnings": list(made.table.warnings),
            "audit": _verdict(made.dossier, options.report),
        }
    )


def _verdict(dossier: Dossier | None, report: Path) -> object:
    """Return what the audit found, in short; all of it stands in the dossier."""
    if dossier is None:
        return None
    utility = dossier.evidence.utility
    return {
        "verdict": str(dossier.verdict),
        "reasons": list(dossier.reasons),
        "utility": encode(utility.gain),
        "utility_of_real": encode(next(iter(utility.beside.values()), None)),
        "dossier": str(report / "dossier.json"),
    }
