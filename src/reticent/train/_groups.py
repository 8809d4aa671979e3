"""Divide a pool into groups of models that fit into memory, and let processes train them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import joblib
import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput

__all__ = ["answer_groups", "fitting_size", "one_torch_thread"]


def fitting_size(
    best: int, *, each: int, models: int, workers: int, memory: float
) -> int:
    """Return how many models a process trains at once.

    Parameters
    ----------
    best : int
        How many are fastest together.
    each : int
        Bytes that one model adds.
    models, workers : int
        Size of the pool, and processes.
    memory : float
        Gigabytes that the models of all processes may take, the records not counted.

    Raises
    ------
    InvalidInput
        If one model a process is too much.

    Examples
    --------
    >>> fitting_size(25, each=10**8, models=100, workers=2, memory=2.0)
    10
    """
    if not memory * 1e9 >= each * workers:
        raise InvalidInput(
            f"one model takes {_rounded_up(each)} GB, so {workers} at once do not fit into {memory:g} GB; allow "
            f"{_rounded_up(each * workers)} GB, take fewer workers or a smaller network."
        )
    fits = int(memory * 1e9 / workers // each)
    return max(1, min(best, fits, -(-models // workers)))


def _rounded_up(size: int) -> str:
    """Return bytes as gigabytes with three digits, never too few."""
    step = 10.0 ** (np.floor(np.log10(size)) - 2)
    return f"{np.ceil(size / step) * step / 1e9:.3g}"


def answer_groups(
    answer: Callable[
        [NDArray[np.bool_], NDArray[np.int64]],
        NDArray[np.float32],
    ],
    masks: NDArray[np.bool_],
    seeds: NDArray[np.int64],
    *,
    size: int,
    workers: int,
) -> NDArray[np.float32]:
    """Return the answers of all models, in their order, from groups of one size."""
    groups = [
        (masks[start : start + size], seeds[start : start + size])
        for start in range(0, len(masks), size)
    ]
    if workers == 1 or len(groups) == 1:
        return np.concatenate([answer(*group) for group in groups])
    made = joblib.Parallel(n_jobs=workers)(
        joblib.delayed(answer)(*group) for group in groups
    )
    return np.concatenate(made)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let PyTorch use one thread: two on small matrices wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
