"""The one pipeline: table, split, product, attacks, evidence, statements, decision, dossier."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.audits import Kind, Sides
from reticent.data import Finding, Severity, Split, Table
from reticent.evidence import (
    Epsilons,
    Evidence,
    InsiderEvidence,
    LongStatistic,
    Measure,
    Seen,
    Statement,
    individual_privacy,
    pair_wins,
)
from reticent.pipeline._advice import gap_of_missing, plain_gap, remedies, unneeded
from reticent.pipeline._again import learn_again
from reticent.pipeline._ask import ask_null, training_findings
from reticent.pipeline._attributes import guess_attributes
from reticent.pipeline._begin import begin
from reticent.pipeline._case import Case
from reticent.pipeline._claims import (
    Claims,
    examine_claims,
    stated_claims,
    three_epsilons,
)
from reticent.pipeline._controls import judge_controls
from reticent.pipeline._file import Files, open_beside, open_files
from reticent.pipeline._gather import Gathered, Heard, gather, posterior_of
from reticent.pipeline._insider import play_insider
from reticent.pipeline._look import (
    blind_evidence,
    look_at_data,
    look_at_provenance,
    what_is_not_kept,
    what_is_not_learned,
)
from reticent.pipeline._plan import (
    INSIDER_ATTACK,
    AuditPlan,
    AuditResult,
    PerRecord,
)
from reticent.pipeline._pool import (
    People,
    PoolSize,
    choose_pool,
    measure_pool,
    train_pool,
)
from reticent.pipeline._score import Arena, score_all
from reticent.pipeline._statistics import plan_statistics
from reticent.policy import Control, Gap, Policy, decide
from reticent.report import (
    Binding,
    Dossier,
    access_of,
    aside_warning,
    insider_warning,
    lone_row_sentence,
    policy_digest,
    summarise,
)
from reticent.run import Run, Timetable, now

__all__ = [
    "gaps_of",
    "measure_all",
    "open_findings",
    "outputs_dossier",
    "results_folder",
    "rows_of",
    "run_audit",
    "warnings_of",
]

MOST_UNREAD = 3  # places in a sentence; more would hide the rest
NULL_HALVES = "One half of the non-members, set against the other,"


def run_audit(
    table: Table,
    plan: AuditPlan,
    *,
    run: Run | None = None,
    split: Split | None = None,
) -> AuditResult:
    """Audit a product: from a table to a dossier.

    Parameters
    ----------
    table : Table
        The records.
    plan : AuditPlan
        What to audit and by which rules.
    run : Run, optional
        Seed, store of finished stages, effort, and who is told of progress; by default one that keeps nothing.
    split : Split, optional
        Parts; by default the table's own, or a random split by unit.
    """
    run = run or Run()
    run.effort.workers.warm(run_audit)
    case = Case.of(table, plan, split, run)
    about_data = look_at_data(case, run)
    about_recipe = [*what_is_not_kept(case, run), *what_is_not_learned(case, run)]
    begun = begin(case, stated_claims(case, table).provenance, run)
    answers, product = begun.answers, begun.product
    about_members, blind = blind_evidence(case, begun.blind, run)
    findings = [*about_data, about_members, *about_recipe, *look_at_provenance(case)]
    findings += training_findings(answers, is_released=not plan.policy.queries_only)
    # The control is asked before anything is attacked, so that its choice cannot depend on a result.
    null = ask_null(case, begun, run)
    # The size of the pool follows from time and memory alone and is fixed here, before any score exists (decision
    # 0012).
    size = choose_pool(case, answers, run)
    findings += size.findings()
    pool = train_pool(case, size, answers.values.shape[1], run)
    files = open_files(case, begun, null, run) if case.kind.has_file else Files()
    findings += files.findings
    arena = Arena.of(case, answers, null, files, pool=pool, run=run)
    scored = score_all(plan, arena, run)
    groups = case.both.groups
    # Which statistics end before the deadline is fixed here, by their time alone; what comes between leaves them that time.
    statistics = plan_statistics(plan, arena, groups, run)
    between = replace(run, effort=replace(run.effort, reserved=statistics.seconds))
    posterior, _ = posterior_of(plan.kind, scored, arena.product.sides, run)
    people = People(posterior=posterior, groups=groups, late=frozenset(statistics.late))
    pool_evidence = measure_pool(plan, arena, size, people, run)
    # After the attacks of the outsider: the insider takes what time they have left, and at least its own share.
    insider = play_insider(case, answers, begun.replica, between)
    claims = examine_claims(case, table, between)
    heard = Heard(
        insider=insider,
        pool=pool_evidence,
        vulnerability_bound=claims.vulnerability_bound,
        groups=groups,
        members=case.split.defender,
        late=_late(statistics, claims, insider, plan, run),
        blind=blind,
        attributes=guess_attributes(case, product, between),
        recipe=learn_again(case, size, between),
        beside=open_beside(case),
    )
    gathered = gather(plan, arena, scored, heard, run)
    dossier = _dossier(
        plan,
        gathered,
        judge_controls(scored, plan.policy, plan.kind, what=null.what),
        findings,
        _Background(
            claims=claims,
            epsilons=three_epsilons(claims, gathered.evidence),
            records=_records(case, gathered.evidence),
            repeat=_repeat(plan, size),
        ),
        run,
    )
    per_record = _per_record(gathered, case.sides, case.both.ids)
    return AuditResult(dossier=dossier, per_record=per_record, product=product, files=begun.files)  # fmt: skip


def _late(
    statistics: Timetable,
    claims: Claims,
    insider: InsiderEvidence | None,
    plan: AuditPlan,
    run: Run,
) -> dict[str, str]:
    """Return everything that the deadline left no time for, and why."""
    late, deadline = dict(statistics.late), run.effort.deadline
    if deadline is None:
        return late
    no_time = f"the deadline of {deadline:g} minutes leaves no time for it"
    if insider is None and plan.trainer is not None:
        late[LongStatistic.INSIDER] = no_time
    if claims.is_late:
        late[LongStatistic.WATCHING] = no_time
    return late


def outputs_dossier(
    challenge: Any,
    *,
    tags: NDArray[np.bool_],
    plan: AuditPlan,
    findings: Sequence[Finding],
    run: Run,
) -> Dossier:
    """Audit answers without a model: the outsider's attacks, controls and decision alone.

    Parameters
    ----------
    challenge : challenge
        Answers and true classes.
    tags : array of bool
        Whether each record is a member.
    plan : AuditPlan
        Policy, provenance and names.
    findings : sequence of Finding
        What the reader must know of the data.
    run : Run
        Seed and workers.
    """
    arena = Arena.of_outputs(plan.kind, challenge, tags, run=run)
    scored = score_all(plan, arena, run)
    claims = Claims(provenance=plan.provenance)
    # Without a trainer there is neither a pool nor an insider, and nothing to watch.
    heard = Heard(vulnerability_bound=claims.vulnerability_bound)
    gathered = gather(plan, arena, scored, heard, run)
    evidence = gathered.evidence
    return _dossier(
        plan,
        gathered,
        judge_controls(scored, plan.policy, plan.kind, what=NULL_HALVES),
        findings,
        _Background(
            claims=claims,
            epsilons=three_epsilons(claims, evidence),
            records={
                "defender": int(tags.sum()),
                "reserved": int((~tags).sum()),
                "auxiliary": 0,
                "member_units": evidence.members,
                "nonmember_units": evidence.nonmembers,
            },
            repeat=plan.repeat,
        ),
        run,
    )


@dataclass(frozen=True, kw_only=True)
class _Background:
    """What a dossier contains besides evidence and decision."""

    claims: Claims
    epsilons: Epsilons | None
    records: Mapping[str, int]
    repeat: str


def _dossier(
    plan: AuditPlan,
    gathered: Gathered,
    controls: tuple[Control, ...],
    findings: Sequence[Finding],
    background: _Background,
    run: Run,
) -> Dossier:
    evidence, policy = gathered.evidence, plan.policy
    seen = Seen(
        evidence=evidence,
        scores=gathered.scores,
        claim=background.claims.claim,
        epsilons=background.epsilons,
        was_watched=background.claims.training_counts,
        checks=background.claims.checks,
        people_repeat=background.records["defender"]
        > background.records["member_units"],
        confidence=policy.confidence,
        statements=policy.statements(plan.measures),
        queries_only=policy.queries_only,
        rows=rows_of(background.records),
    )
    statements = measure_all(plan.measures, policy, seen, run)
    decision = decide(
        policy,
        statements,
        controls=controls,
        stops=[f.text for f in findings if f.severity == Severity.STOP],
        gaps=[
            *open_findings(findings),
            *gaps_of(
                policy, plan.kind, evidence, missing=partial(gap_of_missing, plan)
            ),
        ],
        remedies=remedies(plan, evidence),
    )
    return Dossier(
        kind=plan.kind.name,
        decision=decision,
        summary=summarise(decision, evidence, policy, statements, kind=plan.kind.name),
        warnings=warnings_of(plan.kind, policy, evidence),
        statements=statements,
        evidence=evidence,
        controls=controls,
        findings=tuple(findings),
        policy=policy,
        provenance=background.claims.provenance,
        seed=run.seed,
        records=background.records,
        subject=plan.subject,
        repeat=background.repeat,
        epsilons=background.epsilons,
        watched=background.claims.watched,
        binding=_binding(plan, background, evidence),
        kind_sections=plan.kind.sections,
        own_sections=plan.own_sections,
    )


def _binding(plan: AuditPlan, background: _Background, evidence: Evidence) -> Binding:
    """Return what the dossier is about."""
    return Binding(
        made=now(),
        reticent=version("reticent"),
        by=plan.by,
        product=plan.product_digest,
        policy=policy_digest(plan.policy),
        table=plan.table_digest or background.claims.provenance.data_fingerprint,
        access=access_of(evidence.attacks, was_watched=background.claims.watched_here),
    )


def measure_all(
    measures: Sequence[Measure], policy: Policy, seen: Seen, run: Run
) -> tuple[Statement, ...]:
    """Return what every measure says, in the order of the measures.

    Parameters
    ----------
    measures : sequence of Measure
        What is measured.
    policy : Policy
        The limits.
    seen : Seen
        Evidence and claims.
    run : Run
        A stream for each measure.
    """
    statements = []
    for measure in measures:
        limit = policy.limit(measure.name)
        statement = measure.measure(
            seen, limit=limit, rng=run.rng(f"measure/{measure.name}")
        )
        if statement is None and limit is not None and limit.judges:
            # A limit on something that says nothing stays open: silence is not safety.
            statement = measure.statement(
                f"the {measure.noun or measure.label}", None, limit=limit, seen=seen
            )
        if statement is not None:
            statements.append(statement)
    return tuple(statements)


def open_findings(findings: Sequence[Finding]) -> list[Gap]:
    """Return what was not looked at, by what was found about the data."""
    return [
        Gap(
            reason=finding.text[:1].upper() + finding.text[1:],
            to_settle="Settle what stands under 'About the data' as open, and audit again.",
        )
        for finding in findings
        if finding.severity == Severity.OPEN
    ]


def warnings_of(kind: Kind, policy: Policy, evidence: Evidence) -> tuple[str, ...]:
    """Return what the reader must know beside a verdict that does not rest on it."""
    warnings: tuple[str, ...] = ()
    # The policy does not weigh the insider, but the reader must still learn what one could do (decision 0008).
    if kind.plays_insider and not policy.decides("insider"):
        warnings = (insider_warning(evidence.insider),)
    lone = None if evidence.file is None else evidence.file.lone_row
    warnings += () if lone is None else (lone_row_sentence(lone),)
    return (*warnings, aside_warning(evidence)) if evidence.aside else warnings


def rows_of(records: Mapping[str, int]) -> int:
    """Return the rows of the user's table, by the number in each of its parts."""
    return sum(records[part] for part in ("defender", "reserved", "auxiliary"))


def gaps_of(
    policy: Policy,
    kind: Kind,
    evidence: Evidence,
    *,
    missing: Callable[[str], Gap] = plain_gap,
) -> list[Gap]:
    """Return the attacks that failed, were skipped or are missing, which rule out a release.

    Parameters
    ----------
    policy : Policy
        The attacks that it requires.
    kind : Kind
        What was audited.
    evidence : Evidence
        The attacks that were run, failed or were skipped.
    missing : callable
        Returns the gap of a required attack that was not run, by its name.
    """
    gaps = [
        Gap(
            reason=f"The attack {failure.name!r} failed ({failure.why}), so what it would have found is not known.",
            to_settle=f"Repair the attack {failure.name!r}, or leave it out.",
        )
        for failure in evidence.failed
    ]
    gaps += [
        Gap(
            reason=f"The attack {skip.name!r} was not run: {skip.why}.",
            to_settle=f"Run the attack {skip.name!r}: give it what it needs, or a later --deadline.",
        )
        for skip in evidence.skipped
    ]
    insider = evidence.insider
    if insider is not None and insider.left_out and policy.decides("insider"):
        names = " and ".join(repr(regime.name) for regime in insider.left_out)
        gaps.append(
            Gap(
                reason=f"The insider was not played in {names}: {insider.left_out[0].why}.",
                to_settle="Audit the product with its own seed: let reticent train it, or save it with reticent train.",
            )
        )
    file = evidence.file
    if file is not None and file.unread and kind.has_file and not policy.queries_only:
        more = len(file.unread) - MOST_UNREAD
        gaps.append(
            Gap(
                reason=f"What stands in the product's file could not all be read, and anything may stand there: {'; '.join(file.unread[:MOST_UNREAD])}"
                f"{f'; {more} more' if more > 0 else ''}.",
                to_settle="Take out of the product what cannot be read, or release answers to queries only.",
            )
        )
    ran = {attack.name for attack in evidence.attacks}
    ran |= {INSIDER_ATTACK} if insider is not None else set()
    # Attacks that failed or were skipped have a gap already and are not counted as missing again.
    known = {failure.name for failure in evidence.failed}
    known |= {skip.name for skip in evidence.skipped}
    ran |= {attack.name for attack in evidence.aside}
    for name in policy.required(kind.name):
        if name not in ran | known and not unneeded(policy, kind, name):
            gaps.append(missing(name))
    return gaps


def _records(case: Case, evidence: Evidence) -> dict[str, int]:
    split = case.split
    return {
        "defender": len(split.defender),
        "reserved": len(split.reserved),
        "auxiliary": len(split.auxiliary) if split.auxiliary is not None else 0,
        "member_units": evidence.members,
        "nonmember_units": evidence.nonmembers,
    }


def _repeat(plan: AuditPlan, size: PoolSize) -> str:
    """Return the line that repeats the audit; it names the size of a pool that time has chosen."""
    if size.chosen == "asked for" or not plan.repeat:
        return plan.repeat
    # A Python call ends with a parenthesis, a command line does not.
    if plan.repeat.endswith(")"):
        return f"{plan.repeat[:-1]}, pool={size.models})"
    return f"{plan.repeat} --pool {size.models}"


def _per_record(gathered: Gathered, sides: Sides, ids: NDArray[np.int64]) -> PerRecord:
    scores = sides.by_unit(gathered.best_scores)
    wins = pair_wins(scores[sides.unit_tags], scores[~sides.unit_tags])
    privacy = np.empty(len(scores))
    privacy[sides.unit_tags] = individual_privacy(wins)
    # A non-member is compared with all members in the same way: what it loses is a false alarm about it.
    privacy[~sides.unit_tags] = np.minimum(2 * (1 - wins.nonmembers), 1.0)
    posterior = np.full(len(scores), np.nan)
    if gathered.posterior is not None:
        posterior = sides.by_unit(gathered.posterior)
    return PerRecord(
        row=ids[sides.first],
        member=sides.unit_tags,
        score=scores,
        privacy=privacy,
        posterior=posterior,
    )


def results_folder(out: Path) -> Path:
    """Return the folder in which an unfinished audit keeps its stages."""
    return out / ".unfinished"
