"""The dossier: everything one audit has to say, complete, for machines and for people."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from reticent.data import Finding
from reticent.errors import InvalidInput, OutputRefused
from reticent.evidence import Epsilons, Estimate, Evidence, Identification
from reticent.policy import Control, Decision, Policy, Verdict
from reticent.product import Provenance
from reticent.report._codec import decode, encode
from reticent.run import write_text

__all__ = ["SCHEMA_NAME", "Dossier", "dossier_schema"]

SCHEMA_NAME = "reticent-dossier-2"
# Where the JSON keys that others rely on live inside the dossier's parts.
_FROM_DECISION = ("verdict", "reasons", "next_steps", "limits")
_FROM_EVIDENCE = ("utility", "privacy", "attacks")


@dataclass(frozen=True, kw_only=True)
class Dossier:
    """One audit: verdict, evidence, controls, findings, provenance.

    Parameters
    ----------
    decision : Decision
        Verdict, reasons, limits.
    summary : tuple of str
        What it means for the people in the table, in two sentences.
    warnings : tuple of str
        What the verdict does not rest on but the reader must know.
    evidence : Evidence
        Every number, with its interval.
    controls : tuple of Control
        The two products whose answer was known.
    findings : tuple of Finding
        About the data.
    policy : Policy
        The rules.
    provenance : Provenance
        Where the product comes from.
    seed : int
        Seed of splits and attacks.
    records : mapping of str to int
        Sizes of the parts.
    subject : mapping of str to str
        Names of table, target and product.
    repeat : str
        How to run the audit again.
    epsilons : Epsilons or None
        Claimed, proven and audited, of a product that claims privacy.
    watched : Identification or None
        What an adversary that watched the training found out.
    """

    decision: Decision
    summary: tuple[str, ...]
    warnings: tuple[str, ...]
    evidence: Evidence
    controls: tuple[Control, ...]
    findings: tuple[Finding, ...]
    policy: Policy
    provenance: Provenance
    seed: int
    records: Mapping[str, int]
    subject: Mapping[str, str]
    repeat: str
    epsilons: Epsilons | None = None
    watched: Identification | None = None

    @property
    def verdict(self) -> Verdict:
        """RELEASE, REFUSE or INCONCLUSIVE."""
        return self.decision.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why."""
        return self.decision.reasons

    @property
    def utility(self) -> Estimate:
        """Utility score on reserved records."""
        return self.evidence.utility

    @property
    def privacy(self) -> Estimate:
        """Privacy score against the best attack of the outsider."""
        return self.evidence.privacy

    def to_dict(self) -> dict[str, Any]:
        """Return the dossier as JSON values, with the keys others rely on at the top."""
        whole = encode(self)
        decision, evidence = whole.pop("decision"), whole.pop("evidence")
        top = {key: decision.pop(key) for key in _FROM_DECISION}
        top |= {key: evidence.pop(key) for key in _FROM_EVIDENCE}
        return {"schema": SCHEMA_NAME, **top, **whole, "evidence": evidence}

    def to_json(self) -> str:
        """Return the dossier as JSON text, checked against the published schema."""
        content = self.to_dict()
        _validate(content)
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Dossier":
        """Read a dossier back.

        Raises
        ------
        InvalidInput
            If the text is not a dossier of this version.
        """
        try:
            content = json.loads(text)
        except ValueError as error:
            raise InvalidInput(
                f"the dossier is not JSON ({error}); pass the dossier.json of an audit."
            ) from error
        _validate(content)
        content.pop("schema")
        content["decision"] = {key: content.pop(key) for key in _FROM_DECISION}
        content["evidence"] |= {key: content.pop(key) for key in _FROM_EVIDENCE}
        made: Dossier = decode(cls, content)
        return made

    def save(self, folder: Path | str) -> Path:
        """Write ``dossier.json``, ``report.html`` and ``report.txt``; return the folder."""
        from reticent.report.html import render_html
        from reticent.report.text import render_text

        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputRefused(
                f"the folder {folder} cannot be made ({error.strerror or error}); choose another with --out."
            ) from error
        write_text(folder / "dossier.json", self.to_json())
        write_text(folder / "report.html", render_html(self))
        write_text(folder / "report.txt", render_text(self))
        return folder

    def __repr__(self) -> str:
        from reticent.report.text import render_short

        return render_short(self)

    def _repr_html_(self) -> str:
        from reticent.report.html import render_fragment

        return render_fragment(self)


@cache
def dossier_schema() -> dict[str, Any]:
    """Return the JSON schema every ``dossier.json`` obeys."""
    text = (
        resources.files("reticent.report").joinpath("dossier.schema.json").read_text()
    )
    schema: dict[str, Any] = json.loads(text)
    return schema


def _validate(content: object) -> None:
    import jsonschema

    try:
        jsonschema.validate(content, dossier_schema())
    except jsonschema.ValidationError as error:
        where = "/".join(map(str, error.absolute_path)) or "the top"
        raise InvalidInput(
            f"the dossier does not obey its schema at {where}: {error.message[:160]}; "
            "it was changed or written by another version."
        ) from error
