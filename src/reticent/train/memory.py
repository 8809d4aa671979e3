"""How many models fit into memory at once, and on how many threads they are trained."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from reticent.errors import InvalidInput

__all__ = ["fitting_size", "one_torch_thread"]


def fitting_size(best: int, *, each: int, memory: float) -> int:
    """Return the number of models that are trained in one pass.

    Parameters
    ----------
    best : int
        Number of models that are wanted.
    each : int
        Bytes that one model adds.
    memory : float
        Gigabytes that the models may take, not counting the records.

    Raises
    ------
    InvalidInput
        If not even one model fits.

    Examples
    --------
    >>> fitting_size(25, each=10**8, memory=1.0)
    10
    """
    fits = int(memory * 1e9 // each)
    if fits < 1:
        raise InvalidInput(
            f"one model takes {_rounded_up(each)} GB, which does not fit into the {memory:g} GB that one worker may use; allow "
            f"{_rounded_up(each)} GB per worker, use fewer workers, or train a smaller network."
        )
    return min(best, fits)


def _rounded_up(size: int) -> str:
    """Return bytes as gigabytes with three digits, rounded up."""
    step = 10.0 ** (np.floor(np.log10(size)) - 2)
    return f"{np.ceil(size / step) * step / 1e9:.3g}"


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let PyTorch use one thread, because on small matrices two threads wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
