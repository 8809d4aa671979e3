"""What came of watching a training: one result, complete, as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reticent._write import write_text
from reticent.errors import InvalidInput, OutputRefused
from reticent.evidence import Epsilons, WatchedEvidence
from reticent.report._codec import decode, encode

__all__ = ["IDENTIFICATION_FILE", "IDENTIFICATION_NAME", "Identification"]

IDENTIFICATION_NAME = "reticent-identification-1"
IDENTIFICATION_FILE = "identification.json"


@dataclass(frozen=True, kw_only=True)
class Identification:
    """The adversary that watched every step, and what it says of the three epsilons.

    Parameters
    ----------
    epsilons : Epsilons
        Claimed, honest, audited.
    evidence : WatchedEvidence
        Beliefs, sensitivities, noise.
    relation : str
        When tables are neighbours.
    sensitivity : str
        ``"global"``, or ``"local: empirical, not DP"``.
    sampling : str
        How batches were made.
    neighbour : str
        How the record was chosen that tells the tables apart.
    recipe : str
        The training.
    rows : int
        Records of the first table.
    warnings : tuple of str
        What the reader must know.
    subject : mapping of str to str
        Names for the report.
    seed : int
        Of coins, initialisation, batches and noise.
    repeat : str
        How to run it again.
    """

    epsilons: Epsilons
    evidence: WatchedEvidence
    relation: str
    sensitivity: str
    sampling: str
    neighbour: str
    recipe: str
    rows: int
    warnings: tuple[str, ...] = ()
    subject: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    repeat: str = ""

    def to_json(self) -> str:
        """Return it as JSON."""
        content = {"schema": IDENTIFICATION_NAME, **encode(self)}
        return json.dumps(content, indent=2, allow_nan=False) + "\n"

    def save(self, folder: Path | str) -> Path:
        """Write ``identification.json`` and ``identification.html``; return the folder.

        In the folder of a product, they are part of its audit.
        """
        from reticent.report.watched import render_identification

        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputRefused(
                f"the folder {folder} cannot be made ({error.strerror or error}); choose another."
            ) from error
        write_text(folder / IDENTIFICATION_FILE, self.to_json())
        write_text(folder / "identification.html", render_identification(self))
        return folder

    @classmethod
    def from_json(cls, text: str) -> "Identification":
        """Return what :meth:`to_json` wrote."""
        try:
            content: dict[str, Any] = json.loads(text)
            found = content.pop("schema", None)
        except (ValueError, AttributeError) as error:
            raise InvalidInput(
                f"this is no identification ({error}); pass what `reticent identify --json` printed."
            ) from error
        if found != IDENTIFICATION_NAME:
            raise InvalidInput(
                f"this is a {found!r}, but {IDENTIFICATION_NAME!r} is read here; write it again with this version."
            )
        made: Identification = decode(cls, content)
        return made
