"""The dossier as text, for a terminal."""

import io

from rich.console import Console
from rich.text import Text

from reticent.report._dossier import Dossier
from reticent.report._terminal import Screen, paragraph, visible
from reticent.report.sections import sections_of

__all__ = ["print_report", "render_short", "render_text"]


def render_text(dossier: Dossier, width: int = 100) -> str:
    """Return the report as plain text."""
    buffer = io.StringIO()
    print_report(dossier, Screen(file=buffer, width=width, no_color=True))
    # Rich fills lines with spaces up to the width, which a file does not need.
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def render_short(dossier: Dossier) -> str:
    """Return verdict, summary and the two scores in a few lines."""
    return "\n".join(
        [
            f"{dossier.verdict}  (policy '{dossier.policy.name}', {dossier.policy.confidence:.0%} confidence)",
            f"  privacy {dossier.privacy or 'not measured'}   utility {dossier.utility or 'not measured'} (a constant answer: {dossier.evidence.utility.baseline:.2f})",
            *(f"  {sentence}" for sentence in dossier.summary),
        ]
    )


def print_report(dossier: Dossier, console: Console) -> None:
    """Print the report: verdict first, then why, then the numbers."""
    console.print()
    for section in sections_of(dossier):
        body = section.text(dossier)
        if isinstance(body, str):
            body = paragraph(body)
        if body is None:
            continue
        if section.title:
            console.print(Text(visible(section.title), style="bold"))
        # Markup would turn a group that is called "[red]" into a colour.
        console.print(body, markup=False)
        console.print()
