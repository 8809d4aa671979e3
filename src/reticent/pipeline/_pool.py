"""Choose the size of an audit's pool, train it chunk by chunk, and measure what it shows beyond the attacks on the product."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from reticent.attack import Attack, Knowledge, score_targets
from reticent.audits import Answers, Kind, Sides
from reticent.data import Finding, Severity, Table
from reticent.errors import InvalidInput
from reticent.evidence import (
    Convergence,
    DisparityEvidence,
    LongStatistic,
    LossQuantile,
    PoolEvidence,
    PoolForecast,
    TargetsEvidence,
    crossed,
    disparity_of,
    loss_quantiles,
    ltu_accuracy,
    measure_targets,
    posterior_histogram,
)
from reticent.pipeline._case import Case, train_seed
from reticent.pipeline._gather import do_all
from reticent.pipeline._plan import AuditPlan
from reticent.pipeline._score import PRODUCT, Arena, Trial
from reticent.policy import Policy
from reticent.pool import balanced_masks
from reticent.product import Trainer, as_product
from reticent.run import Run, Work, content_of, stream

__all__ = [
    "SIZES",
    "Games",
    "People",
    "PoolSize",
    "Targets",
    "choose_pool",
    "forecast",
    "largest_size",
    "measure_pool",
    "play",
    "pool_works",
    "train_pool",
]

# Sizes a pool may have when time decides: a little more or less time does not change them.
SIZES = (4, 8, 16, 32, 64)
# Models that are trained even if the usual minutes do not suffice: with fewer, LiRA has less than two models for each variance.
USUAL_POOL = 8
FORECAST_SIZES = (
    4,
    8,
    16,
    64,
)  # whose time and memory are shown before training starts
# Share of the audit's time for the pool; attacks, insider and watching share the rest (decision 0012).
SHARE_OF_TIME = 0.4
# Where many models are trained in one pass, a model takes at most a quarter of the time it takes alone (decision 0012).
TOGETHER_GAIN = 4
# False-positive rates at which attacks on other models are stated: one in a hundred and one in a thousand.
RATES = (0.01, 0.001)
SHARES = (0.5, 0.9, 0.99, 0.999)  # quantiles of the effective privacy loss over people
# A quantile is stated only if so many people lie beyond it; fewer would be a statement about single people.
FEWEST_BEYOND = 5
# Pairs of models that a comparison of groups needs: with two, the variance between them has one degree of freedom.
FEWEST_PAIRS = 3
MOST_TARGETS = SIZES[-1]  # all models of the largest pool that time chooses
TIMED_TARGETS = 4  # two pairs, the fewest that have a spread: what attacks on other models are timed on
CERTAIN = (
    1e-12  # posteriors nearer to 0 or 1 count as this, so that log-odds stay finite
)


@dataclass(frozen=True, kw_only=True)
class PoolSize:
    """How many models are trained, and why so many.

    Parameters
    ----------
    models : int
        Number of models; 0 for none.
    chosen : str
        ``"asked for"`` or ``"by time"``.
    forecasts : tuple of PoolForecast
        What pools of some sizes would take here; empty if the size was asked for.
    """

    models: int
    chosen: str
    forecasts: tuple[PoolForecast, ...] = ()

    def findings(self) -> tuple[Finding, ...]:
        """Return a warning if there was room for no pool at all."""
        if self.models or self.chosen == "asked for":
            return ()
        smallest = self.forecasts[0]
        return (
            Finding(
                name="no_pool",
                severity=Severity.WARNING,
                text=f"a pool of {smallest.models} models would take about {smallest.seconds:.0f} s and {smallest.gigabytes:.1f} GB, for which there was "
                "neither time nor memory, so the strongest attacks were not run; audit with more --minutes or --memory, or ask for a "
                "pool with --pool.",
            ),
        )

    def sentence(self) -> str:
        """Return what pools would take here and which one is trained."""
        sizes = "; ".join(
            f"{f.models} models {f.seconds:.0f} s, {_gigabytes(f.gigabytes)}"
            for f in self.forecasts
        )
        bound = " --minutes sets another bound." if self.forecasts else ""
        return f"A pool would take about: {sizes}. {self.models or 'No'} models are trained.{bound}"


def _gigabytes(size: float) -> str:
    return f"{size:.2g} GB" if size >= 0.01 else "less than 0.01 GB"


def choose_pool(case: Case, answers: Answers, run: Run) -> PoolSize:
    """Return the size of the pool: what was asked for, or the largest that fits time and memory.

    The size is chosen before any result is seen and kept, so a resumed run has the same; the
    line that repeats the audit names it.
    """
    plan = case.plan
    if plan.trainer is None or plan.pool is not None:
        return PoolSize(models=plan.pool or 0, chosen="asked for")
    trainer = plan.trainer

    def choose() -> PoolSize:
        seconds = answers.seconds
        # A product made elsewhere has no training time, so one is trained to measure it.
        if seconds == 0:
            started = time.perf_counter()
            product = trainer.train(case.split.defender, seed=train_seed(run.seed))
            # A table is compared with every record, which may take longer than to make it.
            case.kind.ask(as_product(product), case.both, looks_inside=False)
            seconds = time.perf_counter() - started
        # A millisecond at least: a clock may show 0, and every pool would seem to cost nothing.
        each = max(seconds, 1e-3) / (TOGETHER_GAIN if trainer.chunk > 1 else 1)
        size = partial(
            forecast,
            each=each,
            workers=run.effort.workers.count,
            answers=answers.values.shape,
        )
        forecasts = [size(models) for models in SIZES]
        effort = run.effort
        # What comes after the pool must end before the deadline, too, so the pool has the same share of both.
        at_most = min(effort.seconds, effort.seconds_to_deadline)
        fitting = largest_size(forecasts, seconds=at_most, memory=effort.memory)
        if effort.minutes is None:
            usual = [each for each in forecasts if each.models <= USUAL_POOL]
            needed = largest_size(
                usual, seconds=effort.seconds_to_deadline, memory=effort.memory
            )
            fitting = max(fitting, needed)
        return PoolSize(
            models=fitting,
            chosen="by time",
            forecasts=tuple(size(models) for models in FORECAST_SIZES),
        )

    chosen = run.keep("pool/size", PoolSize, choose, depends=case.content)
    run.say(chosen.sentence())
    return chosen


def largest_size(
    forecasts: Sequence[PoolForecast], *, seconds: float, memory: float
) -> int:
    """Return the largest size that fits time and memory; 0 if not even the smallest does.

    Parameters
    ----------
    forecasts : sequence of PoolForecast
        What each size would take.
    seconds : float
        Time of the whole audit, of which the pool has a share.
    memory : float
        Gigabytes.
    """
    return max(
        (
            each.models
            for each in forecasts
            if each.seconds <= SHARE_OF_TIME * seconds and each.gigabytes <= memory
        ),
        default=0,
    )


def forecast(
    models: int, *, each: float, workers: int, answers: tuple[int, ...]
) -> PoolForecast:
    """Return an estimate of how long a pool takes to train and how much memory attacks on it take.

    Answers are numbers of four bytes; two logits per record take eight each; each game copies all of it once.

    Parameters
    ----------
    models : int
        Size of the pool.
    each : float
        Seconds per model.
    workers : int
        Models trained at the same time.
    answers : tuple of int
        Records, and numbers per answer.

    Examples
    --------
    >>> size = forecast(16, each=3.0, workers=2, answers=(40_000, 2))
    >>> size.seconds, round(size.gigabytes, 3)
    (24.0, 0.032)
    """
    records, width = answers
    return PoolForecast(
        models=models,
        seconds=models * each / workers,
        # Per record and model: `width` floats, two logits, and one byte of the mask; twice, because a game copies
        # them.
        gigabytes=models * records * 2 * (4 * width + 2 * 8 + 1) / 1e9,
    )


def train_pool(case: Case, size: PoolSize, width: int, run: Run) -> Any:
    """Return models trained on random halves of the records in question; None if none are wanted.

    A chunk is as many models as the trainer trains best in one pass, whoever the workers are, so any number of them finds
    every finished chunk again. Masks and seeds come from streams of their own: a model depends on the records, the recipe,
    the seed and its place in the pool, and on nothing else.

    Parameters
    ----------
    case : Case
        What is audited.
    size : PoolSize
        How many models.
    width : int
        Numbers in an answer.
    run : Run
        Seed, store, workers, memory.
    """
    trainer, table, models = case.plan.trainer, case.both, size.models
    if trainer is None or models == 0:
        return None
    # Also a pool that was asked for must fit: running out of memory would end the audit after hours.
    needed = forecast(
        models, each=0.0, workers=1, answers=(len(table), width)
    ).gigabytes
    if needed > run.effort.memory:
        raise InvalidInput(
            f"a pool of {models} models on {len(table):,} records takes about {needed:.1f} GB, more than the {run.effort.memory:g} GB "
            "allowed; use a smaller --pool or more --memory."
        )
    masks = balanced_masks(models, table.units, rng=run.rng("pool/masks"))
    seeds = run.rng("pool/seeds").integers(2**31 - 1, size=models)
    chunks = [
        slice(at, min(at + trainer.chunk, models))
        for at in range(0, models, trainer.chunk)
    ]
    # Workers train at the same time and share the memory.
    memory = run.effort.memory / run.effort.workers.count
    answers = run.keep_each(
        "training the pool",
        NDArray[np.float32],
        chunks,
        _train_chunk,
        shared=_Training(
            kind=case.kind,
            trainer=trainer,
            table=trainer.prepared(table),
            masks=masks,
            seeds=seeds,
            memory=memory,
        ),
        depends=[case.content + content_of(c.start, c.stop) for c in chunks],
    )
    return case.kind.pool(masks, np.concatenate(answers), table)


@dataclass(frozen=True, kw_only=True)
class _Training:
    """What all chunks of a pool share."""

    kind: Kind
    trainer: Trainer
    table: Table
    masks: NDArray[np.bool_]
    seeds: NDArray[np.int64]
    memory: float


def _train_chunk(shared: _Training, chunk: slice) -> NDArray[np.float32]:
    return shared.kind.train_many(
        shared.trainer,
        shared.table,
        shared.masks[chunk],
        shared.seeds[chunk],
        memory=shared.memory,
    )


@dataclass(frozen=True, kw_only=True)
class People:
    """What is known about people besides their scores.

    Parameters
    ----------
    posterior : array of float or None
        Each record's predicted probability of membership.
    groups : array of object or None
        Group of each record.
    late : frozenset of str
        Names of the statistics that are left out.
    """

    posterior: NDArray[np.float64] | None = None
    groups: NDArray[np.object_] | None = None
    late: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Scores of one attack on models of the pool, one row per target and one column per unit."""

    models: NDArray[np.int64]
    scores: NDArray[np.float64]


def measure_pool(
    plan: AuditPlan,
    arena: Arena,
    size: PoolSize,
    people: People,
    run: Run,
) -> PoolEvidence | None:
    """Return what a pool shows about the trainer, the people and the groups; None without a pool.

    Parameters
    ----------
    plan : AuditPlan
        Kind and policy.
    arena : Arena
        The product under attack.
    size : PoolSize
        How the size of the pool was chosen.
    people : People
        Posteriors and groups.
    run : Run
        Seed, store, workers.
    """
    pool, sides = arena.pool, arena.product.sides
    if pool is None:
        return None
    targets, disparity = _on_other_models(plan, arena, people, run)
    is_late = LongStatistic.CONVERGENCE in people.late
    return PoolEvidence(
        models=len(pool),
        chosen=size.chosen,
        forecasts=size.forecasts,
        targets=targets,
        convergence=() if is_late else _convergence(plan, arena, run),
        losses=_losses(people.posterior, sides, plan.policy),
        posterior=None
        if people.posterior is None
        else _histogram(people.posterior, sides),
        disparity=disparity,
    )


def pool_works(plan: AuditPlan, arena: Arena, run: Run) -> list[Work]:
    """Return the statistics of a pool that may be left out, timed on a few records; nothing without a pool.

    Parameters
    ----------
    plan : AuditPlan
        Kind and policy.
    arena : Arena
        The product and its controls.
    run : Run
        Seed.
    """
    if arena.pool is None:
        return []
    part = arena.control.part(run.seed)
    small = Arena(trials={PRODUCT: part}, has=arena.has)
    quiet = Run(seed=run.seed)
    targets = min(len(arena.pool), MOST_TARGETS)
    share = len(arena.control.sides.tags) / len(part.sides.tags)
    return [
        Work(
            name=LongStatistic.OTHER_MODELS,
            trial=partial(
                _on_other_models, plan, small, People(), quiet, most=TIMED_TARGETS
            ),
            times=share * max(1.0, targets / TIMED_TARGETS),
        ),
        Work(
            name=LongStatistic.CONVERGENCE,
            trial=partial(_convergence, plan, small, quiet),
            times=share,
        ),
    ]


def _on_other_models(
    plan: AuditPlan,
    arena: Arena,
    people: People,
    run: Run,
    *,
    most: int = MOST_TARGETS,
) -> tuple[tuple[TargetsEvidence, ...], DisparityEvidence | None]:
    """Return what attacks achieve with models of the pool in the product's place, and whether groups differ in it."""
    if LongStatistic.OTHER_MODELS in people.late:
        return (), None
    pool, sides, kind = arena.pool, arena.product.sides, plan.kind
    # Each attack is run once per model, so only the cheap ones can be afforded.
    attacks = kind.quick_attacks
    played = run.with_room(arena.nbytes).keep_each(
        "attacking other models",
        Targets,
        attacks,
        play,
        shared=Games(pool=pool, sides=sides, kind=kind, seed=run.seed, most=most),
        depends=[arena.depends + content_of("targets", attack) for attack in attacks],
    )
    on_targets = {a.name: t.scores for a, t in zip(attacks, played, strict=True)}
    targets = played[0].models
    masks = pool.masks[targets][:, sides.first]
    pairs = pool.pairs[targets]
    return (
        _targets(on_targets, masks, pairs, plan.policy, run),
        _disparity(on_targets[kind.ratio_attack], masks, pairs, sides, people, plan),
    )


@dataclass(frozen=True, kw_only=True)
class Games:
    """What the games against models of a pool share."""

    pool: Any
    sides: Sides
    kind: Any
    seed: int
    most: int


def play(shared: Games, attack: Attack) -> Targets:
    """Attack every model of a pool, with the others as its shadows; a job for workers."""
    models, scores = score_targets(
        attack,
        shared.pool,
        challenge_of=partial(shared.kind.model_challenge, shared.pool),
        units=shared.sides.units,
        most=shared.most,
        rng=stream(shared.seed, f"targets/{attack.name}"),
    )
    by_unit = np.array([shared.sides.by_unit(row) for row in scores])
    return Targets(models=models, scores=by_unit)


def _targets(
    scores: Mapping[str, NDArray[np.float64]],
    masks: NDArray[np.bool_],
    pairs: NDArray[np.int64],
    policy: Policy,
    run: Run,
) -> tuple[TargetsEvidence, ...]:
    # The models of a pair are trained on complementary halves, so pairs and not models are independent; one of them
    # has no spread.
    if len(np.unique(pairs)) < 2:
        return ()
    jobs = [
        partial(
            measure_targets,
            name,
            values,
            masks,
            clusters=pairs,
            fpr=RATES,
            level=policy.confidence,
            rng=run.rng(f"targets/bootstrap/{name}"),
        )
        for name, values in scores.items()
    ]
    return tuple(do_all(run, jobs))


def _convergence(plan: AuditPlan, arena: Arena, run: Run) -> tuple[Convergence, ...]:
    """Return what the quick attacks reach with 4, 8, 16, ... models."""
    total = len(arena.pool)
    sizes = [SIZES[0]]
    # Doubling shows on a logarithmic axis whether a curve still climbs.
    while 2 * sizes[-1] < total:
        sizes.append(2 * sizes[-1])
    items = [
        (models, attack)
        for models in sorted({*sizes, total})
        for attack in plan.kind.quick_attacks
    ]
    roomy = run.with_room(arena.nbytes)
    return tuple(
        roomy.effort.workers.map(
            _converge,
            items,
            shared=(arena.sent(plan)[PRODUCT], plan.policy.confidence, run.seed),
        )
    )


def _converge(
    shared: tuple[Trial, float, int], item: tuple[int, Attack]
) -> Convergence:
    trial, level, seed = shared
    models, attack = item
    pool = trial.knowledge.pool
    assert pool is not None, "there is a pool to take a part of"
    scores = attack.score(
        trial.challenge,
        knowledge=Knowledge(tags=trial.knowledge.tags, pool=pool.first(models)),
        rng=stream(seed, f"convergence/{attack.name}"),
    )
    sides = trial.sides.divide(scores.values)
    accuracy = ltu_accuracy(sides.members, sides.nonmembers, level=level)
    return Convergence(attack=attack.name, models=models, auc=accuracy)


def _histogram(posterior: NDArray[np.float64], sides: Sides) -> Any:
    scores = sides.divide(posterior)
    return posterior_histogram(scores.members, scores.nonmembers)


def _losses(
    posterior: NDArray[np.float64] | None, sides: Sides, policy: Policy
) -> tuple[LossQuantile, ...]:
    """Return quantiles of the effective privacy loss: the log-odds of the posterior."""
    if posterior is None:
        return ()
    odds = sides.by_unit(logit(posterior.clip(CERTAIN, 1 - CERTAIN)))
    # A quantile beyond what so many people can show is left out.
    shares = [s for s in SHARES if len(odds) * (1 - s) >= FEWEST_BEYOND]
    return loss_quantiles(odds, shares=shares, level=policy.confidence)


def _disparity(
    scores: NDArray[np.float64],
    masks: NDArray[np.bool_],
    pairs: NDArray[np.int64],
    sides: Sides,
    people: People,
    plan: AuditPlan,
) -> DisparityEvidence | None:
    groups, policy = people.groups, plan.policy

    if groups is None or len(np.unique(pairs)) < FEWEST_PAIRS:
        return None
    large = sides.groups(groups).names(smallest=policy.smallest_group)
    if len(large) < 2:
        return None
    names = groups[sides.first].astype(str)
    is_large = np.isin(names, large)
    comparison = crossed(
        scores[:, is_large] > 0,  # a likelihood ratio above 1
        masks[:, is_large],
        names[is_large],
        clusters=pairs,
        level=policy.confidence,
    )
    return disparity_of(comparison, attack=plan.kind.ratio_attack)
