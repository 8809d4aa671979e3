"""Clean a product, and let the reader look for members in its file before and after."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reticent.attack import (
    Challenge,
    FileCounts,
    Knowledge,
    Reader,
    Searched,
    count_file,
    search_file,
)
from reticent.attack.regression import RegressionChallenge
from reticent.audits import Sides
from reticent.data import Split, Table
from reticent.errors import InvalidInput, InvalidSplit, OutputRefused
from reticent.evidence import Estimate, ltu_accuracy
from reticent.pipeline._case import divide
from reticent.pipeline._input import must_be_writable
from reticent.pool import Pool
from reticent.product import (
    PRODUCT_FILES,
    AnswerChange,
    Cleaned,
    ForeignProduct,
    OpenedFile,
    Product,
    Provenance,
    SavedProduct,
    answer_change,
    clean_product,
    is_trained_on,
    open_file,
    read_contents,
    save_product,
)
from reticent.run import stream

__all__ = ["CleanResult", "clean", "secret"]

LEVEL = 0.95  # of each interval
CHANCE = 0.5  # what the reader reaches if the file says nothing


def secret() -> np.random.Generator:
    """Return a generator from the system's entropy; a shift that can be drawn again can be undone."""
    return np.random.default_rng()


@dataclass(frozen=True, kw_only=True)
class CleanResult:
    """A cleaned product, and what whoever holds its file finds before and after.

    Parameters
    ----------
    cleaned : Cleaned
        The product, what was taken out, what could not be, and how answers on members changed.
    nonmembers : AnswerChange
        How answers on other people changed.
    before, after : Estimate
        AUC of the reader on members against non-members, by person; 0.5 if the file says nothing.
    counts_before, counts_after : FileCounts
        What the file contains, counted.
    """

    cleaned: Cleaned
    nonmembers: AnswerChange
    before: Estimate
    after: Estimate
    counts_before: FileCounts
    counts_after: FileCounts

    @property
    def still_found(self) -> bool:
        """Whether something about single people is known to be in the file still."""
        return bool(self.cleaned.kept) or self.after.low > CHANCE


def clean(
    product: Product | SavedProduct | Path | str,
    table: Table,
    *,
    out: Path | str | None = None,
    trust: tuple[str, ...] = (),
    seed: int = 0,
) -> CleanResult:
    """Make a product whose file holds less about its members, and which answers them as before.

    What is moved is drawn from the system's entropy, and no seed of it is kept: a shift that can be drawn again can be undone. Whoever holds the
    file still has everything that the answers tell; audit the cleaned product.

    Parameters
    ----------
    product : Product, SavedProduct, path or str
        A product, or where one was saved. Its types are checked as for an audit.
    table : Table
        Members and non-members. Which rows were trained on is known from the table's parts, or from the product's provenance.
    out : path, optional
        Folder to save the cleaned product to; never the one that it was loaded from.
    trust : tuple of str
        Further types in the file that you vouch for.
    seed : int
        For the reader, never for what is moved.

    Raises
    ------
    InvalidInput
        If the product has a privacy guarantee, which does not cover a second look at the records.
    InvalidSplit
        If it is not known which rows the product was trained on.
    OutputRefused
        If there is a product in the folder already.
    """
    provenance, name, files = Provenance(), "the product", None
    if isinstance(product, Path | str):
        _must_be_elsewhere(out, Path(product))
        product = SavedProduct(product, trust=trust)
    if isinstance(product, SavedProduct):
        provenance, files = product.notes.provenance, product.files
        name = f"the product {files.path}"
        product = product.on(table.classes)
    _must_be_elsewhere(out, None if files is None else files.path)
    if provenance.guarantee is not None:
        raise InvalidInput(
            f"{name} has a privacy guarantee; cleaning looks at the records again, which that guarantee does not cover, so release the product "
            "as it is."
        )
    split = _split(table, provenance, name)
    if out is not None:
        must_be_writable(Path(out))
    members = split.defender
    if isinstance(product, ForeignProduct):
        cleaned = product.cleaned(members, rng=secret())
    else:
        cleaned = clean_product(product, members, rng=secret())
    written = None
    if out is not None:
        save_product(out, cleaned.product, provenance)
        written = read_contents(out)
    both = members.join(split.reserved)
    found = None if files is None else read_contents(files)
    before = open_file(product, both, contents=found)
    after = open_file(cleaned.product, both, contents=written)
    tags = np.repeat([True, False], [len(members), len(split.reserved)])
    sides = Sides(tags, both.units)
    found_before, found_after = search_file(before), search_file(after)
    return CleanResult(
        cleaned=cleaned,
        nonmembers=answer_change(product, cleaned.product, split.reserved.features),
        before=_read(before, found_before, sides, seed),
        after=_read(after, found_after, sides, seed),
        counts_before=count_file(before, found_before, tags),
        counts_after=count_file(after, found_after, tags),
    )


def _read(file: OpenedFile, searched: Searched, sides: Sides, seed: int) -> Estimate:
    """Return the AUC of the reader, which sees the file and no answers."""
    n = len(file)
    challenge: Challenge | RegressionChallenge
    if file.classes:
        challenge = Challenge(
            probabilities=np.full((n, file.classes), 1 / file.classes),
            labels=file.target.astype(np.int64),
            file=file,
            searched=searched,
        )
    else:
        challenge = RegressionChallenge(
            predictions=np.zeros(n), targets=file.target, file=file, searched=searched
        )
    knowledge: Knowledge[Pool] = Knowledge(tags=sides.sealed())
    scores = Reader().score(challenge, knowledge=knowledge, rng=stream(seed, "clean"))
    units = sides.divide(scores.values)
    return ltu_accuracy(units.members, units.nonmembers, level=LEVEL)


def _split(table: Table, provenance: Provenance, name: str) -> Split:
    if table.parts is not None:
        return divide(table, seed=0)
    if provenance.seed is not None and is_trained_on(provenance, table):
        return divide(table, seed=provenance.seed)
    raise InvalidSplit(
        f"it is not known which rows of the table {name} was trained on, so nobody can be called a member; mark them in a column with "
        "defender and reserved, and name it as the table's part."
    )


def _must_be_elsewhere(out: Path | str | None, path: Path | None) -> None:
    """Refuse a folder that holds a product, the one to be cleaned above all."""
    if out is None:
        return
    folder = Path(out)
    source = None if path is None else (path if path.is_dir() else path.parent)
    same = source is not None and folder.resolve() == source.resolve()
    if same or any((folder / name).exists() for name in PRODUCT_FILES):
        raise OutputRefused(
            f"the folder {folder} holds a product already, which would be replaced; choose another one."
        )
