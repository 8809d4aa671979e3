"""What `reticent audit` does once its options are parsed."""

import sys
from dataclasses import replace
from pathlib import Path

from reticent.cli._audit_common import carrying_out, finish, plan_of
from reticent.cli._common import (
    find_own_modules,
    read_subject,
)
from reticent.cli._options import AuditOptions
from reticent.data import BUILTIN_NAME, BUILTIN_TARGET, Split, Table
from reticent.errors import InvalidInput, InvalidSpec, InvalidSplit
from reticent.evidence import Identification
from reticent.pipeline import (
    AuditPlan,
    bound_to_product,
    divide,
    must_be_unchanged,
    must_be_writable,
    run_audit,
    run_repair,
    table_file_digest,
)
from reticent.policy import read_policy
from reticent.product import (
    ProductFiles,
    Provenance,
    SavedProduct,
    Trainer,
    files_of,
    is_trained_on,
    must_hold_nothing_else,
    write_files,
)
from reticent.report import (
    IDENTIFICATION_FILE,
    Screen,
    comparison_json,
    print_comparison,
    read_identification,
)
from reticent.run import Content, Run, content_of, owner_folder
from reticent.train import parse_claimed, parse_trainer

__all__ = ["run"]

# What README and guide audit first: it needs no setting and takes any table with classes.
MOST_WATCHED = 2**24  # bytes of what watching a training has shown
DEFAULT_TRAINER = "sklearn.ensemble.RandomForestClassifier()"


def run(options: AuditOptions) -> int:
    """Audit, save, print; return the exit status."""
    if options.synthetic is not None:
        # Imported here: an audit of a model need not wait for it.
        from reticent.cli._audit_table import run_on_table

        return run_on_table(options)
    for name in ("holdout", "auxiliary", "generator", "critic"):
        if getattr(options, name) is not None:
            raise InvalidInput(
                f"--{name} belongs to the audit of a synthetic table, but none is named; name it with --synthetic, or mark the people of a model "
                "in a column and name that with --part."
            )
    policy = read_policy(options.policy)
    _must_lie_outside(options.out, options.product)
    saved = _saved(options)
    if options.repair and options.save_product is not None:
        raise InvalidInput(
            "a repaired model is trained on one half of the people only, to be judged by the others, so it is not what would be released; audit the "
            "recipe that is found with --trainer and --save-product."
        )
    trainer = _trainer(options)
    table = read_subject(
        options.subject,
        group=options.group,
        quantity=_predicts_quantity(trainer, saved),
    )
    if options.save_product is not None:
        # Told now, not after the audit.
        must_hold_nothing_else(options.save_product)
        if trainer is not None:
            trainer.must_be_storable(table)
    product = None if saved is None else saved.on(table.classes)
    provenance = Provenance() if saved is None else saved.notes.provenance
    # Without a guarantee there is nothing to watch, and no reason to run a recipe that a stranger wrote.
    if trainer is None and provenance.guarantee is not None:
        trainer = _claimed_trainer(provenance)
    split = _split(options, table, provenance if product is not None else None)
    if product is None:
        provenance = replace(provenance, split={"by": options.subject.divided_by})
    plan = plan_of(
        options,
        trainer=trainer,
        product=product,
        product_content=Content(())
        if saved is None
        else content_of(saved.files.digest),
        product_files=None if saved is None else saved.files,
        cleaned=_is_cleaned(options, trainer, split),
        keeps_files=options.save_product is not None,
        policy=policy,
        rounds=options.rounds,
        watched=None if saved is None else _watched(saved.files),
        provenance=provenance,
        product_digest="" if saved is None else saved.files.digest,
        table_digest=table_file_digest(options.subject.table)
        if options.subject.table
        else "",
        subject={
            "table": options.subject.name or BUILTIN_NAME,
            "target": f"target {options.subject.target or BUILTIN_TARGET}",
            "product": str(options.product)
            if options.product or trainer is None
            else trainer.recipe,
        },
    )
    # Before the work: a result that cannot be written would be lost.
    must_be_writable(options.out)
    with carrying_out(options, options.trainer) as carried_out:
        if options.repair:
            return _repair(table, plan, options, carried_out)
        result = run_audit(table, plan, run=carried_out, split=split)
    dossier = result.dossier
    if options.save_product is not None:
        files = result.files
        if files is None:
            # A product that was made elsewhere is released as it was read; a single file gets the name that one has in a folder.
            assert saved is not None, "there is no recipe"
            assert product is not None, "it was read"
            files = saved.files if saved.files.is_folder else files_of(product, provenance)  # fmt: skip
        write_files(options.save_product, files)
        dossier = bound_to_product(dossier, files)
    if options.product is not None:
        must_be_unchanged(options.product, plan.product_digest)
    return finish(dossier, result.per_record, options, carried_out)


def _repair(table: Table, plan: AuditPlan, options: AuditOptions, run: Run) -> int:
    """Choose a defence, audit it on other people, save and print; return the exit status."""
    repaired = run_repair(table, plan, run=run)
    repaired.comparison.save(options.out)
    if repaired.result is None:
        # No defence keeps the limits, so there is nothing to audit.
        run.store.clear()
        if options.json:
            sys.stdout.write(comparison_json(repaired.comparison))
        else:
            print_comparison(repaired.comparison, Screen())
        return repaired.comparison.status
    return finish(repaired.result.dossier, repaired.result.per_record, options, run)


def _must_lie_outside(out: Path, product: Path | None) -> None:
    """Refuse to write the report into the product: it would become part of what it judges, and of what is released."""
    if product is None or not product.is_dir():
        return
    if out.resolve().is_relative_to(product.resolve()):
        raise InvalidInput(
            f"the report would be written to {out}, inside the product {product}, and so become part of what it judges; choose another folder "
            "with --out."
        )


def _trainer(options: AuditOptions) -> Trainer | None:
    if options.trainer is None:
        if options.product is not None:
            return None
        return parse_trainer(DEFAULT_TRAINER, preprocess=not options.raw)
    find_own_modules()
    return parse_trainer(options.trainer, preprocess=not options.raw)


def _claimed_trainer(provenance: Provenance) -> Trainer | None:
    """Return the recipe that comes with a product, by which attacks can train others like it; None if it cannot be run unasked."""
    try:
        return parse_claimed(provenance.recipe)
    except InvalidSpec:
        return None


def _saved(options: AuditOptions) -> SavedProduct | None:
    """Read the product that is named, before anything of it is opened."""
    if options.product is None:
        return None
    return SavedProduct(options.product, trust=tuple(options.trust or ()))


def _predicts_quantity(trainer: Trainer | None, saved: SavedProduct | None) -> bool:
    """Whether the target is a quantity: the product itself is asked, or else the recipe."""
    if saved is not None:
        return saved.quantity
    return trainer is not None and trainer.quantity


def _watched(files: ProductFiles) -> Identification | None:
    """Return what watching a product's training has shown, if that lies in its folder."""
    data = files.beside(IDENTIFICATION_FILE, what="identification", most=MOST_WATCHED)
    if data is None:
        return None
    try:
        return read_identification(data.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"the identification in {files.path} is not UTF-8 text ({error.reason} at byte {error.start}); delete it to audit the product without it."
        ) from error


def _is_cleaned(options: AuditOptions, trainer: Trainer | None, split: Split) -> bool:
    """Whether the product is cleaned before it is attacked: if it is trained here to be saved, and has no guarantee.

    Cleaning looks at the records once more, which a guarantee does not cover.
    """
    if options.as_is or options.save_product is None or options.product is not None:
        return False
    return trainer is not None and trainer.guarantee(len(split.defender)) is None


def _split(options: AuditOptions, table: Table, provenance: Provenance | None) -> Split:
    """Return the parts; a product made elsewhere must say which rows it was trained on."""
    if provenance is None or table.parts is not None:
        return divide(table, seed=options.seed)
    if provenance.seed is not None and is_trained_on(provenance, table):
        return divide(table, seed=provenance.seed)
    raise InvalidSplit(
        f"it is not known which rows of the table the product {options.product} was trained on, so nobody can be "
        f"called a member; if reticent trained it on this table elsewhere, bring the key of {owner_folder()} from there, else mark them in a column "
        "with defender and reserved, and name it with --part."
    )
