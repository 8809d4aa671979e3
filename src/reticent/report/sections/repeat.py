"""How to run the audit again, and what it ran on."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.report._dossier import Dossier
from reticent.report._markup import template
from reticent.report._terminal import paragraph

__all__ = ["RepeatSection"]

_HOW = template(
    """\
<pre>{{ repeat }}</pre>
<p>Seed {{ seed }}. Recipe <code>{{ recipe }}</code>. Keyed fingerprint of the data <code>{{ fingerprint }}</code>. Versions: {{ versions }}.</p>"""
)


class RepeatSection:
    """What is needed to get the same dossier again."""

    title = "How to repeat it"

    def html(self, dossier: Dossier) -> Markup:
        """Return the command, the seed and the versions."""
        provenance = dossier.provenance
        return _HOW(
            repeat=dossier.repeat,
            seed=dossier.seed,
            recipe=provenance.recipe or "unknown",
            fingerprint=provenance.data_fingerprint.rpartition(":")[2][:16],
            versions=", ".join(
                f"{name} {version}" for name, version in provenance.versions.items()
            ),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the command."""
        return paragraph(dossier.repeat, style="dim")
