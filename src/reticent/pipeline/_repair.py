"""Find the mildest change to a model that keeps the policy, and audit it on people who took no part in the choice."""

from dataclasses import dataclass, replace

from reticent.data import Finding, Severity, Split, Table
from reticent.errors import InvalidInput
from reticent.pipeline._audit import run_audit
from reticent.pipeline._choose import mildest
from reticent.pipeline._compare import ComparePlan, run_comparison
from reticent.pipeline._defences import defences_around
from reticent.pipeline._plan import AuditPlan, AuditResult
from reticent.report import ComparisonReport
from reticent.run import Run

__all__ = ["Repaired", "run_repair"]


@dataclass(frozen=True, kw_only=True)
class Repaired:
    """What came of a repair.

    Parameters
    ----------
    comparison : ComparisonReport
        The defences, compared on one half of the people.
    taken : str
        Recipe of the mildest one that keeps the limits there; empty if none does.
    result : AuditResult or None
        Its audit on the other half; None if there was nothing to audit.
    """

    comparison: ComparisonReport
    taken: str
    result: AuditResult | None


def run_repair(table: Table, plan: AuditPlan, *, run: Run) -> Repaired:
    """Compare the usual defences around a model on one half of the people, and audit the mildest that will do on the other half.

    Parameters
    ----------
    table : Table
        The records, not divided into parts yet.
    plan : AuditPlan
        The model and the policy.
    run : Run
        Seed, store, effort.

    Raises
    ------
    InvalidInput
        If there is no recipe to change, or the table names its parts.
    """
    if plan.trainer is None or plan.product is not None:
        raise InvalidInput(
            "a product that is trained already cannot be repaired; name its recipe with --trainer and leave --product out."
        )
    if table.parts is not None:
        raise InvalidInput(
            "the table names its own parts, but a repair divides people into those who choose a defence and those who judge it; leave --part out."
        )
    halves = Split.by_unit(table, rng=run.rng("repair"), fractions=(0.5, 0.5, 0.0))
    choosing, judging = halves.defender, halves.reserved
    defences = defences_around(plan.trainer, rows=len(choosing) // 2)
    report = run_comparison(
        choosing,
        ComparePlan(
            candidates=defences,
            policy=plan.policy,
            models=plan.pool or None,
            subject=dict(plan.subject),
            repeat=plan.repeat,
        ),
        run=run,
    )
    taken = mildest(plan.policy, report.comparison)
    if not taken:
        return Repaired(comparison=report, taken="", result=None)
    trainer = next(d.trainer for d in defences if d.trainer.recipe == taken)
    subject = {**plan.subject, "product": trainer.recipe}
    result = run_audit(
        judging, replace(plan, trainer=trainer, subject=subject), run=run
    )
    return Repaired(
        comparison=report, taken=taken, result=_with_finding(result, report, taken)
    )


def _with_finding(
    result: AuditResult, report: ComparisonReport, taken: str
) -> AuditResult:
    """Return the audit with a note on where its recipe comes from."""
    words = next(d.words for d in report.defences if d.recipe == taken)
    finding = Finding(
        name="repair",
        severity=Severity.NOTE,
        text=f"this recipe ({words}) was chosen among {len(report.defences)} defences on {report.comparison.people:,} other people; nobody who is audited here took "
        "part in the choice.",
    )
    dossier = replace(result.dossier, findings=(*result.dossier.findings, finding))
    return replace(result, dossier=dossier)
