"""Read everything in the file of a product, or in its folder."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from reticent.errors import InvalidInput
from reticent.product._protocols import Product
from reticent.product.contents._values import Contents
from reticent.product.contents._walk import Walk

__all__ = ["contents_of", "read_contents"]

# Bytes that all parts of a product may unpack to: more than any model of a table, less than the memory of a computer.
MOST_BYTES = 2**31


def read_contents(
    source: Path | str | bytes, *, most_bytes: int = MOST_BYTES
) -> Contents:
    """Read all numbers, texts and trees in a saved product, without building an object or running anything.

    Read are: skops archives with their schema, every array, members that the schema does not name, comments, and bytes
    between the members; JSON; boosters of XGBoost; safetensors with their metadata; compressed and encoded (base64,
    hexadecimal) pieces inside any of them; lists of numbers in texts; runs of floats in bytes of unknown form. What is damaged,
    too large or of no known form is listed as unread.

    Parameters
    ----------
    source : path or bytes
        The folder of a product, one file, or the bytes of one file.
    most_bytes : int
        Largest number of bytes to read, and largest number that packed pieces may unpack to.

    Returns
    -------
    Contents
        What was found.

    Raises
    ------
    InvalidInput
        If there is no such folder or file, or it cannot be read.

    Examples
    --------
    >>> contents = read_contents(b'{"weights": [0.5, 0.25]}')
    >>> contents.arrays[0].values.tolist(), contents.parameters
    ([0.5, 0.25], 2)
    """
    walk, size = Walk(most_bytes=most_bytes), 0
    if isinstance(source, bytes):
        walk.blob("", source)
        return walk.contents(size=len(source))
    path = Path(source)
    if not path.exists():
        raise InvalidInput(
            f"there is nothing at {path}, so nothing can be read; pass the folder or the file of a product."
        )
    for file in _files(path):
        name = file.name if file == path else file.relative_to(path).as_posix()
        if file.is_symlink():
            walk.unread(name, "a link to another place")
            continue
        try:
            length = file.stat().st_size
            size += length
            if size > most_bytes:
                walk.unread(name, f"the files hold more than {most_bytes:,} bytes")
                continue
            data = file.read_bytes()
        except OSError as error:
            raise InvalidInput(
                f"{name} cannot be read ({error.strerror or error}), so nobody knows what is in it; check its permissions."
            ) from error
        walk.blob(name, data)
    return walk.contents(size=size)


def contents_of(product: Product, *, most_bytes: int = MOST_BYTES) -> Contents:
    """Return the contents of the file that a product would be released as.

    The product is saved to a temporary folder, which is removed.

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
    with tempfile.TemporaryDirectory(prefix="reticent-") as folder:
        file = Path(folder) / (product.file_name or "product")
        product.save(file)
        return read_contents(file, most_bytes=most_bytes)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for entry in sorted(path.rglob("*")):
        if entry.is_symlink() or entry.is_file():
            yield entry
