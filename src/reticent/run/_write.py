"""Write files completely or not at all."""

from pathlib import Path

from reticent.errors import OutputRefused

__all__ = ["write_text"]


def write_text(path: Path, text: str, *, mode: int | None = None) -> None:
    """Write a text file so that a reader sees the old content or the new, never part of it.

    Raises
    ------
    OutputRefused
        If the file cannot be written.
    """
    # In the same folder, because a rename is atomic only within one file system.
    part = path.with_name(path.name + ".part")
    try:
        if mode is not None:  # closed to others before there is anything to read
            part.unlink(missing_ok=True)
            part.touch(mode=mode)
            part.chmod(mode)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise OutputRefused(
            f"{path} cannot be written ({error.strerror or error}), so the result would be lost; "
            "choose another place."
        ) from error
