"""Serial, Processes and Cluster: real processes and a real Dask cluster on this machine."""

import mmap
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import run_jobs

from reticent.errors import InvalidInput, ReticentError, WorkerLost
from reticent.run import Cluster, Content, Processes, Serial
from reticent.run._cluster import different_versions
from reticent.run._workers import AHEAD


@pytest.fixture(scope="module")
def cluster():
    workers = Cluster("local", count=2)
    yield workers
    workers.close()


@pytest.fixture(scope="module")
def processes():
    workers = Processes(2)
    yield workers
    workers.close()


@pytest.fixture(params=["processes", "cluster"])
def workers(request):
    return request.getfixturevalue(request.param)


def parcels(pid: int | None = None) -> set[Path]:
    """Return what a process has shared and not removed; other tests share at the same time."""
    folders = [Path("/dev/shm"), Path(os.environ.get("TMPDIR", "/tmp"))]
    pattern = f"reticent-shared-{pid or os.getpid()}-*/*"
    return {path for folder in folders for path in folder.glob(pattern)}


def test_the_results_are_the_same_to_the_last_digit(workers):
    shared = np.random.default_rng(42).normal(size=(200, 200))
    items = list(range(9))
    expected = list(Serial().map(run_jobs.numbers, items, shared=shared))
    results = list(workers.map(run_jobs.numbers, items, shared=shared))
    for (values, total, _), (other_values, other_total, _) in zip(
        expected, results, strict=True
    ):
        assert np.array_equal(values, other_values)
        assert total == other_total


def test_jobs_run_at_the_same_time_in_processes_that_stay_warm(workers, tmp_path):
    pids = []
    for call in ("first", "second"):
        folder = tmp_path / call
        folder.mkdir()
        pids.append(set(workers.map(run_jobs.meets, [0, 1], shared=str(folder))))
    assert pids[0] == pids[1]
    assert len(pids[0]) == 2
    assert os.getpid() not in pids[0]


def test_the_order_is_that_of_the_items(workers):
    results = workers.map(run_jobs.slow_first, range(7), shared=10)
    assert list(results) == [0, 10, 20, 30, 40, 50, 60]


def test_a_long_job_does_not_hold_up_the_others(workers, tmp_path):
    """The first job ends only when all others have: whoever hands out a few jobs behind the first unfinished one would wait for ever."""
    results = workers.map(run_jobs.waits_for_the_others, range(10), shared=str(tmp_path))  # fmt: skip
    assert list(results) == list(range(10))


def test_what_is_finished_first_comes_first(workers, tmp_path):
    results = workers.each(run_jobs.waits_for_the_others, range(10), shared=str(tmp_path))  # fmt: skip
    numbered = list(results)
    assert sorted(numbered) == [(k, k) for k in range(10)]
    # The first job ends after all others. Those that were begun last may be seen to have ended together with it, but the last of them was begun when all before were handed over.
    assert numbered.index((0, 0)) >= 10 - AHEAD * workers.count > 0


def test_one_process_alone_yields_the_numbers_too():
    assert list(Serial().each(pow, [1, 2], shared=3)) == [(0, 3), (1, 9)]
    assert list(Processes(1).each(pow, [1, 2], shared=3)) == [(0, 3), (1, 9)]


def test_a_worker_knows_what_it_cannot_send_back(workers):
    assert list(workers.map(run_jobs.travels, [0], shared=None)) == [(True, True, False)]  # fmt: skip
    # In this process nothing has to be sent.
    assert list(Serial().map(run_jobs.travels, [0], shared=None)) == [(True, True, True)]  # fmt: skip


def test_no_items_give_no_results(workers):
    assert list(workers.map(run_jobs.slow_first, [], shared=10)) == []


def test_closures_are_sent_too(processes, cluster):
    def job(shared, item):
        return shared + item + offset

    offset = 100
    for workers in (Serial(), processes, cluster):
        assert list(workers.map(job, [1, 2], shared=10)) == [111, 112]


def test_exceptions_of_a_job_are_raised_unchanged_in_their_turn(processes, cluster):
    for workers in (Serial(), processes, cluster):
        results = workers.map(run_jobs.fails_at_three, range(6), shared=None)
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(KeyError) as caught:
            next(results)
        assert caught.value.args == ("three", 3)
    assert not parcels()


def test_an_exception_that_cannot_be_sent_is_not_taken_for_a_death(workers):
    with pytest.raises(RuntimeError, match="Unsendable: this and that") as caught:
        list(workers.map(run_jobs.fails_unsendably, [0, 1], shared=None))
    assert not isinstance(caught.value, ReticentError)


def test_a_killed_worker_does_not_end_the_run(workers, tmp_path):
    results = list(workers.map(run_jobs.dies_once, range(8), shared=str(tmp_path)))
    assert (tmp_path / "died").exists()
    assert results == [k * k for k in range(8)]
    assert not parcels()


def test_the_only_worker_is_replaced_and_what_it_held_is_sent_again(tmp_path):
    workers = Cluster("local", count=1)
    try:
        results = list(workers.map(run_jobs.dies_once, range(5), shared=str(tmp_path)))
    finally:
        workers.close()
    assert results == [0, 1, 4, 9, 16]


def test_results_that_die_with_the_worker_that_held_them_are_made_again():
    """Jobs ahead of the one that was asked for are finished, and their results lie with the worker, when it is killed."""
    workers = Cluster("local", count=1)
    try:
        results = workers.each(run_jobs.numbers, range(6), shared=np.eye(200))
        first, (_, total, pid) = next(results)
        time.sleep(1)
        os.kill(pid, signal.SIGKILL)
        rest = {k: (total, other) for k, (_, total, other) in results}
    finally:
        workers.close()
    rest[first] = (total, pid)
    assert sorted(rest) == list(range(6))
    calm = Serial().map(run_jobs.numbers, range(6), shared=np.eye(200))
    assert [rest[k][0] for k in range(6)] == [total for _, total, _ in calm]
    # The twin: somebody else has made at least one of them.
    assert {other for _, other in rest.values()} > {pid}


def test_a_job_that_always_kills_is_given_up_by_name(workers, tmp_path):
    results = workers.map(run_jobs.dies_at_two, range(6), shared=str(tmp_path))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(WorkerLost, match=r"job 3 of 6 died 4 times.*fewer --workers"):
        next(results)
    assert (tmp_path / "2").read_text() == "xxxx"  # the first time, and three more
    assert not parcels()


def test_what_is_shared_is_loaded_once_by_each_worker_and_call(workers, tmp_path):
    for call in (1, 2):
        file = tmp_path / f"loads-{call}"
        shared = (run_jobs.CountsLoads(str(file)), np.zeros(12))
        results = list(workers.map(run_jobs.with_counter, range(12), shared=shared))
        pids = {pid for pid, _ in results}
        loads = [int(line) for line in file.read_text().splitlines()]
        # The scheduler of a local cluster lives in this process and passes on what it is given.
        loads = [pid for pid in loads if pid != os.getpid()]
        assert len(loads) == len(set(loads)) <= 2
        assert pids <= set(loads)
        assert not shared[1].any()


def test_jobs_have_one_thread_and_start_no_further_processes(workers):
    ((threads, nested, pid), _) = workers.map(
        run_jobs.threads_and_nested, [0, 1], shared=pickle.loads(pickle.dumps(workers))
    )
    assert threads == {1}
    assert nested == {pid}


def test_only_a_few_jobs_are_begun_ahead(workers, tmp_path):
    # Those that are finished first, because a job that is held up lets the others overtake it.
    results = workers.each(run_jobs.twice_and_log, range(50), shared=str(tmp_path))
    for _ in range(3):
        next(results)
    time.sleep(0.3)
    begun = (tmp_path / "log").read_text().splitlines()
    results.close()
    assert 3 <= len(begun) <= 3 + 4
    assert not parcels()


def test_joblib_works_beside_warm_processes(processes):
    for _ in range(2):
        assert list(processes.map(pow, [1, 2], shared=2)) == [2, 4]
        assert joblib.Parallel(2)(joblib.delayed(abs)(k) for k in (-1, -2)) == [1, 2]


def test_a_process_that_dies_between_calls_is_replaced(processes, tmp_path):
    pids = set(processes.map(run_jobs.meets, [0, 1], shared=str(tmp_path)))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)
    assert list(processes.map(pow, [1, 2, 3], shared=2)) == [2, 4, 8]


def test_one_process_is_this_one():
    results = Processes(1).map(run_jobs.numbers, [0], shared=np.eye(200))
    assert next(results)[2] == os.getpid()


def test_workers_that_dask_gives_up_are_started_again(cluster, tmp_path):
    list(cluster.map(run_jobs.slow_first, [1], shared=1))
    local = cluster._connection.cluster
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        local.sync(lambda: close_all(local))  # as Dask does with one that is late
    assert list(cluster.map(run_jobs.slow_first, [1, 2], shared=1)) == [1, 2]


async def close_all(local):
    for name in list(local.workers):
        await local.workers.pop(name).close()


@pytest.mark.parametrize("make", [Processes, lambda n: Cluster("local", count=n)])
def test_there_is_at_least_one_worker(make):
    with pytest.raises(InvalidInput, match="at least 1, got 0"):
        make(0)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "nowhere", "foo://127.0.0.1:1"]
)
def test_an_address_that_does_not_answer_is_told_soon(address):
    began = time.perf_counter()
    with pytest.raises(InvalidInput, match=f"no Dask scheduler .* '{address}'"):
        next(Cluster(address).map(run_jobs.slow_first, [1], shared=1))
    assert time.perf_counter() - began < 10


def test_a_cluster_can_be_joined_and_is_sent_modules(cluster, tmp_path):
    module = tmp_path / "only_on_the_workers.py"
    module.write_text("def job(shared, item):\n    return shared - item\n")
    list(cluster.map(run_jobs.slow_first, [1], shared=1))
    address = cluster._connection.cluster.scheduler_address

    def job(shared, item):
        import only_on_the_workers

        return only_on_the_workers.job(shared, item)

    joined = Cluster(address, modules=(module,))
    assert joined.count in (1, 2)  # one may just be replaced after an earlier test
    assert list(joined.map(job, [1, 2, 3], shared=3)) == [2, 1, 0]
    joined.close()
    assert list(cluster.map(run_jobs.slow_first, [1], shared=2)) == [2]


def test_another_version_of_a_library_on_a_worker_is_named():
    here = Content(("python==3.11", "numpy==2.4", "pytest==9", "reticent's source: a"))
    there = Content(("python==3.11", "numpy==2.3", "reticent's source: b"))
    assert different_versions(here, there) == ["numpy==2.4", "reticent's source: a"]
    assert different_versions(here, here) == []


def test_without_dask_the_extra_is_named():
    code = """
    import sys
    sys.modules["distributed"] = None
    from reticent.errors import InvalidInput
    from reticent.run import Cluster
    try:
        list(Cluster("local", count=1).map(pow, [1], shared=1))
    except InvalidInput as error:
        print(error)
    """
    assert "install reticent[cluster]" in run_python(code)


def test_an_interruption_leaves_nothing_behind(tmp_path):
    code = f"""
    import os, signal, sys, threading, time
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    import run_jobs
    from reticent.run import Processes
    # A shell that started the tests in the background made its children deaf to SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    def job(shared, item):
        time.sleep(30 if item else 0)
    try:
        for result in Processes(2).map(job, range(4), shared=b"secret"):
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    except KeyboardInterrupt:
        print(os.getpid(), "interrupted")
    """
    pid, said = run_python(code).split()
    assert said == "interrupted"
    assert not parcels(int(pid))


def test_a_killed_run_leaves_nothing_behind():
    code = """
    import os, signal, time
    from reticent.run import Processes
    def job(shared, item):
        time.sleep(0.2)
    print(os.getpid(), flush=True)
    for result in Processes(2).map(job, range(40), shared=b"secret"):
        os.kill(os.getpid(), signal.SIGKILL)
    """
    pid = int(run_python(code, status=-signal.SIGKILL))
    until = time.perf_counter() + 60
    while parcels(pid) and time.perf_counter() < until:
        time.sleep(0.1)
    assert not parcels(pid)


def test_what_dask_forgot_of_a_worker_that_died_does_not_end_a_finished_run():
    workers = Cluster("local", count=1)
    assert list(workers.map(pow, [1, 2], shared=3)) == [3, 9]
    dask = workers._connect().cluster
    # As after a worker was replaced twice: Dask watches it leave, and looks its name up.
    dask.scheduler_info["workers"].clear()
    workers.close()
    assert dask.status.name == "closed"
    assert all(nanny.status.name == "closed" for nanny in dask._created)


def run_python(code: str, status: int = 0) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == status, finished.stderr
    return finished.stdout


@pytest.mark.parametrize("kind", [Serial, lambda: Processes(1), lambda: Processes(2)])
def test_warm_processes_have_imported_what_jobs_need(kind):
    """What is to be imported waits before the jobs: one process or both have taken it when the first result is there."""
    assert "mailbox" not in sys.modules
    workers = kind()
    try:
        # Known by its name alone here, and imported by whoever receives it.
        workers.warm(run_jobs.OfMailbox())
        asked = ["mailbox"] * 8 + ["imaplib"] * 8
        found = list(workers.map(run_jobs.has_imported, asked, shared=None))
    finally:
        workers.close()
    # The twin: a module that nobody asked for is not there, nor is any where nothing is started.
    assert not any(found[8:])
    assert any(found[:8]) == (workers.count == 2)


def test_a_worker_that_holds_much_is_not_replaced():
    """Loky takes 300 megabytes for a leak; a forest beside the answers of a pool is more."""
    pytest.importorskip("psutil")  # by which loky measures it
    processes = Processes(2)
    try:
        found = list(processes.map(run_jobs.grows, range(8), shared=150))
    finally:
        processes.close()
    assert len(set(found)) == 2


def is_mapped(result):
    """Whether the memory of an array is that of a file."""
    owner = result["much"]
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, memoryview) and isinstance(owner.obj, mmap.mmap)


def test_large_results_are_the_same_and_leave_nothing_behind(workers):
    before = parcels()
    for megabytes in (1, 20):
        expected = list(Serial().map(run_jobs.gives_much, range(3), shared=megabytes))
        found = list(workers.map(run_jobs.gives_much, range(3), shared=megabytes))
        for one, other in zip(expected, found, strict=True):
            assert np.array_equal(one["much"], other["much"])
            assert one["frame"].equals(other["frame"])
            assert one["item"] == other["item"]
            other["much"][0] = -1  # it belongs to whoever asked for it
    assert parcels() == before


def test_large_results_do_not_go_through_a_pipe(processes, monkeypatch):
    def mapped(megabytes):
        results = list(processes.map(run_jobs.gives_much, range(2), shared=megabytes))
        return [is_mapped(result) for result in results]

    if shutil.disk_usage("/dev/shm").free < 2**28:
        pytest.skip("no room in memory for files")
    assert mapped(1) == [False, False]
    assert mapped(20) == [True, True]
    # The twin: what is shared lies on a disk, and so would the results.
    monkeypatch.setattr("reticent.run._processes.IN_MEMORY", Path("/nowhere"))
    assert mapped(20) == [False, False]


@pytest.mark.parametrize("warm", [False, True])
def test_a_worker_looks_for_garbage_as_soon_as_it_has_imported_its_libraries(warm):
    processes = Processes(2)
    try:
        if warm:
            processes.warm(run_jobs.numbers)
        found = list(processes.map(run_jobs.looks_for_garbage, range(4), shared=None))
    finally:
        processes.close()
    assert all(is_enabled for is_enabled, _ in found)
    assert all(frozen > 10_000 for _, frozen in found)
