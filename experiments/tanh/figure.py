"""Draw accuracy against epsilon: what is claimed, what was shown, what is true."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Curve", "Panel", "drawn"]

LEFT, RIGHT, WIDTH, TALL, TOP, BELOW = 62, 48, 780, 290, 40, 56
LOW, HIGH = 0.1, 1e6  # epsilon
FILTER = "#b3402f"
STYLES = {  # colour, dashes, filling of the marks
    "clip": ("#1b5e8c", "", "#1b5e8c"),
    "both": ("#4b8a3a", "", "#4b8a3a"),
    "claimed": (FILTER, "5 4", "white"),
    "audited": (FILTER, "1 4", "#f0c9c2"),
    "proven": (FILTER, "", FILTER),
}

WORDS = {"claimed": "claimed {}", "audited": "shown: {} or more", "proven": "proven {}"}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Accuracy over epsilon, epoch by epoch.

    Parameters
    ----------
    words : str
        For the legend.
    style : str
        A key of :data:`STYLES`.
    points : sequence of (epsilon, accuracy)
        In order.
    """

    words: str
    style: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The curves of one data set."""

    title: str
    curves: tuple[Curve, ...]


def drawn(panels: Sequence[Panel]) -> str:
    """Return panels one below another, as a picture that stands alone."""
    legend = 22 * ((len(panels[0].curves) + 1) // 2) + 10
    height = legend + len(panels) * (TOP + TALL + BELOW)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13" role="img" '
        'aria-label="Accuracy against epsilon: DP-SGD, and the tanh filter as claimed, as audited and in truth">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *_legend(panels[0].curves),
    ]
    for k, panel in enumerate(panels):
        parts += _panel(panel, legend + k * (TOP + TALL + BELOW))
    return "".join(parts) + "</svg>\n"


def _legend(curves: Sequence[Curve]) -> list[str]:
    parts = []
    for k, curve in enumerate(curves):
        colour, dashes, fill = STYLES[curve.style]
        x, y = LEFT + 330 * (k % 2), 18 + 22 * (k // 2)
        parts.append(
            f'<line x1="{x}" x2="{x + 34}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
            f'<circle cx="{x + 17}" cy="{y}" r="4" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
            f'<text x="{x + 42}" y="{y + 4}">{html.escape(curve.words)}</text>'
        )
    return parts


def _panel(panel: Panel, top: float) -> list[str]:
    upper, lower = top + TOP, top + TOP + TALL
    shares = [share for curve in panel.curves for _, share in curve.points]
    least = math.floor(10 * min(shares)) / 10
    most = max(shares) + 0.14 * (max(shares) - least)  # room for words

    def x(epsilon: float) -> float:
        share = math.log10(epsilon / LOW) / math.log10(HIGH / LOW)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(share: float) -> float:
        return round(lower - (share - least) / (most - least) * TALL, 1)

    parts = [
        f'<text x="{LEFT}" y="{upper - 14}" font-weight="bold">{panel.title}: accuracy on test records, epoch by epoch</text>'
    ]
    for power in range(-1, 7):
        at = x(10.0**power)
        words = f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="{upper}" y2="{lower}" stroke="#ddd"/>'
            f'<text x="{at}" y="{lower + 18}" text-anchor="middle" fill="#555">{words}</text>'
        )
    for tenth in range(round(10 * least), math.floor(10 * most) + 1):
        at = y(tenth / 10)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}" stroke="#ddd"/>'
            f'<text x="{LEFT - 8}" y="{at + 4}" text-anchor="end" fill="#555">{10 * tenth} %</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{lower + 40}" text-anchor="middle" fill="#555">epsilon at delta 1e-5, '
        "add/remove; logarithmic scale</text>"
    )
    # What one and the same training is said to be, was shown to be, and is.
    of_filter = [c.points[-1] for c in panel.curves if c.style in WORDS]
    ends = [x(e) for e, _ in of_filter]
    height = y(of_filter[0][1])
    parts.append(
        f'<line x1="{min(ends)}" x2="{max(ends)}" y1="{height}" y2="{height}" stroke="{FILTER}" stroke-opacity="0.35"/>'
    )
    for curve in panel.curves:
        parts += _curve(curve, [(x(e), y(share)) for e, share in curve.points])
    return parts


def _curve(curve: Curve, places: Sequence[tuple[float, float]]) -> list[str]:
    colour, dashes, fill = STYLES[curve.style]
    path = " ".join(f"{a},{b}" for a, b in places)
    parts = [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
    ]
    for a, b in places:
        if curve.style == "audited":  # at least so much: an arrow to the right
            parts.append(
                f'<path d="M{a} {b} h26 m-6 -5 l6 5 l-6 5" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            )
        parts.append(
            f'<circle cx="{a}" cy="{b}" r="4" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
        )
    if curve.style in WORDS:
        (a, b), epsilon = places[-1], curve.points[-1][0]
        number = f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.2f}"
        words = WORDS[curve.style].format(number)
        parts.append(
            f'<text x="{a}" y="{b - 11}" text-anchor="middle" fill="{FILTER}">{words}</text>'
        )
    return parts
