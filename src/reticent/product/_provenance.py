"""Where a product comes from: written by whoever made it, and read as a claim."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from reticent._codec import decode, encode
from reticent._json import read_json, write_json
from reticent.account import Guarantee
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product._files import ProductFiles
from reticent.run import KEYED, keyed, read_text, write_text

__all__ = [
    "PROVENANCE_FILE",
    "Notes",
    "Provenance",
    "holds_plain_hash",
    "is_trained_on",
    "notes_bytes",
    "notes_of",
    "read_notes",
    "read_provenance",
    "table_digest",
    "versions",
    "write_notes",
    "write_notes_file",
]

PROVENANCE_FILE = "provenance.json"
MOST_BYTES = 2**22  # of that file; the names of 30,000 classes fit


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a product comes from, as whoever made it says: a claim, unless reticent has just made the product itself.

    Parameters
    ----------
    recipe : str
        The trainer's description; empty if unknown.
    data_fingerprint : str
        Digest of the table that the product was trained on, keyed with the owner's secret (:func:`table_digest`); empty if
        unknown. Version 0.2 wrote a plain hash, which is still recognised.
    seed : int or None
        Seed of the run.
    classes : tuple of str
        Names of the classes; empty if unknown, or if the product predicts a quantity.
    versions : mapping of str to str
        Versions of the Python packages that were used.
    split : mapping of str to str
        How the table was divided, in enough detail to divide it again.
    claimed_epsilon : float or None
        Epsilon that whoever trained the product claims; None if nothing is claimed.
    guarantee : Guarantee or None
        What the training is said to guarantee, if anything.
    """

    recipe: str = ""
    data_fingerprint: str = ""
    seed: int | None = None
    classes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    split: Mapping[str, str] = field(default_factory=dict)
    claimed_epsilon: float | None = None
    guarantee: Guarantee | None = None


def versions() -> dict[str, str]:
    """Return the versions of the packages that a result depends on."""
    return dict(_versions())


@functools.cache
def _versions() -> dict[str, str]:
    # Read once: it takes longer than to make a small synthetic table, of which a pool makes many.
    names = (
        "reticent",
        "numpy",
        "scipy",
        "scikit-learn",
        "pandas",
        "xgboost-cpu",
        "xgboost",
        "lightgbm",
        "catboost",
        "torch",
        "numba",
    )
    installed = {}
    for name in names:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def table_digest(table: Table, *, seed: int | None) -> str:
    """Return the digest by which the owner recognises a table and how it was divided, and which tells nobody else anything.

    The seed says who is a member. A seed that could be edited would let members pass for non-members, and attacks on the product
    would then find nothing.

    Parameters
    ----------
    table : Table
        The whole table.
    seed : int or None
        Seed of the run that divided it; None if all of it was trained on.

    Raises
    ------
    OutputRefused
        If the owner has no key yet and none can be written.
    """
    return keyed(f"{table.fingerprint} {seed}", about="table and seed")


def is_trained_on(provenance: Provenance, table: Table) -> bool:
    """Return whether a product is said to have been trained on a table; never true without the key of whoever trained it."""
    digest = provenance.data_fingerprint
    if holds_plain_hash(provenance):
        return digest == table.fingerprint
    return bool(digest) and digest == table_digest(table, seed=provenance.seed)


def holds_plain_hash(provenance: Provenance) -> bool:
    """Return whether a provenance holds an unkeyed hash of the table, as version 0.2 wrote it."""
    digest = provenance.data_fingerprint
    return bool(digest) and not digest.startswith(KEYED)


@dataclass(frozen=True, kw_only=True)
class Notes:
    """What the file beside a saved product says about it.

    Parameters
    ----------
    provenance : Provenance
        Where the product comes from.
    learned : tuple of str
        Names of the class numbers that it was trained on.
    quantity : bool
        Whether it is said to predict a quantity.
    """

    provenance: Provenance
    learned: tuple[str, ...] = ()
    quantity: bool = False


def write_notes(folder: Path, notes: Notes) -> None:
    """Write the file that lies beside a saved product, readable by its owner alone."""
    write_notes_file(folder / PROVENANCE_FILE, notes)


def write_notes_file(file: Path, notes: Notes) -> None:
    """Write what there is to say about a product to a file of any name, readable by its owner alone."""
    write_text(file, notes_bytes(notes).decode(), mode=0o600)


def notes_bytes(notes: Notes) -> bytes:
    """Return the file that says what there is to say about a product."""
    content = {
        **encode(notes.provenance),
        "quantity": notes.quantity,
        "learned": list(notes.learned),
    }
    return write_json(content).encode()


def read_provenance(path: Path | str) -> Provenance:
    """Return where a saved product is said to come from, without loading the product.

    Parameters
    ----------
    path : path
        The product's folder, or a file in it.
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    if not (folder / PROVENANCE_FILE).is_file():
        raise InvalidInput(
            f"there is no {PROVENANCE_FILE} beside {path}, so nothing is known about its training; pass the folder of a product that "
            "`reticent train` or --save-product wrote."
        )
    return read_notes(folder / PROVENANCE_FILE).provenance


def read_notes(file: Path) -> Notes:
    """Return what a file beside a product says; nothing if there is no such file.

    Raises
    ------
    InvalidInput
        If the file says something that is no provenance.
    """
    if not file.is_file():
        return Notes(provenance=Provenance())
    text = read_text(file, what="provenance", most=MOST_BYTES)
    return _notes(text, str(file))


def notes_of(files: ProductFiles) -> Notes:
    """Return what the file in a product's folder, or beside its file, says; nothing if there is none."""
    data = files.beside(PROVENANCE_FILE, what="provenance", most=MOST_BYTES)
    if data is None:
        return Notes(provenance=Provenance())
    where = f"{PROVENANCE_FILE} of {files.path}"
    try:
        return _notes(data.decode(), where)
    except UnicodeDecodeError as error:
        raise _unreadable(where, f"it is not UTF-8 text: {error.reason}") from error


def _notes(text: str, where: str) -> Notes:
    try:
        content = _of_today(read_json(text, "object"))
        quantity = decode(bool, content.pop("quantity", False), ("quantity",))
        learned = decode(tuple[str, ...], content.pop("learned", []), ("learned",))
        provenance: Provenance = decode(Provenance, content)
    except InvalidInput as error:
        raise _unreadable(where, str(error)) from error
    return Notes(provenance=provenance, learned=learned, quantity=quantity)


def _unreadable(where: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"the provenance {where} cannot be read ({why.rstrip('.')}); delete it to audit the product as one of unknown origin."
    )


def _of_today(content: dict[str, Any]) -> dict[str, Any]:
    """Return a provenance with the keys of today: version 0.1 called a guarantee a promise."""
    if "promise" in content:
        content["guarantee"] = content.pop("promise")
    return content
