"""What the reader should know about the data."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.report._dossier import Dossier
from reticent.report._markup import marked, table, wrapped
from reticent.report._terminal import paragraph

__all__ = ["FindingsSection"]


class FindingsSection:
    """Checks of the table and of its parts."""

    title = "About the data"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return one row per finding; None if there is none."""
        if not dossier.findings:
            return None
        return table(
            ("", "finding"),
            (
                (marked(finding.severity), wrapped(finding.text))
                for finding in dossier.findings
            ),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return one paragraph per finding."""
        return paragraph(
            *(f"{finding.severity}: {finding.text}" for finding in dossier.findings)
        )
