"""Save and load products without ever executing a stranger's code."""

import os
from pathlib import Path

from reticent.errors import InvalidInput, OutputRefused
from reticent.product._files import ProductFiles
from reticent.product._fitted import MODEL_FILE
from reticent.product._foreign import LOADING, Cell, ForeignProduct
from reticent.product._network import NETWORK_FILE
from reticent.product._protocols import Product
from reticent.product._provenance import (
    PROVENANCE_FILE,
    Notes,
    Provenance,
    notes_bytes,
    notes_of,
)
from reticent.product._synthetic import SYNTHETIC_FILE
from reticent.product.contents import stored_bytes
from reticent.run import open_folder, write_bytes

__all__ = [
    "PRODUCT_FILES",
    "SavedProduct",
    "files_of",
    "load_product",
    "must_hold_nothing_else",
    "save_product",
    "write_files",
]

# Names of the file of a product in its folder.
PRODUCT_FILES = (NETWORK_FILE, MODEL_FILE, SYNTHETIC_FILE)


def save_product(folder: Path | str, product: Product, provenance: Provenance) -> Path:
    """Write a product and its provenance into a folder; return the folder.

    Raises
    ------
    OutputRefused
        If the folder cannot be written or the product cannot be stored without pickle or code.
    """
    return write_files(folder, files_of(product, provenance))


def files_of(product: Product, provenance: Provenance) -> ProductFiles:
    """Return the files that a product and its provenance are released as, made once: what is read of them is what is written."""
    notes = Notes(provenance=provenance, quantity=product.quantity, learned=product.learned)  # fmt: skip
    content = {
        product.file_name: stored_bytes(product),
        PROVENANCE_FILE: notes_bytes(notes),
    }
    by_name = dict(sorted(content.items(), key=lambda file: os.fsencode(file[0])))
    return ProductFiles(path=Path(product.file_name), content=by_name, is_folder=True)


def write_files(folder: Path | str, files: ProductFiles) -> Path:
    """Write the files of a product into a folder; return the folder.

    Raises
    ------
    OutputRefused
        If the folder cannot be written.
    """
    folder = Path(folder)
    try:
        open_folder(folder)
        for name, data in files.content.items():
            write_bytes(folder / name, data)
    except OutputRefused:
        raise
    except OSError as error:
        raise OutputRefused(
            f"the product cannot be written to {folder} ({error.strerror or error}); choose another folder."
        ) from error
    # A folder holds one product: an older file of another kind must not be loaded in its place.
    for name in PRODUCT_FILES:
        if name not in files.content:
            (folder / name).unlink(missing_ok=True)
    return folder


def must_hold_nothing_else(folder: Path | str) -> None:
    """Refuse a folder with files that are no product's: they would be released with it, and nobody would have read them.

    Raises
    ------
    OutputRefused
        If there is any.
    """
    folder = Path(folder)
    ours = {*PRODUCT_FILES, PROVENANCE_FILE}
    others = sorted(f.name for f in folder.iterdir() if f.name not in ours) if folder.is_dir() else []  # fmt: skip
    if others:
        raise OutputRefused(
            f"the folder {folder} holds {others[0]!r}{f' and {len(others) - 1} more' if len(others) > 1 else ''}, which would leave with the product "
            "although nobody has read it; choose a new folder."
        )


class SavedProduct:
    """A product that lies somewhere: its files, read once before anything is opened, and the process in which it is asked.

    Parameters
    ----------
    path : path
        A folder written by :func:`save_product`, or a ``.skops`` file from elsewhere.
    trust : tuple of str
        Further types that the caller vouches for, by full name.

    Raises
    ------
    UnsafeProduct
        If the file is a pickle, or holds a type, a parameter or an operation that is not known to be harmless.
    """

    def __init__(self, path: Path | str, *, trust: tuple[str, ...] = ()) -> None:
        path = Path(path)
        if not path.exists():
            raise _no_product(path)
        self.files = ProductFiles.of(path)
        self._name = _file_of(self.files)
        self.notes = notes_of(self.files)
        self._cell = Cell()
        self._quantity = self._cell.load(self._name, self.files.content[self._name], trust)  # fmt: skip

    @property
    def quantity(self) -> bool:
        """Whether it is a regression model.

        The answer comes from the product itself, not from its provenance, which anybody can write. Only for an estimator that
        does not say what it is, the provenance decides.
        """
        return self.notes.quantity if self._quantity is None else self._quantity

    def on(self, classes: tuple[str, ...]) -> Product:
        """Return the product with its answers in the order of a table's classes; without classes the target is a quantity.

        Raises
        ------
        InvalidPredictions
            If the product predicts a class and the table's target is a quantity, or the reverse.
        """
        is_network = self._name.endswith(".safetensors")
        learned = () if is_network or not classes else self.notes.learned
        facts, _ = self._cell.ask(
            "become",
            classes=classes,
            learned=learned,
            seconds=LOADING,
            doing="to be laid beside a table",
        )
        return ForeignProduct.of(
            self._cell,
            facts,
            data=self.files.content[self._name],
            file_name=NETWORK_FILE if is_network else MODEL_FILE,
            classes=classes,
            learned=learned,
        )


def load_product(
    path: Path | str, *, classes: tuple[str, ...], trust: tuple[str, ...] = ()
) -> tuple[Product, Provenance]:
    """Load a network, a module, or a skops file in a process of its own, which opens nothing, after checking every type in it.

    What is returned answers as the product does. The estimator itself never is in this process; who trusts it can load it with ``skops.io.load``.

    Parameters
    ----------
    path : path
        A folder written by :func:`save_product`, or a ``.skops`` file from elsewhere.
    classes : tuple of str
        Names of the classes of the table that it will be audited on; empty if the table's target is a quantity.
    trust : tuple of str
        Further types that the caller vouches for, by full name.

    Raises
    ------
    UnsafeProduct
        If the file is a pickle, holds a type, a parameter or an operation that is not known to be harmless, or the product crashes or hangs.
    InvalidPredictions
        If the product predicts a class and the table's target is a quantity, or the reverse.
    """
    saved = SavedProduct(path, trust=trust)
    return saved.on(classes), saved.notes.provenance


def _file_of(files: ProductFiles) -> str:
    """Return the name of the file that holds the model."""
    if not files.is_folder:
        return files.path.name
    for name in (NETWORK_FILE, MODEL_FILE):
        if name in files.content:
            return name
    if SYNTHETIC_FILE in files.content:
        raise InvalidInput(
            f"{files.path} holds a synthetic table and no model; audit it with --synthetic in place of --product."
        )
    raise _no_product(files.path)


def _no_product(path: Path) -> InvalidInput:
    return InvalidInput(
        f"there is no product at {path}; pass a folder with {MODEL_FILE} or {NETWORK_FILE}, or a .skops file."
    )
