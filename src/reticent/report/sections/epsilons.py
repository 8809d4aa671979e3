"""Claimed, proven and audited epsilon side by side."""

import math

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import Epsilons
from reticent.report._dossier import Dossier
from reticent.report._markup import block, card, key, lead, listed, table, wrapped
from reticent.report._terminal import grid, paragraph, stack
from reticent.report.plots import MARK, row_name
from reticent.report.svg import Axis, Plot
from reticent.report.words import epsilon_words, percent

__all__ = [
    "EpsilonsSection",
    "epsilons_block",
    "epsilons_text",
    "refuted_sentence",
]

HEADS = ("", "epsilon", "where it comes from")
TICKS = (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)


class EpsilonsSection:
    """Whether a claim of differential privacy holds up."""

    title = "Three epsilons"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return the three; None if nothing is claimed."""
        epsilons = dossier.epsilons
        if epsilons is None:
            return None
        return epsilons_block(epsilons, refuted_sentence(epsilons))

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        return None if dossier.epsilons is None else epsilons_text(dossier.epsilons)


def refuted_sentence(epsilons: Epsilons) -> str:
    """Return in one sentence whether the claimed epsilon is refuted."""
    shown = epsilon_words(epsilons.audited.low)
    level = percent(epsilons.audited.level)
    if epsilons.claimed is None:
        return f"No epsilon is claimed; with {level} confidence it is at least {shown}."
    claimed = epsilon_words(epsilons.claimed)
    if epsilons.refuted:
        return f"REFUTED: an epsilon of {claimed} is claimed, but with {level} confidence it is at least {shown}. The claim is not true."
    return (
        f"Not refuted: an epsilon of {claimed} is claimed, and with {level} confidence it is at least {shown}; this audit could have shown "
        f"about {epsilon_words(epsilons.ceiling)}. That is no proof of the claim."
    )


def epsilons_block(epsilons: Epsilons, verdict: str = "") -> Markup:
    """Return the three for a page.

    Parameters
    ----------
    epsilons : Epsilons
        The three.
    verdict : str
        What they say together; empty where the page has said so already.
    """
    return block(
        lead(
            verdict,
            f"All are stated at delta {epsilons.delta:.2g} for {epsilons.relation} neighbours. Claimed is what whoever trained the product says; "
            "proven is what the recipe guarantees; audited is what was shown at least.",
        ),
        card(
            _drawing(epsilons),
            key(
                [
                    ("other", "claimed and proven"),
                    ("member", "shown at least: the truth is to the right"),
                    ("soft", "could have been shown"),
                ]
            ),
        ),
        table(
            HEADS,
            ((name, value, wrapped(why)) for name, value, why in _rows(epsilons)),
        ),
        listed(
            [
                "A claim that is refuted is a reason to refuse the release, whatever else was found."
            ]
        )
        if epsilons.refuted
        else None,
    )


def epsilons_text(epsilons: Epsilons) -> RenderableType:
    """Return the three for a terminal."""
    conditions = paragraph(
        f"Stated at delta {epsilons.delta:.2g} for {epsilons.relation} neighbours."
    )
    return stack(conditions, grid(HEADS, _rows(epsilons), ragged=True))


def _rows(epsilons: Epsilons) -> list[tuple[str, str, str]]:
    """Return the three as rows: name, value, where it comes from."""
    proven = epsilon_words(epsilons.proven)
    if epsilons.proven is None:
        # A recipe that is not known proves nothing here, but may elsewhere; a void guarantee proves nothing at all.
        proven = "unknown" if "not known" in epsilons.proven_by else "none"
    return [
        ("claimed", epsilon_words(epsilons.claimed), epsilons.claimed_by),
        ("proven", proven, epsilons.proven_by),
        (
            "audited",
            f"at least {epsilon_words(epsilons.audited.low)}",
            f"{epsilons.method}; {percent(epsilons.audited.level)} confidence; could have shown about {epsilon_words(epsilons.ceiling)}",
        ),
    ]


def _drawing(epsilons: Epsilons) -> Markup:
    """Draw the three on one logarithmic axis."""
    values = [
        value
        for value in (
            epsilons.claimed,
            epsilons.proven,
            epsilons.audited.low,
            epsilons.ceiling,
        )
        if value is not None and math.isfinite(value) and value > 0
    ]
    # Whole decades, from 0.1 to 10 at least, so that figures of different products can be compared.
    low = min([0.1, *(10.0 ** math.floor(math.log10(max(v, 0.01))) for v in values)])
    high = max([10.0, *(10.0 ** math.ceil(math.log10(v) + 1e-9) for v in values)])
    plot = Plot(
        x=Axis(
            low=low,
            high=high,
            ticks=[t for t in TICKS if low <= t <= high],
            label="epsilon (left is more private)",
            log=True,
        ),
        y=Axis(low=-0.5, high=2.5, ticks=[k + MARK for k in range(3)], label=""),
        title="Claimed, proven and audited epsilon",
        height=66 + 52 * 3,
        left=20,
    )
    plot.axes(y_labels=["", "", ""])
    for place, name, value in (
        (2, "claimed", epsilons.claimed),
        (1, "proven", epsilons.proven),
    ):
        words = epsilon_words(value) if value is not None else "none"
        row_name(plot, place, name, words)
        if value is not None and math.isfinite(value):
            plot.dot(value, place + MARK, "point", f"{name}: {words}", radius=6)
    shown = epsilons.audited.low
    row_name(plot, 0, "audited", f"at least {epsilon_words(shown)}")
    tip = f"shown with {percent(epsilons.audited.level)} confidence: at least {epsilon_words(shown)}"
    # To the right end: the true epsilon lies anywhere above what was shown.
    plot.span(max(shown, low), high, MARK, "whisker reached", tip)
    plot.dot(max(shown, low), MARK, "point reached", tip, radius=6)
    if math.isfinite(epsilons.ceiling):
        plot.rise(
            max(epsilons.ceiling, low),
            -0.42,
            0.02,
            "chance",
            f"could have shown about {epsilon_words(epsilons.ceiling)}",
        )
    return plot.svg("plot-epsilons")
