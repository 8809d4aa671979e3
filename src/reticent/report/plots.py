"""The two shapes of drawing that figures share: rows with intervals, and histograms."""

import math
from collections.abc import Sequence

from reticent.evidence import Estimate, Histogram
from reticent.report.svg import Axis, Plot
from reticent.report.words import percent

__all__ = [
    "MARK",
    "UNIT_TICKS",
    "fill_histogram",
    "histogram_plot",
    "interval",
    "interval_row",
    "reach",
    "round_ticks",
    "row_name",
    "rows_plot",
    "shorten",
    "upright",
]

UNIT_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_LETTER = 10.4  # width of a letter of a row's name on a phone, where they are largest
MARK = -0.2  # where a row's marks lie, below its name


def rows_plot(
    rows: int,
    label: str,
    title: str,
    *,
    ends: tuple[float, float] = (0.0, 1.0),
    pitch: int = 52,
    right: int = 28,
    ruled: float = MARK,
) -> Plot:
    """Return an empty drawing with one row per name; names stand above their marks, so they may be long.

    Parameters
    ----------
    rows : int
        Number of rows.
    label, title : str
        Label of the axis below, and title for a screen reader.
    ends : tuple of float
        Ends of the axis.
    pitch : int
        Height of a row.
    right : int
        Room for brackets beside the rows.
    ruled : float
        Where in a row a thin line lies: under its marks, or at -0.5 between rows.
    """
    low, high = ends
    plot = Plot(
        x=Axis(low=low, high=high, ticks=round_ticks(low, high), label=label),
        y=Axis(
            low=-0.5, high=rows - 0.5, ticks=[k + ruled for k in range(rows)], label=""
        ),
        title=title,
        height=66 + pitch * rows,
        left=20,
        right=right,
    )
    plot.axes(y_labels=[""] * rows)
    return plot


def row_name(plot: Plot, place: int, name: str, words: str = "") -> None:
    """Write a row's name, and at the other end its value, above its marks."""
    room = plot.px(plot.x.high) - plot.px(plot.x.low)
    # The value at the other end keeps its room; at least eight letters of a name are needed to recognise it.
    most = max(8, int(room / _LETTER) - len(words) - 1)
    plot.note(plot.x.low, place + 0.12, shorten(name, most), css="row")
    if words:
        plot.note(plot.x.high, place + 0.12, words, anchor="end", css="row-value")


def interval(
    plot: Plot, at: float, name: str, estimate: Estimate, css: str = "", more: str = ""
) -> None:
    """Draw an estimate on a row, with a tip that says all of it."""
    tip = f"{name}: {estimate} at {percent(estimate.level)} confidence"
    if estimate.covers == "trainer":
        tip += ", other runs of the trainer included"
    tip += f"; {more}" if more else ""
    low, high = max(estimate.low, plot.x.low), min(estimate.high, plot.x.high)
    plot.span(low, high, at, f"whisker {css}".strip(), tip)
    plot.dot(estimate.value, at, f"point {css}".strip(), tip, radius=6)


def interval_row(
    plot: Plot,
    place: int,
    name: str,
    estimate: Estimate,
    *,
    limit: float | None = None,
    more: str = "",
) -> None:
    """Draw a named row with an estimate that should lie at or above its limit."""
    if limit is not None:
        tip = f"limit: at least {limit:g}"
        plot.rise(limit, place - 0.42, place + 0.02, "limit", tip)
    row_name(plot, place, name, str(estimate))
    interval(plot, place + MARK, name, estimate, more=more)


def upright(plot: Plot, at: float, rows: int, css: str, tip: str = "") -> None:
    """Draw a value across all rows, with gaps where names stand."""
    for place in range(rows):
        plot.rise(at, place - 0.48, place + 0.05, css, tip)


def reach(
    values: Sequence[float], *, least: float = 0.1, most: float = 1.0
) -> tuple[float, float]:
    """Return ends of an axis that starts at 0, or below if it must, and shows all values.

    Examples
    --------
    >>> reach([0.1, 0.42])
    (0.0, 0.45)
    >>> reach([-0.02, 0.01])
    (-0.05, 0.15)
    """
    finite = [v for v in values if math.isfinite(v)]
    low, high = min(0.0, *finite), max(least, *finite)
    # So that a mark at the end is not cut in half.
    high += 0.01 * (high - low) if high < most else 0.0
    # Ends at multiples of 0.05, so that ticks are round numbers.
    return math.floor(20 * low) / 20, min(most, math.ceil(20 * high - 1e-9) / 20)


def histogram_plot(
    histogram: Histogram, label: str, title: str, ends: tuple[float, float]
) -> Plot:
    """Return axes for shares of people per bin."""
    low, high = ends
    # A file that somebody wrote may say that all bins are at one place, and an axis must have a length.
    high = high if high > low else low + 1.0
    # Some air above the highest bar; never 0, also if all bins are empty.
    top = max(*histogram.members, *histogram.nonmembers, 1e-6) * 1.08
    plot = Plot(
        x=Axis(
            low=low,
            high=high,
            ticks=round_ticks(low, high),
            label=label,
        ),
        y=Axis(
            low=0.0,
            high=top,
            ticks=round_ticks(0.0, top),
            label="share of people",
            percent=True,
        ),
        title=title,
        width=440,
        height=330,
        left=60,
    )
    plot.axes()
    return plot


def fill_histogram(plot: Plot, histogram: Histogram, what: str, digits: str) -> None:
    """Draw the bars of both sides; ``what`` says in a tip what the bins are of."""
    edges = histogram.edges
    for css, shares, who in (
        ("nonmember", histogram.nonmembers, "non-members"),
        ("member", histogram.members, "members"),
    ):
        for left, right, share in zip(edges, edges[1:], shares, strict=False):
            plot.bar(
                left,
                right,
                share,
                css,
                f"{percent(share)} of {who} {what} {left:{digits}} to {right:{digits}}",
            )


def round_ticks(low: float, high: float) -> list[float]:
    """Return three to seven ticks at round numbers between two ends.

    Examples
    --------
    >>> round_ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> round_ticks(-0.05, 0.1)
    [-0.05, 0.0, 0.05, 0.1]
    """
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    # The usual round steps; the tolerance lets 0.2 count as 0.2 whatever its last bit.
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # Adding 0.0 turns -0.0 into 0.0, which would be written as -0.
    return [round(k * step, 9) + 0.0 for k in range(first, last + 1)]


def shorten(name: str, most: int) -> str:
    """Return a name of at most some letters.

    Examples
    --------
    >>> shorten("Amer-Indian-Eskimo", 12)
    'Amer-Indian…'
    """
    return name if len(name) <= most else name[: most - 1] + "…"
