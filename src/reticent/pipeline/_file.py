"""Open the product's file, and that of the control: whoever is given a product holds all of its bytes."""

from dataclasses import dataclass

from reticent.data import Finding, Severity, Table
from reticent.errors import OutputRefused
from reticent.pipeline._ask import Null
from reticent.pipeline._case import Case, train_seed
from reticent.product import OpenedFile, Product, as_product, open_file
from reticent.run import Run

__all__ = ["Files", "open_files"]


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files that attackers may hold.

    Parameters
    ----------
    product, unrelated : OpenedFile or None
        The product's file beside all records, and that of the control that cannot know the members beside the records it was asked about;
        None if there is none.
    findings : tuple of Finding
        Why there is none.
    """

    product: OpenedFile | None = None
    unrelated: OpenedFile | None = None
    findings: tuple[Finding, ...] = ()


def open_files(case: Case, product: Product | None, null: Null, run: Run) -> Files:
    """Lay the file of the product, and that of the control, beside the records in question.

    A product whose answers were kept by an interrupted run is trained again, if that gives the same product.

    Parameters
    ----------
    case : Case
        What is audited.
    product : Product or None
        The product; None if only its answers were kept.
    null : Null
        The control.
    run : Run
        Seed and progress.
    """
    trainer = case.plan.trainer
    can_train = trainer is not None and trainer.repeatable
    if product is None and can_train:
        assert trainer is not None
        seed = train_seed(run.seed)
        product = as_product(trainer.train(case.split.defender, seed=seed))
    if product is None:
        return Files(
            findings=(_unread("its answers were kept, but its noise was secret"),)
        )
    try:
        file = open_file(product, case.both)
        if null.rows is not None:
            return Files(product=file, unrelated=file.take(null.rows))
        return Files(product=file, unrelated=_unrelated(case, null, run, case.both))
    except OutputRefused as refusal:
        return Files(findings=(_unread(str(refusal).rstrip(".")),))


def _unrelated(case: Case, null: Null, run: Run, table: Table) -> OpenedFile:
    """Return the file of a product trained on other people."""
    control = null.product
    if control is None:
        trainer, auxiliary = case.plan.trainer, case.split.auxiliary
        assert trainer is not None and auxiliary is not None, "it was trained before"  # noqa: PT018
        control = as_product(trainer.train(auxiliary, seed=run.seed_for("control")))
    return open_file(control, table)


def _unread(why: str) -> Finding:
    return Finding(
        name="file_not_read",
        severity=Severity.WARNING,
        text=f"the product's file was not read ({why}), so nothing is known about what it contains.",
    )
