"""Keep small jobs on one core: on a busy machine, threads that wait for each other cost more."""

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Literal

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread", "thread_pools"]


def one_thread(
    of: Literal["openmp", "blas"] = "openmp",
) -> AbstractContextManager[object]:
    """Return a context in which OpenMP code, or linear algebra, runs on one core.

    Gradient boosting on about ten thousand rows gains little from a second thread when a core
    is free, and loses a factor of eight when none is; products of matrices with some hundred rows lose a factor of ten.

    Parameters
    ----------
    of : str
        ``"openmp"`` or ``"blas"``.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    context: AbstractContextManager[object] = thread_pools().limit(
        limits=1, user_api=of
    )
    return context


def thread_pools() -> ThreadpoolController:
    """Return the pools of threads of all libraries that are loaded.

    To find them takes 20 to 60 ms, which is longer than many a job: an audit of a small table asks more than a hundred times. Libraries are loaded by
    imports, so they are looked for again only after an import.
    """
    return _find(len(sys.modules))


@lru_cache(maxsize=1)
def _find(modules: int) -> ThreadpoolController:
    """Find the libraries; the number of imported modules says when to look again."""
    return ThreadpoolController()
