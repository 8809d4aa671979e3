"""Read everything in the file of a product, or in its folder."""

import tempfile
from pathlib import Path
from typing import Protocol, runtime_checkable

from reticent.product._files import ProductFiles
from reticent.product._protocols import Product
from reticent.product.contents._values import Contents
from reticent.product.contents._walk import Walk

__all__ = ["contents_of", "read_contents", "stored_bytes"]

# Bytes that all parts of a product may unpack to: more than any model of a table, less than the memory of a computer.
MOST_BYTES = 2**31


@runtime_checkable
class _Stored(Protocol):
    """A product that gives the bytes of its file."""

    def to_bytes(self) -> bytes:
        """Return them."""
        ...


def read_contents(
    source: ProductFiles | Path | str | bytes, *, most_bytes: int = MOST_BYTES
) -> Contents:
    """Read all numbers, texts and trees in a saved product, without building an object or running anything.

    Read are: skops archives with their schema, every array, members that the schema does not name, comments, and bytes
    between the members; JSON; boosters of XGBoost; safetensors with their metadata; compressed and encoded (base64,
    hexadecimal) pieces inside any of them; lists of numbers in texts; runs of floats in bytes of unknown form. What is damaged,
    too large or of no known form is listed as unread.

    Parameters
    ----------
    source : ProductFiles, path or bytes
        The folder of a product, one file, the list of its files, or the bytes of one file. Names in a folder are read, too.
    most_bytes : int
        Largest number of bytes to read, and largest number that packed pieces may unpack to.

    Returns
    -------
    Contents
        What was found.

    Raises
    ------
    InvalidInput
        If there is no such folder or file, it cannot be read, or it holds what is no file of its own.

    Examples
    --------
    >>> contents = read_contents(b'{"weights": [0.5, 0.25]}')
    >>> contents.arrays[0].values.tolist(), contents.parameters
    ([0.5, 0.25], 2)
    """
    walk = Walk(most_bytes=most_bytes)
    if isinstance(source, bytes):
        walk.blob("", source)
        return walk.contents(size=len(source))
    files = source if isinstance(source, ProductFiles) else ProductFiles.of(source)
    if files.is_folder:
        walk.texts("names of files", files.content)
    size = 0
    for name, data in files.content.items():
        size += len(data)
        if size > most_bytes:
            walk.unread(name, f"the files hold more than {most_bytes:,} bytes")
            continue
        walk.blob(name, data)
    return walk.contents(size=size)


def contents_of(product: Product, *, most_bytes: int = MOST_BYTES) -> Contents:
    """Return the contents of the file that a product would be released as.

    A product that does not give its bytes is saved to a temporary folder, which is removed.

    Parameters
    ----------
    product : Product
        The product.
    most_bytes : int
        As for :func:`read_contents`.

    Raises
    ------
    OutputRefused
        If the product cannot be stored without pickle or code, and so has no file to read.
    """
    name = product.file_name or "product"
    files = ProductFiles(path=Path(name), content={name: stored_bytes(product)})
    return read_contents(files, most_bytes=most_bytes)


def stored_bytes(product: Product) -> bytes:
    """Return the bytes of a product's file; one that only saves itself is saved to a temporary folder."""
    if isinstance(product, _Stored):
        return product.to_bytes()
    with tempfile.TemporaryDirectory(prefix="reticent-") as folder:
        file = Path(folder) / (product.file_name or "product")
        product.save(file)
        return file.read_bytes()
