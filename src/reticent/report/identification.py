"""An identification as a file: JSON for machines, a page for people."""

import json
from pathlib import Path
from typing import Any

from reticent.errors import InvalidInput, OutputRefused
from reticent.evidence import Identification
from reticent.report._codec import decode, encode
from reticent.run import write_text

__all__ = [
    "IDENTIFICATION_FILE",
    "IDENTIFICATION_NAME",
    "identification_json",
    "read_identification",
    "save_identification",
]

IDENTIFICATION_NAME = "reticent-identification-1"
IDENTIFICATION_FILE = "identification.json"


def identification_json(found: Identification) -> str:
    """Return what came of watching a training as JSON text."""
    content = {"schema": IDENTIFICATION_NAME, **encode(found)}
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def read_identification(text: str) -> Identification:
    """Return what :func:`identification_json` wrote.

    Raises
    ------
    InvalidInput
        If the text is not such a result of this version.
    """
    try:
        content: dict[str, Any] = json.loads(text)
        schema = content.pop("schema", None)
    except (ValueError, AttributeError) as error:
        raise InvalidInput(
            f"this is no identification ({error}); pass what `reticent identify --json` printed."
        ) from error
    if schema != IDENTIFICATION_NAME:
        raise InvalidInput(
            f"this is a {schema!r}, but {IDENTIFICATION_NAME!r} is read here; write it again with this version."
        )
    made: Identification = decode(Identification, content)
    return made


def save_identification(found: Identification, folder: Path | str) -> Path:
    """Write ``identification.json`` and ``identification.html``; return the folder.

    In the folder of a product, they are part of its audit.

    Raises
    ------
    OutputRefused
        If the folder cannot be written.
    """
    from reticent.report.watched import render_identification

    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputRefused(
            f"the folder {folder} cannot be made ({error.strerror or error}); choose another."
        ) from error
    write_text(folder / IDENTIFICATION_FILE, identification_json(found))
    write_text(folder / "identification.html", render_identification(found))
    return folder
