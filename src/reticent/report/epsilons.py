"""Claimed, proven and audited epsilon side by side, in words, rows and one drawing."""

import math

from reticent.evidence import Epsilons
from reticent.report._markup import card, key, lead, listed, table, text
from reticent.report._plots import MARK, row_name
from reticent.report._svg import Axis, Plot

__all__ = ["epsilon_words", "epsilons_rows", "epsilons_section", "refuted_sentence"]

TICKS = (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)


def epsilon_words(epsilon: float | None) -> str:
    """Return an epsilon with as many digits as it deserves; a dash if there is none.

    Examples
    --------
    >>> epsilon_words(2.1972), epsilon_words(221_312.5), epsilon_words(None)
    ('2.20', '221,312', '–')
    """
    if epsilon is None or math.isinf(epsilon):
        return "–"
    return f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.2f}"


def refuted_sentence(epsilons: Epsilons) -> str:
    """Return what the three say together."""
    shown = epsilon_words(epsilons.audited.low)
    level = f"{epsilons.audited.level:.0%}"
    if epsilons.claimed is None:
        return f"No epsilon is claimed; with {level} confidence it is at least {shown}."
    claimed = epsilon_words(epsilons.claimed)
    if epsilons.refuted:
        return f"REFUTED: an epsilon of {claimed} is claimed, but with {level} confidence it is at least {shown}. The claim is not true."
    return (
        f"Not refuted: an epsilon of {claimed} is claimed, and with {level} confidence it is at least {shown}; this audit could have shown "
        f"about {epsilon_words(epsilons.ceiling)}. That is no proof of the claim."
    )


def epsilons_rows(epsilons: Epsilons) -> list[tuple[str, str, str]]:
    """Return the three as rows: name, value, where it comes from."""
    proven = epsilon_words(epsilons.proven)
    if epsilons.proven is None:
        proven = "unknown" if "not known" in epsilons.proven_by else "none"
    return [
        ("claimed", epsilon_words(epsilons.claimed), epsilons.claimed_by),
        ("proven", proven, epsilons.proven_by),
        (
            "audited",
            f"at least {epsilon_words(epsilons.audited.low)}",
            f"{epsilons.method}; {epsilons.audited.level:.0%} confidence; could have shown about {epsilon_words(epsilons.ceiling)}",
        ),
    ]


def epsilons_section(epsilons: Epsilons | None, *, told: bool = False) -> str:
    """Return the section of a page; empty if nothing is claimed.

    Parameters
    ----------
    epsilons : Epsilons or None
        The three.
    told : bool
        Whether the page has said already what they say together.
    """
    if epsilons is None:
        return ""
    rows = [
        (
            text(name),
            text(value),
            f'<span style="white-space:normal">{text(why)}</span>',
        )
        for name, value, why in epsilons_rows(epsilons)
    ]
    return (
        "<h2>Three epsilons</h2>"
        + lead(
            "" if told else refuted_sentence(epsilons),
            f"All at delta {epsilons.delta:.2g}, {epsilons.relation} neighbours. Claimed is what whoever trained it says; proven is what the "
            "recipe guarantees; audited is what was shown at least.",
        )
        + card(
            _drawing(epsilons),
            key(
                [
                    ("other", "claimed and proven"),
                    ("member", "shown at least: the truth is to the right"),
                    ("soft", "could have been shown"),
                ]
            ),
        )
        + table(("", "epsilon", "where it comes from"), rows)
        + (
            listed(
                [
                    "A claim that is refuted is a reason to refuse the release, whatever else was found."
                ]
            )
            if epsilons.refuted
            else ""
        )
    )


def _drawing(epsilons: Epsilons) -> str:
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
    tip = f"shown with {epsilons.audited.level:.0%} confidence: at least {epsilon_words(shown)}"
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
