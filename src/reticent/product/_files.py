"""The files of a product: one list, made before anything is opened, that is digested, read and asked."""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reticent.errors import InvalidInput

__all__ = ["ProductFiles", "product_digest"]

DOMAIN = (
    b"reticent product 1\0"  # so that no other digest can be taken for one of a product
)
LENGTH_BYTES = 8
# Bytes of all files of a product that is asked: they are held in memory.
MOST_BYTES = 2**32


@dataclass(frozen=True, kw_only=True)
class ProductFiles:
    """The bytes of every file of a product by its name in the folder, read once."""

    path: Path
    content: dict[str, bytes]
    is_folder: bool = False

    @classmethod
    def of(cls, path: Path | str) -> "ProductFiles":
        """Return all regular files of a folder, or the one that is named.

        Raises
        ------
        InvalidInput
            If there is nothing, or something in the folder is no file, leads out of it, or cannot be read.
        """
        path, content, left = Path(path), {}, MOST_BYTES
        try:
            for name, file in sorted(_files(path)):
                content[os.fsdecode(name)] = data = _read(file, left)
                left -= len(data)
        except OSError as error:
            raise _unreadable(path, error) from error
        return cls(path=path, content=content, is_folder=path.is_dir())

    @cached_property
    def digest(self) -> str:
        """The digest of exactly these bytes; see :func:`product_digest`."""
        return _digest(
            (os.fsencode(name), hashlib.sha256(data).digest())
            for name, data in self.content.items()
        )

    def beside(self, name: str, *, what: str, most: int) -> bytes | None:
        """Return the bytes of a small file of the folder, or beside the file that was named; None if there is none.

        Raises
        ------
        InvalidInput
            If it is larger than any such file, or is no file.
        """
        data = self.content.get(name)
        if not self.is_folder:
            file = self.path.with_name(name)
            if not os.path.lexists(file):
                return None
            if not stat.S_ISREG(file.lstat().st_mode):
                raise InvalidInput(
                    f"the {what} {file} is no regular file, so reading it might never end; delete it to audit the product as one of unknown origin."
                )
            try:
                data = _read(file, most)
            except OSError as error:
                raise _unreadable(file, error) from error
        if data is not None and len(data) > most:
            raise InvalidInput(
                f"the {what} in {self.path} has more than {most:,} bytes, which none has; delete it to audit the product as one of unknown origin."
            )
        return data


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
        If there is nothing, if something cannot be read, or if the folder holds what is no file: a pipe, a device, a link to a folder,
        or a link that leads out of it.
    """
    path = Path(path)
    try:
        return _digest((name, _hash(file)) for name, file in sorted(_files(path)))
    except OSError as error:
        raise _unreadable(path, error) from error


def _digest(files: Iterator[tuple[bytes, bytes]]) -> str:
    """Return the digest of names and hashes of contents, in the order of the names."""
    digest = hashlib.sha256(DOMAIN)
    for name, content in files:
        digest.update(len(name).to_bytes(LENGTH_BYTES, "big"))
        digest.update(name)
        digest.update(content)
    return digest.hexdigest()


def _hash(file: Path) -> bytes:
    with os.fdopen(_opened(file), "rb") as content:
        return hashlib.file_digest(content, "sha256").digest()


def _read(file: Path, most: int) -> bytes:
    with os.fdopen(_opened(file), "rb") as content:
        data = content.read(most + 1)
    if len(data) > most:
        raise InvalidInput(
            f"{file} goes beyond the {most:,} bytes that are read of a product, so nobody could say what is in it; release a smaller one."
        )
    return data


def _opened(file: Path) -> int:
    """Open a regular file; one that was replaced by a pipe in the meantime is not waited for."""
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _no_file(file)
    return handle


def _files(path: Path) -> Iterator[tuple[bytes, Path]]:
    """Yield the name and the path of every file."""
    if not path.is_dir():
        _must_be_file(path)
        yield os.fsencode(path.name), path
        return
    inside = path.resolve()
    for folder, folders, names in os.walk(path, onerror=_raise):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in (*names, *links):
            file = Path(folder) / name
            _must_be_file(file)
            if file.is_symlink() and not file.resolve().is_relative_to(inside):
                raise InvalidInput(
                    f"{file} is a link that leads out of the product, so what is released would be another file than what is audited; put a copy in "
                    "its place."
                )
            yield os.fsencode(file.relative_to(path).as_posix()), file


def _must_be_file(path: Path) -> None:
    """Refuse what has no bytes of its own; a link inside the folder stands for the bytes it leads to."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise _no_file(path)


def _no_file(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} is no file, so what is in it could change without notice; put plain files into the folder of a product."
    )


def _unreadable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"the product {path} cannot be read ({error.strerror or error}: {error.filename}), so nothing can be said of all its bytes; "
        "check the files and who may read them."
    )


def _raise(error: OSError) -> None:
    raise error
