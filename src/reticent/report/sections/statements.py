"""What was measured and no limit judges."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, table
from reticent.report._terminal import grid, paragraph, stack

__all__ = ["StatementsSection"]

HEADS = ("quantity", "found", "which is better", "attacker")


class StatementsSection:
    """Measures without a limit: shown, never weighed."""

    title = "Measured without a limit"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return one row per statement that no limit judges."""
        rows = _rows(dossier)
        return block(lead(_words(dossier)), table(HEADS, rows)) if rows else None

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        rows = _rows(dossier)
        if not rows:
            return None
        return stack(paragraph(_words(dossier)), grid(HEADS, rows))


def _words(dossier: Dossier) -> str:
    return f"The policy '{dossier.policy.name}' does not judge these, so the verdict does not rest on them."


def _rows(dossier: Dossier) -> list[tuple[str, ...]]:
    return [
        (
            s.label,
            "not measured" if s.estimate is None else str(s.estimate),
            s.better,
            s.threat or "none",
        )
        for s in dossier.statements
        if dossier.check(s.measure) is None
    ]
