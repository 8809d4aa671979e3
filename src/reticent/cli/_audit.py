"""What `reticent audit` does once its options are parsed."""

import csv
import io
import shlex
import sys
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

from rich.console import Console

from reticent.cli._common import (
    Limits,
    find_own_modules,
    own_object,
    read_subject,
    running,
)
from reticent.cli._options import AuditOptions
from reticent.data import BUILTIN_NAME, BUILTIN_TARGET, Split, Table
from reticent.errors import InvalidInput, InvalidSplit
from reticent.evidence import Identification
from reticent.pipeline import (
    AuditPlan,
    PerRecord,
    divide,
    must_be_writable,
    run_audit,
    train_seed,
)
from reticent.policy import read_policy
from reticent.product import (
    Product,
    Provenance,
    Trainer,
    as_product,
    load_product,
    predicts_quantity,
    product_content,
    save_product,
)
from reticent.report import IDENTIFICATION_FILE, print_report, read_identification
from reticent.run import Content, write_text
from reticent.train import parse_trainer

__all__ = ["run"]

DEFAULT_TRAINER = "sklearn.ensemble.RandomForestClassifier()"
# Recipes that a saved product may be trained by again unasked: others could name a function, and so run code that the
# folder's maker chose.
RETRAINED = "reticent.PrivateNetwork("
SENSITIVE = "# SENSITIVE: says of single people whether they were in the training data. Do not pass on."


def run(options: AuditOptions) -> int:
    """Audit, save, print; return the exit status."""
    policy = read_policy(options.policy)
    trainer = _trainer(options)
    table = read_subject(
        options.subject,
        group=options.group,
        quantity=_predicts_quantity(trainer, options),
    )
    if options.save_product is not None and trainer is not None:
        trainer.must_be_storable(table)  # told now, not after the audit
    product, provenance, content = _product(options, table)
    has_guarantee = provenance.guarantee is not None
    if trainer is None and has_guarantee and provenance.recipe.startswith(RETRAINED):
        # Whoever trained it says how: the attacks that retrain can be run as well.
        trainer = parse_trainer(provenance.recipe)
    split = _split(options, table, provenance if product is not None else None)
    if product is None:
        provenance = replace(provenance, split={"by": options.subject.divided_by})
    plan = AuditPlan(
        trainer=trainer,
        product=product,
        product_content=content,
        cleaned=_is_cleaned(options, trainer, split),
        policy=policy,
        own_attacks=_own(options.attack, "attack"),
        own_measures=_own(options.measure, "measure"),
        own_sections=_own(options.section, "section"),
        rounds=options.rounds,
        pool=options.pool,
        watch=options.watch,
        watched=_watched(options.product),
        claimed_epsilon=options.claimed_epsilon,
        provenance=provenance,
        subject={
            "table": options.subject.name or BUILTIN_NAME,
            "target": f"target {options.subject.target or BUILTIN_TARGET}",
            "product": str(options.product)
            if options.product or trainer is None
            else trainer.recipe,
        },
        repeat=shlex.join(["reticent", *sys.argv[1:]]),
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
                    options.trainer or "",
                    *(options.attack or ()),
                    *(options.measure or ()),
                ]
            ),
        ),
    ) as carried_out:
        result = run_audit(table, plan, run=carried_out, split=split)
    dossier = result.dossier
    if options.save_product is not None:
        released = result.product or _trained_again(trainer, split, options, plan)
        if released is not None:
            save_product(options.save_product, released, dossier.provenance)
    if options.per_record is not None:
        _write_per_record(options.per_record, result.per_record)
    dossier.save(options.out)
    carried_out.store.clear()
    if options.json:
        sys.stdout.write(dossier.to_json())
    else:
        console = Console(highlight=False)
        print_report(dossier, console)
        console.print(f"  Report: {options.out / 'report.html'}", soft_wrap=True)
    return dossier.decision.exit_status


def _trainer(options: AuditOptions) -> Trainer | None:
    if options.trainer is None and options.product is not None:
        return None
    find_own_modules()
    return parse_trainer(options.trainer or DEFAULT_TRAINER, preprocess=not options.raw)


def _predicts_quantity(trainer: Trainer | None, options: AuditOptions) -> bool:
    """Whether the target is a quantity: the product itself is asked, or else the recipe."""
    if options.product is not None:
        return predicts_quantity(options.product, trust=tuple(options.trust or ()))
    return trainer is not None and trainer.quantity


def _own(names: list[str] | None, role: str) -> tuple[Any, ...]:
    """Return the user's own attacks, measures or sections."""
    return tuple(own_object(name, role) for name in names or ())


def _watched(product: Path | None) -> Identification | None:
    """Return what watching a product's training has shown, if that lies in its folder."""
    if product is None:
        return None
    folder = product if product.is_dir() else product.parent
    file = folder / IDENTIFICATION_FILE
    if not file.is_file():
        return None
    return read_identification(file.read_text(encoding="utf-8"))


def _trained_again(
    trainer: Trainer | None, split: Split, options: AuditOptions, plan: AuditPlan
) -> Product | None:
    """Return the product whose answers were kept, trained once more."""
    if trainer is None:
        return None
    if plan.cleaned or not trainer.repeatable:
        secret = "what was moved when it was cleaned" if plan.cleaned else "its noise"
        raise InvalidInput(
            f"the product of the interrupted audit cannot be trained again, because {secret} was secret; audit into another folder with "
            "--out to train and save a new one."
        )
    return as_product(trainer.train(split.defender, seed=train_seed(options.seed)))


def _is_cleaned(options: AuditOptions, trainer: Trainer | None, split: Split) -> bool:
    """Whether the product is cleaned before it is attacked: if it is trained here to be saved, and has no guarantee.

    Cleaning looks at the records once more, which a guarantee does not cover.
    """
    if options.as_is or options.save_product is None or options.product is not None:
        return False
    return trainer is not None and trainer.guarantee(len(split.defender)) is None


def _product(
    options: AuditOptions, table: Table
) -> tuple[Product | None, Provenance, Content]:
    if options.product is None:
        return None, Provenance(), Content(())
    product, provenance = load_product(
        options.product, classes=table.classes, trust=tuple(options.trust or ())
    )
    return product, provenance, product_content(options.product, product)


def _split(options: AuditOptions, table: Table, provenance: Provenance | None) -> Split:
    """Return the parts; a product made elsewhere must say which rows it was trained on."""
    if provenance is None or table.parts is not None:
        return divide(table, seed=options.seed)
    if provenance.data_fingerprint == table.fingerprint and provenance.seed is not None:
        return divide(table, seed=provenance.seed)
    raise InvalidSplit(
        f"it is not known which rows of the table the product {options.product} was trained on, so nobody can be "
        "called a member; mark them in a column with defender and reserved, and name it with --part."
    )


def _write_per_record(path: Path, risk: PerRecord) -> None:
    text = io.StringIO()
    text.write(SENSITIVE + "\n")
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
    write_text(path, text.getvalue(), mode=0o600)
