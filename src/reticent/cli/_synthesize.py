"""What `reticent synthesize` does once its options are parsed."""

import shlex
import sys
from dataclasses import asdict
from typing import get_args

from reticent._codec import encode
from reticent._json import write_json
from reticent.cli._common import tell_findings
from reticent.cli._options import SynthesizeOptions
from reticent.data import MISSING, read_frame, read_schema, table_from_frame
from reticent.errors import InvalidInput
from reticent.pipeline import Method, Risk, SynthesisPlan, Synthesized, run_synthesis
from reticent.report import Screen, SynthesisSummary, print_synthesis, terminal

__all__ = ["run"]


def run(options: SynthesizeOptions) -> int:
    """Make a synthetic table, write it, say what it guarantees; return the exit status."""
    subject = options.subject
    if subject.table is None:
        raise InvalidInput(
            "there is no table to imitate; write its file after the command."
        )
    if options.method not in get_args(Method):
        raise InvalidInput(
            f"the method {options.method!r} is not known; use {', '.join(get_args(Method))}."
        )
    plan = SynthesisPlan(
        risk=Risk(**asdict(options.risk)),
        method=options.method,  # type: ignore[arg-type]
        target=subject.target,
        rows=options.rows,
        rows_per_person=options.rows_per_person,
        domain=options.domain,
        seeded=options.seeded,
        seed=options.seed,
    )
    plan.risk.target(None if options.risk.delta else 1)  # refused before anything is read  # fmt: skip
    schema = read_schema(subject.schema) if subject.schema else None
    exact = [name for name in (subject.unit, subject.part) if name is not None]
    missing = MISSING if schema is None else schema.missing
    frame, _ = read_frame(subject.table, missing=missing, exact=exact)
    table = table_from_frame(
        frame,
        target=None,
        unit=subject.unit,
        part=subject.part,
        schema=schema,
        name=subject.name,
        drop=subject.drop or (),
    )
    with terminal(quiet=options.json) as screen:
        tell_findings(table, screen.say)
        made = run_synthesis(table, plan, original=frame, out=options.out)
    if options.json:
        sys.stdout.write(_json(options, made))
        return 0
    summary = SynthesisSummary(
        subject=subject.name,
        rows=len(made.frame),
        columns=made.frame.shape[1],
        target=made.target,
        guarantee=made.guarantee,
        warnings=made.table.warnings,
        file=str(options.out),
        audit=_audit_line(options),
    )
    print_synthesis(summary, Screen())
    return 0


def _audit_line(options: SynthesizeOptions) -> str:
    subject = options.subject
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
    return shlex.join(words) + ("" if subject.part else " --holdout OTHERS")


def _json(options: SynthesizeOptions, made: Synthesized) -> str:
    return write_json(
        {
            "guarantee": encode(made.guarantee),
            "rows": len(made.frame),
            "recipe": made.table.provenance.recipe,
            "synthetic": str(options.out),
            "warnings": list(made.table.warnings),
        }
    )
