"""Which kinds of attack were not run: nothing is known about them, and silence is not safety."""

from collections.abc import Iterator

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import Evidence
from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, listed, table, wrapped
from reticent.report._terminal import paragraph, stack

__all__ = ["NotRunSection", "skipped_words"]

HEADS = ("kind of attack", "what it would look for", "known")
NOTHING = "nothing is known about it"
WORDS = "This audit asks whether somebody was in the table. Nothing is known about the following."
# Kinds of attack on trained models that no audit here runs (Rigaki & Garcia, arXiv:2007.07646, name most of them).
NEVER = (
    ("reconstruction, model inversion", "records, or what is typical of a class"),
    ("property inference", "what share of the table has some property"),
    ("model extraction", "a copy of the product from its answers"),
    ("poisoning", "what somebody learns who put records into the table"),
    ("linkage with other releases", "what several products tell together"),
)
# Parts of an audit that may have been left out, by what the dossier shows of them.
POOL = (
    "comparison with other models",
    "who was in the table, from models of the same recipe",
)
INSIDER = (
    "retraining insider",
    "who was in the table, if all others and the recipe are known",
)
INSIDE = (
    "attacks on gradients and activations",
    "who was in the table, from inside a network",
)
ATTRIBUTES = (
    "attribute inference",
    "a hidden value of a person whose other values are known",
)
STEPS = (
    "observer of the training",
    "who was in the table, from every step of the training",
)


class NotRunSection:
    """What was not looked at."""

    title = "What was not looked at"
    words = WORDS

    def kinds(self, dossier: Dossier) -> Iterator[tuple[str, str]]:
        """Return the kinds of attack that were not run, each with what it would look for."""
        return _kinds(dossier)

    def html(self, dossier: Dossier) -> Markup:
        """Return a table of the kinds that were not run."""
        rows = ((kind, wrapped(aim), NOTHING) for kind, aim in self.kinds(dossier))
        skipped = skipped_words(dossier.evidence)
        return block(
            lead(self.words), table(HEADS, rows), listed(skipped) if skipped else None
        )

    def text(self, dossier: Dossier) -> RenderableType:
        """Return the same for a terminal."""
        lines = (f"- {kind}: {aim}" for kind, aim in self.kinds(dossier))
        return stack(
            paragraph(self.words),
            paragraph(*lines),
            paragraph(*skipped_words(dossier.evidence), style="yellow"),
        )


def skipped_words(evidence: Evidence) -> list[str]:
    """Return which statistics were left out, and why."""
    return [
        f"Left out, '{skip.name}': {skip.why.rstrip('.')}."
        for skip in evidence.not_computed
    ]


def _kinds(dossier: Dossier) -> Iterator[tuple[str, str]]:
    evidence = dossier.evidence
    families = {attack.family for attack in evidence.attacks}
    if evidence.pool is None:
        yield POOL
    if evidence.insider is None:
        yield INSIDER
    if "looks inside" not in families:
        yield INSIDE
    if dossier.watched is None:
        yield STEPS
    if not evidence.attributes:
        yield ATTRIBUTES
    yield from NEVER
