"""The time, the memory and the workers that a run may use."""

import math
import time
from dataclasses import dataclass, field

from reticent.errors import InvalidInput
from reticent.run._workers import Serial, Workers

__all__ = ["Effort"]

USUAL_MINUTES = 2.0  # what somebody waits who wants an answer now


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The time, the memory and the workers that a run may use.

    Parameters
    ----------
    minutes : float or None
        About how long the run should take; stages plan their work by it. None for the usual two minutes, which work without which there
        is no conclusion may exceed.
    memory : float
        Gigabytes that a stage may use.
    workers : Workers
        Who carries out jobs.
    deadline : float or None
        Minutes after which no work may end: what would end later is not begun. None if there is no deadline.
    started : float
        When the run began, by ``time.perf_counter`` of this machine.
    reserved : float
        Seconds before the deadline that belong to work which is planned already and comes later.

    Examples
    --------
    >>> Effort(minutes=3).allows(1e9)
    True
    >>> Effort(deadline=1).allows(3600)
    False
    """

    minutes: float | None = None
    memory: float = 2.0
    workers: Workers = field(default_factory=Serial)
    deadline: float | None = None
    started: float = field(default_factory=time.perf_counter)
    reserved: float = 0.0

    def __post_init__(self) -> None:
        if self.minutes is not None:
            _positive("minutes", self.minutes, "write half a minute as 0.5")
        _positive("memory", self.memory, "write 500 megabytes as 0.5")
        if self.deadline is not None:
            _positive("deadline", self.deadline, "leave it out if there is none")

    @property
    def seconds(self) -> float:
        """Seconds that stages plan by."""
        return 60 * (USUAL_MINUTES if self.minutes is None else self.minutes)

    @property
    def seconds_left(self) -> float:
        """Seconds that stages plan by and that have not passed yet."""
        return max(0.0, self.seconds - self._elapsed())

    @property
    def seconds_to_deadline(self) -> float:
        """Seconds until the deadline; infinite if there is none, 0 afterwards."""
        if self.deadline is None:
            return math.inf
        return max(0.0, 60 * self.deadline - self.reserved - self._elapsed())

    def allows(self, seconds: float) -> bool:
        """Return whether a piece of work would end before the deadline.

        Parameters
        ----------
        seconds : float
            About how long the work would take.
        """
        if self.deadline is None:
            return True
        return self._elapsed() + self.reserved + seconds <= 60 * self.deadline

    def _elapsed(self) -> float:
        return time.perf_counter() - self.started


def _positive(name: str, value: float, hint: str) -> None:
    if not value > 0:  # NaN is refused as well
        raise InvalidInput(f"{name} must be greater than 0, got {value}; {hint}.")
