"""Train the pool of an audit in chunks that a killed run need not train again."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reticent._random import stream
from reticent.attack import Pool, balanced_masks
from reticent.data import Table
from reticent.pipeline._stages import Arrays, Stages
from reticent.product import Trainer
from reticent.train import train_many

__all__ = ["train_pool"]


def train_pool(
    trainer: Trainer,
    table: Table,
    *,
    models: int,
    seed: int,
    content: tuple[object, ...],
    stages: Stages,
    workers: int,
    progress: Callable[[str, int, int], None],
) -> Pool:
    """Return models trained on random halves of the records in question.

    Each chunk is as many models as the workers train at once, so an interruption loses at most
    one training (of networks: one pass) a worker. Masks and seeds come from streams of their own: the pool depends on
    the records, the recipe, the seed and its size, and on nothing else.
    """
    masks = balanced_masks(models, table.units, rng=stream(seed, "pool/masks"))
    seeds = stream(seed, "pool/seeds").integers(2**31 - 1, size=models)
    answers = []
    size = workers * getattr(trainer, "together", 1)
    for start in range(0, models, size):
        its = slice(start, min(start + size, models))
        chunk = stages.get(
            f"pool/{start}",
            (*content, models, start, size),
            functools.partial(
                _train_chunk, trainer, table, masks[its], seeds[its], workers
            ),
        )
        answers.append(np.asarray(chunk["probabilities"], dtype=np.float32))
        progress("training the pool", its.stop, models)
    return Pool(masks=masks, probabilities=np.concatenate(answers), labels=table.target)


def _train_chunk(
    trainer: Trainer,
    table: Table,
    masks: NDArray[np.bool_],
    seeds: NDArray[np.int64],
    workers: int,
) -> Arrays:
    return {"probabilities": train_many(trainer, table, masks, seeds, workers=workers)}
