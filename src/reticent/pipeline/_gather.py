"""From scores to evidence: every attack, the worst case, groups, people, the pool; each a job of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from reticent.attack import (
    Attack,
    FoundAt,
    Need,
    Searched,
    count_file,
    search_file,
)
from reticent.audits import Kind, Sides, lone_row, seen_in_rows
from reticent.errors import InvalidInput
from reticent.evidence import (
    Asked,
    AttackEvidence,
    BlindEvidence,
    Calibration,
    Estimate,
    Evidence,
    FileEvidence,
    FoundInFile,
    GroupEvidence,
    GuessedAttribute,
    InsiderEvidence,
    Joint,
    LongStatistic,
    Naming,
    PoolEvidence,
    RecipeUse,
    StatisticSkipped,
    SyntheticEvidence,
    UnitScores,
    WorstCase,
    calibrated_odds,
    calibration,
    can_be_told,
    epsilon_ceiling,
    individual_histogram,
    measure_attack,
    measure_groups,
    name_members,
    predictive_value,
    score_histogram,
    smallest_visible_leak,
    split_level,
    strongest,
    subgroup_aware,
    worst_case_density,
    worst_case_discrete,
    worst_case_vectors,
)
from reticent.pipeline._plan import AuditPlan
from reticent.pipeline._score import Arena, Scored, Trial
from reticent.policy import Policy
from reticent.product import OpenedFile, SyntheticTable
from reticent.run import Run

__all__ = [
    "Chosen",
    "Gathered",
    "Heard",
    "do_all",
    "file_evidence",
    "gather",
    "naming_replicates",
    "posterior_of",
    "worst_jobs",
]

T = TypeVar("T")
# What somebody lacks who may only send queries.
BEYOND_QUERIES = frozenset({Need.FILE, Need.INTERNALS})
FALSE_NAMES = 0.1  # nine of ten names right: what an investigator would act on
# Draws of the bootstrap; fewer for many people, of whom each draw takes longer and whose interval is narrow.
REPLICATES, FEW_REPLICATES, MANY_PEOPLE = 400, 100, 200_000
FEWEST_PER_BIN = (
    20  # people in a bin of the calibration: fewer would reveal single people
)
MOST_BINS = 10  # customary for calibration curves


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What other stages have found out about the product before evidence is gathered.

    Parameters
    ----------
    insider : InsiderEvidence or None
        The retraining attacker.
    pool : PoolEvidence or None
        Evidence from many models of the same recipe.
    vulnerability_bound : float or None
        The largest vulnerability that the claimed epsilon allows.
    groups : array of object or None
        Group of each record.
    members : table or None
        The records that trained the product.
    late : mapping of str to str
        Why statistics are left out, by their names.
    blind : BlindEvidence or None
        What the records alone tell about membership.
    attributes : tuple of GuessedAttribute
        Columns that were guessed from the answers.
    recipe : RecipeUse or None
        What synthetic tables are like, and good for, that were made again.
    beside : OpenedFile or None
        What the file of a synthetic table holds besides its cells, laid beside all records.
    """

    insider: InsiderEvidence | None = None
    pool: PoolEvidence | None = None
    vulnerability_bound: float | None = None
    groups: NDArray[np.object_] | None = None
    members: Any = None
    late: Mapping[str, str] = field(default_factory=dict)
    blind: BlindEvidence | None = None
    attributes: tuple[GuessedAttribute, ...] = ()
    recipe: RecipeUse | None = None
    beside: OpenedFile | None = None


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """The evidence, and what never enters a dossier: scores of single people."""

    evidence: Evidence
    scores: dict[str, UnitScores]
    best_scores: NDArray[np.float64]
    posterior: NDArray[np.float64] | None


@dataclass(frozen=True, kw_only=True)
class _Work:
    """Everything that evidence is gathered from."""

    plan: AuditPlan
    arena: Arena
    scored: Scored
    heard: Heard
    run: Run

    @property
    def sides(self) -> Sides:
        return self.arena.product.sides

    @property
    def joint(self) -> Joint:
        """The confidence that the statements of the policy share."""
        policy = self.plan.policy
        return Joint(
            level=policy.confidence, statements=policy.statements(self.plan.measures)
        )

    @property
    def counted(self) -> frozenset[str]:
        """Attacks that need nothing beyond what would be released."""
        beyond = BEYOND_QUERIES if self.plan.policy.queries_only else frozenset()
        return frozenset(a.name for a in self.scored.attacks if not a.needs & beyond)

    @property
    def choices(self) -> int:
        """Attacks among which the strongest is chosen."""
        return len(self.counted)

    def in_time(self, name: str) -> bool:
        """Return whether a statistic is computed."""
        return name not in self.heard.late


def _why_none(scored: Scored, run: Run) -> str:
    """Return why no attack has scores, and what to do about it."""
    words = "no attack could be run, so nothing is known about the product"
    if scored.failed:
        first = scored.failed[0]
        return f"{words} (the first, {first.name!r}, failed: {first.why.rstrip('.')}); make sure that the product answers about every record."
    if scored.skipped:
        first_skipped = scored.skipped[0]
        later = " or a later --deadline" if run.effort.deadline is not None else ""
        return f"{words} ({first_skipped.name!r}: {first_skipped.why}); give it what it lacks{later}."
    return f"{words}; make sure that at least one attack has what it needs."


def gather(
    plan: AuditPlan, arena: Arena, scored: Scored, heard: Heard, run: Run
) -> Gathered:
    """Turn scores into evidence.

    Parameters
    ----------
    plan : AuditPlan
        Policy, kind and measures.
    arena : Arena
        The product under attack.
    scored : Scored
        Scores of the attacks.
    heard : Heard
        What else was found out.
    run : Run
        Seed and workers.
    """
    if not scored.attacks:
        raise InvalidInput(_why_none(scored, run))
    work = _Work(plan=plan, arena=arena, scored=scored, heard=heard, run=run)
    kind, sides, challenge = plan.kind, work.sides, arena.product.challenge
    by_unit = {
        name: replace(sides.divide(values), spread=scored.spreads.get(name, 1.0))
        for name, values in scored.values.items()
    }
    measured = _attacks(work, by_unit)
    attacks = tuple(a for a in measured if a.name in work.counted)
    if not attacks:
        raise InvalidInput(
            "every attack that could be run needs more than answers to queries, and the policy releases no more; run at least one that only "
            "queries."
        )
    best = strongest(attacks)
    best_scores = scored.values[best.name]
    worst, groups, named = _long_statistics(work, best.name)
    posterior, predicted_by = posterior_of(kind, scored, sides, run)
    scores = by_unit[best.name]
    sizes = len(scores.members), len(scores.nonmembers)
    # The strongest attack was chosen on the records that judge it: every figure about it pays for the choice.
    each = work.joint.times(work.choices).each
    evidence = Evidence(
        attacks=attacks,
        failed=scored.failed,
        skipped=scored.skipped,
        utility=kind.utility(challenge, sides, members=heard.members, joint=work.joint),
        epsilon_ceiling=epsilon_ceiling(*sizes, level=each),
        smallest_leak=smallest_visible_leak(*sizes, level=each),
        members=sizes[0],
        nonmembers=sizes[1],
        groups=groups,
        insider=heard.insider,
        scores=score_histogram(scores.members, scores.nonmembers),
        individual=individual_histogram(scores.members, scores.nonmembers),
        calibration=_calibration(posterior, sides, plan.policy),
        predicted_by=predicted_by,
        theorems=kind.theorems(challenge, sides, pool=arena.pool),
        worst_case=worst,
        subgroup_aware=_aware_of_groups(groups, level=plan.policy.confidence),
        vulnerability_bound=heard.vulnerability_bound,
        pool=heard.pool,
        aside=tuple(a for a in measured if a.name not in work.counted),
        file=_file(work),
        naming=_naming(work, named, best),
        not_computed=tuple(
            StatisticSkipped(name=name, why=why) for name, why in heard.late.items()
        ),
        blind=heard.blind,
        attributes=heard.attributes,
        synthetic=_further(work, best_scores),
    )
    return Gathered(
        evidence=evidence, scores=by_unit, best_scores=best_scores, posterior=posterior
    )


def _further(work: _Work, best_scores: NDArray[np.float64]) -> SyntheticEvidence | None:
    """Return what is known of a synthetic table beside the attacks, of its recipe too; None for models."""
    of_table = work.plan.kind.further(
        work.arena.product.challenge,
        work.sides,
        best_scores,
        joint=work.joint,
        choices=work.choices,
        smallest=work.plan.policy.smallest_group,
        seed=work.run.seed,
    )
    return of_table and replace(of_table, recipe=work.heard.recipe)


def do_all(run: Run, jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Return the results of independent jobs, carried out by the run's workers."""
    return list(run.effort.workers.map(_do, list(jobs), shared=None))


def _do(_: None, job: Callable[[], T]) -> T:
    return job()


def _attacks(
    work: _Work, by_unit: Mapping[str, UnitScores]
) -> tuple[AttackEvidence, ...]:
    asked = _asked(work.plan.policy, work.joint.times(work.choices))
    return tuple(
        do_all(
            work.run,
            [
                partial(
                    measure_attack,
                    attack.name,
                    by_unit[attack.name],
                    asked=asked,
                    family=_family(attack),
                    rng=work.run.rng(f"guesses/{attack.name}"),
                )
                for attack in work.scored.attacks
            ],
        )
    )


def _asked(policy: Policy, joint: Joint) -> Asked:
    """Return the rates at which attacks are measured, as the policy sets them."""
    usual = Asked(joint=joint)
    rates, exposed = policy.limit("tpr"), policy.limit("exposed")
    return Asked(
        fpr=usual.fpr if rates is None else rates.at.get("fpr", usual.fpr),
        exposed_below=usual.exposed_below
        if exposed is None
        else exposed.at.get("below", usual.exposed_below),
        joint=joint,
    )


def _family(attack: Attack) -> str:
    """Return what the attacker does beside querying, by what the attack needs."""
    # Looking inside is the rarer capability, so it names the family of an attack that needs both.
    if Need.FILE in attack.needs:
        return "reads the file"
    if attack.needs & {Need.INTERNALS, Need.CRITIC}:
        return "looks inside"
    if Need.SYNTHETIC in attack.needs and Need.POOL not in attack.needs:
        return "compares rows"
    return "trains others" if Need.POOL in attack.needs else "queries"


def _file(work: _Work) -> FileEvidence | None:
    """Return what the product's file contains, in counts; None if it was not read."""
    challenge = work.arena.product.challenge
    smallest = work.plan.policy.smallest_group
    file = challenge.file
    if file is None:
        kind = work.plan.kind
        product = work.plan.product
        besides = product.beside.parts if isinstance(product, SyntheticTable) else ()
        contents = kind.contents(
            challenge,
            work.sides,
            smallest_group=smallest,
            beside=work.heard.beside,
            seed=work.run.seed,
        )
        return contents and replace(contents, besides=besides)
    searched = challenge.searched or search_file(file, smallest_group=smallest)
    return file_evidence(file, searched, work.sides.tags)


def file_evidence(
    file: OpenedFile, searched: Searched, tags: NDArray[np.bool_]
) -> FileEvidence:
    """Return what a file of a model shows of the records beside it, in counts."""
    counts = count_file(file, searched, tags)

    def at(place: FoundAt | None) -> FoundInFile | None:
        return None if place is None else FoundInFile(**asdict(place))

    return FileEvidence(
        members=counts.members,
        nonmembers=counts.nonmembers,
        rows=at(counts.rows),
        values=at(counts.values),
        trees=at(counts.trees),
        rare_values=counts.rare_values,
        smallest_group=counts.smallest_group,
        long_axes=counts.long_axes,
        parameters=counts.parameters,
        size=counts.size,
        unread=counts.unread,
        lone_row=lone_row(counts),
        held_out=seen_in_rows(counts, smallest=counts.smallest_group),
    )


def _others(work: _Work) -> int:
    """Return among how many others members are sought: as many as there are members, unless a population is stated."""
    members, population = int(work.sides.unit_tags.sum()), work.plan.population
    return members if population is None else population - members


def _named_job(work: _Work, scores: UnitScores) -> Callable[[], Estimate] | None:
    """Return the job that says how many members an attack could name; None if it is left out, or cannot be told."""
    members, nonmembers, others = len(scores.members), len(scores.nonmembers), _others(work)  # fmt: skip
    if not (
        work.in_time(LongStatistic.NAMED)
        and can_be_told(members, nonmembers, others=others, false_names=FALSE_NAMES)
    ):
        return None
    return partial(
        name_members,
        scores.members,
        scores.nonmembers,
        others=others,
        false_names=FALSE_NAMES,
        level=work.plan.policy.confidence,
        rng=work.run.rng("naming"),
        replicates=naming_replicates(members + nonmembers),
    )


def _naming(work: _Work, named: Estimate | None, best: AttackEvidence) -> Naming:
    """Return how many members the strongest attack could name, and what its pointing at somebody is worth in a stated population."""
    members, population = int(work.sides.unit_tags.sum()), work.plan.population
    value = None
    if population is not None:
        value = predictive_value(
            best.tpr_at_fpr, fpr=best.fpr, members=members, population=population
        )
    return Naming(
        false_names=FALSE_NAMES,
        people=members + _others(work),
        named=named,
        population=population,
        fpr=best.fpr,
        predictive_value=value,
    )


def naming_replicates(people: int) -> int:
    """Return how many draws the bootstrap of the named members makes."""
    return FEW_REPLICATES if people > MANY_PEOPLE else REPLICATES


def posterior_of(
    kind: Kind, scored: Scored, sides: Sides, run: Run
) -> tuple[NDArray[np.float64] | None, str]:
    """Return each record's probability of membership at even prior odds, from the best informed attack that gives one, and its name.

    Probabilities are calibrated on other people. There are none if they say no more than chance.
    """
    for name in kind.posterior_attacks:
        if name in scored.probabilities:
            odds = calibrated_odds(
                sides.by_unit(scored.probabilities[name]),
                sides.unit_tags,
                rng=run.rng("calibration"),
            )
            return None if odds is None else sides.to_records(expit(odds)), name
    return None, ""


def _calibration(
    posterior: NDArray[np.float64] | None, sides: Sides, policy: Policy
) -> Calibration | None:
    if posterior is None:
        return None
    tags = sides.unit_tags
    # At even prior odds; they come true at the odds of the people who were asked.
    per_unit = expit(logit(sides.by_unit(posterior)) + logit(tags.mean()))
    # With fewer than two bins there would be no curve at all.
    bins = max(2, min(MOST_BINS, len(per_unit) // FEWEST_PER_BIN))
    return calibration(per_unit, tags, level=policy.confidence, bins=bins)


def _long_statistics(
    work: _Work, best: str
) -> tuple[tuple[WorstCase, ...], tuple[GroupEvidence, ...], Estimate | None]:
    """Return the worst case for every view of an answer, the groups, and the share of members who can be named, all of which take long."""
    policy = work.plan.policy
    scores = work.sides.divide(work.scored.values[best])
    chosen = Chosen(name=best, scores=scores, choices=work.choices)
    all_views = worst_jobs(work.plan, work.arena.product, chosen, work.run)
    # The error is divided among all views, also if some are left out: the rule must not depend on the time.
    why = (
        f"joint over {len(all_views)} views and the choice among {work.choices} attacks"
    )
    views = {k: job for k, job in all_views.items() if work.in_time(k)}
    jobs: dict[str, Callable[[], Any]] = {}
    named = _named_job(work, scores)
    if named is not None:
        jobs[LongStatistic.NAMED] = named
    if work.heard.groups is not None and work.in_time(LongStatistic.GROUPS):
        jobs[LongStatistic.GROUPS] = _groups_job(work, best, work.heard.groups)
    jobs |= views
    # One list of jobs, the longest first, so that the workers take them side by side.
    results = dict(zip(jobs, do_all(work.run, [*jobs.values()]), strict=True))
    worst = tuple(_stated(results[k], policy.confidence, why) for k in views)
    return worst, results.get(LongStatistic.GROUPS, ()), results.get(LongStatistic.NAMED)  # fmt: skip


def _groups_job(
    work: _Work, best: str, names: NDArray[np.object_]
) -> Callable[[], tuple[GroupEvidence, ...]]:
    policy = work.plan.policy
    limit = policy.limit("group_privacy")
    is_judged = limit is not None and limit.judges
    # Groups that no limit judges are shown at the policy's full confidence and take none from the verdict.
    shared = work.joint if is_judged else Joint(level=policy.confidence)
    return partial(
        measure_groups,
        work.sides.divide(work.scored.values[best]),
        work.sides.groups(names),
        smallest=policy.smallest_group,
        # The attack was chosen on the same records, so its choice is paid for here too.
        joint=shared.times(work.choices),
        rng=work.run.rng("groups"),
    )


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The strongest attack, and among how many it was chosen."""

    name: str
    scores: UnitScores
    choices: int


def worst_jobs(
    plan: AuditPlan, trial: Trial, chosen: Chosen, run: Run
) -> dict[str, Callable[[], Any]]:
    """Return the jobs that estimate the worst case for every view of an answer, by the names of these statistics.

    Parameters
    ----------
    plan : AuditPlan
        Kind and policy.
    trial : Trial
        The product.
    chosen : Chosen
        The attack whose score is one of the views.
    run : Run
        Seed.
    """
    sides = trial.sides
    views = plan.kind.views(trial.challenge, sides)
    # The views are all shown, and the score among them is that of the attack that was chosen: both are paid for.
    each = split_level(plan.policy.confidence, len(views) + chosen.choices)
    inside, outside = sides.unit_tags, ~sides.unit_tags
    estimators = (
        (worst_case_discrete, views.discrete),
        (worst_case_density, views.density),
        (worst_case_vectors, views.vectors),
    )
    jobs: dict[str, Callable[[], Any]] = {
        f"worst case by {view.feature}": partial(
            estimator,
            view.values[inside],
            view.values[outside],
            feature=view.feature,
            level=each,
            rng=run.rng(view.stream),
        )
        for estimator, its_views in estimators
        for view in its_views
    }
    jobs["worst case by the score of the strongest attack"] = partial(
        worst_case_density,
        chosen.scores.members,
        chosen.scores.nonmembers,
        feature=f"score of {chosen.name.replace('_', ' ')}",
        level=each,
        rng=run.rng("worst/score"),
    )
    return jobs


def _stated(case: WorstCase, level: float, why: str) -> WorstCase:
    return WorstCase(
        feature=case.feature,
        estimate=case.estimate.stated(level=level, why=why),
        plug_in=case.plug_in,
        bias=case.bias,
        p_value=case.p_value,
    )


def _aware_of_groups(
    groups: tuple[GroupEvidence, ...], *, level: float
) -> Estimate | None:
    """Return the worst case of an adversary who knows each person's group as well."""
    # With one group there is nothing to know.
    if len(groups) < 2:
        return None
    return subgroup_aware(
        # Theorem 4 of Yaghini et al. weighs groups by their size.
        [(float(g.members + g.nonmembers), g.worst_case) for g in groups],
        level=level,
    )
