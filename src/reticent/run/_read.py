"""Read files that a stranger may have written."""

from pathlib import Path

from reticent.errors import InvalidInput

__all__ = ["read_text"]

MOST_BYTES = 64 * 1024**2  # a hundred times the largest dossier that was seen


def read_text(path: Path, *, what: str, most: int = MOST_BYTES) -> str:
    """Return the text of a regular file of moderate size.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        What it is, for errors: ``"dossier"``.
    most : int
        Largest number of bytes that are read.

    Raises
    ------
    InvalidInput
        If there is no such file, it cannot be read, is too large, or is not UTF-8.
    """
    if not path.is_file():  # a pipe or a device could be read for ever
        raise InvalidInput(f"there is no {what} at {path}; name a file.")
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise InvalidInput(
                f"the {what} {path} has more than {most:,} bytes, which none has; name another file."
            )
        return content.decode("utf-8")
    except OSError as error:
        raise InvalidInput(
            f"the {what} {path} cannot be read ({error.strerror or error}); name a file that you may read."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"the {what} {path} is not UTF-8 text ({error.reason} at byte {error.start}); name another file."
        ) from error
