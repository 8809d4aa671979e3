"""What the Leave-Two-Unlabeled insider finds out by training again."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import Threat
from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, table
from reticent.report._terminal import grid

__all__ = ["InsiderSection"]

HEADS = ("regime", "rounds won", "privacy")


class InsiderSection:
    """The attacker that knows almost everything."""

    title = "What an insider can find out"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return the rounds of every regime; None if none were played."""
        if dossier.evidence.insider is None:
            return None
        decided = (
            "decides on" if dossier.policy.decides(Threat.INSIDER) else "only shows"
        )
        return block(
            lead(
                "The Leave-Two-Unlabeled insider knows the recipe and every tag but two, trains one model with each of the two "
                f"records, and picks the one whose answers are nearer to the product's. The policy {decided} this threat."
            ),
            table(HEADS, _rows(dossier)),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        return grid(HEADS, _rows(dossier)) if dossier.evidence.insider else None


def _rows(dossier: Dossier) -> list[tuple[str, str, str]]:
    insider = dossier.evidence.insider
    return [
        (regime.name, f"{regime.wins:g} of {regime.rounds}", str(regime.privacy))
        for regime in (insider.regimes if insider else ())
    ]
