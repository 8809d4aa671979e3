"""What the audit of a synthetic table did not look at."""

from collections.abc import Iterator

from markupsafe import Markup
from rich.console import RenderableType

from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, listed, table, wrapped
from reticent.report._terminal import paragraph, stack
from reticent.report.sections.not_run import HEADS, NOTHING, skipped_words

__all__ = ["TableNotRunSection"]

WORDS = (
    "This audit asks whether somebody was in the real table. Nothing is known about the following. No synthetic table answers every question: "
    "it was judged on the uses that stand in this report, and on no others. The figures here were computed from real records and have no guarantee of "
    "their own: whoever publishes them, or chooses among many tables by them, tells something about these records."
)
SHADOWS = (
    "shadow generators",
    "who was in the table, from tables that the same generator makes of known people",
)
GENERATOR = (
    "the generator itself",
    "what its file or its critic tells; only the rows were looked at",
)
NEVER = (
    (
        "regenerating insider",
        "who was in the table, if all others, the recipe and its seed are known",
    ),
    ("reconstruction", "whole records from many tables, or from published measures"),
    ("property inference", "what share of the real table has some property"),
    ("poisoning", "what somebody learns who put records into the real table"),
    ("linkage with other releases", "what several tables or models tell together"),
)


class TableNotRunSection:
    """What was not looked at."""

    title = "What was not looked at"

    def html(self, dossier: Dossier) -> Markup:
        """Return a table of what was left out."""
        rows = ((kind, wrapped(aim), NOTHING) for kind, aim in _kinds(dossier))
        skipped = skipped_words(dossier.evidence)
        return block(
            lead(WORDS), table(HEADS, rows), listed(skipped) if skipped else None
        )

    def text(self, dossier: Dossier) -> RenderableType:
        """Return the same for a terminal."""
        lines = (f"- {kind}: {aim}" for kind, aim in _kinds(dossier))
        return stack(
            paragraph(WORDS),
            paragraph(*lines),
            paragraph(*skipped_words(dossier.evidence), style="yellow"),
        )


def _kinds(dossier: Dossier) -> Iterator[tuple[str, str]]:
    if dossier.evidence.pool is None:
        yield SHADOWS
    if not any(attack.name == "critic" for attack in dossier.evidence.attacks):
        yield GENERATOR
    yield from NEVER
