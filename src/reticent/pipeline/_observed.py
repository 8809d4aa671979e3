"""Report on a training that another library ran: belief, advantage and the three epsilons of an Opacus training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reticent.account import Relation
from reticent.errors import InvalidInput
from reticent.evidence import Identification
from reticent.pipeline._watched import Claim, Words, identification, watched_evidence
from reticent.pool import Trace, Truth

if TYPE_CHECKING:
    from reticent.train.private.observer import OpacusObserver
    from reticent.train.private.opacus import OpacusClaim

__all__ = ["report_observed"]


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
    some = list(observers) if isinstance(observers, Sequence) else [observers]
    if len({observer.steps for observer in some}) != 1:
        raise InvalidInput(
            f"the runs have {', '.join(str(o.steps) for o in some)} steps, so they are not the same training; watch whole runs of one recipe."
        )
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
