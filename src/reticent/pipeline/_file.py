"""Open the product's file, and that of the control: whoever is given a product holds all of its bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reticent.attack import Searched, search_file
from reticent.data import Finding, Severity
from reticent.errors import OutputRefused
from reticent.pipeline._ask import Null
from reticent.pipeline._begin import Begun
from reticent.pipeline._case import Case, train_seed
from reticent.product import OpenedFile, Product, as_product, open_file
from reticent.run import Run, content_of

__all__ = ["Files", "open_files"]


@dataclass(frozen=True, kw_only=True)
class Laid:
    """A file laid beside records, and what was found of them in it."""

    file: OpenedFile
    searched: Searched

    def beside(self, challenge: Any) -> Any:
        """Return the challenge of an attacker who holds the file, too."""
        return replace(challenge, file=self.file, searched=self.searched)


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files that attackers may hold.

    Parameters
    ----------
    product, unrelated : Laid or None
        The product's file beside all records, and that of the control that cannot know the members beside the records it was asked about;
        None if there is none.
    findings : tuple of Finding
        Why there is none.
    """

    product: Laid | None = None
    unrelated: Laid | None = None
    findings: tuple[Finding, ...] = ()


def open_files(case: Case, begun: Begun, null: Null, run: Run) -> Files:
    """Lay the file of the product, and that of the control, beside the records in question, and look for every record in them.

    What an interrupted run has read is kept. Both are searched at the same time, and once: the attack and the counts use the same search.

    Parameters
    ----------
    case : Case
        What is audited.
    begun : Begun
        The product, and what was opened when it was made.
    null : Null
        The control.
    run : Run
        Seed and progress.
    """
    try:
        file = run.keep(
            "file",
            OpenedFile,
            lambda: _opened(
                begun.file, lambda: _product(case, begun.product, run), case
            ),
            depends=case.content,
        )
        if null.rows is not None:
            control = file.take(null.rows)
        else:
            # What was opened is the file of the product that was trained beside this one, and of no other control.
            is_trained = null.product is begun.control
            ready = begun.control_file if is_trained else None
            control = run.keep(
                "control-file",
                OpenedFile,
                lambda: _opened(ready, lambda: _control(case, null, run), case),
                depends=case.content,
            )
    except OutputRefused as refusal:
        return Files(findings=(_unread(str(refusal).rstrip(".")),))
    group = case.plan.policy.smallest_group
    found = run.with_room(file.nbytes + control.nbytes).keep_each(
        "searching the file",
        Searched,
        range(2),
        _search,
        shared=((file, control), group),
        depends=[case.content + content_of("searched", k, group) for k in range(2)],
    )
    return Files(
        product=Laid(file=file, searched=found[0]),
        unrelated=Laid(file=control, searched=found[1]),
    )


def _search(shared: tuple[Sequence[OpenedFile], int], which: int) -> Searched:
    """Search one of the files; this is a job for workers."""
    files, group = shared
    return search_file(files[which], smallest_group=group)


def _opened(
    ready: OpenedFile | None, product: Callable[[], Product], case: Case
) -> OpenedFile:
    """Return a file that was opened before, or open that of a product."""
    return open_file(product(), case.both) if ready is None else ready


def _product(case: Case, product: Product | None, run: Run) -> Product:
    """Return the product; one whose answers alone were kept is trained again, if that gives the same product."""
    if product is not None:
        return product
    trainer = case.plan.trainer
    if trainer is None or not trainer.repeatable or case.plan.cleaned:
        raise OutputRefused(
            "the answers of an interrupted audit were kept, but the same product cannot be made again"
        )
    return as_product(trainer.train(case.split.defender, seed=train_seed(run.seed)))


def _control(case: Case, null: Null, run: Run) -> Product:
    """Return a product trained on other people."""
    if null.product is not None:
        return null.product
    trainer, auxiliary = case.plan.trainer, case.split.auxiliary
    assert trainer is not None, "it has trained the control before"
    assert auxiliary is not None, "the control was trained on it"
    return as_product(trainer.train(auxiliary, seed=run.seed_for("control")))


def _unread(why: str) -> Finding:
    return Finding(
        name="file_not_read",
        severity=Severity.WARNING,
        text=f"the product's file was not read ({why}), so nothing is known about what it contains.",
    )
