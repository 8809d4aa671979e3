"""A few lines of SVG: axes, marks and tips, no script needed to draw. Every word and value is escaped."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

__all__ = ["LANE", "Axis", "Plot"]

LANE = 22  # pixels that one bracket and its words take
_LINE = 20  # height of a line of the label below


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis: its range, whether it is logarithmic or in per cent, and its ticks."""

    low: float
    high: float
    ticks: Sequence[float]
    label: str
    log: bool = False
    percent: bool = False

    def share(self, value: float) -> float:
        """Return where a value lies between the ends, from 0 to 1."""
        # Values beyond the ends are drawn at the ends; their tips say where they are.
        value = min(max(value, self.low), self.high)
        if self.log:
            return (math.log10(value) - math.log10(self.low)) / (
                math.log10(self.high) - math.log10(self.low)
            )
        return (value - self.low) / (self.high - self.low)

    def words(self, tick: float) -> str:
        """Return what stands at a tick."""
        # Rounded, because 100 times 0.07 is 7.000000000000001.
        return f"{round(100 * tick, 6):g} %" if self.percent else f"{tick:g}"


@dataclass(kw_only=True)
class Plot:
    """A drawing under construction.

    Parameters
    ----------
    x, y : Axis
        The axes.
    title : str
        What a screen reader says.
    width, height : int
        Size of the drawing's coordinates; the page scales it.
    left, right : int
        Room for the labels of the vertical axis, and for marks beside the other end.
    """

    x: Axis
    y: Axis
    title: str
    width: int = 580
    height: int = 360
    left: int = 80
    right: int = 36
    parts: list[Markup] = field(default_factory=list)

    @property
    def half(self) -> bool:
        """Whether the drawing shares its line with another."""
        return self.width < 500

    @property
    def _right(self) -> int:
        return self.width - self.right

    @property
    def _top(self) -> int:
        return 36 if self.y.label else 14

    @property
    def _bottom(self) -> int:
        return self.height - 32 - _LINE * len(self._words)

    @property
    def _words(self) -> list[str]:
        """Return the label below in lines that fit even with the larger letters of a phone."""
        # Pixels of a letter in the drawing's coordinates: a drawing across the whole line is scaled down more on a
        # phone.
        letter = 8.2 if self.half else 10.0
        room = 2 * min(self._middle, self.width - self._middle) - 8
        return textwrap.wrap(self.x.label, int(room / letter))

    @property
    def _middle(self) -> float:
        return (self.left + self._right) / 2

    def px(self, value: float) -> float:
        """Return the horizontal place of a value."""
        return round(self.left + self.x.share(value) * (self._right - self.left), 1)

    def py(self, value: float) -> float:
        """Return the vertical place of a value."""
        return round(self._bottom - self.y.share(value) * (self._bottom - self._top), 1)

    def axes(self, *, grid: bool = True, y_labels: Sequence[str] | None = None) -> None:
        """Draw grid, ticks and labels."""
        for tick in self.x.ticks:
            at = self.px(tick)
            if grid:
                self._draw("line", "grid", x1=at, x2=at, y1=self._top, y2=self._bottom)
            self._write(
                self.x.words(tick), "tick", x=at, y=self._bottom + 20, anchor="middle"
            )
        for number, tick in enumerate(self.y.ticks):
            at = self.py(tick)
            if grid:
                self._draw("line", "grid", x1=self.left, x2=self._right, y1=at, y2=at)
            words = y_labels[number] if y_labels else self.y.words(tick)
            if words:
                self._write(words, "tick", x=self.left - 8, y=at + 4, anchor="end")
        for number, words in enumerate(self._words):
            self._write(
                words,
                "label",
                x=self._middle,
                y=self._bottom + 44 + _LINE * number,
                anchor="middle",
            )
        if self.y.label:
            # Above the axis, not along it: letters stay upright and never cross the ticks.
            self._write(self.y.label, "label", x=4, y=18)

    def line(
        self, points: Sequence[tuple[float, float]], css: str, tip: str = ""
    ) -> None:
        """Draw a line through points in data coordinates."""
        self._draw("polyline", css, tip, points=self._path(points))

    def area(self, points: Sequence[tuple[float, float]], css: str) -> None:
        """Fill a polygon in data coordinates."""
        self._draw("polygon", css, points=self._path(points))

    def bar(self, x0: float, x1: float, y: float, css: str, tip: str = "") -> None:
        """Draw a bar from the horizontal axis up to a value."""
        left, right, top = self.px(x0), self.px(x1), self.py(y)
        self._draw(
            "rect",
            css,
            tip,
            x=left,
            y=top,
            # A gap of one pixel between bars, and a bar that is seen even if the bin is narrow.
            width=max(0.5, round(right - left - 1, 1)),
            height=round(self._bottom - top, 1),
        )

    def dot(
        self, x: float, y: float, css: str, tip: str = "", radius: float = 5
    ) -> None:
        """Draw a point; one with a tip answers the mouse."""
        self._draw("circle", css, tip, cx=self.px(x), cy=self.py(y), r=radius)

    def diamond(self, x: float, y: float, css: str, tip: str = "") -> None:
        """Draw a diamond around a point."""
        at, up = self.px(x), self.py(y)
        path = f"M{at} {up - 7} L{at + 7} {up} L{at} {up + 7} L{at - 7} {up} Z"
        self._draw("path", css, tip, d=path)

    def slab(
        self, x0: float, x1: float, y: float, css: str, tip: str = "", half: float = 8
    ) -> None:
        """Draw a box between two values on a row, ``half`` pixels to either side of it."""
        left, width = self.px(x0), self.px(x1) - self.px(x0)
        self._draw(
            "rect",
            css,
            tip,
            x=left,
            y=round(self.py(y) - half, 1),
            width=max(1.0, round(width, 1)),
            height=2 * half,
        )

    def bracket(
        self, y0: float, y1: float, lane: int, css: str, words: str, tip: str
    ) -> None:
        """Join two rows beside the right end, in one of several lanes, with words along the bracket."""
        x = self._right + 8 + LANE * lane
        top, bottom = sorted((self.py(y0) + 3, self.py(y1) - 3))
        middle = round((top + bottom) / 2, 1)
        self._draw("path", css, d=f"M{x} {top} h7 V{bottom} h-7")
        self.parts.append(
            Markup(
                '<text class="{}-words" transform="translate({} {}) rotate(-90)" text-anchor="middle">{}</text>'
            ).format(css, x + 17, middle, words)
        )
        self._draw(
            "rect",
            "catch",
            tip,
            x=x - 2,
            y=top,
            width=LANE,
            height=round(bottom - top, 1),
        )

    def span(self, x0: float, x1: float, y: float, css: str, tip: str = "") -> None:
        """Draw a horizontal interval."""
        at = self.py(y)
        self._draw("line", css, tip, x1=self.px(x0), x2=self.px(x1), y1=at, y2=at)

    def rise(self, x: float, y0: float, y1: float, css: str, tip: str = "") -> None:
        """Draw a vertical interval."""
        at = self.px(x)
        self._draw("line", css, tip, x1=at, x2=at, y1=self.py(y0), y2=self.py(y1))

    def note(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "start",
        css: str = "note",
    ) -> None:
        """Write words at a point."""
        self._write(words, css, x=self.px(x), y=self.py(y), anchor=anchor)

    def svg(self, name: str) -> Markup:
        """Return the drawing."""
        return Markup(
            '<svg id="{}" class="plot{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
        ).format(
            name,
            " half" if self.half else "",
            self.width,
            self.height,
            self.title,
            Markup("").join(self.parts),
        )

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{self.px(a)},{self.py(b)}" for a, b in points)

    def _draw(
        self, shape: str, css: str, tip: str = "", **attributes: float | str
    ) -> None:
        """Add a shape; one that lies nowhere, because a number is not known, is left out."""
        values = {"class": css, **attributes}
        if any("nan" in str(value) for value in attributes.values()):
            return
        if tip:
            # Reachable by keyboard, so that values are not for mice alone (decision 0006).
            values |= {"data-tip": tip, "tabindex": 0}
        pairs = Markup(" ").join(
            Markup('{}="{}"').format(name, value) for name, value in values.items()
        )
        self.parts.append(Markup("<{} {}/>").format(Markup(shape), pairs))

    def _write(
        self, words: str, css: str, *, x: float, y: float, anchor: str = ""
    ) -> None:
        side = Markup(' text-anchor="{}"').format(anchor) if anchor else ""
        self.parts.append(
            Markup('<text class="{}" x="{}" y="{}"{}>{}</text>').format(
                css, x, y, side, words
            )
        )
