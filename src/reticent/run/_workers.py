"""Who does the work: this process, several processes, or a cluster, with the same results."""

import contextlib
import io
import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import cloudpickle

from reticent.errors import WorkerLost
from reticent.run._threads import thread_pools

__all__ = ["Serial", "Workers", "can_travel"]

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

# How often a job whose process died is given to another one. A process may die because its neighbours used up the
# memory; a job that dies every time would never end.
RESUBMISSIONS = 3

# Jobs that are handed out and not finished, per worker: enough that no worker waits for the next one, few enough that
# little is to be taken back after an interruption.
AHEAD = 2

# True while a job runs in a worker, where further processes would compete for the same cores.
INSIDE_WORKER: ContextVar[bool] = ContextVar("inside_worker", default=False)


class Workers(Protocol):
    """Whoever carries out jobs; the results are the same to the last digit, whoever it is.

    A job is a function of two arguments: what all jobs share, and one item. It must not
    change what is shared, and runs with one thread of BLAS and OpenMP, because the last digits of sums
    depend on the number of threads.
    """

    @property
    def count(self) -> int:
        """How many jobs run at the same time."""

    def map(
        self,
        job: Callable[[Shared, Item], Result],
        items: Sequence[Item],
        *,
        shared: Shared,
    ) -> Iterator[Result]:
        """Yield the result of each item in their order, as soon as the next one is ready.

        Exceptions of a job are raised unchanged, in the place of its result.

        Parameters
        ----------
        job : callable
            Is called as ``job(shared, item)``.
        items : sequence
            One entry per job; they travel with the job, so they should be small.
        shared : object
            What all jobs need; it is sent once to each worker, not with each job.

        Raises
        ------
        WorkerLost
            If the process of one job died repeatedly.
        """

    def each(
        self,
        job: Callable[[Shared, Item], Result],
        items: Sequence[Item],
        *,
        shared: Shared,
    ) -> Iterator[tuple[int, Result]]:
        """Yield the number of an item and its result, those that are finished first; otherwise as :meth:`map`."""

    def warm(self, function: Callable[..., Any]) -> None:
        """Let processes start, and import the module of a function while this one does something else; nothing waits for them.

        Parameters
        ----------
        function : callable
            One whose module imports what the jobs of later calls need; it is not called.
        """

    def close(self) -> None:
        """End the processes that were started; a later call of ``map`` starts others."""


@dataclass(frozen=True)
class Serial:
    """Carry out one job after the other in this process.

    Examples
    --------
    >>> list(Serial().map(pow, [1, 2, 3], shared=2))
    [2, 4, 8]
    """

    @property
    def count(self) -> int:
        """One job runs at a time."""
        return 1

    def map(
        self,
        job: Callable[[Shared, Item], Result],
        items: Sequence[Item],
        *,
        shared: Shared,
    ) -> Iterator[Result]:
        """Yield the result of each item in their order; see :class:`Workers`."""
        for item in items:
            with thread_pools().limit(limits=1):
                result = job(shared, item)
            yield result

    def each(
        self,
        job: Callable[[Shared, Item], Result],
        items: Sequence[Item],
        *,
        shared: Shared,
    ) -> Iterator[tuple[int, Result]]:
        """Yield the number of each item and its result; see :class:`Workers`."""
        return enumerate(self.map(job, items, shared=shared))

    def warm(self, function: Callable[..., Any]) -> None:
        """Do nothing, because nothing is started."""

    def close(self) -> None:
        """Do nothing, because nothing was started."""


def run_inside_worker(
    job: Callable[[Shared, Item], Result], shared: Shared, item: Item
) -> Result:
    """Carry out one job in a worker, and raise nothing that cannot be sent back.

    An exception whose constructor takes other arguments than it stores cannot be unpickled; it would look as if the
    process had died.
    """
    token = INSIDE_WORKER.set(True)
    try:
        return job(shared, item)
    except Exception as error:
        try:
            # Tried both ways, because some exceptions can be pickled but not restored.
            pickle.loads(pickle.dumps(error))
        except Exception:
            sentence = f"{type(error).__name__}: {error}"
            raise RuntimeError(sentence) from None
        raise
    finally:
        INSIDE_WORKER.reset(token)


class _Nowhere(io.RawIOBase):
    """A file that forgets what is written to it."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes


def can_travel(value: object) -> bool:
    """Whether a job can return a value from where it runs: always in this process, and from a worker if it can be pickled.

    Examples
    --------
    >>> can_travel(open)
    True
    """
    if not INSIDE_WORKER.get():
        return True
    try:
        cloudpickle.dump(value, _Nowhere())
    except Exception:
        # Whatever a stranger's object raises: it stays where it is.
        return False
    return True


class Pending(Protocol):
    """The future of one job, of whichever library."""

    def result(self) -> Any:
        """Wait for the result, or raise what the job raised."""


class Hands(Protocol):
    """Whoever takes single jobs, and notices that a process has died."""

    lost: tuple[type[BaseException], ...]

    def submit(self, item: Any) -> Pending:
        """Hand out one job."""

    def wait(self, pending: dict[int, Any]) -> list[int]:
        """Wait until a job has ended, and return the numbers of all that have; those that failed come last, so that nothing that was finished is lost by their errors."""

    def deaths(self, error: BaseException) -> int:
        """Return how many deaths of a process an error in ``lost`` stands for."""

    def loss(self, future: Any) -> BaseException | None:
        """Return the error of a job that was lost; None if it was not, or not yet."""

    def recover(self) -> None:
        """Make ready for jobs again after a process has died."""

    def abandon(self, futures: list[Any]) -> None:
        """Give up jobs that nobody waits for any more."""


def as_finished(hands: Hands, items: Sequence[Any], *, ahead: int) -> "Finished":
    """Yield the number of each job with its outcome as soon as it has ended, and submit again what was lost.

    Some jobs are always submitted ahead, whichever takes long. Which of the jobs in flight brought a process down is not known, so the
    death counts for each. On its last try a job runs alone: it has all the memory, and if the process dies
    once more, no other job is to blame.
    """
    pending: dict[int, Pending] = {}
    deaths = dict.fromkeys(range(len(items)), 0)  # of the jobs that have not ended
    try:
        while deaths:
            # If a job cannot even be submitted, the first one that is missing is to blame.
            k = next(iter(deaths))
            try:
                for k in _to_submit(deaths, pending, ahead=ahead):
                    pending[k] = hands.submit(items[k])
                for k in hands.wait(pending):
                    error = hands.loss(pending[k])
                    if error is not None:
                        raise error
                    # Fetched here: a process that dies now may still take the result with it, and the job is done again.
                    outcome = Outcome.of(pending[k], lost=hands.lost)
                    del deaths[k], pending[k]
                    yield k, outcome
            except hands.lost as error:
                deaths[k] += hands.deaths(error)
                pending.pop(k, None)
                _count_losses(hands, pending, deaths)
                if deaths[k] > RESUBMISSIONS:
                    raise WorkerLost(
                        f"the process of job {k + 1} of {len(items)} died {deaths[k]} times, probably for "
                        "lack of memory; use fewer --workers, less data or fewer models at once."
                    ) from error
                hands.recover()
    finally:
        if pending:
            hands.abandon(list(pending.values()))


Finished = Generator[tuple[int, "Outcome"], None, None]


@dataclass(frozen=True)
class Outcome:
    """What came of a job: a value, or the error that it raised."""

    value: Any = None
    error: Exception | None = None

    @classmethod
    def of(
        cls, pending: Pending, *, lost: tuple[type[BaseException], ...]
    ) -> "Outcome":
        """Return the outcome of a job that has ended; errors that say that it was lost are raised."""
        try:
            return cls(value=pending.result())
        except lost:
            raise
        except Exception as error:
            return cls(error=error)

    def result(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


def results_of(finished: Finished) -> Generator[tuple[int, Any], None, None]:
    """Yield the number of each job with its result; an error of a job is raised at once."""
    # Closed now, and not when the error that ends the run is forgotten.
    with contextlib.closing(finished):
        for k, outcome in finished:
            yield k, outcome.result()


def in_order(finished: Finished) -> Generator[Any, None, None]:
    """Yield the results of jobs in their order; an error of a job is raised in its place."""
    ready: dict[int, Outcome] = {}
    first = 0
    with contextlib.closing(finished):
        for k, outcome in finished:
            ready[k] = outcome
            while first in ready:
                yield ready.pop(first).result()
                first += 1


def _to_submit(
    deaths: dict[int, int], pending: dict[int, Pending], *, ahead: int
) -> list[int]:
    """Return which jobs should be handed out now."""
    waiting = [k for k in deaths if k not in pending and deaths[k] < RESUBMISSIONS]
    last_tries = [k for k in deaths if k not in pending and k not in waiting]
    if not waiting and not pending:
        return last_tries[:1]
    alone = any(deaths[k] >= RESUBMISSIONS for k in pending)
    return [] if alone else waiting[: max(0, ahead - len(pending))]


def _count_losses(
    hands: Hands, pending: dict[int, Pending], deaths: dict[int, int]
) -> None:
    """Remove the other jobs in flight that were lost, and count the death for each, but not as its last."""
    for k, future in list(pending.items()):
        error = hands.loss(future)
        if error is not None:
            # Never beyond the last try: a job is given up only for a death that was its own.
            deaths[k] = min(deaths[k] + hands.deaths(error), RESUBMISSIONS)
            del pending[k]
