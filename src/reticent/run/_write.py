"""Write files completely or not at all."""

import contextlib
from pathlib import Path

from reticent.errors import OutputRefused

__all__ = ["open_folder", "write_bytes", "write_text"]

OWNER_ONLY = 0o600


def write_text(path: Path, text: str, *, mode: int | None = None) -> None:
    """Write a text file so that a reader sees the old content or the new, never part of it.

    Parameters
    ----------
    path : Path
        The file.
    text : str
        What it is to hold, written as UTF-8.
    mode : int, optional
        Who may read and write it; by default what the user's settings say of new files.

    Raises
    ------
    OutputRefused
        If the file cannot be written.
    """
    try:
        _write(path, text.encode("utf-8"), mode)
    except OSError as error:
        raise OutputRefused(
            f"{path} cannot be written ({error.strerror or error}), so the result would be lost; "
            "choose another place."
        ) from error


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file that its owner alone may read, completely or not at all.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    _write(path, content, OWNER_ONLY)


def open_folder(folder: Path) -> None:
    """Make a folder that its owner alone may enter; one that exists is left as it is.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)


def _write(path: Path, content: bytes, mode: int | None) -> None:
    # In the same folder, because a rename is atomic only within one file system.
    part = path.with_name(path.name + ".part")
    # What lies there may be a link of somebody else's, and must not be written through.
    part.unlink(missing_ok=True)
    if mode is not None:  # closed to others before there is anything to read
        part.touch(mode=mode, exist_ok=False)
        part.chmod(mode)
    part.write_bytes(content)
    part.replace(path)
