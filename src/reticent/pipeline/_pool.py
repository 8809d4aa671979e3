"""Choose the size of an audit's pool, and train it in chunks that a killed run need not train again."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.pipeline._stages import Arrays, Stages
from reticent.pool import Pool, balanced_masks
from reticent.product import Trainer
from reticent.run import stream
from reticent.train import train_many

__all__ = ["SIZES", "choose_size", "memory_needed", "train_pool"]

# Sizes a pool may have when time decides: a little more or less time does not change them.
SIZES = (4, 8, 16, 32, 64)
SHARE = 0.4  # of the time goes to the pool
TOGETHER_GAIN = 4  # a network trained with others takes at most a quarter of the time it takes alone


def choose_size(
    one: float,
    *,
    seconds: float,
    workers: int,
    records: int,
    classes: int,
    memory: float,
    together: int,
) -> int:
    """Return the largest size that fits time and memory; 0 if not even the smallest does.

    Parameters
    ----------
    one : float
        Seconds that one training took.
    seconds : float
        Of the whole audit.
    workers : int
        Processes.
    records, classes : int
        Of the answers each model gives.
    memory : float
        Gigabytes.
    together : int
        Models trained in one pass.

    Examples
    --------
    >>> choose_size(3.0, seconds=120, workers=2, records=40_000, classes=2, memory=2.0, together=1)
    32
    """
    each = max(one, 1e-3) / (TOGETHER_GAIN if together > 1 else 1)
    affordable = SHARE * seconds * workers / each
    return max(
        (
            size
            for size in SIZES
            if size <= affordable and memory_needed(size, records, classes) <= memory
        ),
        default=0,
    )


def memory_needed(models: int, records: int, classes: int) -> float:
    """Return about how many gigabytes the answers of a pool take while attacks read them.

    Answers are numbers of four bytes; two logits a record of eight; each game copies all of it once.
    """
    return models * records * 2 * (4 * classes + 2 * 8 + 1) / 1e9


def train_pool(
    trainer: Trainer,
    table: Table,
    *,
    models: int,
    seed: int,
    content: tuple[object, ...],
    stages: Stages,
    workers: int,
    memory: float,
    progress: Callable[[str, int, int], None],
) -> Pool:
    """Return models trained on random halves of the records in question.

    Each chunk is as many models as the workers train at once, so an interruption loses at most
    one training (of networks: one pass) a worker. Masks and seeds come from streams of their own: the pool depends on
    the records, the recipe, the seed and its size, and on nothing else.
    """
    needed = memory_needed(models, len(table), len(table.classes))
    if needed > memory:
        raise InvalidInput(
            f"a pool of {models} models on {len(table):,} records takes about {needed:.1f} GB, more than the {memory:g} GB "
            "allowed; use a smaller --pool or more --memory."
        )
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
                _train_chunk, trainer, table, masks[its], seeds[its], workers, memory
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
    memory: float,
) -> Arrays:
    answers = train_many(trainer, table, masks, seeds, workers=workers, memory=memory)
    return {"probabilities": answers}
