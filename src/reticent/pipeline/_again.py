"""Make synthetic tables again with the generator of the audited one, for what can be said of the recipe and not of this table alone."""

from dataclasses import dataclass

from reticent.audits import Kind, Learned
from reticent.data import Split
from reticent.evidence import RecipeUse
from reticent.pipeline._case import Case
from reticent.pipeline._pool import PoolSize
from reticent.product import Trainer
from reticent.run import Run, content_of

__all__ = ["learn_again"]

# Student's quantile with five degrees of freedom is 2.57, not far from the 1.96 of many tables; with two, the fewest, it is 4.3.
MOST_TABLES, FEWEST_TABLES = 6, 3


@dataclass(frozen=True, kw_only=True)
class _Shared:
    kind: Kind
    trainer: Trainer
    split: Split


def learn_again(case: Case, size: PoolSize, run: Run) -> RecipeUse | None:
    """Return what models learn from tables that the generator makes again of the same members; None if it cannot be run again, or there is no time.

    Half as many as there are shadow tables, so that what time and memory allow is decided once, before any result is seen. The shadow tables themselves do not serve
    for this: they are made of halves of members and non-members, who are asked here, and a table of other people is worth more or less.

    Parameters
    ----------
    case : Case
        What is audited, with its generator.
    size : PoolSize
        How many shadow tables there are; without any, none is made again.
    run : Run
        Seed, store, time, workers.
    """
    trainer = case.plan.trainer
    if trainer is None or not case.kind.can_run_again or not size.models:
        return None
    if not run.effort.allows(0):
        return None
    shared = _Shared(kind=case.kind.settled(), trainer=trainer, split=case.split)
    count = max(FEWEST_TABLES, min(MOST_TABLES, size.models // 2))
    seeds = [run.seed_for(f"tables again/{k}") for k in range(count)]
    learned = run.keep_each(
        "making tables again",
        Learned,
        [None, *seeds],
        _learn,
        shared=shared,
        depends=[
            case.content + content_of("tables again", k, str(shared.kind.target))
            for k in range(count + 1)
        ],
    )
    return shared.kind.use_of_recipe(
        learned, case.sides, level=case.plan.policy.confidence, seed=run.seed
    )


def _learn(shared: _Shared, seed: int | None) -> Learned:
    """Return what models learn from a table with a seed, or from the members without one."""
    return shared.kind.learned_again(
        None if seed is None else shared.trainer,
        shared.split,
        seed=0 if seed is None else seed,
    )
