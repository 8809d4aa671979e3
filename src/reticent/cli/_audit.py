"""What `reticent audit` and `reticent report` do once their options are parsed."""

import csv
import hashlib
import io
import shlex
import sys
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path

from rich.console import Console

from reticent.cli._common import (
    Subject,
    find_own_modules,
    must_be_writable,
    progress_bars,
    read_subject,
)
from reticent.data import (
    BUILTIN_NAME,
    BUILTIN_TARGET,
    Split,
    Table,
)
from reticent.errors import InvalidInput, InvalidSplit
from reticent.evidence import Identification
from reticent.pipeline import (
    AuditPlan,
    PerRecord,
    Stages,
    divide,
    results_folder,
    run_audit,
    train_seed,
)
from reticent.policy import read_policy
from reticent.product import (
    FittedProduct,
    Product,
    Provenance,
    Trainer,
    load_product,
    save_product,
)
from reticent.report import (
    IDENTIFICATION_FILE,
    Dossier,
    print_report,
    read_identification,
)
from reticent.run import write_text
from reticent.train import (
    EstimatorTrainer,
    ModuleTrainer,
    NetworkTrainer,
    PrivateModuleTrainer,
    PrivateNetworkTrainer,
    parse_trainer,
)

__all__ = ["AuditOptions", "run", "show"]

DEFAULT_TRAINER = "sklearn.ensemble.RandomForestClassifier()"
# Recipes that a saved product may be trained by again unasked: others could name a function, and so run code that the
# folder's maker chose.
RETRAINED = "reticent.PrivateNetwork("
SENSITIVE = "# SENSITIVE: says of single people whether they were in the training data. Do not pass on."


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options of `reticent audit`, as typed."""

    subject: Subject
    trainer: str | None
    raw: bool
    product: Path | None
    trust: tuple[str, ...]
    policy: str
    claimed_epsilon: float | None
    out: Path
    per_record: Path | None
    save_product: Path | None
    seed: int
    minutes: float
    rounds: int
    pool: int | None
    memory: float
    workers: int | None
    watch: int | None
    json: bool


def run(options: AuditOptions) -> int:
    """Audit, save, print; return the exit status."""
    policy = read_policy(options.policy)
    table = read_subject(options.subject)
    trainer = None
    if options.trainer is not None or options.product is None:
        find_own_modules()
        trainer = parse_trainer(
            options.trainer or DEFAULT_TRAINER, preprocess=not options.raw
        )
    if options.save_product is not None and isinstance(trainer, ModuleTrainer):
        trainer.must_be_storable(table)  # told now, not after the audit
    product, provenance, content = _product(options, table)
    guaranteed = provenance.guarantee is not None
    if trainer is None and guaranteed and provenance.recipe.startswith(RETRAINED):
        # Whoever trained it says how: the attacks that retrain can be run as well.
        trainer = parse_trainer(provenance.recipe)
    split = _split(options, table, provenance if product is not None else None)
    must_be_writable(options.out)
    plan = AuditPlan(
        trainer=trainer,
        product=product,
        policy=policy,
        seed=options.seed,
        minutes=options.minutes,
        rounds=options.rounds,
        pool=options.pool,
        memory=options.memory,
        claimed_epsilon=options.claimed_epsilon,
        watch=options.watch,
        watched=_watched(options.product),
        provenance=replace(
            provenance,
            split=_split_record(options) if product is None else provenance.split,
        ),
        product_content=content,
        subject={
            "table": options.subject.name or BUILTIN_NAME,
            "target": f"target {options.subject.target or BUILTIN_TARGET}",
            "product": str(options.product)
            if options.product or trainer is None
            else trainer.recipe,
        },
        repeat=shlex.join(["reticent", *sys.argv[1:]]),
    )
    if options.workers is not None:
        plan = replace(plan, workers=options.workers)
    stages = Stages(folder=results_folder(options.out))
    with progress_bars(quiet=options.json) as progress:
        result = run_audit(table, plan, split=split, stages=stages, progress=progress)
    dossier = result.dossier
    if options.save_product is not None:
        made = result.product
        if made is None:  # its answers came from a kept stage
            made = _trained_again(trainer, split, options)
        if made is not None:
            save_product(options.save_product, made, dossier.provenance)
    if options.per_record is not None:
        _write_per_record(options.per_record, result.per_record)
    dossier.save(options.out)
    stages.clear()
    if options.json:
        sys.stdout.write(dossier.to_json())
    else:
        console = Console(highlight=False)
        print_report(dossier, console)
        console.print(f"  Report: {options.out / 'report.html'}", soft_wrap=True)
    return dossier.decision.exit_status


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
    trainer: Trainer | None, split: Split, options: AuditOptions
) -> Product | None:
    """Return the product whose answers were kept, trained once more."""
    if (
        isinstance(trainer, PrivateNetworkTrainer | PrivateModuleTrainer)
        and trainer.private.noise == "secret"
    ):
        raise InvalidInput(
            "the product of the interrupted audit cannot be trained again, because its noise was secret; audit into another folder with "
            "--out to train and save a new one."
        )
    if isinstance(trainer, EstimatorTrainer | NetworkTrainer | ModuleTrainer):
        return trainer.train(split.defender, seed=train_seed(options.seed))
    return None


def show(path: Path, out: Path | None) -> int:
    """Print the report of a saved dossier; return the audit's exit status."""
    file = path / "dossier.json" if path.is_dir() else path
    if not file.is_file():
        raise InvalidInput(
            f"there is no dossier at {path}; pass the folder of an audit."
        )
    dossier = Dossier.from_json(file.read_text(encoding="utf-8"))
    if out is not None:
        dossier.save(out)
    print_report(dossier, Console(highlight=False))
    return dossier.decision.exit_status


def _product(
    options: AuditOptions, table: Table
) -> tuple[Product | None, Provenance, str]:
    if options.product is None:
        return None, Provenance(), ""
    product, provenance = load_product(
        options.product, classes=table.classes, trust=options.trust
    )
    file = options.product
    if file.is_dir():
        fitted = isinstance(product, FittedProduct)
        file = file / ("product.skops" if fitted else "product.safetensors")
    return product, provenance, hashlib.sha256(file.read_bytes()).hexdigest()


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


def _split_record(options: AuditOptions) -> dict[str, str]:
    return options.subject.divided


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
