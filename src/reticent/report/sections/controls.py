"""Two products whose answer is known, attacked like the real one."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, listed, marked, table
from reticent.report._terminal import grid

__all__ = ["ControlsSection"]

HEADS = ("product", "privacy", "")


class ControlsSection:
    """Whether the attacks can be believed."""

    title = "Controls"

    def html(self, dossier: Dossier) -> Markup:
        """Return what the attacks said of the controls."""
        rows = (
            (
                control.name,
                control.privacy,
                marked("behaved" if control.behaved else "misbehaved"),
            )
            for control in dossier.controls
        )
        return block(
            lead(
                "Two products whose answer is known were attacked in the same way: one must be caught, the other must not."
            ),
            table(HEADS, rows),
            listed(control.text for control in dossier.controls),
        )

    def text(self, dossier: Dossier) -> RenderableType:
        """Return the same for a terminal."""
        return grid(
            HEADS,
            (
                (
                    control.name,
                    control.privacy,
                    "behaved" if control.behaved else "MISBEHAVED",
                )
                for control in dossier.controls
            ),
        )
