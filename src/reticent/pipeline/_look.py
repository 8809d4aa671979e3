"""What the records, the recipe and the folder of a product tell without any attack."""

from reticent.attack import BlindBaseline
from reticent.data import Finding, Severity, check_split
from reticent.evidence import BlindEvidence
from reticent.pipeline._case import Case
from reticent.product import SMALLEST_GROUP, holds_plain_hash, rare_in
from reticent.run import Run

__all__ = [
    "blind_evidence",
    "look_at_data",
    "look_at_provenance",
    "what_is_not_kept",
    "what_is_not_learned",
]


def look_at_data(case: Case, run: Run) -> tuple[Finding, ...]:
    """Return what is found about the records by looking at them, and say it now: hours of training on a misunderstood column would be in vain."""
    run.tell("checking the data", 0, 1)
    findings = check_split(case.split, smallest_group=case.plan.policy.smallest_group)
    for finding in findings:
        run.say(f"{finding.severity}: {finding.text}")
    run.tell("checking the data", 1, 1)
    return tuple(findings)


def blind_evidence(
    case: Case, baseline: BlindBaseline, run: Run
) -> tuple[Finding, BlindEvidence]:
    """Return what the records alone tell about membership, and say it if that stops the audit."""
    at_random = case.split.drawn
    finding = baseline.finding(at_random=at_random)
    if finding.severity != Severity.NOTE:
        run.say(f"{finding.severity}: {finding.text}")
    return finding, _as_evidence(baseline, at_random=at_random)


def _as_evidence(baseline: BlindBaseline, *, at_random: bool) -> BlindEvidence:
    visible = baseline.visible
    return BlindEvidence(
        p_value=baseline.p_value,
        false_alarm=baseline.false_alarm,
        accuracy=baseline.accuracy,
        sign=baseline.sign,
        rows=baseline.rows,
        of_rows=baseline.of_rows,
        at_random=at_random,
        power=visible.power if visible else 0.0,
        smallest=visible.sizes if visible else {},
    )


def what_is_not_learned(case: Case, run: Run) -> tuple[Finding, ...]:
    """Say which columns and categories the preparation leaves out, because too few members have them."""
    trainer, members = case.plan.trainer, case.split.defender
    if trainer is None or case.plan.product is not None or not trainer.prepares:
        return ()
    rare = rare_in(members)
    if not rare:
        return ()
    finding = Finding(
        name="not_learned",
        severity=Severity.NOTE,
        text=f"fewer than {SMALLEST_GROUP} members have {', '.join(rare)}; the preparation does not learn them, because the product's file "
        "would name single people.",
    )
    run.say(f"{finding.severity}: {finding.text}")
    return (finding,)


def look_at_provenance(case: Case) -> tuple[Finding, ...]:
    """Return what the folder of a product tells about the table, beside the product itself."""
    if case.plan.product is None or not holds_plain_hash(case.plan.provenance):
        return ()
    return (
        Finding(
            name="plain_hash",
            severity=Severity.WARNING,
            text="the product's folder holds a plain hash of the table: whoever knows all of it but one value can try each value and compare. "
            "Delete data_fingerprint from its provenance before the folder leaves the house, and audit with a part column.",
        ),
    )


def what_is_not_kept(case: Case, run: Run) -> tuple[Finding, ...]:
    """Say which results cannot be kept, because nobody could tell whether they are still true."""
    # Where nothing is ever stored, there is nothing to say.
    if run.store.folder is None:
        return ()
    return tuple(
        Finding(
            name="not_kept",
            severity=Severity.NOTE,
            text=f"{reason.rstrip('.')}, so nothing that depends on it is kept: if this audit is interrupted, that is computed again.",
        )
        for reason in dict.fromkeys(case.content.opaque)
    )
