"""What `reticent audit --synthetic` does once its options are parsed."""

import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd

from reticent.audits import SyntheticTableKind
from reticent.cli._audit_common import carrying_out, finish, plan_of
from reticent.cli._common import find_own_modules
from reticent.cli._options import AuditOptions
from reticent.data import MISSING, Schema, read_frame, read_schema
from reticent.errors import InvalidInput
from reticent.pipeline import (
    NO_HOLDOUT,
    GivenTables,
    critic_of,
    must_be_unchanged,
    must_be_writable,
    run_audit,
    table_file_digest,
    with_people_held_out,
)
from reticent.policy import read_policy
from reticent.product import load_synthetic, product_digest
from reticent.run import Content, code_of
from reticent.train import ReleasedCritic

__all__ = ["run_on_table"]

INCONCLUSIVE = 3  # exit status
# Options that belong to models, by the names of their fields.
OF_MODELS = ("trainer", "product", "trust", "save_product")
FLAGS_OF_MODELS = ("raw", "as_is", "repair")


def run_on_table(options: AuditOptions) -> int:
    """Audit a synthetic table, save, print; return the exit status."""
    assert options.synthetic is not None, "there is a synthetic table"
    policy = read_policy(options.policy)
    _must_be_about_a_table(options)
    schema = read_schema(options.subject.schema) if options.subject.schema else None
    digest = product_digest(options.synthetic)
    synthetic = load_synthetic(options.synthetic)
    function: str | None = None
    if options.critic is not None:
        find_own_modules()
        critic = critic_of(options.critic)
        synthetic = replace(synthetic, critic=critic)
        function = None if isinstance(critic, ReleasedCritic) else options.critic
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
    given = with_people_held_out(given)
    if not given.has_others:
        sys.stderr.write(f"{NO_HOLDOUT}\n")
        return INCONCLUSIVE
    prepared = given.prepared(seed=options.seed)
    if options.generator is not None:
        find_own_modules()
    trainer = prepared.generator(options.generator)
    plan = plan_of(
        options,
        trainer=trainer,
        product=prepared.synthetic,
        of_kind=SyntheticTableKind(given.judged_target),
        product_content=prepared.content()
        + (Content(()) if function is None else code_of(function)),
        policy=policy,
        provenance=synthetic.provenance,
        product_digest=digest,
        table_digest=table_file_digest(options.subject.table),
        subject={
            "table": options.subject.name,
            "target": f"target {options.subject.target}"
            if options.subject.target
            else "",
            "product": str(options.synthetic),
        },
    )
    must_be_writable(options.out)
    with carrying_out(options, options.generator, function) as carried_out:
        result = run_audit(prepared.audited_by(trainer), plan, run=carried_out)
    must_be_unchanged(options.synthetic, digest)
    return finish(result.dossier, result.per_record, options, carried_out)


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
