"""Whether members and non-members differ without the product, and how large a difference would have been seen."""

from collections.abc import Callable

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import BlindEvidence
from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, listed, table, wrapped
from reticent.report._terminal import grid, paragraph, stack
from reticent.report.words import percent

__all__ = ["BlindSection"]

HEADS = ("difference between the two sides", "seen from")
KINDS: dict[str, tuple[str, Callable[[float], str]]] = {
    "shift": (
        "one column, category or pair of columns shifted",
        lambda value: f"{value:.2g} standard deviations",
    ),
    "accuracy": (
        "accuracy that such a shift gives an attacker",
        lambda value: f"{value:.3f}",
    ),
    "learned_accuracy": (
        "accuracy of a classifier on records it has not learned from",
        lambda value: f"{value:.3f}",
    ),
    "wrong_classes": (
        "wrong classes on one side",
        lambda value: f"{percent(value)} of them",
    ),
    "target_shift": (
        "target shifted on one side, for the same record",
        lambda value: f"{value:.2g} of its standard deviations",
    ),
}
AT_RANDOM = (
    "The audit drew the members at random from one table, so that the two sides differ by chance alone, which the intervals cover: "
    "what an attack finds with confidence is due to the product."
)
GIVEN = (
    "The two sides were given and not drawn by the audit. What an attack finds beyond the differences of this table is due to the product. Smaller "
    "differences, and some of other kinds, would not have been seen."
)


class BlindSection:
    """The baseline that never sees the product."""

    title = "Members and non-members, without the product"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return what was seen, and what would have been; None if the records were not looked at."""
        blind = dossier.evidence.blind
        if blind is None:
            return None
        rows = [(wrapped(kind), size) for kind, size in _rows(blind)]
        parts = [lead(_seen(blind))]
        if rows:
            parts.append(table(HEADS, rows))
        return block(*parts, listed(_notes(blind)))

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        blind = dossier.evidence.blind
        if blind is None:
            return None
        sizes = grid(HEADS, _rows(blind)) if _rows(blind) else None
        return stack(paragraph(_seen(blind)), sizes, paragraph(*_notes(blind)))


def _seen(blind: BlindEvidence) -> str:
    tried = "Columns, classes, pairs of columns and two classifiers were compared between members and non-members; none of them saw the product. "
    if blind.differs:
        return tried + (
            f"They differ: by {blind.sign}, with an accuracy of {blind.accuracy:.3f} (p = {blind.p_value:.2g}). So attacks cannot be judged."
        )
    return tried + f"No difference was seen (p = {blind.p_value:.2g})."


def _rows(blind: BlindEvidence) -> list[tuple[str, str]]:
    return [
        (kind, written(blind.smallest[key]))
        for key, (kind, written) in KINDS.items()
        if key in blind.smallest
    ]


def _notes(blind: BlindEvidence) -> list[str]:
    notes = []
    if blind.smallest:
        notes.append(
            f"A difference of the size in the table, or larger, would have been seen with a probability of at least {percent(blind.power)}; if there is none, "
            f"one is claimed with a probability of at most {percent(blind.false_alarm)}."
        )
    else:
        notes.append("There are too few people for any difference to be seen.")
    if blind.rows < blind.of_rows:
        notes.append(
            f"People with {blind.rows:,} of {blind.of_rows:,} records were looked at, drawn at random."
        )
    if not blind.differs:
        notes.append(AT_RANDOM if blind.at_random else GIVEN)
    return notes
