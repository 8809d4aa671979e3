"""Let an adversary watch every step of a private training, many times over, and say what it learned."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from reticent.account import Relation, trade_off
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.evidence import Identification
from reticent.pipeline._neighbour import (
    Mislabelled,
    Neighbour,
    PrivateTrainer,
    choose,
)
from reticent.pipeline._plan import Progress, silent
from reticent.pipeline._stages import Arrays, Stages
from reticent.pipeline._watched import Claim, Words, identification
from reticent.pool import Side, Trace, Truth
from reticent.run import seed_for
from reticent.train import proven_epsilon

__all__ = ["WatchPlan", "identify"]

CHUNK = 50  # runs that are kept together: an interruption loses no more
FEW = 10  # the same, where time is short
NOT_DP = "empirical, not DP"


@dataclass(frozen=True, kw_only=True)
class WatchPlan:
    """How a training is watched.

    Parameters
    ----------
    trainer : PrivateNetworkTrainer or PrivateModuleTrainer
        The training.
    neighbour : Neighbour
        Which record tells the two tables apart.
    relation : Relation
        Whether the second table lacks that record or holds another in its place.
    runs : int
        Trainings, each on one of the two tables by the toss of a coin.
    local : str, optional
        Scale noise to the records, ``"pair"`` or ``"own"`` as in :func:`~reticent.train.private.watched.watch_networks`:
        empirical, not DP.
    shuffled : bool
        Whether batches are cut from a shuffled table.
    claimed : float, optional
        The epsilon to be put to the test; by default what the recipe's own accounting says.
    claimed_by : str
        Who claims it.
    delta : float, optional
        By default 1 / (10 rows).
    belief : float
        Belief in the truth of which is counted how often it is exceeded.
    level : float
        Confidence.
    seed : int
        Of coins, initialisation, batches and noise.
    workers : int
        Processes.
    seconds : float, optional
        After so long no further chunk of runs is begun.
    subject, repeat
        For the report.
    """

    trainer: PrivateTrainer
    neighbour: Neighbour = field(default_factory=Mislabelled)
    relation: Relation = Relation.ADD_REMOVE
    runs: int = 100
    local: Literal["pair", "own"] | None = None
    shuffled: bool = False
    claimed: float | None = None
    claimed_by: str = "its own accounting"
    delta: float | None = None
    belief: float = 0.9
    level: float = 0.95
    seed: int = 0
    workers: int = os.cpu_count() or 1
    seconds: float | None = None
    subject: Mapping[str, str] | None = None
    repeat: str = ""

    def __post_init__(self) -> None:
        if self.runs < 2:
            raise InvalidInput(
                f"{self.runs} runs are asked for, but each table must be used at least once; watch 2 or more."
            )
        if not 0.5 < self.belief < 1:
            raise InvalidInput(
                f"the belief is {self.belief}, but must lie between even odds (0.5) and certainty (1)."
            )
        if self.claimed is not None and self.claimed <= 0:
            raise InvalidInput(
                f"the claimed epsilon is {self.claimed}, but a privacy loss is a positive number."
            )
        if self.local and self.shuffled:
            raise InvalidInput(
                "local sensitivity and shuffling are each a fault of their own; watch one at a time."
            )


def identify(
    table: Table,
    plan: WatchPlan,
    *,
    outside: Table | None = None,
    stages: Stages | None = None,
    progress: Progress = silent,
) -> Identification:
    """Watch a training and say what an adversary that sees every step comes to believe.

    Parameters
    ----------
    table : Table
        The records of the first table.
    plan : WatchPlan
        How.
    outside : Table, optional
        Records from which the other one is taken, for replace-one.
    stages : Stages, optional
        Where finished chunks of runs are kept.
    progress : callable
        Called with a stage's name, what is done and what there is to do.

    Returns
    -------
    Identification
        Beliefs, sensitivities and the three epsilons.
    """
    stages = stages or Stages(folder=None)
    table, own, other, words = choose(
        table,
        plan.neighbour,
        trainer=plan.trainer,
        relation=plan.relation,
        outside=outside,
        seed=plan.seed,
    )
    rows = len(table) - (other is not None)
    delta = plan.delta if plan.delta is not None else 1 / (10 * rows)
    content = (
        table.fingerprint,
        plan.trainer.recipe,
        getattr(plan.trainer, "source", ""),
        own,
        other,
        plan.seed,
        plan.local,
        plan.shuffled,
    )
    seeds = [seed_for(plan.seed, f"watch/{run}") for run in range(plan.runs)]
    traces: list[Trace] = []
    truths: list[Truth] = []
    started, at = time.perf_counter(), 0
    while at < plan.runs:
        progress("watching", at, plan.runs)
        used = time.perf_counter() - started
        if plan.seconds is not None and traces and used > plan.seconds:
            break
        some = seeds[at : at + (FEW if plan.seconds is not None else CHUNK)]

        def make(some: Sequence[int] = some) -> Arrays:
            return _arrays(
                *plan.trainer.watch(
                    table,
                    own=own,
                    other=other,
                    seeds=some,
                    local=plan.local,
                    shuffled=plan.shuffled,
                    workers=plan.workers,
                )
            )

        trace, truth = _trace(stages.get(f"watch/{at}", (*content, len(some)), make))
        traces.append(trace)
        truths.append(truth)
        at += len(some)
    progress("watching", plan.runs, plan.runs)
    recipe, relation = plan.trainer.private, plan.relation
    stated = recipe.steps(rows, relation)
    if plan.local is not None:
        # Noise of so many times the distance itself, whatever the relation.
        stated = replace(stated, relation=Relation.ADD_REMOVE)
    proven, says = proven_epsilon(
        recipe,
        rows=rows,
        delta=delta,
        relation=relation,
        local=plan.local is not None,
        shuffled=plan.shuffled,
    )
    claimed = plan.claimed
    if claimed is None:
        claimed = trade_off(stated).epsilon(delta)
    return identification(
        Trace.join(traces),
        Truth.join(truths),
        stated=stated,
        claim=Claim(
            claimed=claimed, claimed_by=plan.claimed_by, proven=proven, says=says
        ),
        delta=delta,
        belief=plan.belief,
        level=plan.level,
        words=Words(
            relation=relation.value,
            sensitivity=f"local ({plan.local}): {NOT_DP}" if plan.local else "global",
            neighbour=words,
            recipe=plan.trainer.recipe,
            rows=rows,
            warnings=(f"noise was scaled to the records at hand: {NOT_DP}",)
            if plan.local
            else (),
            subject=plan.subject or {},
            seed=plan.seed,
            repeat=plan.repeat,
        ),
    )


def _arrays(trace: Trace, truth: Truth) -> Arrays:
    kept: Arrays = {
        "distance": trace.distance,
        "size": np.array(trace.size),
        "rate": np.array(trace.rate),
        "used_first": truth.first,
        "taken": truth.taken,
    }
    if trace.place is not None:
        kept["place"] = trace.place
    for name in ("first", "second"):
        side = getattr(trace, name)
        for what in ("residual", "inner", "square", "deviation"):
            kept[f"{name}_{what}"] = getattr(side, what)
    return kept


def _trace(arrays: Arrays) -> tuple[Trace, Truth]:
    def side(name: str) -> Side:
        return Side(
            **{
                what: np.asarray(arrays[f"{name}_{what}"], dtype=np.float64)
                for what in ("residual", "inner", "square", "deviation")
            }
        )

    trace = Trace(
        first=side("first"),
        second=side("second"),
        distance=np.asarray(arrays["distance"], dtype=np.float64),
        size=int(arrays["size"]),
        rate=float(arrays["rate"]),
        place=np.asarray(arrays["place"], dtype=bool) if "place" in arrays else None,
    )
    truth = Truth(
        first=np.asarray(arrays["used_first"], dtype=bool),
        taken=np.asarray(arrays["taken"], dtype=bool),
    )
    return trace, truth
