"""Show the stages of a run to somebody who waits: bars on a terminal, lines in a pipe, a log or a notebook."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from reticent._visible import visible
from reticent.report._terminal import Screen

__all__ = ["Terminal", "is_watched", "terminal"]

SECONDS_BETWEEN_LINES = 15  # of one stage: a sign of life, and no flood in a log


@dataclass(frozen=True)
class Terminal:
    """Where progress is shown, or a stand-in that shows nothing.

    Parameters
    ----------
    watched : bool
        Whether anything is shown.
    tell : callable
        Shows progress: stage, done, total, and optionally a note.
    say : callable
        Shows a sentence.
    """

    watched: bool
    tell: Callable[..., None]
    say: Callable[[str], None]


def is_watched() -> bool:
    """Return whether somebody seems to watch this process: at a terminal or in a notebook."""
    console = Screen(stderr=True)
    return console.is_terminal or console.is_jupyter


@contextmanager
def terminal(*, quiet: bool) -> Iterator[Terminal]:
    """Show progress and sentences on the error stream: bars if it is a terminal, otherwise one line per stage.

    Parameters
    ----------
    quiet : bool
        Whether nothing is shown.
    """
    if quiet:
        yield Terminal(False, lambda *_: None, lambda _: None)
        return
    console = Screen(stderr=True)
    if not console.is_terminal or console.is_jupyter:
        lines = _Lines(sys.stderr)
        yield Terminal(True, lines.tell, lines.say)
        return
    bars = Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        # Bars vanish at the end, so that the report stands alone.
        transient=True,
    )
    tasks: dict[str, TaskID] = {}

    def tell(stage: str, done: int, total: int, note: str = "") -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total, note="")
        bars.update(tasks[stage], completed=done, total=total)
        if note:
            bars.update(tasks[stage], note=note)

    def say(sentence: str) -> None:
        # Names of columns may look like markup.
        bars.console.print(sentence, markup=False, highlight=False)

    with bars:
        yield Terminal(True, tell, say)


class _Lines:
    """Progress as plain lines: when a stage begins, when it ends, and now and then between."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last: dict[str, tuple[int, float]] = {}

    def tell(self, stage: str, done: int, total: int, note: str = "") -> None:
        """Write a line, unless the last one of this stage said the same or is too recent."""
        now = time.monotonic()
        before, when = self._last.get(stage, (-1, -float("inf")))
        is_end = done >= total
        if done == before or (not is_end and now - when < SECONDS_BETWEEN_LINES):
            return
        self._last[stage] = done, now
        self.say(f"{stage}: {done}/{total}" + (f" ({note})" if note else ""))

    def say(self, sentence: str) -> None:
        """Write a sentence."""
        self._stream.write(f"{visible(sentence)}\n")
        self._stream.flush()
