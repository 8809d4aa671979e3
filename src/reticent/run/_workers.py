"""Who does the work: this process, several processes, or a cluster, with the same results."""

import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from reticent.errors import WorkerLost
from reticent.run._threads import thread_pools

__all__ = ["Serial", "Workers"]

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

# How often a job whose process died is given to another one. A process may die because its neighbours used up the
# memory; a job that dies every time would never end.
RESUBMISSIONS = 3

# Jobs handed out ahead of the first unfinished one, per worker: enough that no worker waits for
# the next job, few enough that an interruption loses little.
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


class Pending(Protocol):
    """The future of one job, of whichever library."""

    def result(self) -> Any:
        """Wait for the result, or raise what the job raised."""


class Hands(Protocol):
    """Whoever takes single jobs, and notices that a process has died."""

    lost: tuple[type[BaseException], ...]

    def submit(self, item: Any) -> Pending:
        """Hand out one job."""

    def deaths(self, error: BaseException) -> int:
        """Return how many deaths of a process an error in ``lost`` stands for."""

    def loss(self, future: Any) -> BaseException | None:
        """Return the error of a job that was lost; None if it was not, or not yet."""

    def recover(self) -> None:
        """Make ready for jobs again after a process has died."""

    def abandon(self, futures: list[Any]) -> None:
        """Give up jobs that nobody waits for any more."""


def in_order(
    hands: Hands, items: Sequence[Any], *, ahead: int
) -> Generator[Any, None, None]:
    """Submit jobs a few ahead, yield results in order, and submit again what was lost.

    Which of the jobs in flight brought a process down is not known, so the death counts for each.
    On its last try a job runs alone: it has all the memory, and if the process dies
    once more, no other job is to blame.
    """
    pending: dict[int, Pending] = {}
    deaths = dict.fromkeys(range(len(items)), 0)
    try:
        for first in range(len(items)):
            while True:
                try:
                    for k in _to_submit(first, deaths, ahead=ahead):
                        if k not in pending:
                            pending[k] = hands.submit(items[k])
                    result = pending[first].result()
                    break
                except hands.lost as error:
                    deaths[first] += hands.deaths(error)
                    pending.pop(first, None)
                    _count_losses(hands, pending, deaths)
                    if deaths[first] > RESUBMISSIONS:
                        raise WorkerLost(
                            f"the process of job {first + 1} of {len(items)} died {deaths[first]} times, probably for "
                            "lack of memory; use fewer --workers, less data or fewer models at once."
                        ) from error
                    hands.recover()
            del pending[first]
            yield result
    finally:
        if pending:
            hands.abandon(list(pending.values()))


def _to_submit(first: int, deaths: dict[int, int], *, ahead: int) -> list[int]:
    """Return which jobs should be in flight while the result of ``first`` is awaited."""
    if deaths[first] >= RESUBMISSIONS:
        return [first]
    window = range(first, min(first + ahead, len(deaths)))
    return [k for k in window if deaths[k] < RESUBMISSIONS]


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
