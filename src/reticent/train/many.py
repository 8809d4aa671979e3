"""Train many models on parts of one table and keep what they answer."""

from typing import Protocol, runtime_checkable

import joblib
import numpy as np
from numpy.typing import NDArray

from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Trainer

__all__ = ["PoolTrainer", "train_many"]


@runtime_checkable
class PoolTrainer(Trainer, Protocol):
    """A trainer that has a faster way to many models than one after another."""

    @property
    def together(self) -> int:
        """How many models it trains best in one pass."""
        ...

    def train_many(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        workers: int,
        memory: float,
    ) -> NDArray[np.float32]:
        """Return the answers of one model per mask on all records, shape (M, n, c)."""
        ...


def train_many(
    trainer: Trainer,
    table: Table,
    masks: NDArray[np.bool_],
    seeds: NDArray[np.int64],
    *,
    workers: int,
    memory: float = 2.0,
) -> NDArray[np.float32]:
    """Train one model per mask and return every model's answers on every record.

    A trainer that can trains many in one pass (:class:`PoolTrainer`); others run in a parallel
    loop.

    Parameters
    ----------
    trainer : Trainer
        The recipe.
    table : Table
        All n records.
    masks : array of bool, shape (M, n)
        Which records train which model.
    seeds : array of int, shape (M,)
        Training seed of each model; results do not depend on the number of workers.
    workers : int
        Processes.
    memory : float
        Gigabytes that models trained together may take in all processes, the records not
        counted; it bounds how many are in one pass and changes no result.

    Returns
    -------
    array of float, shape (M, n, c)
        Probabilities; memory is M n c numbers of four bytes, and one model a worker.
    """
    if masks.ndim != 2 or masks.shape[1] != len(table) or len(seeds) != len(masks):
        raise InvalidInput(
            f"masks of shape {masks.shape} and {len(seeds)} seeds do not fit {len(table)} records; pass one row "
            "and one seed a model."
        )
    if not memory > 0:
        raise InvalidInput(
            f"memory is {memory!r} GB, into which no model fits; allow more than 0."
        )
    if isinstance(trainer, PoolTrainer):
        return trainer.train_many(table, masks, seeds, workers=workers, memory=memory)
    jobs = [
        (trainer, table, mask, int(seed))
        for mask, seed in zip(masks, seeds, strict=True)
    ]
    if workers == 1 or len(jobs) == 1:
        return np.stack([_answers(*job) for job in jobs])
    made = joblib.Parallel(n_jobs=workers)(
        joblib.delayed(_answers)(*job) for job in jobs
    )
    return np.stack(made)


def _answers(
    trainer: Trainer, table: Table, mask: NDArray[np.bool_], seed: int
) -> NDArray[np.float32]:
    product = trainer.train(table.take(np.flatnonzero(mask)), seed=seed)
    return product.predict_proba(table.features).astype(np.float32)
