"""Decide before a deadline which pieces of work are begun: by how long they take, never by what they find."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from reticent.run._effort import Effort
from reticent.run._workers import Serial

__all__ = ["Timetable", "Work", "timetable"]


@dataclass(frozen=True, kw_only=True)
class Work:
    """A piece of work that may be left out.

    Parameters
    ----------
    name : str
        Its name.
    trial : callable
        Does a small part of the work; what it returns is thrown away.
    times : float
        How many times as long the whole takes as the trial.
    """

    name: str
    trial: Callable[[], object]
    times: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Timetable:
    """Which pieces of work are left out because of a deadline.

    Parameters
    ----------
    late : mapping of str to str
        Why each piece that is left out is, by its name.
    seconds : float
        About how long all others take together.
    """

    late: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def timetable(works: Sequence[Work], *, effort: Effort) -> Timetable:
    """Return which pieces of work would end after the deadline.

    In the order given, each piece is tried out on a small part. It is left out if it would end after the deadline, together with those before
    it that are not left out; a shorter one further down the list may still fit. Without a deadline nothing is tried and nothing left
    out.

    Parameters
    ----------
    works : sequence of Work
        The pieces, the most important first.
    effort : Effort
        The deadline, and how many workers share the work.

    Examples
    --------
    >>> works = [Work(name="long", trial=lambda: None, times=1e12), Work(name="short", trial=lambda: None)]
    >>> list(timetable(works, effort=Effort(deadline=1)).late)
    ['long']
    >>> list(timetable(works, effort=Effort()).late)
    []
    """
    if effort.deadline is None:
        return Timetable()
    late: dict[str, str] = {}
    planned = 0.0
    for work in works:
        # After the deadline there is no time for a trial either.
        if not effort.allows(planned):
            late[work.name] = (
                f"the deadline of {effort.deadline:g} minutes leaves no time for it"
            )
            continue
        started = time.perf_counter()
        # As a job, so that it has one thread as it will have.
        list(Serial().map(_try, [work.trial], shared=None))
        trial = time.perf_counter() - started
        seconds = trial * work.times / effort.workers.count
        if effort.allows(planned + seconds):
            planned += seconds
        else:
            late[work.name] = (
                f"it would take about {seconds:.0f} s, which is more than the deadline of {effort.deadline:g} minutes leaves"
            )
    return Timetable(late=late, seconds=planned)


def _try(_: None, trial: Callable[[], object]) -> None:
    trial()
