"""Elements of the text: paragraphs and tables that show every name as it is, in any width."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.containers import Lines
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from reticent._visible import visible
from reticent.evidence import Estimate

__all__ = [
    "Fitting",
    "Screen",
    "grid",
    "on_two_lines",
    "paragraph",
    "stack",
    "visible",
]

# Capitals as well as colours, so that a broken limit is seen without colours too.
_STYLES = {
    "kept": "green",
    "behaved": "green",
    "BROKEN": "bold red",
    "MISBEHAVED": "bold red",
    "open": "yellow",
}


# A number and its interval, or an interval alone: "0.63 [0.62, 0.64]", "<0.01 % [0 %, 0.42 %]", "+0.03 [-0.01, inf]".
_NUMBER = r"[<>]?[+-]?(?:\d[\d,.]*|inf)(?: %)?"
_ESTIMATE = re.compile(rf"(?:{_NUMBER} )?\[{_NUMBER}, {_NUMBER}\][.,;:)]?")
# Stands for a space that must not end a line while lines are broken. Rich breaks at every kind of space, also at those that forbid it; this character
# is for private use and one cell wide, and no text can hold it, because :func:`visible` replaces it.
_UNBROKEN = "\ue000"


class _Make(Protocol):
    """Makes a table whose cells may take two lines."""

    def __call__(self, *, narrow: bool) -> RenderableType: ...


class Screen(Console):
    """The one console that reticent prints with: whatever is printed, no character of it steers the terminal.

    Sections pass names through :func:`visible` themselves, so that columns are as wide as what is shown; what a section of the
    user's own forgets is replaced here.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, **settings)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments that are printed; only those that Rich makes itself may control the terminal."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)


class _Words(Text):
    """Text of which no line ends between a number and its interval, or inside the interval."""

    def wrap(self, console: Console, width: int, **settings: Any) -> Lines:
        """Return the lines that the text takes in a width."""
        joined = self.copy()
        joined.plain = _joined(self.plain)
        lines = joined.wrap(console, width, **settings)
        for line in lines:
            line.plain = line.plain.replace(_UNBROKEN, " ")
        return lines

    def __rich_measure__(
        self, console: Console, options: ConsoleOptions
    ) -> Measurement:
        return Measurement.get(console, options, Text(_joined(self.plain)))


def _joined(text: str) -> str:
    return _ESTIMATE.sub(lambda found: found[0].replace(" ", _UNBROKEN), text)


def paragraph(*sentences: str, style: str = "") -> RenderableType | None:
    """Return sentences, each on lines of its own; None if all are empty."""
    nonempty = [sentence for sentence in sentences if sentence]
    if not nonempty:
        return None
    return Group(
        *(Padding(_Words(visible(words), style=style), (0, 2)) for words in nonempty)
    )


def stack(*parts: RenderableType | None) -> RenderableType:
    """Return parts with an empty line between them; None is left out."""
    shown = [part for part in parts if part is not None]
    lines = [line for part in shown for line in (Text(), part)]
    return Group(*lines[1:])


def _cell(words: object) -> Text:
    """Return one cell; words such as kept and BROKEN have their colour."""
    return _Words(visible(words), style=_STYLES.get(str(words), ""))


def grid(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    narrow: bool = False,
    ragged: bool = False,
) -> RenderableType:
    """Return a table.

    Parameters
    ----------
    columns : sequence of str
        Heads.
    rows : iterable of sequence
        Cells.
    narrow : bool
        Whether cells stand closer to each other.
    ragged : bool
        Whether all columns hold words, so that none is aligned at its right.
    """
    table = Table(box=SIMPLE_HEAD, show_edge=False, collapse_padding=narrow)
    for number, column in enumerate(columns):
        left = number == 0 or ragged
        # What does not fit goes on in the next line: half a name or half an interval tells nothing.
        table.add_column(
            Text(visible(column)),
            justify="left" if left else "right",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(_cell(words) for words in row))
    return Padding(table, (0, 0, 0, 1))


def on_two_lines(estimate: Estimate | str, narrow: bool) -> str:
    """Return an estimate, or the words for one, on one line, or its interval under its value."""
    return str(estimate).replace(" [", "\n[") if narrow else str(estimate)


class Fitting:
    """A table that is made narrow where it would not fit otherwise.

    Parameters
    ----------
    make : callable
        Makes the table, narrow or not.
    """

    def __init__(self, make: _Make) -> None:
        self.make = make

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        table = self.make(narrow=False)
        # Rich says how wide a table would be only up to the width it is given.
        free = options.update(width=4 * options.max_width)
        fits = Measurement.get(console, free, table).maximum <= options.max_width
        yield table if fits else self.make(narrow=True)
