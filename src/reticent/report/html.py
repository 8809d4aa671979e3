"""The dossier as one self-contained page: no network, no record."""

from reticent.report._dossier import Dossier
from reticent.report._markup import block, heading, page, template
from reticent.report.sections import sections_of

__all__ = ["render_fragment", "render_html"]

# A frame keeps the report's style sheet away from the notebook's, and the other way round.
_FRAME = template(
    '<iframe srcdoc="{{ page }}" style="width:100%;height:640px;border:1px solid #ccc;border-radius:8px"></iframe>'
)


def render_html(dossier: Dossier) -> str:
    """Return the report as one HTML file."""
    parts = []
    for section in sections_of(dossier):
        body = section.html(dossier)
        if body is not None:
            parts += [heading(section.title, 2) if section.title else None, body]
    title = f"{dossier.verdict}: {dossier.subject.get('product', 'product')}"
    return page(title, block(*parts))


def render_fragment(dossier: Dossier) -> str:
    """Return the report for a notebook: the page in a frame of its own."""
    return _FRAME(page=render_html(dossier))
