"""Keep small jobs on one core: on a busy machine, threads that wait for each other cost more."""

import sys
from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread", "thread_pools"]


def thread_pools() -> ThreadpoolController:
    """Return what sets the threads of the loaded libraries.

    Finding the libraries takes about as long as a hundred small trees, and an audit limits their threads more than a
    hundred times. They are therefore looked for again only after something has been imported, which is how
    libraries are loaded.

    Examples
    --------
    >>> thread_pools() is thread_pools()
    True
    """
    imported = list(sys.modules)
    return _found_after(len(imported), imported[-1])


@lru_cache(maxsize=1)
def _found_after(count: int, latest: str) -> ThreadpoolController:
    """Look for the libraries that are loaded after so many imports, the latest of them named."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which OpenMP code runs on one core.

    Gradient boosting on about ten thousand rows gains little from a second thread when a core
    is free, and loses a factor of eight when none is.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    context: AbstractContextManager[object] = thread_pools().limit(
        limits=1, user_api="openmp"
    )
    return context
