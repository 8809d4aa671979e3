"""Keep small jobs on one core: on a busy machine, threads that wait for each other cost more."""

from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits

__all__ = ["one_thread"]


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which OpenMP code runs on one core.

    Gradient boosting on about ten thousand rows gains little from a second thread when a core
    is free, and loses a factor of eight when none is.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    context: AbstractContextManager[object] = threadpool_limits(
        limits=1, user_api="openmp"
    )
    return context
