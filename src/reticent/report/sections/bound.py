"""What a claimed epsilon allows any attack, as a sentence and as a line in figures."""

from reticent.report._dossier import Dossier
from reticent.report.plots import upright
from reticent.report.svg import Plot

__all__ = ["BOUND_KEY", "bound_words", "bounds", "draw_bound"]

BOUND_KEY = ("bad", "most that the claimed epsilon allows")


def bound_words(dossier: Dossier) -> str:
    """Return what the claimed epsilon allows, with its formula; empty without a claim."""
    epsilon, bound = (
        dossier.provenance.claimed_epsilon,
        dossier.evidence.vulnerability_bound,
    )
    if epsilon is None or bound is None:
        return ""
    guarantee = dossier.provenance.guarantee
    if guarantee is not None and guarantee.holds:
        whose = "guarantee" if guarantee.witnessed else "training, if it was as stated,"
        return f"The {whose} allows a vulnerability, and a difference between groups, of at most {bound:.3f}."
    return (
        f"The claimed epsilon of {epsilon:g} allows a vulnerability, and a difference between groups, of at most "
        f"(e^epsilon - 1 + 2 delta)/(e^epsilon + 1) = {bound:.3f} (delta 0)."
    )


def bounds(dossier: Dossier) -> list[float]:
    """Return the bound, if there is one, so that an axis has room for it."""
    bound = dossier.evidence.vulnerability_bound
    return [] if bound is None else [bound]


def draw_bound(plot: Plot, dossier: Dossier, rows: int) -> None:
    """Draw the bound across all rows; nothing without a claim."""
    for bound in bounds(dossier):
        upright(plot, bound, rows, "limit", bound_words(dossier))
