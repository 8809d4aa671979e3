"""What a deadline leaves out is chosen by time alone, in the order of importance."""

import time
from dataclasses import dataclass, field
from functools import partial

import pytest

from reticent.run import Effort, Processes, Work, timetable


@dataclass(frozen=True, kw_only=True)
class Stopped(Effort):
    """An effort whose clock stands still until somebody moves it."""

    clock: list[float] = field(default_factory=lambda: [0.0])

    def _elapsed(self):
        return self.clock[0]


def work(name, times, tried):
    return Work(name=name, trial=lambda: tried.append(name), times=times)


def test_without_a_deadline_nothing_is_tried():
    tried = []
    plan = timetable([work("a", 1e12, tried)], effort=Effort())
    assert (tried, plan.late, plan.seconds) == ([], {}, 0.0)


def test_what_would_end_too_late_is_left_out_and_shorter_work_behind_it_is_not():
    tried = []
    works = [
        work("first", 1, tried),
        work("long", 1e12, tried),
        work("short", 1, tried),
    ]
    plan = timetable(works, effort=Stopped(deadline=1.0))
    assert tried == ["first", "long", "short"]
    assert list(plan.late) == ["long"]
    assert "more than the deadline of 1 minutes leaves" in plan.late["long"]
    assert 0 < plan.seconds < 60


def test_time_that_is_planned_counts_for_what_comes_after():
    """Each takes at least 50 of 90 seconds, so at most one of three is begun, however slow the machine is."""
    works = [
        Work(name=name, trial=partial(time.sleep, 0.05), times=1_000)
        for name in ("one", "two", "three")
    ]
    assert len(timetable(works, effort=Stopped(deadline=1.5)).late) >= 2
    assert len(timetable(works, effort=Stopped(deadline=1e6)).late) == 0


def test_after_the_deadline_not_even_a_trial_is_made():
    tried = []
    plan = timetable(
        [work("a", 1, tried), work("b", 1, tried)],
        effort=Stopped(deadline=1.0, clock=[60.1]),
    )
    assert tried == []
    assert list(plan.late) == ["a", "b"]
    assert "leaves no time" in plan.late["a"]


def test_reserved_time_belongs_to_others():
    effort = Stopped(deadline=1.0, reserved=50.0)
    assert effort.seconds_to_deadline == pytest.approx(10.0)
    assert effort.allows(9.9)
    assert not effort.allows(10.1)
    assert Effort(reserved=50.0).allows(1e9)


def test_workers_share_the_time():
    trial = Work(name="x", trial=lambda: sum(range(100_000)), times=100)
    one = timetable([trial], effort=Stopped(deadline=1e6)).seconds
    many = timetable(
        [trial], effort=Stopped(deadline=1e6, workers=Processes(1000))
    ).seconds
    # A thousandth, up to the order of magnitude: two trials of the same work may differ.
    assert many < one / 10
