"""Let an adversary watch every step of a private training, many times over, and say what it learned."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from reticent.account import Relation, trade_off
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.evidence import Identification
from reticent.pipeline._neighbour import Mislabelled, Neighbour, choose
from reticent.pipeline._watched import Claim, Words, identification, watched_evidence
from reticent.pool import Trace, Truth
from reticent.product import Departure, Watchable
from reticent.run import Run, content_of
from reticent.train import proven_epsilon

__all__ = ["WatchPlan", "run_identification"]

RUNS_PER_CHUNK = 50  # runs that are stored together: an interruption loses no more
# The same where time is limited, because the clock is looked at between chunks only.
RUNS_PER_CHUNK_IF_SHORT = 10
NOT_DP = "empirical, not DP"


@dataclass(frozen=True, kw_only=True)
class WatchPlan:
    """How a training is watched.

    Parameters
    ----------
    trainer : Watchable
        The training.
    neighbour : Neighbour
        Which record tells the two tables apart.
    relation : Relation
        Whether the second table lacks that record or holds another in its place.
    runs : int
        Trainings, each on one of the two tables by the toss of a coin.
    local : str, optional
        Scale noise to the records, ``"pair"`` or ``"own"`` as in :class:`~reticent.product.Departure`: empirical, not DP.
    shuffled : bool
        Whether batches are cut from a shuffled table.
    claimed : float, optional
        The epsilon to be put to the test; by default what the recipe's own accounting says.
    claimed_by : str
        Who claims it.
    delta : float, optional
        Probability of failure at which epsilon is stated; by default 1 / (10 rows).
    belief : float
        The share of runs in which the belief in the truth exceeds this value is reported.
    level : float
        Confidence.
    seconds : float, optional
        Time after which no further chunk of runs is started; without it all runs are watched.
    subject, repeat
        Names and the repeating command, for the report.
    """

    trainer: Watchable
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
        # With both, nobody could tell which of the two broke the guarantee.
        if self.local and self.shuffled:
            raise InvalidInput(
                "local sensitivity and shuffling are each a fault of their own; watch one at a time."
            )


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What was seen of some trainings, and which table each of them used."""

    trace: Trace
    truth: Truth


def run_identification(
    table: Table,
    plan: WatchPlan,
    *,
    outside: Table | None = None,
    run: Run | None = None,
) -> Identification:
    """Watch a training and return what an adversary who sees every step comes to believe.

    Parameters
    ----------
    table : Table
        The records of the first table.
    plan : WatchPlan
        How the training is watched.
    outside : Table, optional
        Records from which the other one is taken, for replace-one.
    run : Run, optional
        Seed of coins, initialisation, batches and noise; store of finished chunks; workers.

    Returns
    -------
    Identification
        Beliefs, sensitivities and the three epsilons.
    """
    run = run or Run()
    neighbours = choose(
        table,
        plan.neighbour,
        trainer=plan.trainer,
        relation=plan.relation,
        outside=outside,
        seed=run.seed,
    )
    table, own, other = neighbours.table, neighbours.own, neighbours.other
    # For replace-one the table holds both records, of which each training uses one.
    rows = len(table) - (other is not None)
    # A failure probability well below one person in the table.
    delta = plan.delta if plan.delta is not None else 1 / (10 * rows)
    # One seed per run and not per chunk: more runs continue the same sequence.
    seeds = [run.seed_for(f"watch/{number}") for number in range(plan.runs)]
    # One domain for all chunks: the steps' guarantee holds for any fixed one (decision 0054).
    columns_seed = seeds[0]
    depends = plan.trainer.content() + content_of(
        *(table.fingerprint, own, other, run.seed, plan.local, plan.shuffled),
        columns_seed,
    )
    watched: list[Watched] = []
    size = RUNS_PER_CHUNK if plan.seconds is None else RUNS_PER_CHUNK_IF_SHORT
    started, at = time.perf_counter(), 0
    while at < plan.runs:
        run.tell("watching", at, plan.runs)
        used = time.perf_counter() - started
        # At least one chunk is always watched: no runs would be no result.
        if plan.seconds is not None and watched and used > plan.seconds:
            break
        some = seeds[at : at + size]

        def watch(some: Sequence[int] = some) -> Watched:
            trace, truth = plan.trainer.watch(
                table,
                own=own,
                other=other,
                seeds=some,
                columns_seed=columns_seed,
                departure=Departure(local=plan.local, shuffled=plan.shuffled),
                workers=run.effort.workers,
            )
            return Watched(trace=trace, truth=truth)

        watched.append(
            run.keep(
                f"watch/{at}", Watched, watch, depends=depends + content_of(len(some))
            )
        )
        at += len(some)
    run.tell("watching", plan.runs, plan.runs)
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
    trace = Trace.join([each.trace for each in watched])
    evidence = watched_evidence(
        trace,
        Truth.join([each.truth for each in watched]),
        stated=stated,
        delta=delta,
        belief=plan.belief,
        level=plan.level,
    )
    return identification(
        trace,
        evidence,
        claim=Claim(
            claimed=claimed, claimed_by=plan.claimed_by, proven=proven, says=says
        ),
        words=Words(
            relation=relation.value,
            sensitivity=f"local ({plan.local}): {NOT_DP}" if plan.local else "global",
            neighbour=neighbours.words,
            recipe=plan.trainer.recipe,
            rows=rows,
            warnings=(f"noise was scaled to the records at hand: {NOT_DP}",)
            if plan.local
            else (),
            subject=plan.subject or {},
            seed=run.seed,
            repeat=plan.repeat,
        ),
    )
