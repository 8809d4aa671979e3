"""What the Leave-Two-Unlabeled insider finds out by training again."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import InsiderEvidence, Threat
from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, listed, table
from reticent.report._terminal import grid, paragraph, stack

__all__ = ["InsiderSection"]

HEADS = ("regime", "rounds won", "privacy")
NOT_PLAYED = "not played"


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
        notes = _notes(dossier.evidence.insider)
        return block(
            lead(
                "The Leave-Two-Unlabeled insider knows the recipe and every tag but two, trains one model with each of the two "
                f"records, and picks the one whose answers are nearer to the product's. The policy {decided} this threat."
            ),
            table(HEADS, _rows(dossier.evidence.insider)),
            *([listed(notes)] if notes else []),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        insider = dossier.evidence.insider
        if insider is None:
            return None
        return stack(grid(HEADS, _rows(insider)), paragraph(*_notes(insider)))


def _rows(insider: InsiderEvidence) -> list[tuple[str, str, str]]:
    played = [
        (regime.name, f"{regime.wins:g} of {regime.rounds}", str(regime.privacy))
        for regime in insider.regimes
    ]
    return played + [(regime.name, NOT_PLAYED, "–") for regime in insider.left_out]


def _notes(insider: InsiderEvidence) -> list[str]:
    """Return what training again gave, and why regimes were left out; nothing if an older version wrote the dossier."""
    notes = []
    if insider.trained_again is not None:
        notes.append(
            f"Training again on the members, with the order and the seed of the product, gave {insider.trained_again}."
        )
    for why in dict.fromkeys(regime.why for regime in insider.left_out):
        names = " and ".join(f"'{r.name}'" for r in insider.left_out if r.why == why)
        notes.append(f"Not played, {names}: {why}.")
    return notes
