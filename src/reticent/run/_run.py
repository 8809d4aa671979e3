"""What every stage of a run needs: seed, store, effort, and whom to tell about progress."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from reticent.errors import InvalidInput
from reticent.run._content import Content
from reticent.run._effort import Effort
from reticent.run._random import seed_for, stream
from reticent.run._store import Store
from reticent.run._workers import Serial

__all__ = ["Progress", "Run", "quiet", "silent"]

T = TypeVar("T")
Shared = TypeVar("Shared")
Item = TypeVar("Item")

Progress = Callable[[str, int, int], None]
GIGABYTE = 1e9


def silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody.

    Parameters
    ----------
    stage : str
        The stage that makes progress.
    done : int
        How many of its jobs are done.
    total : int
        How many it has.
    """


def quiet(sentence: str) -> None:
    """Say nothing to anybody.

    Parameters
    ----------
    sentence : str
        What could be said.
    """


@dataclass(frozen=True, kw_only=True)
class Run:
    """What every stage of a run needs, in one value.

    Parameters
    ----------
    seed : int
        Seed of all named streams, at least 0.
    store : Store
        Where results are kept.
    effort : Effort
        The time, the memory and the workers that the run may use. They change how long a result takes, never a
        digit of it.
    tell : callable
        Called with progress: the stage, how many of its jobs are done, and how many there are.
    say : callable
        Called with whole sentences that somebody who waits would like to read.

    Examples
    --------
    >>> run = Run(seed=1)
    >>> run.keep_each("powers", int, [1, 2, 3], pow, shared=2, depends=[Content(())] * 3)
    [2, 4, 8]
    """

    seed: int = 0
    store: Store = field(default_factory=lambda: Store(folder=None))
    effort: Effort = field(default_factory=Effort)
    tell: Progress = silent
    say: Callable[[str], None] = quiet

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InvalidInput(f"the seed must be at least 0, got {self.seed}.")

    def rng(self, name: str) -> np.random.Generator:
        """Return the random stream of a named stage; see :func:`stream`."""
        return stream(self.seed, name)

    def seed_for(self, name: str) -> int:
        """Return an integer seed of a named stage; see :func:`reticent.run.seed_for`."""
        return seed_for(self.seed, name)

    def with_room(self, size: int) -> "Run":
        """Return a run without processes if copies of what they all need would not fit into memory.

        How work is carried out changes the time, never a digit.

        Parameters
        ----------
        size : int
            Bytes that every process needs a copy of.
        """
        # This process holds the original.
        copies = 1 + self.effort.workers.count
        if size * copies <= self.effort.memory * GIGABYTE:
            return self
        return replace(self, effort=replace(self.effort, workers=Serial()))

    def keep(
        self, name: str, kind: type[T] | Any, make: Callable[[], T], *, depends: Content
    ) -> T:
        """Return a result that was kept, or make it and keep it; see :meth:`Store.keep`.

        The seed is not part of the key by itself: whoever uses it adds it to ``depends``.
        """
        value: T = self.store.keep(name, kind, make, depends=depends)
        return value

    def keep_each(
        self,
        name: str,
        kind: type[T] | Any,
        items: Sequence[Item],
        job: Callable[[Shared, Item], T],
        *,
        shared: Shared,
        depends: Sequence[Content],
    ) -> list[T]:
        """Return one result per item; compute only those that were not kept.

        Each result has a separate file, ``name/k``, written as soon as the result arrives. It is found again whatever the
        number of workers, because who computed a result is not part of its key.

        Parameters
        ----------
        name : str
            The stage.
        kind : type
            The type of each result.
        items : sequence
            One entry per job.
        job : callable
            Is called as ``job(shared, item)``, in this process or in another.
        shared : object
            What all jobs need.
        depends : sequence of Content
            All that each result depends on, ``shared`` included: one content per item.

        Raises
        ------
        OutputRefused
            If a result cannot be written.
        WorkerLost
            If the process of one job died repeatedly.
        """
        if len(depends) != len(items):
            raise InvalidInput(
                f"{name} has {len(items)} items but {len(depends)} contents, so results could be taken for one another's; "
                "give one content per item."
            )
        results: dict[int, T] = {}
        # All stored results first, so that workers start only if something is missing.
        for k, content in enumerate(depends):
            result = self.store.find(f"{name}/{k}", kind, depends=content)
            if result is not None:
                results[k] = result
                self.tell(name, len(results), len(items))
        missing = [k for k in range(len(items)) if k not in results]
        if missing:
            arriving = self.effort.workers.each(
                job, [items[k] for k in missing], shared=shared
            )
            try:
                for place, result in arriving:
                    k = missing[place]
                    self.store.save(f"{name}/{k}", result, depends=depends[k])
                    results[k] = result
                    self.tell(name, len(results), len(items))
            finally:
                if isinstance(arriving, Generator):
                    arriving.close()  # now, not when the error that ends the run is forgotten
        return [results[k] for k in range(len(items))]
