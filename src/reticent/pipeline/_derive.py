"""Decide again by what a dossier holds: the verdict in a file is a claim, its evidence is what can be weighed."""

import math
from dataclasses import dataclass, replace

from reticent.audits import KINDS
from reticent.data import Severity
from reticent.errors import InvalidInput
from reticent.evidence import Estimate, Seen
from reticent.pipeline._audit import (
    gaps_of,
    measure_all,
    open_findings,
    rows_of,
    warnings_of,
)
from reticent.pipeline._claims import Claims
from reticent.pipeline._controls import judge_again
from reticent.policy import decide
from reticent.report import Dossier, policy_digest, summarise
from reticent.run import Run

__all__ = ["Derived", "derive_again"]

NUMBERS = ("value", "low", "high", "level")
TRAINING_MEASURE = "training_refuted"


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A dossier whose verdict follows from its evidence.

    Parameters
    ----------
    dossier : Dossier
        With statements, decision and summary worked out again; where the file said otherwise, a warning says so.
    disagreements : tuple of str
        Where the file said otherwise, in sentences.
    """

    dossier: Dossier
    disagreements: tuple[str, ...]


def derive_again(dossier: Dossier) -> Derived:
    """Return what the evidence of a dossier says by the policy in it, whatever verdict the file states.

    What reticent measures is measured again from the evidence; controls are judged by their scores; what failed, was skipped or is required
    and missing counts. Statements by measures of the user's own are taken as they stand, as are the evidence and the findings themselves: only a
    signature protects those.

    Parameters
    ----------
    dossier : Dossier
        As it was read.

    Raises
    ------
    InvalidInput
        If its parts do not fit each other.
    """
    try:
        return _derived(dossier)
    except InvalidInput:
        raise
    except (
        *(ArithmeticError, AssertionError, AttributeError, LookupError),
        *(TypeError, ValueError),
    ) as error:
        raise InvalidInput(
            f"the numbers in the dossier do not fit each other ({type(error).__name__}: {error}), so nothing follows from them; it was "
            "changed, so audit again."
        ) from error


def _derived(dossier: Dossier) -> Derived:
    kind = KINDS.get(dossier.kind)
    if kind is None:
        raise InvalidInput(
            f"the dossier is about a {dossier.kind!r}, which this version does not know; use one of {', '.join(KINDS)}."
        )
    policy, evidence, epsilons = dossier.policy, dossier.evidence, dossier.epsilons
    seen = Seen(
        evidence=evidence,
        claim=Claims(provenance=dossier.provenance).claim,
        epsilons=epsilons,
        was_watched=_counts(dossier),
        checks=() if dossier.watched is None else dossier.watched.evidence.checks,
        people_repeat=dossier.records["defender"] > dossier.records["member_units"],
        confidence=policy.confidence,
        statements=policy.statements(kind.measures),
        queries_only=policy.queries_only,
        rows=rows_of(dossier.records),
    )
    measured = measure_all(kind.measures, policy, seen, Run(seed=dossier.seed))
    ours = {measure.name for measure in kind.measures}
    own = tuple(s for s in dossier.statements if s.measure not in ours)
    controls, missing = judge_again(dossier.controls, policy, kind)
    statements = (*measured, *own)
    decision = decide(
        policy,
        statements,
        controls=controls,
        stops=[f.text for f in dossier.findings if f.severity == Severity.STOP],
        gaps=[
            *open_findings(dossier.findings),
            *gaps_of(policy, kind, evidence),
            *missing,
        ],
    )
    if decision.verdict == dossier.verdict:
        # Advice changes no verdict, and its commands are shown like the one that repeats the audit.
        decision = replace(decision, next_steps=dossier.decision.next_steps)
    derived = replace(
        dossier,
        decision=decision,
        statements=statements,
        controls=controls,
        summary=summarise(decision, evidence, policy, statements, kind=kind.name),
        warnings=warnings_of(kind, policy, evidence),
        kind_sections=kind.sections,
    )
    found = _disagreements(dossier, derived)
    return Derived(
        dossier=replace(derived, warnings=(*found, *derived.warnings)),
        disagreements=found,
    )


def _counts(dossier: Dossier) -> bool:
    """Return whether what was seen of the training is a reason: what speaks against the product always is."""
    watched, epsilons = dossier.watched, dossier.epsilons
    if epsilons is None:
        return False
    if watched is None:
        # What attacks show speaks of one product; what covers the trainer comes from running it again.
        return epsilons.audited.covers == "trainer"
    return (
        epsilons.refuted
        or bool(watched.departures)
        or dossier.statement(TRAINING_MEASURE) is not None
    )


def _disagreements(stated: Dossier, derived: Dossier) -> tuple[str, ...]:
    """Return where a file says something else than what follows from it."""
    found = []
    if stated.verdict != derived.verdict:
        found.append(
            f"The file says {stated.verdict}, but by its own evidence and policy the verdict is {derived.verdict}: it was changed, or written by "
            "a version that decided otherwise."
        )
    for statement in derived.statements:
        earlier = stated.statement(statement.measure)
        if earlier is None or _same(earlier.estimate, statement.estimate):
            continue
        found.append(
            f"The file says that {statement.words} is {earlier.estimate}, but by its own evidence it is {statement.estimate}."
        )
    binding = stated.binding
    if binding is not None and binding.policy != policy_digest(stated.policy):
        found.append(
            "The policy in the file is not the one that the audit decided by: their SHA-256 differ."
        )
    return tuple(found)


def _same(first: Estimate | None, second: Estimate | None) -> bool:
    """Return whether two estimates have the same numbers; what methods are called may differ between versions."""
    if first is None or second is None:
        return first is second
    pairs = ((getattr(first, name), getattr(second, name)) for name in NUMBERS)
    return all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
        or (math.isnan(a) and math.isnan(b))
        for a, b in pairs
    )
