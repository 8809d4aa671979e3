"""Keep results by the content that they depend on, so that a killed run can continue."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from reticent.errors import OutputRefused
from reticent.run._codec import pack, unpack
from reticent.run._content import Content, environment

__all__ = ["Store"]

T = TypeVar("T")

README = """SENSITIVE. Intermediate results of a run that is going on or was interrupted:
figures of single records. They are removed when the run ends. Delete the folder if it stays.
"""
MARK = "SENSITIVE."  # a folder whose README begins so was made by a store

DIGEST_BYTES = 32  # of SHA-256, at the head of each file
KEY_DIGITS = (
    24  # 96 bits: any two of a billion results share a name with probability 1e-11
)
LONGEST_NAME = 100  # file systems take 255 bytes in all


def _warn(sentence: str) -> None:
    # The caller of `keep` is four frames up: _warn, _read, keep, whoever asks.
    warnings.warn(sentence, RuntimeWarning, stacklevel=4)


@dataclass(frozen=True, kw_only=True)
class Store:
    """A folder of finished results, each under a name that is a hash of everything it depends on.

    A result is found again if its name, its content and the environment (versions and source) are
    the same. Each file begins with a hash of the rest. A file that is damaged, or of another type, counts as absent: it
    is reported, computed again and overwritten. A result that depends on something opaque is neither read nor written.

    Parameters
    ----------
    folder : Path or None
        Where results are kept, readable by the owner alone; None keeps nothing.
    warn : callable
        Called with one sentence about each file that could not be used; issues a
        ``RuntimeWarning`` by default.

    Examples
    --------
    >>> nothing = Store(folder=None)
    >>> nothing.keep("three", int, lambda: 3, depends=Content(("of no matter",)))
    3
    """

    folder: Path | None
    warn: Callable[[str], None] = _warn

    def keep(
        self, name: str, kind: type[T] | Any, make: Callable[[], T], *, depends: Content
    ) -> T:
        """Return a result that was kept, or make it and keep it.

        Parameters
        ----------
        name : str
            Name of the result, for example ``"pool/12"``.
        kind : type
            Type of the result, by which it is read; see :func:`reticent.run.unpack`.
        make : callable
            Computes the result.
        depends : Content
            Everything that the result depends on besides the environment.

        Raises
        ------
        OutputRefused
            If the result cannot be written.
        """
        path = self._path(name, depends)
        if path is None:
            return make()
        stored: tuple[T] | None = self._read(path, kind)
        if stored:
            return stored[0]
        value = make()
        self._write(path, value)
        return value

    def find(self, name: str, kind: type[T] | Any, *, depends: Content) -> T | None:
        """Return a result that was kept, or None."""
        path = self._path(name, depends)
        stored = None if path is None else self._read(path, kind)
        return stored[0] if stored else None

    def save(self, name: str, value: object, *, depends: Content) -> None:
        """Keep a result.

        Raises
        ------
        OutputRefused
            If it cannot be written.
        """
        path = self._path(name, depends)
        if path is not None:
            self._write(path, value)

    def clear(self) -> None:
        """Remove everything that was kept, and the folder if it was made for that."""
        if self.folder is None or not self.folder.is_dir():
            return
        readme = self.folder / "README"
        # Only a folder that a store made is removed as a whole; in any other, somebody else's files may lie.
        if readme.is_file() and readme.read_text().startswith(MARK):
            shutil.rmtree(self.folder)
            return
        for path in [*self.folder.glob("*.stage"), *self.folder.glob("*.part")]:
            _remove(path)

    def _path(self, name: str, depends: Content) -> Path | None:
        if self.folder is None or not depends.hashable:
            return None
        key = json.dumps([environment().parts, name, depends.parts])
        digest = hashlib.sha256(key.encode()).hexdigest()[:KEY_DIGITS]
        readable = re.sub(r"[^\w.-]", "_", name.replace("/", "-"), flags=re.ASCII)
        return self.folder / f"{readable[:LONGEST_NAME]}-{digest}.stage"

    def _read(self, path: Path, kind: type[T] | Any) -> tuple[T] | None:
        """Return what a file holds, or None if it is absent or must be made again."""
        try:
            with path.open("rb") as file:
                digest, payload = file.read(DIGEST_BYTES), file.read()
            if hashlib.sha256(payload).digest() != digest:
                raise ValueError("it is damaged.")
            value: T = unpack(kind, payload)
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = f"it cannot be read ({error.strerror or error})."
        except (TypeError, ValueError) as error:
            reason = str(error)
        else:
            return (value,)
        self.warn(f"{path} is of no use and is made again: {reason}")
        return None

    def _write(self, path: Path, value: object) -> None:
        payload = pack(value)
        try:
            self._open()
            handle, name = tempfile.mkstemp(
                prefix=f"{path.stem}-", suffix=".part", dir=path.parent
            )
            part = Path(name)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(payload).digest())
                    file.write(payload)
                    file.flush()
                    # The bytes must be on the disk before the name is, or a power cut leaves an empty file under a
                    # good name.
                    os.fsync(file.fileno())
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                part.replace(path)
            # Also an interruption: a half-written file must not stay.
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            _sync_folder(path.parent)
        except OSError as error:
            raise OutputRefused(
                f"intermediate results cannot be written to {self.folder} ({error.strerror or error}), "
                "so an interruption would lose them; choose another folder with --out."
            ) from error

    def _open(self) -> None:
        assert self.folder is not None
        with contextlib.suppress(FileExistsError):
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            # Closed to others before anything is in it (decision 0005).
            self.folder.mkdir(mode=0o700)
            (self.folder / "README").write_text(README)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where folders can be synchronised."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
