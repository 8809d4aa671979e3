"""Open the product's file, and that of the control: whoever is given a product holds all of its bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reticent.attack import Searched, search_file
from reticent.data import Finding, Severity
from reticent.errors import OutputRefused
from reticent.pipeline._ask import Null
from reticent.pipeline._begin import (
    FILES,
    PRODUCT,
    SEARCH,
    Begun,
    Laid,
    search_content,
)
from reticent.pipeline._case import Case, train_seed
from reticent.product import (
    OpenedFile,
    Product,
    SyntheticTable,
    as_product,
    open_file,
    read_contents,
)
from reticent.run import Run

__all__ = ["Files", "open_beside", "open_files"]


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


def open_beside(case: Case) -> OpenedFile | None:
    """Lay what the file of a synthetic table holds besides its cells beside the records in question; None if that is nothing."""
    product = case.plan.product
    if not isinstance(product, SyntheticTable):
        return None
    contents = product.beside.contents
    if not (contents.arrays or contents.texts or contents.unread):
        return None
    return open_file(product, case.both, contents=contents)


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
    # What was opened beside the product is the file of the control that was trained there, and of no other.
    is_trained = null.product is begun.control
    ready = (begun.file, begun.control_file if is_trained else None)
    names = [*FILES.values()] if is_trained else [FILES[PRODUCT], "control/fresh-file"]
    try:
        file = _opened(names[0], ready[0], lambda: _product_file(case, begun, run), case, run)  # fmt: skip
        if null.rows is not None:
            names[1], control = "control/half", file.take(null.rows)
        else:
            control = _opened(names[1], ready[1], lambda: open_file(_control(case, null, run), case.both), case, run)  # fmt: skip
    except OutputRefused as refusal:
        return Files(findings=(_unread(str(refusal).rstrip(".")),))
    shared = ((file, control), case.plan.policy.smallest_group)
    contents = [search_content(case, name) for name in names]
    found = {k: laid.searched for k, laid in enumerate(ready) if laid is not None}
    missing = [k for k in range(2) if k not in found]
    if len(missing) == 1:
        (k,) = missing
        found[k] = run.keep(f"{SEARCH}/{k}", Searched, lambda: _search(shared, k), depends=contents[k])  # fmt: skip
    elif missing:
        roomy = run.with_room(file.nbytes + control.nbytes)
        both = roomy.keep_each(SEARCH, Searched, missing, _search, shared=shared, depends=contents)  # fmt: skip
        found = dict(enumerate(both))
    return Files(
        product=Laid(file=file, searched=found[0]),
        unrelated=Laid(file=control, searched=found[1]),
    )


def _search(shared: tuple[Sequence[OpenedFile], int], which: int) -> Searched:
    """Search one of the files; this is a job for workers."""
    files, group = shared
    return search_file(files[which], smallest_group=group)


def _opened(
    name: str,
    ready: Laid | None,
    opened: Callable[[], OpenedFile],
    case: Case,
    run: Run,
) -> OpenedFile:
    """Return a file that was opened before, in this run or in an interrupted one, or open it."""
    if ready is not None:
        return ready.file
    return run.keep(name, OpenedFile, opened, depends=case.content)


def _product_file(case: Case, begun: Begun, run: Run) -> OpenedFile:
    """Open the product's own files; one that has none yet is saved first."""
    files = begun.files or case.plan.product_files
    contents = None if files is None else read_contents(files)
    return open_file(_product(case, begun.product, run), case.both, contents=contents)


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
