"""Train many models on parts of one table and keep what they answer."""

import joblib
import numpy as np
from numpy.typing import NDArray

from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Trainer
from reticent.train.networks import NetworkTrainer

__all__ = ["train_many"]


def train_many(
    trainer: Trainer,
    table: Table,
    masks: NDArray[np.bool_],
    seeds: NDArray[np.int64],
    *,
    workers: int,
) -> NDArray[np.float32]:
    """Train one model per mask and return every model's answers on every record.

    Networks are trained many in one pass, other estimators in a parallel loop.

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
    if isinstance(trainer, NetworkTrainer):
        return trainer.train_many(table, masks, seeds, workers=workers)
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
