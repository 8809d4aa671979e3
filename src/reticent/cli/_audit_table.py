"""What `reticent audit --synthetic` does once its options are parsed."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd

from reticent.audits import SyntheticTableKind
from reticent.cli._audit import own_objects, show, write_per_record
from reticent.cli._common import Limits, find_own_modules, running
from reticent.cli._options import AuditOptions
from reticent.data import MISSING, Schema, read_frame, read_schema
from reticent.errors import InvalidInput
from reticent.pipeline import (
    NO_HOLDOUT,
    AuditPlan,
    GivenTables,
    TablesAudit,
    critic_of,
    must_be_unchanged,
    must_be_writable,
    run_audit,
    table_file_digest,
)
from reticent.policy import read_policy
from reticent.product import load_synthetic, product_digest
from reticent.report.sections.people import posterior_words
from reticent.run import Content, code_of
from reticent.train import Generator, parse_generator

__all__ = ["run_on_table"]

INCONCLUSIVE = 3  # exit status
# Options that belong to models, by the names of their fields.
OF_MODELS = ("trainer", "product", "trust", "save_product", "watch")
FLAGS_OF_MODELS = ("raw", "as_is", "repair")


def run_on_table(options: AuditOptions) -> int:
    """Audit a synthetic table, save, print; return the exit status."""
    assert options.synthetic is not None, "there is a synthetic table"
    policy = read_policy(options.policy)
    _must_be_about_a_table(options)
    schema = read_schema(options.subject.schema) if options.subject.schema else None
    digest = product_digest(options.synthetic)
    synthetic = load_synthetic(options.synthetic)
    critic_content = Content(())
    if options.critic is not None:
        find_own_modules()
        synthetic = replace(synthetic, critic=critic_of(options.critic))
        critic_content = code_of(options.critic)
    assert options.subject.table is not None, "there is a real table"
    given = GivenTables(
        synthetic=synthetic,
        real=_read(options.subject.table, options, schema),
        holdout=_read(options.holdout, options, schema),
        auxiliary=_read(options.auxiliary, options, schema),
        target=options.subject.target,
        group=options.group,
        unit=options.subject.unit,
        part=options.subject.part,
        schema=schema,
        drop=options.subject.drop or (),
    )
    if not given.has_others:
        sys.stderr.write(f"{NO_HOLDOUT}\n")
        return INCONCLUSIVE
    prepared = given.prepared(seed=options.seed)
    plan = AuditPlan(
        trainer=_generator(options, prepared),
        product=prepared.synthetic,
        of_kind=SyntheticTableKind(given.judged_target),
        product_content=prepared.synthetic.content() + critic_content,
        policy=policy,
        own_attacks=own_objects(options.attack, "attack"),
        own_measures=own_objects(options.measure, "measure"),
        own_sections=own_objects(options.section, "section"),
        pool=options.pool,
        claimed_epsilon=options.claimed_epsilon,
        population=options.population,
        provenance=synthetic.provenance,
        by=options.by,
        product_digest=digest,
        table_digest=table_file_digest(options.subject.table),
        subject={
            "table": options.subject.name,
            "target": f"target {options.subject.target}"
            if options.subject.target
            else "",
            "product": str(options.synthetic),
        },
        repeat=shlex.join(["reticent", *sys.argv[1:]]),
        arguments=tuple(sys.argv[1:]),
    )
    must_be_writable(options.out)
    with running(
        options.effort,
        out=options.out,
        seed=options.seed,
        quiet=options.json,
        limits=Limits(
            minutes=options.minutes,
            memory=options.memory,
            deadline=options.deadline,
            own_code=" ".join(
                [
                    options.generator or "",
                    options.critic or "",
                    *(options.attack or ()),
                    *(options.measure or ()),
                ]
            ),
        ),
    ) as carried_out:
        result = run_audit(prepared.table, plan, run=carried_out)
    must_be_unchanged(options.synthetic, digest)
    dossier = result.dossier
    if options.per_record is not None:
        words = posterior_words(dossier.evidence)
        write_per_record(options.per_record, result.per_record, words)
    dossier.save(options.out)
    carried_out.store.clear()
    show(dossier, options)
    return dossier.decision.exit_status


def _generator(options: AuditOptions, prepared: TablesAudit) -> Generator | None:
    """Return what made the table, if the user names it: it samples as many rows per record as the table has."""
    if options.generator is None:
        return None
    find_own_modules()
    return parse_generator(options.generator, rows_per_record=prepared.rows_per_member)


def _must_be_about_a_table(options: AuditOptions) -> None:
    """Refuse options that mean nothing for a synthetic table, which would be ignored."""
    if options.subject.table is None:
        raise InvalidInput(
            "a synthetic table is named but not the real one that it was made from; write the file of the real table after the command."
        )
    given = [name for name in OF_MODELS if getattr(options, name) is not None]
    given += [name for name in FLAGS_OF_MODELS if getattr(options, name)]
    if given:
        raise InvalidInput(
            f"--{given[0].replace('_', '-')} belongs to the audit of a model and means nothing for a synthetic table; leave it out, or leave out "
            "--synthetic."
        )
    if options.pool and options.generator is None:
        raise InvalidInput(
            "a pool is asked for but there is no generator to make it; name it with --generator, or leave out --pool."
        )


def _read(
    path: Path | None, options: AuditOptions, schema: Schema | None
) -> pd.DataFrame | None:
    if path is None:
        return None
    subject = options.subject
    exact = [name for name in (subject.unit, subject.part) if name is not None]
    missing = MISSING if schema is None else schema.missing
    frame, _ = read_frame(path, missing=missing, exact=exact)
    return frame
