"""Report on a training that another library ran: belief, advantage and the three epsilons of an Opacus training."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reticent.account import Relation
from reticent.errors import InvalidInput
from reticent.evidence import Check, Identification, stated_fact
from reticent.pipeline._watched import (
    Claim,
    Words,
    identification,
    training_checks,
    watched_evidence,
)
from reticent.pool import Trace, Truth

if TYPE_CHECKING:
    from reticent.train.private.observer import OpacusObserver
    from reticent.train.private.opacus import OpacusClaim

__all__ = ["check_observed", "report_observed"]


def report_observed(
    observers: "OpacusObserver | Sequence[OpacusObserver]",
    claim: "OpacusClaim",
    *,
    belief: float = 0.9,
    level: float = 0.95,
    name: str = "a training by Opacus",
    neighbour: str = "the record that was watched for",
) -> Identification:
    """Return what an adversary who watched one or several Opacus runs came to believe.

    Saved as ``identification.json`` in the product's folder, it is part of the product's audit.

    Parameters
    ----------
    observers : OpacusObserver, or several
        Each has watched one run of the same training, with or without the record.
    claim : OpacusClaim
        What Opacus claims about it.
    belief : float
        The share of runs in which the belief in the truth exceeds this value is reported.
    level : float
        Confidence, in (0, 1).
    name, neighbour : str
        What the report calls the training, and the record.

    Returns
    -------
    Identification
        For add/remove neighbours.
    """
    some = _same_training(observers)
    traces = [observer.seen() for observer in some]
    relation = Relation.ADD_REMOVE
    # A claim may hold for one relation and be void for the other, as with a denominator that depends on the rows.
    void = relation in claim.void
    one, two = some[0].denominators
    warnings = claim.caveats
    if one != two:
        warnings = (
            f"sums are divided by {one} with the record and by {two} without it, so the scale of what is released tells the tables apart",
            # The observed denominators replace the general caveat about them.
            *(c for c in claim.caveats if "divided" not in c),
        )
    trace = Trace.join([trace for trace, _ in traces])
    evidence = watched_evidence(
        trace,
        Truth.join([truth for _, truth in traces]),
        stated=some[0].stated,
        delta=claim.delta,
        belief=belief,
        level=level,
    )
    evidence = replace(
        evidence,
        checks=(*_facts(some, claim), *evidence.checks),
        trusted=(*evidence.trusted, *_also_trusted(some)),
    )
    return identification(
        trace,
        evidence,
        claim=Claim(
            claimed=claim.epsilon,
            claimed_by=f"the accountant {claim.accountant} of Opacus",
            proven=None if void else claim.proven_epsilon(relation),
            says=f"void: {'; '.join(warnings)}. Without that it would be {claim.proven_epsilon(relation):.2f}"
            if void
            else "privacy loss distribution of the steps it has counted",
        ),
        words=Words(
            relation=relation.value,
            sensitivity="global",
            neighbour=neighbour,
            recipe=name,
            rows=some[0].rows,
            warnings=warnings,
            subject={"product": name},
        ),
    )


def check_observed(
    observers: "OpacusObserver | Sequence[OpacusObserver]",
    claim: "OpacusClaim",
    *,
    level: float = 0.95,
) -> tuple[Check, ...]:
    """Return whether one or several Opacus runs did what is stated of them, without beliefs and epsilons.

    These are the checks of :func:`report_observed`, in a small part of its time.

    Parameters
    ----------
    observers, claim
        As in :func:`report_observed`.
    level : float
        Confidence of the whole report, in (0, 1), of whose error the checks get a fiftieth.
    """
    some = _same_training(observers)
    traces = [observer.seen() for observer in some]
    return (
        *_facts(some, claim),
        *training_checks(
            Trace.join([trace for trace, _ in traces]),
            Truth.join([truth for _, truth in traces]),
            level=level,
        ),
    )


def _same_training(
    observers: "OpacusObserver | Sequence[OpacusObserver]",
) -> "list[OpacusObserver]":
    some = list(observers) if isinstance(observers, Sequence) else [observers]
    if len({observer.steps for observer in some}) != 1:
        raise InvalidInput(
            f"the runs have {', '.join(str(o.steps) for o in some)} steps, so they are not the same training; watch whole runs of one recipe."
        )
    return some


def _facts(
    observers: "Sequence[OpacusObserver]", claim: "OpacusClaim"
) -> tuple[Check, ...]:
    """Check what needs no statistics: every step was seen, its sums were formed in the open, and all of it was accounted for."""
    steps = observers[0].steps
    past = sum(observer.unseen_steps for observer in observers)
    hidden = sum(o.unmeasured_steps for o in observers if o.replayed)
    counted = sum(times for _, _, times in claim.history)
    used = min(min(observer.multipliers) for observer in observers)
    accounted = min(noise for noise, _, _ in claim.history)
    rate = max(share for _, share, _ in claim.history)
    drawn = observers[0].stated.sampling_rate
    apart = max(observer.apart_in_batch for observer in observers)
    return (
        stated_fact(
            "steps",
            "every step of the weights is a step that noise was added to",
            f"{past} of {sum(o.steps for o in observers) + past} steps went past it",
            true=past == 0,
        ),
        stated_fact(
            "sums",
            "gradients of single records are clipped and summed by the optimiser's own accumulation",
            f"in {hidden} of {sum(o.steps for o in observers)} steps it summed something else, so the record could not be taken out again",
            true=hidden == 0,
        ),
        stated_fact(
            "gradient",
            "the record's gradient in a batch is the one that it has alone, by the loss that the observer was given",
            f"up to {apart:.2g} of its length apart",
            true=not any(observer.is_mixed for observer in observers),
        ),
        stated_fact(
            "accounting",
            "every step is accounted for with the noise and the sampling that it had",
            f"{counted} steps with noise {accounted:.4g} and rate {rate:.4g} are accounted for, {steps} with {used:.4g} and {drawn:.4g} were taken",
            # One part in a million is rounding.
            true=counted >= steps
            and accounted <= used * (1 + 1e-6)
            and rate >= drawn * (1 - 1e-6),
        ),
    )


def _also_trusted(observers: "Sequence[OpacusObserver]") -> tuple[str, ...]:
    """Return what could not be checked in these very runs."""
    notes = []
    bounds = [bound for observer in observers for bound in observer.bounds]
    if min(bounds) != max(bounds):
        notes.append(
            f"the clipping bound changed between {min(bounds):.3g} and {max(bounds):.3g} during the training, by a rule that does not look at the records"
        )
    if not all(observer.replayed for observer in observers):
        notes.append(
            "ghost clipping keeps no gradient of a single record, so the record's share is the stated one and was not measured"
        )
    moved = sum(observer.moved_outside for observer in observers)
    if moved:
        notes.append(
            f"{moved} times the weights were changed between two steps, by something that does not look at the records"
        )
    if any(observer.is_random for observer in observers):
        notes.append(
            "some layers are random, so whether the record's gradient in a batch is the one it has alone could not be checked"
        )
    copies = max(observer.copies for observer in observers)
    if copies > 1:
        notes.append(
            f"{copies} rows equal the record, and one of them was taken to be it"
        )
    compared = min(observer.steps_compared for observer in observers)
    if compared < observers[0].steps:
        notes.append(
            f"only the first {compared:,} of {observers[0].steps:,} steps were compared with each other"
        )
    return tuple(notes)
