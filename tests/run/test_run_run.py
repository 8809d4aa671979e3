"""A run: its streams, its effort, and results that are kept one by one."""

import math
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest
import run_jobs
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.run import (
    Cluster,
    Content,
    Effort,
    Processes,
    Run,
    Serial,
    Store,
    content_of,
    seed_for,
    silent,
    stream,
)
from reticent.run._processes import _Executor

KIND = NDArray[np.float64]


def test_streams_are_those_of_the_seed():
    run = Run(seed=7)
    assert run.rng("split").random() == stream(7, "split").random()
    assert run.seed_for("train") == seed_for(7, "train")
    assert Run(seed=8).seed_for("train") != run.seed_for("train")


def test_a_run_keeps_by_content(tmp_path):
    run = Run(store=Store(folder=tmp_path))
    assert run.keep("a", int, lambda: 1, depends=content_of(1)) == 1
    assert run.keep("a", int, lambda: 2, depends=content_of(1)) == 1
    assert run.keep("a", int, lambda: 2, depends=content_of(2)) == 2


def keep_each(folder, log, workers, items, told=None, version=1):
    run = Run(
        store=Store(folder=folder),
        effort=Effort(workers=workers),
        tell=silent if told is None else lambda *report: told.append(report),
    )
    return run.keep_each(
        "double it",
        KIND,
        items,
        run_jobs.twice_and_log,
        shared=str(log),
        depends=[content_of(item, version) for item in items],
    )


def test_any_number_of_workers_finds_what_was_finished(tmp_path):
    folder, log = tmp_path / "stages", tmp_path / "log"
    items = list(range(8))
    for k in (1, 2, 6):  # an interrupted run left these
        Store(folder=folder).save(
            f"double it/{k}", np.full(3, 2.0 * k), depends=content_of(k, 1)
        )
    processes, cluster = Processes(2), Cluster("local", count=2)
    told: list[tuple[str, int, int]] = []
    try:
        first = keep_each(folder, tmp_path, processes, items, told)
        begun = sorted(int(line) for line in log.read_text().splitlines())
        assert begun == [0, 3, 4, 5, 7]
        assert told == [("double it", k, 8) for k in range(1, 9)]
        second = keep_each(folder, tmp_path, Serial(), items)
        third = keep_each(folder, tmp_path, cluster, items)
        assert len(log.read_text().splitlines()) == len(begun)
        fourth = keep_each(folder, tmp_path, cluster, items[:2], version=2)
        assert len(log.read_text().splitlines()) == len(begun) + 2
    finally:
        processes.close()
        cluster.close()
    for results in (first, second, third):
        assert np.array_equal(results, [np.full(3, 2.0 * k) for k in items])
    assert np.array_equal(fourth, first[:2])


def test_what_arrived_before_an_error_is_kept(tmp_path):
    run = Run(store=Store(folder=tmp_path))
    items = list(range(6))
    depends = [content_of(k) for k in items]
    with pytest.raises(KeyError, match="three"):
        run.keep_each(
            "a", int, items, run_jobs.fails_at_three, shared=None, depends=depends
        )
    assert [run.store.find(f"a/{k}", int, depends=depends[k]) for k in items] == [
        0, 1, 2, None, None, None,
    ]  # fmt: skip


def test_what_ended_behind_a_job_that_fails_is_kept(tmp_path):
    """Only what was under way is lost: results are stored as they come, not in their order."""
    folder, workers = tmp_path / "marks", Processes(2)
    folder.mkdir()
    run = Run(store=Store(folder=tmp_path / "stages"), effort=Effort(workers=workers))
    depends = [content_of(k) for k in range(10)]
    try:
        with pytest.raises(KeyError, match="the first"):
            run.keep_each(
                "a", int, range(10), run_jobs.fails_after_the_others, shared=str(folder),
                depends=depends,
            )  # fmt: skip
    finally:
        workers.close()
    stored = [run.store.find(f"a/{k}", int, depends=depends[k]) for k in range(10)]
    assert stored[:9] == [None, *range(1, 9)]
    # The first one fails while the last one, which it waits for, may still be on its way back.
    assert stored[9] in (None, 9)


def test_what_ended_together_with_a_job_that_fails_comes_before_it():
    failed, lost, ended, pending = (Future() for _ in range(4))
    failed.set_exception(KeyError("the first"))
    lost.set_exception(BrokenProcessPool())
    ended.set_result(3)
    hands = _Executor(Processes(2), Path())
    assert hands.wait({0: failed, 1: lost, 2: pending, 3: ended}) == [3, 0, 1]


def test_an_item_that_is_opaque_is_made_each_time(tmp_path):
    run = Run(store=Store(folder=tmp_path / "stages"))
    depends = [content_of(0), Content((), ("a lambda.",)), content_of(2)]
    for _ in range(2):
        results = run.keep_each(
            "a", KIND, [0, 1, 2], run_jobs.twice_and_log, shared=str(tmp_path),
            depends=depends,
        )  # fmt: skip
    assert [r[0] for r in results] == [0, 2, 4]
    assert (tmp_path / "log").read_text().split() == ["0", "1", "2", "1"]


def test_items_and_contents_must_match():
    with pytest.raises(InvalidInput, match="2 items but 1 contents"):
        Run().keep_each("a", int, [1, 2], pow, shared=2, depends=[content_of(1)])


def test_the_seed_is_at_least_zero():
    with pytest.raises(InvalidInput, match="at least 0, got -1"):
        Run(seed=-1)


@pytest.mark.parametrize("name", ["minutes", "memory", "deadline"])
@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_effort_is_positive(name, value):
    with pytest.raises(InvalidInput, match=f"{name} must be greater than 0, got"):
        Effort(**{name: value})


def test_time_is_counted_from_the_start():
    an_hour_ago = time.perf_counter() - 3600
    effort = Effort(minutes=61, deadline=62, started=an_hour_ago)
    assert 50 < effort.seconds_left <= 60
    assert effort.allows(100)
    assert not effort.allows(121)
    assert Effort(minutes=1, started=an_hour_ago).seconds_left == 0
    assert Effort(minutes=1, started=an_hour_ago).allows(1e9)
    assert not Effort(deadline=1, started=an_hour_ago).allows(0)


def test_effort_is_serial_unless_told_otherwise():
    assert Effort().workers == Serial()
    assert Effort().workers.count == 1
