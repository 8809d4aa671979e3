"""Begin an audit: the blind baseline, the product, a product that cannot know the members, and the product once more, side by side."""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.attack import BlindBaseline, Searched, blind_baseline, search_file
from reticent.audits import Answers, Kind
from reticent.data import Split, Table
from reticent.errors import OutputRefused
from reticent.pipeline._case import Case, train_seed
from reticent.pipeline._clean import secret
from reticent.product import (
    OpenedFile,
    Product,
    ProductFiles,
    Provenance,
    Trainer,
    as_product,
    clean_product,
    files_of,
    open_file,
    read_contents,
)
from reticent.run import (
    GIGABYTE,
    Content,
    Run,
    can_travel,
    content_of,
    seed_for,
    stream,
)

__all__ = [
    "FILES",
    "PRODUCT",
    "SEARCH",
    "Begun",
    "Laid",
    "Replica",
    "begin",
    "search_content",
]

# Share of audits that the blind baseline stops although members and non-members come from the same source. One in a
# hundred is rare enough, and a shift of a few per cent is still seen.
BLIND_FALSE_ALARM = 0.01
# Files are opened and searched where their products are made if ten copies of the records, which is about what two opened files take, have room in this share of the memory: they are
# held while the pool is trained.
COPIES, SHARE_FOR_FILES = 10, 0.05
# A file of more bytes is not kept for the case of an interruption if its product is trained in less time: to keep those of two forests of 100 trees beside 39,000 records, 290 megabytes, takes a second of every
# audit, and a training of them as long.
BYTES_TO_KEEP, SECONDS_TO_KEEP = 2**24, 5.0
# The stages by the names under which they are kept, and the files that two of them leave.
BLIND, PRODUCT, REPLICA, CONTROL = "blind", "answers", "insider/replica", "control"
FILES = {PRODUCT: "file", CONTROL: "control-file"}
SEARCH, WRITTEN = "searching the file", "product-files"


@dataclass(frozen=True, kw_only=True)
class Laid:
    """A file laid beside records, and what was found of them in it."""

    file: OpenedFile
    searched: Searched

    def beside(self, challenge: Any) -> Any:
        """Return the challenge of an attacker who holds the file, too."""
        return replace(challenge, file=self.file, searched=self.searched)


def search_content(case: Case, file: str) -> Content:
    """Return what the search of a file, by the name under which it is kept, depends on."""
    return case.content + content_of(SEARCH, file, case.plan.policy.smallest_group)


@dataclass(frozen=True, kw_only=True)
class Replica:
    """The product trained once more: its answers, and how long that took."""

    answers: NDArray[np.float64]
    seconds: float


KINDS: Mapping[str, Any] = {
    BLIND: BlindBaseline,
    PRODUCT: Answers,
    REPLICA: Replica,
    CONTROL: Answers,
}


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What an audit starts from.

    Parameters
    ----------
    blind : BlindBaseline
        What the records alone tell about membership.
    answers : Answers
        The product's, on members and then on non-members.
    product : Product or None
        The product; None if only its answers were kept, by an earlier run that was interrupted.
    unrelated : Answers or None
        Those of a product trained on the auxiliary records; None if none was trained.
    control : Product or None
        That product, if it was trained just now.
    files : ProductFiles or None
        The product's files, made once, if the plan keeps them.
    file, control_file : Laid or None
        The files of both beside the records, if they were opened just now.
    replica : Replica or None
        The product trained once more, for the insider; None if that is left to the insider.
    """

    blind: BlindBaseline
    answers: Answers
    product: Product | None
    unrelated: Answers | None
    control: Product | None
    replica: Replica | None
    files: ProductFiles | None = None
    file: Laid | None = None
    control_file: Laid | None = None


def begin(case: Case, provenance: Provenance, run: Run) -> Begun:
    """Do what needs nothing but the records and the recipe, all at the same time.

    None of it looks at a result of another, so that the order cannot matter. What an interrupted run has finished is kept. The provenance is what
    stands beside a product that is written.
    """
    run.tell("training the product", 0, 1)
    stages = _stages(case, run)
    results: dict[str, _Made] = {}
    for name, depends in stages.items():
        kept = run.store.find(name, KINDS[name], depends=depends)
        files = _kept_files(case, run) if name == PRODUCT else None
        # Without its files, a product whose answers were kept could not be written.
        if kept is not None and (files is not None or name != PRODUCT or not case.plan.keeps_files):  # fmt: skip
            results[name] = _Made(value=kept, files=files)
    missing = [name for name in stages if name not in results]
    if case.plan.product is not None:
        results[PRODUCT] = _given(case, run)
    start = _Start(
        kind=case.kind,
        trainer=case.plan.trainer,
        split=case.split,
        both=case.both,
        seed=run.seed,
        cleaned=case.plan.cleaned,
        looks_inside=PRODUCT in stages or results[PRODUCT].value.internals is not None,
        smallest_group=case.plan.policy.smallest_group,
        provenance=provenance if case.plan.keeps_files else None,
        opens=case.kind.has_file
        and COPIES * case.features.nbytes
        <= SHARE_FOR_FILES * run.effort.memory * GIGABYTE,
    )
    for place, made in run.effort.workers.each(_make, missing, shared=start):
        name = missing[place]
        # What cannot be sent from one process to another is made in this one.
        results[name] = made or STAGES[name](start)
        files = results[name].files
        if files is not None:
            content = {f: np.frombuffer(d, dtype=np.uint8) for f, d in files.content.items()}  # fmt: skip
            run.store.save(WRITTEN, content, depends=case.content)
        run.store.save(name, results[name].value, depends=stages[name])
        laid = results[name].file
        if laid is not None:
            file, k = FILES[name], list(FILES).index(name)
            if start.keeps(results[name]):
                run.store.save(file, laid.file, depends=case.content)
            run.store.save(f"{SEARCH}/{k}", laid.searched, depends=search_content(case, file))  # fmt: skip
    run.tell("training the product", 1, 1)
    control, replica = results.get(CONTROL), results.get(REPLICA)
    return Begun(
        blind=results[BLIND].value,
        answers=results[PRODUCT].value,
        product=results[PRODUCT].product,
        unrelated=None if control is None else control.value,
        control=None if control is None else control.product,
        replica=None if replica is None else replica.value,
        files=results[PRODUCT].files,
        file=results[PRODUCT].file,
        control_file=None if control is None else control.file,
    )


def _stages(case: Case, run: Run) -> dict[str, Content]:
    """Return what is to be done, and what each result depends on."""
    stages: dict[str, Content] = {}
    trainer, auxiliary = case.plan.trainer, case.split.auxiliary
    if trainer is not None and case.plan.product is None:
        stages[PRODUCT] = case.content
    learns = auxiliary is not None and case.kind.can_learn_from(auxiliary)
    if trainer is not None and learns:
        stages[CONTROL] = case.content
    # The longest first, those whose files are searched, so that the others fit beside them.
    stages[BLIND] = case.data_content
    # Before a deadline, the insider waits until it is known how long a training takes.
    if PRODUCT in stages and case.kind.plays_insider and run.effort.deadline is None:
        stages[REPLICA] = case.content
    return stages


def _kept_files(case: Case, run: Run) -> ProductFiles | None:
    """Return the files of a product that an interrupted run has made."""
    if not case.plan.keeps_files:
        return None
    kept = run.store.find(WRITTEN, Mapping[str, NDArray[np.uint8]], depends=case.content)  # fmt: skip
    if kept is None:
        return None
    content = {name: data.tobytes() for name, data in kept.items()}
    return ProductFiles(path=Path("product"), content=content, is_folder=True)


def _given(case: Case, run: Run) -> "_Made":
    """Return the answers of a product that was made elsewhere."""
    product = case.plan.product
    answers = run.keep(
        PRODUCT,
        Answers,
        lambda: case.kind.ask(product, case.both),
        depends=case.content,
    )
    return _Made(value=answers, product=product)


@dataclass(frozen=True, kw_only=True)
class _Made:
    """What came of one stage, the product behind it, if one was trained, and its file, if it was opened and searched."""

    value: Any
    product: Product | None = None
    files: ProductFiles | None = None
    file: Laid | None = None
    seconds: float = 0.0  # of the training


@dataclass(frozen=True, kw_only=True)
class _Start:
    """What all stages share; the control is opened only if the product can be."""

    kind: Kind
    trainer: Trainer | None
    split: Split
    both: Table
    seed: int
    cleaned: bool
    looks_inside: bool
    smallest_group: int
    provenance: Provenance | None
    opens: bool

    def keeps(self, made: _Made) -> bool:
        """Whether the file of a product is kept: unless it is large, and the product quickly made again and the same."""
        assert made.file is not None, "there is a file to keep"
        again = self.trainer is not None and self.trainer.repeatable
        small = made.file.file.nbytes <= BYTES_TO_KEEP
        return small or self.cleaned or not again or made.seconds > SECONDS_TO_KEEP

    def made(
        self,
        answers: Answers,
        product: Product,
        seconds: float,
        *,
        files: ProductFiles | None = None,
    ) -> _Made:
        """Return answers with the product and its file; a file that cannot be read is left for later, when that is said."""
        laid = None
        if self.opens:
            with contextlib.suppress(OutputRefused):
                contents = None if files is None else read_contents(files)
                file = open_file(product, self.both, contents=contents)
                found = search_file(file, smallest_group=self.smallest_group)
                laid = Laid(file=file, searched=found)
        return _Made(value=answers, product=product, files=files, file=laid, seconds=seconds)  # fmt: skip

    def train(self, table: Table, seed: int) -> tuple[Product, float]:
        """Return a product, and the seconds of its training alone: pool and insider plan their trainings by it."""
        assert self.trainer is not None, "without a recipe nothing is trained"
        started = time.perf_counter()
        product = as_product(self.trainer.train(table, seed=seed))
        return product, time.perf_counter() - started


def _make(start: _Start, name: str) -> _Made | None:
    """Do one stage; this is a job for workers. None if its product cannot be sent to another process."""
    made = STAGES[name](start)
    return made if can_travel(made.product) else None


def _blind(start: _Start) -> _Made:
    rng = stream(start.seed, "blind")
    return _Made(
        value=blind_baseline(start.split, rng=rng, false_alarm=BLIND_FALSE_ALARM)
    )


def _product(start: _Start) -> _Made:
    product, seconds = start.train(start.split.defender, train_seed(start.seed))
    notes: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    as_trained = None
    if start.cleaned:
        # What the insider's training again is compared with; it is not cleaned.
        as_trained = start.kind.ask(product, start.both, looks_inside=False).outputs
        product, note, kept = _cleaned(product, start.split.defender)
        notes = (note,)
    answers = start.kind.ask(product, start.both)
    answers = replace(
        answers,
        seconds=seconds,
        warnings=(*notes, *answers.warnings),
        as_trained=as_trained,
        kept=kept,
    )
    files = None
    if start.provenance is not None:
        files = files_of(product, start.provenance)
    return start.made(answers, product, seconds, files=files)


def _cleaned(product: Product, members: Table) -> tuple[Product, str, tuple[str, ...]]:
    """Return the product without what its file need not tell, what was done in one sentence, and what nobody could take out or measures."""
    cleaned = clean_product(product, members, rng=secret())
    done = "; ".join(str(entry) for entry in cleaned.done) or "nothing"
    kept = "; ".join(str(entry) for entry in cleaned.kept if entry.attacked)
    heard = tuple(str(entry) for entry in cleaned.kept if not entry.attacked)
    note = f"the product was cleaned before it was attacked ({done}), and {cleaned.changed}"
    note += f"; could not be cleaned, and is attacked instead: {kept}" if kept else ""
    return cleaned.product, note, heard


def _replica(start: _Start) -> _Made:
    assert start.trainer is not None, "without a recipe nothing is trained"
    # As in the insider's rounds, whose table is coded once for all of them.
    everybody = start.trainer.prepared(start.both)
    members = everybody.take(np.arange(len(start.split.defender)))
    product, seconds = start.train(members, train_seed(start.seed))
    answers = np.asarray(product.outputs(everybody.features), dtype=np.float64)
    return _Made(value=Replica(answers=answers, seconds=seconds))


def _control(start: _Start) -> _Made:
    auxiliary = start.split.auxiliary
    assert auxiliary is not None, "the control is trained only where there is one"
    product, seconds = start.train(auxiliary, seed_for(start.seed, "control"))
    answers = start.kind.ask(product, start.both, looks_inside=start.looks_inside)
    return start.made(answers, product, seconds)


STAGES: Mapping[str, Callable[[_Start], _Made]] = {
    BLIND: _blind,
    PRODUCT: _product,
    REPLICA: _replica,
    CONTROL: _control,
}
