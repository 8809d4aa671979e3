"""The one pipeline: table, split, product, attacks, evidence, decision, dossier."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.account import Guarantee, Relation
from reticent.attack import (
    BlindBaseline,
    Challenge,
    RetrainingRounds,
    blind_baseline,
)
from reticent.data import Finding, Severity, Split, Table, as_numbers, check_split
from reticent.evidence import (
    Identification,
    InsiderEvidence,
    vulnerability_bound,
)
from reticent.pipeline._answers import (
    NULL_HALVES,
    Null,
    answers_of,
    null_answers,
    product_answers,
    product_seed,
    train_seed,
    training_findings,
)
from reticent.pipeline._controls import memorised_answers
from reticent.pipeline._insider import play_insider
from reticent.pipeline._outsider import (
    Outsider,
    attack_and_measure,
    per_record_risk,
)
from reticent.pipeline._plan import (
    OUTPUT_ATTACKS,
    POOL_ATTACKS,
    AuditPlan,
    AuditResult,
    Progress,
    silent,
)
from reticent.pipeline._pool import choose_size, train_pool
from reticent.pipeline._sides import Sides
from reticent.pipeline._stages import Arrays, Stages
from reticent.pipeline._three import three_epsilons, watch_training
from reticent.policy import Policy, decide
from reticent.product import (
    Product,
    Provenance,
    Trainer,
    versions,
)
from reticent.report import Dossier
from reticent.report.words import insider_warning, summarise
from reticent.run import stream
from reticent.train import (
    NetworkTrainer,
    PrivateModuleTrainer,
    PrivateNetworkTrainer,
    guarantee_of,
)

__all__ = ["divide", "outputs_dossier", "results_folder", "run_audit"]


BLIND_FALSE_ALARM = 0.01
WATCHED = 50  # trainings that are watched at most, if time allows
NO_TIME = Finding(
    name="no_pool",
    severity=Severity.WARNING,
    text="there was neither time nor memory for a pool of four models, so the strongest attacks were not run; audit with more "
    "--minutes, or ask for a pool with --pool.",
)


def run_audit(
    table: Table,
    plan: AuditPlan,
    *,
    split: Split | None = None,
    stages: Stages | None = None,
    progress: Progress = silent,
) -> AuditResult:
    """Audit a product: from a table to a dossier.

    Parameters
    ----------
    table : Table
        The records.
    plan : AuditPlan
        What to audit and by which rules.
    split : Split, optional
        Parts; by default the table's own, or a random split by unit.
    stages : Stages, optional
        Where finished stages are kept; by default nowhere.
    progress : callable
        Called with a stage's name, what is done and what there is to do.
    """
    started = time.perf_counter()
    stages = stages or Stages(folder=None)
    if split is None:
        split = divide(table, seed=plan.seed)
    content = _content(split, plan)

    progress("checking the data", 0, 1)
    findings = check_split(split, smallest_group=plan.policy.smallest_group)
    blind = stages.get("blind", content[:2], lambda: _blind(split, plan.seed))
    baseline = BlindBaseline(
        accuracy=float(blind["accuracy"]), p_value=float(blind["p_value"])
    )
    findings.append(baseline.finding(false_alarm=BLIND_FALSE_ALARM))
    progress("checking the data", 1, 1)

    progress("training the product", 0, 2)
    product: Product | None = plan.product
    made: list[Product] = []
    answers = answers_of(
        stages.get("answers", content, lambda: product_answers(split, plan, made))
    )
    product = product or (made[0] if made else None)
    findings += training_findings(answers)
    progress("training the product", 1, 2)
    null = null_answers(split, plan, answers, content, stages)
    progress("training the product", 2, 2)

    both = split.defender.join(split.reserved)
    pool, pool_chosen = None, "asked for" if plan.pool is not None else "by time"
    if plan.trainer is not None:
        plan = _with_pool(plan, split, answers.seconds, content, stages)
        if plan.pool == 0 and pool_chosen == "by time":
            findings.append(NO_TIME)
    if plan.pool and plan.trainer is not None:
        pool = train_pool(
            plan.trainer,
            both,
            models=plan.pool,
            seed=plan.seed,
            content=content,
            stages=stages,
            workers=plan.workers,
            memory=plan.memory,
            progress=progress,
        )
        plan = replace(plan, attacks=(*plan.attacks, *POOL_ATTACKS))
    sides = Sides(
        np.repeat([True, False], [len(split.defender), len(split.reserved)]),
        both.units,
        pool,
    )
    challenge = Challenge(
        probabilities=answers.probabilities,
        labels=both.target,
        features=as_numbers(both)[0][:, :-1],
        internals=answers.internals,
    )
    known = np.isin(both.row_hashes, split.defender.row_hashes)
    core = attack_and_measure(
        challenge,
        sides,
        plan,
        content,
        stages,
        progress,
        memorised=memorised_answers(both.target, known, len(both.classes)),
        null=null,
        groups=both.groups,
        pool_chosen=pool_chosen,
    )
    insider = None
    if plan.trainer is not None:
        left = 60 * plan.minutes - (time.perf_counter() - started)
        insider = play_insider(
            RetrainingRounds(
                trainer=plan.trainer,
                defender=split.defender,
                reserved=split.reserved,
                answers=answers.outputs,
                train_seed=train_seed(product_seed(plan)),
                seed=plan.seed,
            ),
            content=content,
            stages=stages,
            limit=_insider_limit(plan.policy),
            level=plan.policy.confidence,
            statements=plan.policy.statements
            if "insider" in plan.policy.decides_on
            else 1,
            most_rounds=plan.rounds,
            # Planned from the budget, not from the clock, but for what was already used.
            seconds=max(0.8 * left, 0.25 * 60 * plan.minutes),
            workers=plan.workers,
            progress=progress,
        )
    provenance, watched = _claims(plan, split, table, started, stages, progress)
    records = {
        "defender": len(split.defender),
        "reserved": len(split.reserved),
        "auxiliary": len(split.auxiliary) if split.auxiliary is not None else 0,
        "member_units": core.members,
        "nonmember_units": core.nonmembers,
    }
    dossier = _dossier(core, insider, findings, provenance, records, plan, watched)
    return AuditResult(
        dossier=dossier,
        per_record=per_record_risk(core, sides, both.ids),
        product=product,
    )


def _claims(
    plan: AuditPlan,
    split: Split,
    table: Table,
    started: float,
    stages: Stages,
    progress: Progress,
) -> tuple[Provenance, Identification | None]:
    """Return where the product comes from, what is claimed of it, and what watching its training shows of the claim."""
    guarantee = plan.provenance.guarantee
    if plan.product is None:
        guarantee = _guarantee(plan.trainer, len(split.defender))
    claimed = plan.claimed_epsilon
    if claimed is None:
        claimed = plan.provenance.claimed_epsilon
    if claimed is None and guarantee is not None and guarantee.holds:
        claimed = guarantee.epsilon
    watched = plan.watched
    if watched is None and claimed is not None:
        left = 60 * plan.minutes - (time.perf_counter() - started)
        watched = watch_training(
            plan.trainer,
            split.defender,
            guarantee=guarantee,
            claimed=claimed,
            runs=WATCHED if plan.watch is None else plan.watch,
            seconds=max(left, 0.2 * 60 * plan.minutes) if plan.watch is None else None,
            seed=plan.seed,
            workers=plan.workers,
            level=plan.policy.confidence,
            stages=stages,
            progress=progress,
        )
    provenance = replace(
        plan.provenance,
        recipe=plan.trainer.recipe if plan.trainer else plan.provenance.recipe,
        data_fingerprint=table.fingerprint,
        seed=plan.seed if plan.product is None else plan.provenance.seed,
        classes=table.classes,
        versions=versions(),
        claimed_epsilon=claimed,
        guarantee=guarantee,
    )
    return provenance, watched


def outputs_dossier(
    challenge: Challenge,
    *,
    tags: NDArray[np.bool_],
    findings: Sequence[Finding],
    policy: Policy,
    seed: int,
    provenance: Provenance,
    subject: Mapping[str, str],
    repeat: str,
) -> Dossier:
    """Audit answers without a model: the outsider's attacks, controls and decision alone."""
    plan = AuditPlan(
        trainer=None,
        product=None,
        answers_only=True,
        attacks=OUTPUT_ATTACKS,
        pool=0,
        policy=policy,
        seed=seed,
        subject=subject,
        repeat=repeat,
    )
    sides = Sides(tags, np.arange(len(tags)))
    rows = np.flatnonzero(~tags)
    classes = challenge.probabilities.shape[1]
    core = attack_and_measure(
        challenge,
        sides,
        plan,
        (),
        Stages(folder=None),
        silent,
        memorised=memorised_answers(challenge.labels, tags, classes),
        null=Null(
            probabilities=challenge.probabilities[rows], what=NULL_HALVES, rows=rows
        ),
        groups=None,
    )
    records = {
        "defender": int(tags.sum()),
        "reserved": int((~tags).sum()),
        "auxiliary": 0,
        "member_units": core.members,
        "nonmember_units": core.nonmembers,
    }
    return _dossier(core, None, findings, provenance, records, plan)


def divide(table: Table, *, seed: int) -> Split:
    """Return the table's own parts, or divide it by unit with the run's seed."""
    if table.parts is not None:
        return Split.by_part(table)
    return Split.by_unit(table, rng=stream(seed, "split"))


def _with_pool(
    plan: AuditPlan,
    split: Split,
    seconds: float,
    content: tuple[str, ...],
    stages: Stages,
) -> AuditPlan:
    """Return the plan with the size of its pool settled, by time if none was asked for.

    The size is chosen before any result is seen and kept with the stages, so a resumed run has the same; the
    line that repeats the audit names it.
    """
    if plan.pool is not None or plan.trainer is None:
        return plan
    trainer = plan.trainer

    def choose() -> Arrays:
        one = seconds
        if (
            one == 0
        ):  # the product came from elsewhere: train one to know how long it takes
            started = time.perf_counter()
            trainer.train(split.defender, seed=train_seed(plan.seed))
            one = time.perf_counter() - started
        size = choose_size(
            one,
            seconds=60 * plan.minutes,
            workers=plan.workers,
            records=len(split.defender) + len(split.reserved),
            classes=len(split.defender.classes),
            memory=plan.memory,
            # Modules of the user may have to be trained one by one.
            together=trainer.together if isinstance(trainer, NetworkTrainer) else 1,
        )
        return {"models": np.array(size)}

    models = int(stages.get("pool/plan", content, choose)["models"])
    if plan.repeat.endswith(")"):
        repeat = f"{plan.repeat[:-1]}, pool={models})"
    else:
        repeat = f"{plan.repeat} --pool {models}" if plan.repeat else ""
    return replace(plan, pool=models, repeat=repeat)


def _content(split: Split, plan: AuditPlan) -> tuple[str, ...]:
    """Return what every stage depends on."""
    auxiliary = split.auxiliary.fingerprint if split.auxiliary is not None else "none"
    recipe = "" if plan.trainer is None else _recipe_content(plan.trainer)
    return (
        f"{split.defender.fingerprint}/{split.reserved.fingerprint}/{auxiliary}",
        str(plan.seed),
        recipe,
        plan.product_content,
    )


def _recipe_content(trainer: Trainer) -> str:
    """Return the recipe and, if it is the user's own code, that code's content."""
    source, prepared = (
        getattr(trainer, "source", ""),
        getattr(trainer, "preprocess", ""),
    )
    return f"{trainer.recipe} {source} {prepared}"


def _guarantee(trainer: Trainer | None, rows: int) -> Guarantee | None:
    """Return what a private trainer guarantees about a product trained on so many rows."""
    if not isinstance(trainer, PrivateNetworkTrainer | PrivateModuleTrainer):
        return None
    return guarantee_of(
        trainer.private,
        rows=rows,
        delta=1 / (10 * rows),
        relation=Relation.ADD_REMOVE,
    )


def _blind(split: Split, seed: int) -> Arrays:
    found = blind_baseline(split, rng=stream(seed, "blind"))
    return {"accuracy": np.array(found.accuracy), "p_value": np.array(found.p_value)}


def _insider_limit(policy: Policy) -> float:
    limits = policy.limits
    return limits.insider_privacy_at_least or limits.privacy_at_least or 0.9


def _dossier(
    core: Outsider,
    insider: InsiderEvidence | None,
    findings: Sequence[Finding],
    provenance: Provenance,
    records: Mapping[str, int],
    plan: AuditPlan,
    watched: Identification | None = None,
) -> Dossier:
    claimed, guarantee = provenance.claimed_epsilon, provenance.guarantee
    bound = None if claimed is None else vulnerability_bound(claimed)
    if guarantee is not None and guarantee.holds:
        bound = guarantee.advantage  # exact, delta included
    evidence = replace(core.evidence, insider=insider, vulnerability_bound=bound)
    epsilons = three_epsilons(
        claimed=claimed,
        guarantee=guarantee,
        trainer=plan.trainer,
        rows=records["defender"],
        evidence=evidence,
        watched=watched,
    )
    decision = decide(
        plan.policy,
        evidence,
        controls=core.controls,
        stops=[f.text for f in findings if f.severity == Severity.STOP],
        claimed_epsilon=provenance.claimed_epsilon,
        claimed_delta=guarantee.delta if guarantee is not None else 0.0,
        claimed_relation=guarantee.relation if guarantee is not None else "",
        watched=None if watched is None else epsilons,
        people_repeat=records["defender"] > records["member_units"],
    )
    warnings = []
    if "insider" not in plan.policy.decides_on:
        warnings.append(insider_warning(insider))
    return Dossier(
        decision=decision,
        summary=summarise(decision, evidence, plan.policy),
        warnings=tuple(warnings),
        evidence=evidence,
        controls=core.controls,
        findings=tuple(findings),
        policy=plan.policy,
        provenance=provenance,
        seed=plan.seed,
        records=records,
        subject=plan.subject,
        repeat=plan.repeat,
        epsilons=epsilons,
        watched=watched,
    )


def results_folder(out: Path) -> Path:
    """Return the folder in which an unfinished audit keeps its stages."""
    return out / ".unfinished"
