"""Which statistics end before the deadline: each is timed on a few records before any result on the product exists."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from reticent.evidence import (
    Joint,
    LongStatistic,
    UnitGroups,
    UnitScores,
    measure_groups,
    name_members,
)
from reticent.pipeline._gather import Chosen, naming_replicates, worst_jobs
from reticent.pipeline._plan import AuditPlan
from reticent.pipeline._pool import pool_works
from reticent.pipeline._score import Arena
from reticent.run import Run, Timetable, Work, timetable

__all__ = ["plan_statistics"]


def plan_statistics(
    plan: AuditPlan, arena: Arena, groups: NDArray[np.object_] | None, run: Run
) -> Timetable:
    """Return which statistics are left out so that the others end before the deadline; nothing without a deadline.

    Groups come first, because a policy may limit them; the others decide nothing. What describes a single attack, the controls and the utility
    are sums and ranks that take seconds for a million records; they are never left out.

    Parameters
    ----------
    plan : AuditPlan
        Kind and policy.
    arena : Arena
        The product and its controls.
    groups : array of object or None
        Group of each record.
    run : Run
        Seed, deadline, workers.
    """
    # The trials themselves take a moment, which nobody should pay without a deadline.
    if run.effort.deadline is None:
        return Timetable()
    works = [
        *_groups_work(plan, arena, groups),
        _naming_work(plan, arena),
        *_worst_works(plan, arena, run),
        *pool_works(plan, arena, run),
    ]
    return timetable(works, effort=run.effort)


def _groups_work(
    plan: AuditPlan, arena: Arena, groups: NDArray[np.object_] | None
) -> list[Work]:
    """Return the work on groups: one group of middling size is timed, as often as there are groups."""
    if groups is None:
        return []
    sides, smallest = arena.product.sides, plan.policy.smallest_group
    names = sides.groups(groups).names(smallest=smallest)
    if not names:
        return []
    size = max(smallest, len(sides.unit_tags) // len(names) // 2)
    scores = _any_scores(size)
    same = UnitGroups(
        members=np.full(len(scores.members), "x"),
        nonmembers=np.full(len(scores.nonmembers), "x"),
    )
    trial = partial(
        measure_groups,
        scores,
        same,
        smallest=1,
        joint=Joint(level=plan.policy.confidence),
        rng=np.random.default_rng(0),
    )
    times = len(names) * size / len(scores.members)
    return [Work(name=LongStatistic.GROUPS, trial=trial, times=times)]


def _naming_work(plan: AuditPlan, arena: Arena) -> Work:
    people = len(arena.product.sides.unit_tags)
    scores = _any_scores(people // 2)
    trial = partial(
        name_members,
        scores.members,
        scores.nonmembers,
        others=people,
        level=plan.policy.confidence,
        rng=np.random.default_rng(0),
        replicates=naming_replicates(people),
    )
    times = people / (2 * len(scores.members))
    return Work(name=LongStatistic.NAMED, trial=trial, times=times)


def _worst_works(plan: AuditPlan, arena: Arena, run: Run) -> list[Work]:
    """Return the works on the worst case, timed on the control that memorises."""
    part = arena.control.part(run.seed)
    members = int(part.sides.unit_tags.sum())
    rng = np.random.default_rng(0)
    scores = UnitScores(
        members=rng.normal(size=members),
        nonmembers=rng.normal(size=len(part.sides.unit_tags) - members),
    )
    jobs = worst_jobs(plan, part, Chosen(name="trial", scores=scores, choices=1), run)
    # More than linear only in the sorting; nearest neighbours are sought among some thousands at most, so that theirs
    # is overstated for large tables.
    times = len(arena.control.sides.unit_tags) / len(part.sides.unit_tags)
    return [Work(name=name, trial=job, times=times) for name, job in jobs.items()]


def _any_scores(size: int) -> UnitScores:
    """Return scores that say nothing about anybody: how long a statistic takes does not depend on them."""
    rng = np.random.default_rng(0)
    # As many as attacks are timed on.
    side = max(4, min(size, 1_000))
    return UnitScores(members=rng.normal(size=side), nonmembers=rng.normal(size=side))
