"""A cluster of Dask workers, on this machine or on others."""

import atexit
import contextlib
import importlib.metadata
import logging
import os
import pickle
import re
import shutil
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle
from threadpoolctl import threadpool_limits

from reticent.errors import InvalidInput, WorkerLost
from reticent.run._content import Content, environment
from reticent.run._workers import (
    AHEAD,
    INSIDE_WORKER,
    Finished,
    Serial,
    as_finished,
    in_order,
    results_of,
    run_inside_worker,
)

__all__ = ["Cluster"]

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

LOCAL = "local"
SECONDS_TO_CONNECT = 5  # a scheduler that is there answers within milliseconds
SECONDS_FOR_A_WORKER = 60  # a new worker imports its libraries first


class Cluster:
    """Carry out jobs on a Dask cluster.

    What jobs share is sent once to each worker. If a worker dies, the jobs that were lost with it
    are given to others, and what they share is sent again. Workers on other machines must have the
    same versions of reticent and its libraries; other versions are refused, because digits would differ.

    Whoever can connect to a Dask scheduler can run code on its workers and read what they hold.
    ``"local"`` listens on 127.0.0.1 only, which every user of this machine can reach:
    prefer :class:`Processes` if there are others. For other machines, use a ``tls://`` address.

    A script that uses ``"local"`` must guard its work with ``if __name__ == "__main__":``,
    because the workers import the script.

    Parameters
    ----------
    address : str
        The scheduler, such as ``tls://host:8786``; ``"local"`` starts workers on this machine.
    count : int or None
        Number of workers; by default as many as this machine has cores, or as the cluster has.
    modules : tuple of Path
        Files of the user's code, each a module, that are sent to workers on other machines. Workers on
        this machine import what this process can import.

    Examples
    --------
    >>> Cluster("local", count=2)
    Cluster('local', count=2)
    """

    def __init__(
        self,
        address: str = LOCAL,
        count: int | None = None,
        *,
        modules: tuple[Path, ...] = (),
    ) -> None:
        if count is not None and count < 1:
            raise InvalidInput(f"workers must be at least 1, got {count}.")
        self.address = address
        self.modules = modules
        self._count = count
        self._connection: _Connection | None = None

    def __repr__(self) -> str:
        return f"Cluster({self.address!r}, count={self._count})"

    def __getstate__(self) -> dict[str, Any]:
        # A connection cannot be pickled, and a job that travels to a worker needs none.
        return {**self.__dict__, "_connection": None}

    @property
    def count(self) -> int:
        """How many jobs run at the same time."""
        if self._count is not None:
            return self._count
        if self.address == LOCAL:
            return os.cpu_count() or 1
        return sum(self._connect().client.nthreads().values())

    def map(
        self,
        job: Callable[[Shared, Item], Result],
        items: Sequence[Item],
        *,
        shared: Shared,
    ) -> Iterator[Result]:
        """Yield the result of each item in their order; see :class:`Workers`."""
        if _is_serial(items):
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
        if _is_serial(items):
            return Serial().each(job, items, shared=shared)
        return results_of(self._finished(job, items, shared))

    def _finished(
        self, job: Callable[..., Any], items: Sequence[Any], shared: object
    ) -> Finished:
        connection = self._connect()
        hands = _Jobs(connection, (job, shared))
        try:
            yield from as_finished(hands, items, ahead=AHEAD * self.count)
        except KeyboardInterrupt:  # what still runs would go on without anybody waiting
            if self.address == LOCAL:
                self.close()
            raise

    def warm(self, function: Callable[..., Any]) -> None:
        """Do nothing: workers of a cluster are warm, or import with their first job."""

    def close(self) -> None:
        """End the workers that were started here, or leave the cluster."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> "_Connection":
        if self._connection is None:
            if self.address == LOCAL:
                self._connection = _start(self.count)
            else:
                self._connection = _join(self.address, self.modules)
        return self._connection


def _is_serial(items: Sequence[Any]) -> bool:
    """Whether this process does everything: a job that starts jobs of its own would wait for workers that all wait likewise."""
    return not items or INSIDE_WORKER.get()


@dataclass(frozen=True, kw_only=True)
class _Connection:
    """A client, and what was started for it.

    Parameters
    ----------
    client : distributed.Client
        The client that submits jobs.
    cluster : distributed.LocalCluster or None
        The workers, if they were started here.
    count : int
        Number of workers that were started here.
    scratch : Path or None
        Folder in which they write, if they were started here.
    """

    client: Any
    cluster: Any = None
    count: int = 0
    scratch: Path | None = None

    def wait_for_worker(self, seconds: float) -> None:
        """Wait until there is a worker, and restart those that were started here.

        Dask replaces a worker that dies, but gives up on the new one if it is not there in time.
        """
        until = time.perf_counter() + seconds
        while True:
            if self.cluster is not None:
                self.cluster.scale(self.count)
            try:
                self.client.wait_for_workers(1, timeout=SECONDS_TO_CONNECT)
                return
            except Exception as error:
                if time.perf_counter() > until:
                    raise WorkerLost(
                        "no worker of the cluster answers, so nothing can be computed; start some, or use --workers."
                    ) from error

    def close(self) -> None:
        with _quiet():
            self.client.close()
            if self.cluster is not None:
                self._close_cluster()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _close_cluster(self) -> None:
        try:
            self.cluster.close()
        except KeyError:
            # After all workers have ended, Dask looks up the names of those that it saw leave, and knows no more of one that died before. Nothing is lost by that; without the
            # mark it would wait for its own end when this process ends.
            self.cluster.status = type(self.cluster.status).closed


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's warnings, which are about speed and about what is handled here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _dask() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise InvalidInput(
            "a cluster needs the library Dask, which is not installed; install reticent[cluster]."
        ) from error
    return distributed


def _start(count: int) -> _Connection:
    """Start workers on this machine that nobody elsewhere can reach."""
    distributed = _dask()
    scratch = Path(tempfile.mkdtemp(prefix="reticent-cluster-"))
    # Whatever Dask spilled there may hold records.
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    try:
        with _quiet():
            cluster = distributed.LocalCluster(
                n_workers=count,
                # One job per process: BLAS limits are set per process, and digits depend on them.
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                # Its pages would show what the jobs are called to everybody on this machine.
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                local_directory=str(scratch),
                memory_limit=None,  # else Dask writes records to the disk when memory is short
                # A death is counted here, and once; Dask would try the job again by itself.
                scheduler_kwargs={"allowed_failures": 0},
            )
            client = distributed.Client(cluster, set_as_default=False)
    except Exception as error:
        raise InvalidInput(
            f"the workers of a local cluster cannot be started ({error}); in a script, guard its work with "
            'if __name__ == "__main__":, because the workers import the script, or use Processes.'
        ) from error
    return _Connection(client=client, cluster=cluster, count=count, scratch=scratch)


def _join(address: str, modules: tuple[Path, ...]) -> _Connection:
    """Connect to a cluster elsewhere, and make sure that it computes the same."""
    distributed = _dask()
    try:
        host, port = distributed.comm.get_address_host_port(address)
        # A plain connection tells at once that nobody listens; Dask would first try again.
        socket.create_connection((host, port), timeout=SECONDS_TO_CONNECT).close()
        with _quiet():
            client = distributed.Client(
                address, timeout=SECONDS_TO_CONNECT, set_as_default=False
            )
    except Exception as error:  # whoever listens there may answer with anything
        raise InvalidInput(
            f"no Dask scheduler can be reached at {address!r} ({error}); give its address as tcp://host:port or "
            "tls://host:port, or use local."
        ) from error
    connection = _Connection(client=client)
    try:
        with _quiet():
            connection.wait_for_worker(0)
            for module in modules:
                client.upload_file(str(module))
            # Errors are returned, so that a worker without reticent can be named.
            environments = client.run(environment, on_error="return")
        _check_versions(address, environments)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_versions(address: str, environments: dict[str, object]) -> None:
    """Raise if a worker would not compute the same digits as this process."""
    for worker, other in environments.items():
        if not isinstance(other, Content):
            raise InvalidInput(
                f"the worker {worker} of {address} cannot import reticent ({other}); install it there in the same version."
            )
        differences = different_versions(environment(), other)
        if differences:
            raise InvalidInput(
                f"the worker {worker} of {address} would compute other digits, because it differs in "
                f"{', '.join(differences)}; install the same versions there."
            )


def different_versions(here: Content, there: Content) -> list[str]:
    """Return the differences between two environments that results depend on.

    Examples
    --------
    >>> different_versions(Content(("python==3.11", "x==1")), Content(("python==3.12",)))
    ['python==3.11']
    """
    needed = {"python", "reticent"}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for requirement in importlib.metadata.requires("reticent") or ():
            # Development tools take no part in a result.
            if not re.search("""extra == ['"]dev""", requirement):
                needed.add(_normalised(re.split(r"[^\w.-]", requirement)[0]))
    return [
        part
        for part in here.parts
        if _normalised(re.split("==|'", part)[0]) in needed and part not in there.parts
    ]


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class _Jobs:
    """Jobs on a cluster that share one value."""

    def __init__(self, connection: _Connection, value: tuple[Any, Any]) -> None:
        self.connection, self.client = connection, connection.client
        self.value = value
        self.lost: tuple[type[BaseException], ...] = (
            _dask().KilledWorker,
            CancelledError,
        )
        self.sent: Any = None

    def submit(self, item: Any) -> Any:
        with _quiet():
            if self.sent is None:
                self.connection.wait_for_worker(SECONDS_FOR_A_WORKER)
                (self.sent,) = self.client.scatter(
                    # Without a hash, which would read all of a value that is sent only once.
                    [self.value],
                    broadcast=True,
                    hash=False,
                )
            # as bytes, because Dask looks into lists and tuples for tasks of its own
            pickled = cloudpickle.dumps(item)
            # Not pure: Dask would give one result to two jobs with equal arguments, also if one of them must be tried
            # again.
            return self.client.submit(_run, self.sent, pickled, pure=False)

    def wait(self, pending: dict[int, Any]) -> list[int]:
        # A job that was cancelled has ended, too; Dask raises then.
        with contextlib.suppress(CancelledError), _quiet(), self.client.as_current():
            _dask().wait(list(pending.values()), return_when="FIRST_COMPLETED")
        ended = [k for k, future in pending.items() if future.done()]
        return sorted(ended, key=lambda k: pending[k].status != "finished")

    def deaths(self, error: BaseException) -> int:
        return int(getattr(error, "allowed_failures", 0)) + 1

    def loss(self, future: Any) -> BaseException | None:
        if future.status in ("cancelled", "lost"):
            return CancelledError()
        error = future.exception() if future.status == "error" else None
        return error if isinstance(error, self.lost) else None

    def recover(self) -> None:
        # Whether the value is still held by another worker is known only later.
        self.sent = None

    def abandon(self, futures: list[Any]) -> None:
        with _quiet(), contextlib.suppress(Exception):  # the scheduler may be gone
            self.client.cancel(futures)


def _run(value: tuple[Any, Any], pickled: bytes) -> Any:
    """Carry out one job on a worker of the cluster."""
    # Not only for this job: another one may run in the next thread of the same process.
    threadpool_limits(limits=1)
    job, shared = value
    return run_inside_worker(job, shared, pickle.loads(pickled))
