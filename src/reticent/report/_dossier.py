"""The dossier: everything one audit has to say, complete, for machines and for people."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reticent._codec import NOT_WRITTEN, decode, encode, schema_of
from reticent._json import read_json, write_json
from reticent.data import Finding
from reticent.errors import InvalidInput, OutputRefused
from reticent.evidence import (
    AttackEvidence,
    Epsilons,
    Estimate,
    Evidence,
    Identification,
    Statement,
)
from reticent.policy import Control, Decision, LimitCheck, Policy, Verdict
from reticent.product import Provenance
from reticent.report._section import Section
from reticent.report._version_2 import VERSION_2, dossier_from_version_2
from reticent.report.binding import Binding
from reticent.run import write_text

__all__ = ["SCHEMA_NAME", "Dossier", "dossier_schema"]

SCHEMA_NAME = "reticent-dossier-4"
VERSION_3 = "reticent-dossier-3"  # the same without a binding
# Keys that others rely on stand at the top, wherever the value lives inside the dossier.
_FROM_DECISION = ("verdict", "reasons", "next_steps", "limits")
_FROM_EVIDENCE = ("attacks",)
_FROM_STATEMENTS = ("utility", "privacy")


@dataclass(frozen=True, kw_only=True)
class Dossier:
    """One audit: verdict, evidence, controls, findings, provenance.

    Parameters
    ----------
    kind : str
        What was audited: ``"classifier"`` or ``"regressor"``.
    decision : Decision
        Verdict, reasons, limits.
    summary : tuple of str
        What it means for the people in the table, in two sentences.
    warnings : tuple of str
        What the verdict does not rest on but the reader must know.
    statements : tuple of Statement
        What was measured, whether a limit judges it or not.
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
        What an adversary who watched the training found out.
    binding : Binding or None
        Which product, policy and table it is about, when it was made and by whom; None if an older version wrote it.
    kind_sections : tuple of Section
        The sections that the kind of product has; empty for all of reticent's. Neither written nor compared.
    own_sections : tuple of Section
        Sections of the user's own, shown after the statements. They are never written, and two dossiers are equal
        whatever sections they have.
    """

    kind: str
    decision: Decision
    summary: tuple[str, ...]
    warnings: tuple[str, ...]
    statements: tuple[Statement, ...]
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
    binding: Binding | None = None
    kind_sections: tuple[Section, ...] = field(
        default=(), compare=False, metadata=NOT_WRITTEN
    )
    own_sections: tuple[Section, ...] = field(
        default=(), compare=False, metadata=NOT_WRITTEN
    )

    @property
    def verdict(self) -> Verdict:
        """RELEASE, REFUSE or INCONCLUSIVE."""
        return self.decision.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why."""
        return self.decision.reasons

    @property
    def utility(self) -> Estimate | None:
        """The utility on reserved records; None if it was not measured."""
        return self._estimate("utility")

    @property
    def privacy(self) -> Estimate | None:
        """The privacy score against the outsider's best attack; None if it was not measured."""
        return self._estimate("privacy")

    def statement(self, measure: str) -> Statement | None:
        """Return what was measured under a name; None if nothing was."""
        return next((s for s in self.statements if s.measure == measure), None)

    def check(self, measure: str) -> LimitCheck | None:
        """Return how a measure fared by the limit on it; None if no limit judged it."""
        return next((c for c in self.decision.limits if c.measure == measure), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the dossier as JSON values, with the keys others rely on at the top."""
        whole = encode(self)
        decision, evidence = whole.pop("decision"), whole.pop("evidence")
        top = {key: decision.pop(key) for key in _FROM_DECISION}
        top |= {key: encode(self._estimate(key)) for key in _FROM_STATEMENTS}
        top |= {key: evidence.pop(key) for key in _FROM_EVIDENCE}
        return {"schema": SCHEMA_NAME, **top, **whole, "evidence": evidence}

    def to_json(self) -> str:
        """Return the dossier as JSON text, which was read back once to be sure that it can be."""
        content = self.to_dict()
        # A dossier that cannot be read back is noticed now, not by whoever gets the file.
        _from_dict(content)
        return write_json(content)

    @classmethod
    def from_json(cls, text: str) -> "Dossier":
        """Read a dossier back; one that version 0.1 or 0.2 wrote is converted.

        What it says is what the file says: :func:`reticent.pipeline.derive_again` decides by its evidence.

        Raises
        ------
        InvalidInput
            If the text is not a dossier.
        """
        content = read_json(text, "dossier.json of an audit")
        name = content.get("schema")
        if name == VERSION_2:
            content = dossier_from_version_2(content)
        # No guessing: the keys of an unknown version may mean something else.
        elif name not in (SCHEMA_NAME, VERSION_3):
            raise InvalidInput(
                f"the schema is {name!r}, but {SCHEMA_NAME!r} is read here; pass the dossier.json of an audit."
            )
        return _from_dict(content)

    def save(self, folder: Path | str) -> Path:
        """Write ``dossier.json``, ``report.html`` and ``report.txt``; return the folder."""
        # Imported here, because the sections import the dossier.
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

    def _estimate(self, measure: str) -> Estimate | None:
        statement = self.statement(measure)
        return None if statement is None else statement.estimate

    def __repr__(self) -> str:
        from reticent.report.text import render_short

        return render_short(self)

    def _repr_html_(self) -> str:
        from reticent.report.html import render_fragment

        return render_fragment(self)


def dossier_schema() -> dict[str, Any]:
    """Return the JSON schema that every ``dossier.json`` obeys, made from the types of its parts."""
    definitions: dict[str, Any] = {}
    schema_of(Dossier, definitions)
    for kind in (Estimate, AttackEvidence):  # named at the top
        schema_of(kind, definitions)
    whole, decision = definitions.pop("Dossier"), definitions.pop("Decision")
    evidence = definitions["Evidence"]
    properties = whole["properties"]
    del properties["decision"]
    top = {key: decision["properties"][key] for key in _FROM_DECISION}
    estimate = schema_of(Estimate | None, definitions)
    top |= dict.fromkeys(_FROM_STATEMENTS, estimate)
    for key in _FROM_EVIDENCE:
        top[key] = evidence["properties"].pop(key)
        evidence["required"].remove(key)
    # The decision is spread over the top, so its own key is gone.
    required = [key for key in whole["required"] if key != "decision"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA_NAME,
        "description": "One audit. Made from the types of the code; see dossier.md for what the keys mean.",
        "type": "object",
        "properties": {"schema": {"const": SCHEMA_NAME}, **top, **properties},
        "required": ["schema", *top, *required],
        "additionalProperties": False,
        "$defs": dict(sorted(definitions.items())),
    }


def _from_dict(content: Mapping[str, Any]) -> Dossier:
    """Return the dossier that :meth:`Dossier.to_dict` made the values of."""
    whole = {key: value for key, value in content.items() if key != "schema"}
    stated: dict[str, Estimate | None] = {}
    try:
        whole["decision"] = {key: whole.pop(key) for key in _FROM_DECISION}
        for key in _FROM_STATEMENTS:
            stated[key] = decode(Estimate | None, whole.pop(key), (key,))
        moved = {key: whole.pop(key) for key in _FROM_EVIDENCE}
    except KeyError as error:
        raise InvalidInput(
            f"the dossier does not obey its schema at the top: the key {error} is missing there; it was changed or "
            "written by another version."
        ) from error
    if isinstance(whole.get("evidence"), dict):
        whole["evidence"] = {**whole["evidence"], **moved}
    dossier: Dossier = decode(Dossier, whole)
    for key, estimate in stated.items():
        # Compared as JSON, where NaN equals NaN. Somebody may have edited the figure at the top, which is the one
        # that others read.
        if encode(dossier._estimate(key)) != encode(estimate):
            raise InvalidInput(
                f"the dossier states {estimate} as its {key} at the top but {dossier._estimate(key)} among its "
                "statements, so one of them was changed; audit again."
            )
    return dossier
