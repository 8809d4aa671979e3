"""Import libraries, and end, without a search for garbage."""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["begin_no_search", "end_no_search", "leave_at_exit", "no_search"]


@contextmanager
def no_search() -> Iterator[None]:
    """Do something that leaves no garbage, such as an import, without looking for it; what is there afterwards is never looked through again.

    Libraries make hundreds of thousands of objects that stay. To look through them takes a tenth of the time of an import, and again whenever a run
    looks through everything.

    Examples
    --------
    >>> with no_search():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    begin_no_search()
    try:
        yield
    finally:
        end_no_search()


def begin_no_search() -> None:
    """Begin what :func:`no_search` is about, where one block cannot hold it."""
    gc.disable()


def end_no_search() -> None:
    """End it; nothing happens if it has ended."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def leave_at_exit() -> None:
    """Leave all objects to the operating system when the interpreter ends: what would be searched for garbage is freed with the process."""
    atexit.register(gc.freeze)
