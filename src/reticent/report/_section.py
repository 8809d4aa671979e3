"""What a section of the report is: a title, and what it says of a dossier in HTML and as text."""

from typing import TYPE_CHECKING, Protocol

from markupsafe import Markup
from rich.console import RenderableType

if TYPE_CHECKING:
    from reticent.report._dossier import Dossier

__all__ = ["Section"]


class Section(Protocol):
    """One section of the report: one class, one file.

    An object of your own with these three names is shown when it stands in a dossier's ``own_sections``.

    Attributes
    ----------
    title : str
        The heading, in the page and in the text; empty if there is to be none.
    """

    @property
    def title(self) -> str:
        """The heading."""

    def html(self, dossier: "Dossier") -> Markup | None:
        """Return what stands below the heading in the page; None if there is nothing to say.

        Only :class:`markupsafe.Markup` is HTML: a plain text is escaped.
        """

    def text(self, dossier: "Dossier") -> RenderableType | None:
        """Return what a terminal shows below the heading, as Rich renders it; None if there is nothing to say."""
