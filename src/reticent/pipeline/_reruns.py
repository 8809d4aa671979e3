"""Run a generator again on neighbouring tables, and see how far what it makes of them lies apart."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.account import Relation, Terms
from reticent.errors import ReticentError
from reticent.evidence import (
    Estimate,
    rerun_ceiling,
    rerun_lower_bound,
    split_level,
)
from reticent.pipeline._case import Case
from reticent.product import Trainer
from reticent.run import Run, content_of

__all__ = ["Claimed", "Reruns", "run_again"]

MOST_RUNS = 100  # on each table: a claim that is a fifth of the truth is then refuted, if the adversary sees what there is
FEWEST_RUNS = 20  # fewer cannot refute an epsilon above 1, whatever they show
RUNS_PER_JOB = 10  # short enough that an interrupted audit loses little
# Rows of a made table: so many that how they happened to be sampled adds little to the noise of a generator.
ROWS = 10_000
FAILED = 0.0  # score of a run that made no table: as far from the person as can be


@dataclass(frozen=True, kw_only=True)
class Reruns:
    """What a generator that was run again shows about its epsilon.

    Parameters
    ----------
    audited : Estimate
        Lower bound on epsilon.
    ceiling : float
        The bound if every table had shown which of the two it was made of.
    method : str
        How it was found, in words.
    """

    audited: Estimate
    ceiling: float
    method: str


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """What an epsilon is claimed under: its delta, and when two tables are neighbours."""

    delta: float
    relation: Relation


@dataclass(frozen=True, kw_only=True)
class _Shared:
    trainer: Trainer
    pairs: Sequence[Any]


def run_again(
    case: Case,
    terms: Claimed,
    *,
    runs: int | None,
    seconds: float | None,
    run: Run,
) -> Reruns | None:
    """Return what tables show that a generator makes of neighbouring tables; None if it cannot be run again, or not often enough.

    Parameters
    ----------
    case : Case
        What is audited, with its generator.
    terms : Claimed
        What the claim is stated under.
    runs : int or None
        Runs on each table; None for as many as the time allows.
    seconds : float or None
        Time for them; None if it does not matter.
    run : Run
        Seed, store, workers.
    """
    trainer = case.plan.trainer
    if trainer is None:
        return None
    delta = terms.delta
    pairs, each = _pairs_that_work(case, trainer, terms.relation, run)
    if not pairs:
        return None
    tables = 2 * len(pairs)

    def number() -> int:
        if runs is not None or seconds is None:
            return runs or MOST_RUNS
        affordable = seconds * run.effort.workers.count / (tables * max(each, 1e-3))
        return min(MOST_RUNS, int(affordable))

    # Fixed before any score is seen, and kept: a resumed audit makes as many.
    count = run.keep("reruns/number", int, number, depends=case.content)
    if count < (2 if runs is not None else FEWEST_RUNS):
        return None
    scores = _scores(case, trainer, pairs, count, run)
    # Recipes of reticent's own add Gaussian noise; of others nothing is known.
    gaussian = delta > 0 and trainer.table_guarantee(case.split.defender, Terms(delta=delta)) is not None  # fmt: skip
    level = case.plan.policy.confidence
    one = split_level(level, len(pairs))
    bounds = [
        rerun_lower_bound(first, second, delta=delta, level=one, gaussian=gaussian)
        for first, second in scores
    ]
    # One-sided bounds at a level that pays for choosing the best of them.
    best = max(bounds, key=lambda bound: bound.low)
    form = "in the form of Gaussian noise" if gaussian else "without an assumption"
    return Reruns(
        audited=replace(best, level=level, method=f"{best.method}, best of {len(pairs)} paid for"),
        ceiling=rerun_ceiling(count, count, delta=delta, level=one, gaussian=gaussian),
        method=f"{count} tables made of each of {tables} neighbouring tables, read {form}",
    )  # fmt: skip


def _pairs_that_work(
    case: Case, trainer: Trainer, relation: Relation, run: Run
) -> tuple[tuple[Any, ...], float]:
    """Return the worst neighbouring tables of which the generator makes anything, and the seconds of a run."""
    for pairs in case.kind.neighbours(case.split, relation):
        started = time.perf_counter()
        try:
            for number, pair in enumerate(pairs):
                _made(trainer, pair.first, run.seed_for(f"reruns/trial/{number}"))
        except ReticentError:
            continue
        return pairs, (time.perf_counter() - started) / len(pairs)
    return (), math.inf


def _scores(
    case: Case, trainer: Trainer, pairs: Sequence[Any], count: int, run: Run
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the scores of all runs: of each pair those on the first and on the second table."""
    jobs = [
        (pair, side, start, min(start + RUNS_PER_JOB, count))
        for pair in range(len(pairs))
        for side in range(2)
        for start in range(0, count, RUNS_PER_JOB)
    ]
    items = [
        (pair, side, [run.seed_for(f"reruns/{pair}/{side}/{k}") for k in range(*span)])
        for pair, side, *span in jobs
    ]
    results = run.keep_each(
        "running the generator again",
        NDArray[np.float64],
        items,
        _run,
        shared=_Shared(trainer=trainer, pairs=tuple(pairs)),
        depends=[case.content + content_of("reruns", *job) for job in jobs],
    )
    by_table = {
        (pair, side): np.concatenate([r for j, r in zip(jobs, results, strict=True) if j[:2] == (pair, side)])
        for pair in range(len(pairs))
        for side in range(2)
    }  # fmt: skip
    return [(by_table[pair, 0], by_table[pair, 1]) for pair in range(len(pairs))]


def _run(shared: _Shared, item: tuple[int, int, list[int]]) -> NDArray[np.float64]:
    number, side, seeds = item
    pair = shared.pairs[number]
    table = pair.second if side else pair.first
    scores = []
    for seed in seeds:
        try:
            scores.append(pair.score(_made(shared.trainer, table, seed)))
        except ReticentError:
            # A generator that sometimes gives up tells something by that, too.
            scores.append(FAILED)
    return np.array(scores)


def _made(trainer: Trainer, table: Any, seed: int) -> Any:
    return trainer.sampling(ROWS / len(table)).train(table, seed=seed).frame
