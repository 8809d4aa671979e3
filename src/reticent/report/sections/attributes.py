"""How well hidden values of people are guessed from a model's answers: what describes and decides nothing."""

from collections.abc import Iterator

from markupsafe import Markup
from rich.console import RenderableType

from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, table
from reticent.report._terminal import grid, paragraph, stack

__all__ = ["AttributesSection"]

HEADS = ("column", "members", "non-members", "without the model", "difference", "control")  # fmt: skip
# A terminal of 80 columns has no room for what is guessed without the model.
NARROW_HEADS = ("column", "members", "others", "difference", "control")
WORDS = (
    "Share of people whose value of a column is guessed by somebody who knows all their other columns and their class: each value is tried, and the one "
    "that makes the class most likely is taken. Numbers are guessed to be above the median or not. What succeeds for non-members as well is knowledge about everybody; only the difference "
    "is due to having been in the table. The control compares one half of the non-members with the other. Intervals hold one by one, and the verdict does "
    "not rest on them."
)


class AttributesSection:
    """Attribute inference from a model's answers."""

    title = "Guessing a hidden value"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return the columns that were guessed; None if none was."""
        if not dossier.evidence.attributes:
            return None
        return block(lead(WORDS), table(HEADS, _rows(dossier)))

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        if not dossier.evidence.attributes:
            return None
        rows = [(*row[:3], *row[4:]) for row in _rows(dossier)]
        return stack(paragraph(WORDS), grid(NARROW_HEADS, rows))


def _rows(dossier: Dossier) -> Iterator[tuple[str, str, str, str, str, str]]:
    for each in dossier.evidence.attributes:
        found = each.success
        yield (
            each.column,
            f"{found.members.value:.3f}",
            f"{found.nonmembers.value:.3f}",
            f"{found.baseline.value:.3f}",
            str(found.excess),
            str(each.control.excess),
        )
