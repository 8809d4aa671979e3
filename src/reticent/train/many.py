"""Train many models on parts of one table and return what they answer."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Trainer
from reticent.run import Processes
from reticent.train._plain import must_fit

__all__ = ["train_many"]


def train_many(
    trainer: Trainer,
    table: Table,
    masks: NDArray[np.bool_],
    seeds: NDArray[np.int64],
    *,
    workers: int,
    memory: float = 2.0,
) -> NDArray[Any]:
    """Train one model per mask and return every model's answers on every record.

    Models are trained in chunks of ``trainer.chunk``, each chunk by one process.

    Parameters
    ----------
    trainer : Trainer
        The trainer of the models.
    table : Table
        All n records.
    masks : array of bool, shape (M, n)
        Which records train which model.
    seeds : array of int, shape (M,)
        Training seed of each model; results do not depend on the number of workers.
    workers : int
        Number of processes.
    memory : float
        Gigabytes that models trained together may take in all processes, not counting the
        records; it bounds how many are in one pass and changes no result.

    Returns
    -------
    array of float, shape (M, n, c)
        Probabilities; memory is M n c numbers of four bytes, and one chunk per worker.
    """
    must_fit(table, masks, seeds)
    if not memory > 0:
        raise InvalidInput(
            f"memory must be more than 0 GB, got {memory!r}, into which no model fits; allow more."
        )
    chunks = [
        slice(start, start + trainer.chunk)
        for start in range(0, len(masks), trainer.chunk)
    ]
    at_once = max(1, min(workers, len(chunks)))
    answers = Processes(at_once).map(
        _train_chunk, chunks, shared=(trainer, table, masks, seeds, memory / at_once)
    )
    return np.concatenate(list(answers))


def _train_chunk(
    shared: tuple[Trainer, Table, NDArray[np.bool_], NDArray[np.int64], float],
    chunk: slice,
) -> NDArray[np.float32]:
    trainer, table, masks, seeds, memory = shared
    return trainer.train_many(table, masks[chunk], seeds[chunk], memory=memory)
