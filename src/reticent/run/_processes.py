"""Several processes on this machine, kept warm between calls."""

import contextlib
import io
import mmap
import os
import pickle
import shutil
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle
from joblib.externals.loky import (
    BrokenProcessPool,
    ProcessPoolExecutor,
    process_executor,
)
from joblib.externals.loky.backend import resource_tracker

from reticent._garbage import begin_no_search, end_no_search
from reticent.errors import InvalidInput
from reticent.run._workers import (
    AHEAD,
    INSIDE_WORKER,
    Finished,
    Serial,
    Workers,
    as_finished,
    in_order,
    results_of,
    run_inside_worker,
)

__all__ = ["Processes", "workers_of"]

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

# What each library reads its number of threads from, before it is loaded.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}

# Seconds that idle processes stay alive, as in joblib: between two stages there may be minutes of
# other work, and a new process needs a second or more to import its libraries.
STAY_WARM = 300

# How often a worker looks whether its parent is alive: a sleeping thread costs nothing, and an orphan
# would keep what is shared in memory until it is no longer warm.
SECONDS_TO_OUTLIVE = 1.0

# Bytes by which a worker may grow before loky replaces it, for fear of a leak. Loky's own limit, 300 megabytes, is less than what the jobs of one stage may share and
# hold (a forest, the answers of a pool), and a new worker imports every library again, in the middle of the work.
MOST_GROWTH = 4 * 2**30

ALIGNMENT = 64  # bytes: where NumPy and BLAS like an array to begin

# Bytes of arrays from which a result is left in a file for this process to map: two results of 250 megabytes took 1.4 and 2.5 s through a pipe, and 1.1 and 1.2 s so.
LARGE = 2**24

# A file system in memory leaves nothing on a disk. It is used if it has this many times the room.
IN_MEMORY = Path("/dev/shm")
ROOM = 2


@dataclass
class Processes:
    """Carry out jobs in several processes of this machine.

    The processes are kept for later calls. What jobs share is written once to a file that only
    the owner can read, in memory where there is room, and mapped by each process; it is removed when the
    last result is there, when a job fails and when the run is interrupted. If a process dies, the
    jobs that were lost with it are given to others.

    Parameters
    ----------
    count : int
        Number of processes; 1 carries out everything in this process.

    Examples
    --------
    >>> Processes(1).count
    1
    """

    count: int
    _executor: Any = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InvalidInput(f"workers must be at least 1, got {self.count}.")

    def __getstate__(self) -> dict[str, Any]:
        # Processes belong to the process that started them.
        return {"count": self.count, "_executor": None}

    def map(
        self,
        job: Callable[[Shared, Item], Result],
        items: Sequence[Item],
        *,
        shared: Shared,
    ) -> Iterator[Result]:
        """Yield the result of each item in their order; see :class:`Workers`."""
        if self._is_serial(items):
            return Serial().map(job, items, shared=shared)
        return in_order(self._finished(job, items, shared))

    def each(
        self,
        job: Callable[[Shared, Item], Result],
        items: Sequence[Item],
        *,
        shared: Shared,
    ) -> Iterator[tuple[int, Result]]:
        """Yield the number of each item and its result, those that are finished first; see :class:`Workers`."""
        if self._is_serial(items):
            return Serial().each(job, items, shared=shared)
        return results_of(self._finished(job, items, shared))

    def _is_serial(self, items: Sequence[Any]) -> bool:
        """Whether this process does everything: one process would only add the cost of sending, and inside a worker, further ones would compete for its core."""
        return self.count == 1 or not items or INSIDE_WORKER.get()

    def _finished(
        self, job: Callable[..., Any], items: Sequence[Any], shared: object
    ) -> Finished:
        with _parcel((job, shared)) as path:
            hands = _Executor(self, path)
            finished = as_finished(hands, items, ahead=AHEAD * self.count)
            for k, outcome in _quietly(finished):
                yield k, replace(outcome, value=_fetched(outcome.value))

    def warm(self, function: Callable[..., Any]) -> None:
        """Let the processes start, and import the module of a function while this one does something else."""
        if self.count > 1 and not INSIDE_WORKER.get():
            for _ in range(self.count):
                # Whoever receives a function imports its module.
                self.executor().submit(_receive, function)

    def close(self) -> None:
        """End the processes."""
        executor, self._executor = self._executor, None
        if executor is not None:
            processes = list((executor._processes or {}).values())
            with _without_noise_of_the_manager():
                executor.shutdown(wait=True, kill_workers=True)
            for process in processes:
                process.terminate()  # those that a manager which stumbled has left

    def executor(self) -> Any:
        """Return the processes, started now or warm from an earlier call.

        They are not loky's reusable executor, of which there is one per process: joblib takes that one
        for its own, and fails if it is not.
        """
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                max_workers=self.count,
                timeout=STAY_WARM,
                initializer=_begin_worker,
                initargs=(os.getpid(),),
                env=ONE_THREAD,
            )
        return self._executor


def workers_of(count: int | None) -> Workers:
    """Return so many processes; by default one per core.

    Examples
    --------
    >>> workers_of(1).count
    1
    """
    number = os.cpu_count() or 1 if count is None else count
    return Serial() if number == 1 else Processes(number)


class _Executor:
    """Loky's executor, which breaks as a whole when one of its processes dies."""

    lost: tuple[type[BaseException], ...] = (BrokenProcessPool,)

    def __init__(self, processes: Processes, path: Path) -> None:
        self.processes, self.path = processes, path

    def submit(self, item: Any) -> Any:
        return self.processes.executor().submit(_run, str(self.path), item)

    def wait(self, pending: dict[int, Any]) -> list[int]:
        wait(pending.values(), return_when=FIRST_COMPLETED)
        ended = [k for k, future in pending.items() if future.done()]
        return sorted(ended, key=lambda k: pending[k].exception() is not None)

    def deaths(self, error: BaseException) -> int:
        return 1

    def loss(self, future: Any) -> BaseException | None:
        error = future.exception() if future.done() else None
        return error if isinstance(error, self.lost) else None

    def recover(self) -> None:
        self.processes.close()  # the next job starts other processes

    def abandon(self, futures: list[Any]) -> None:
        # What still runs would only take the machine's time. The jobs are not cancelled one by
        # one: loky's thread ends with an error when it finds a cancelled job while it shuts down.
        self.processes.close()


@contextlib.contextmanager
def _without_noise_of_the_manager() -> Iterator[None]:
    """Let loky's thread end in silence if it still looks for a job that a shutdown has taken from it.

    Jobs that nobody waits for any more, after one of them has raised, may be pending then.
    """
    usual = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        # By name, because loky does not export the class.
        ended = type(args.thread).__name__ == "_ExecutorManagerThread"
        if not (ended and isinstance(args.exc_value, KeyError)):
            usual(args)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = usual


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """Silence loky about workers that it replaces, which changes no result."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
        yield


def _quietly(results: Finished) -> Finished:
    """Wait for each result without warnings, but leave those of whoever uses it."""
    end = object()
    with contextlib.closing(results):
        while True:
            with _no_warnings():
                result = next(results, end)
            if result is end:
                return
            yield result  # type: ignore[misc]


# --- what is sent once ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Packed:
    """A pickled value, with folders in which its modules are looked for first, and its arrays apart from it."""

    head: bytes
    buffers: list[memoryview]

    @classmethod
    def of(cls, value: object, *, search: Sequence[str]) -> "_Packed":
        buffers: list[memoryview] = []
        pickled = io.BytesIO()
        cloudpickle.CloudPickler(
            pickled,
            # Protocol 5 hands out the buffers of arrays, so that they can be mapped and not copied.
            protocol=pickle.HIGHEST_PROTOCOL,
            buffer_callback=lambda buffer: buffers.append(buffer.raw()),
        ).dump(value)
        sizes = [len(buffer) for buffer in buffers]
        head = pickle.dumps((list(search), pickled.getvalue(), sizes))
        return cls(head, buffers)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        arrays = sum(map(len, self.buffers))
        return len(self.head) + arrays + ALIGNMENT * (len(self.buffers) + 1)

    def write(self, path: Path) -> None:
        """Write the value to a file, so that arrays begin where they can be mapped."""
        with path.open("wb") as file:
            file.write(self.head)
            for buffer in self.buffers:
                file.write(b"\0" * (-file.tell() % ALIGNMENT))
                file.write(buffer)


@contextlib.contextmanager
def _parcel(value: object) -> Iterator[Path]:
    """Write a value to a file for the processes to map, and remove it afterwards.

    The file holds the search path of this process, the pickled value, and its arrays apart from
    it, so that processes share the memory of the arrays as long as they do not write to it.
    """
    packed = _Packed.of(value, search=sys.path)
    folder = Path(
        tempfile.mkdtemp(
            prefix=f"reticent-shared-{os.getpid()}-", dir=_roomy_folder(packed.size)
        )
    )
    # Should this process be killed, loky's tracker, another process, removes the folder.
    resource_tracker.register(str(folder), "folder")
    try:
        path = folder / uuid.uuid4().hex
        packed.write(path)
        del packed
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        resource_tracker.unregister(str(folder), "folder")


def _roomy_folder(size: int) -> Path | None:
    """Return the file system in memory if it has room, else None for the usual place."""
    with contextlib.suppress(OSError):
        if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > (
            ROOM * size
        ):
            return IN_MEMORY
    return None


def _open_parcel(path: str) -> Any:
    """Return the value in a file; its arrays can be written to, and only this process sees that."""
    with Path(path).open("rb") as file:
        search, pickled, sizes = pickle.load(file)
        offset = file.tell()
        # Copy on write: a job that breaks the rule and writes changes its own pages only.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    # So that the worker finds the user's modules where this process does.
    sys.path[:] = [*search, *(entry for entry in sys.path if entry not in search)]
    buffers = []
    for size in sizes:
        offset += -offset % ALIGNMENT
        buffers.append(memoryview(mapped)[offset : offset + size])
        offset += size
    return pickle.loads(pickled, buffers=buffers)


def _fetched(result: Any) -> Any:
    """Return a result; one that was left in a file is mapped, and its file has no name any more."""
    if not isinstance(result, _Left):
        return result
    try:
        return _open_parcel(result.path)
    finally:
        Path(result.path).unlink()


def _receive(function: Callable[..., Any]) -> None:
    """Do nothing with a function, whose module is imported now."""
    end_no_search()


# In a worker: the path of the parcel that was opened last, and what was in it. A worker is a
# process of its own that runs one job at a time, so nobody else sees this.
_OPENED: dict[str, Any] = {}


def _begin_worker(parent: int) -> None:
    """Let this worker grow as far as its jobs need, and end it when the process that started it is gone, even if that was killed."""
    # By the name of a constant, because loky has no setting for it; without the constant there is no such limit.
    process_executor._MAX_MEMORY_LEAK_SIZE = MOST_GROWTH
    begin_no_search()  # until the first job has come, with which all libraries are imported

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_TO_OUTLIVE)
        # At once: a normal exit would wait for the job at work.
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run(path: str, item: Any) -> Any:
    """Carry out one job in a worker; open the parcel with its first job."""
    if path not in _OPENED:
        # The last parcel's memory is freed before the next one is mapped.
        _OPENED.clear()
        _OPENED[path] = _open_parcel(path)
        end_no_search()
    job, shared = _OPENED[path]
    result = run_inside_worker(job, shared, item)
    packed, folder = _Packed.of(result, search=()), Path(path).parent
    if packed.size < LARGE or _roomy_folder(packed.size) != folder.parent:
        return result
    left = folder / uuid.uuid4().hex
    packed.write(left)
    return _Left(str(left))


@dataclass(frozen=True)
class _Left:
    """Where a worker left a large result."""

    path: str
