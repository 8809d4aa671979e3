"""A few lines of SVG: axes, marks and tips, no dependency and no script needed to draw."""

import html
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

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
        value = min(max(value, self.low), self.high)
        if self.log:
            return (math.log10(value) - math.log10(self.low)) / (
                math.log10(self.high) - math.log10(self.low)
            )
        return (value - self.low) / (self.high - self.low)

    def words(self, tick: float) -> str:
        """Return what stands at a tick."""
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
    parts: list[str] = field(default_factory=list)

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
                self.parts.append(
                    f'<line class="grid" x1="{at}" x2="{at}" y1="{self._top}" y2="{self._bottom}"/>'
                )
            self.parts.append(
                f'<text class="tick" x="{at}" y="{self._bottom + 20}" text-anchor="middle">{self.x.words(tick)}</text>'
            )
        for number, tick in enumerate(self.y.ticks):
            at = self.py(tick)
            if grid:
                self.parts.append(
                    f'<line class="grid" x1="{self.left}" x2="{self._right}" y1="{at}" y2="{at}"/>'
                )
            words = y_labels[number] if y_labels else self.y.words(tick)
            if words:
                self.parts.append(
                    f'<text class="tick" x="{self.left - 8}" y="{at + 4}" text-anchor="end">{html.escape(words)}</text>'
                )
        for number, words in enumerate(self._words):
            self.parts.append(
                f'<text class="label" x="{self._middle}" y="{self._bottom + 44 + _LINE * number}" text-anchor="middle">{html.escape(words)}</text>'
            )
        if self.y.label:
            # Above the axis, not along it: letters stay upright and never cross the ticks.
            self.parts.append(
                f'<text class="label" x="4" y="18">{html.escape(self.y.label)}</text>'
            )

    def line(
        self, points: Sequence[tuple[float, float]], css: str, tip: str = ""
    ) -> None:
        """Draw a line through points in data coordinates."""
        path = " ".join(f"{self.px(a)},{self.py(b)}" for a, b in points)
        self.parts.append(f'<polyline class="{css}" points="{path}"{_tip(tip)}/>')

    def area(self, points: Sequence[tuple[float, float]], css: str) -> None:
        """Fill a polygon in data coordinates."""
        path = " ".join(f"{self.px(a)},{self.py(b)}" for a, b in points)
        self.parts.append(f'<polygon class="{css}" points="{path}"/>')

    def bar(self, x0: float, x1: float, y: float, css: str, tip: str = "") -> None:
        """Draw a bar from the horizontal axis up to a value."""
        left, right, top = self.px(x0), self.px(x1), self.py(y)
        self.parts.append(
            f'<rect class="{css}" x="{left}" y="{top}" width="{max(0.5, round(right - left - 1, 1))}" height="{round(self._bottom - top, 1)}"{_tip(tip)}/>'
        )

    def dot(
        self, x: float, y: float, css: str, tip: str = "", radius: float = 5
    ) -> None:
        """Draw a point; one with a tip answers the mouse."""
        self.parts.append(
            f'<circle class="{css}" cx="{self.px(x)}" cy="{self.py(y)}" r="{radius}"{_tip(tip)}/>'
        )

    def slab(
        self, x0: float, x1: float, y: float, css: str, tip: str = "", half: float = 8
    ) -> None:
        """Draw a box between two values on a row, ``half`` pixels to either side of it."""
        left, width = self.px(x0), self.px(x1) - self.px(x0)
        self.parts.append(
            f'<rect class="{css}" x="{left}" y="{round(self.py(y) - half, 1)}" width="{max(1.0, round(width, 1))}" height="{2 * half}"{_tip(tip)}/>'
        )

    def bracket(
        self, y0: float, y1: float, lane: int, css: str, words: str, tip: str
    ) -> None:
        """Join two rows beside the right end, in one of several lanes, with words along the bracket."""
        x = self._right + 8 + LANE * lane
        top, bottom = sorted((self.py(y0) + 3, self.py(y1) - 3))
        path = f"M{x} {top} h7 V{bottom} h-7"
        middle = round((top + bottom) / 2, 1)
        self.parts.append(
            f'<path class="{css}" d="{path}"/>'
            f'<text class="{css}-words" transform="translate({x + 17} {middle}) rotate(-90)" text-anchor="middle">{html.escape(words)}</text>'
            f'<rect class="catch" x="{x - 2}" y="{top}" width="{LANE}" height="{round(bottom - top, 1)}"{_tip(tip)}/>'
        )

    def span(self, x0: float, x1: float, y: float, css: str, tip: str = "") -> None:
        """Draw a horizontal interval."""
        self.parts.append(
            f'<line class="{css}" x1="{self.px(x0)}" x2="{self.px(x1)}" y1="{self.py(y)}" y2="{self.py(y)}"{_tip(tip)}/>'
        )

    def rise(self, x: float, y0: float, y1: float, css: str, tip: str = "") -> None:
        """Draw a vertical interval."""
        self.parts.append(
            f'<line class="{css}" x1="{self.px(x)}" x2="{self.px(x)}" y1="{self.py(y0)}" y2="{self.py(y1)}"{_tip(tip)}/>'
        )

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
        self.parts.append(
            f'<text class="{css}" x="{self.px(x)}" y="{self.py(y)}" text-anchor="{anchor}">{html.escape(words)}</text>'
        )

    def svg(self, name: str) -> str:
        """Return the drawing."""
        return (
            f'<svg id="{name}" class="plot{" half" if self.half else ""}" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{html.escape(self.title)}">{"".join(self.parts)}</svg>'
        )


def _tip(text: str) -> str:
    return f' data-tip="{html.escape(text)}" tabindex="0"' if text else ""
