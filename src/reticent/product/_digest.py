"""The digest of a product: a product is all of its bytes, and every file of its folder with its name."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from reticent.errors import InvalidInput

__all__ = ["product_digest"]

DOMAIN = (
    b"reticent product 1\0"  # so that no other digest can be taken for one of a product
)
LENGTH_BYTES = 8


def product_digest(path: Path | str) -> str:
    r"""Return the SHA-256 of a product: of its file, or of every file in its folder.

    Names count as well as bytes, so adding, removing, renaming or changing any file gives another digest. Dates, owners, modes
    and empty folders do not count. The digest is that of ``reticent product 1\0`` and, for every file in the order of the bytes of its
    name (relative to the folder, with slashes), the length of the name in 8 bytes, the name, and the SHA-256 of the content.

    Parameters
    ----------
    path : path
        A folder or a file.

    Raises
    ------
    InvalidInput
        If there is nothing, if something cannot be read, or if the folder holds what is no file: a pipe, a device, or a link to a folder.
    """
    path = Path(path)
    digest = hashlib.sha256(DOMAIN)
    try:
        for name, file in sorted(_files(path)):
            digest.update(len(name).to_bytes(LENGTH_BYTES, "big"))
            digest.update(name)
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    except OSError as error:
        raise InvalidInput(
            f"the product {path} cannot be read ({error.strerror or error}: {error.filename}), so nothing can be said of all its bytes; "
            "check the files and who may read them."
        ) from error
    return digest.hexdigest()


def _files(path: Path) -> Iterator[tuple[bytes, Path]]:
    """Yield the name and the path of every file."""
    if not path.is_dir():
        _must_be_file(path)
        yield os.fsencode(path.name), path
        return
    for folder, folders, names in os.walk(path, onerror=_raise):
        for name in folders:
            if (Path(folder) / name).is_symlink():
                _must_be_file(Path(folder) / name)
        for name in names:
            file = Path(folder) / name
            _must_be_file(file)
            yield os.fsencode(file.relative_to(path).as_posix()), file


def _must_be_file(path: Path) -> None:
    """Refuse what has no bytes of its own; a link to a file stands for the bytes it leads to."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InvalidInput(
            f"{path} is no file, so what is in it could change without notice; put plain files into the folder of a product."
        )


def _raise(error: OSError) -> None:
    raise error
