"""What is claimed of a product's privacy, what its recipe proves, and what was shown."""

import math
from dataclasses import dataclass, replace

from reticent.account import Guarantee, Relation, Terms
from reticent.data import Table
from reticent.evidence import (
    Check,
    Claim,
    Epsilons,
    Estimate,
    Evidence,
    Identification,
    vulnerability_bound,
)
from reticent.pipeline._case import Case
from reticent.pipeline._identify import WatchPlan, run_identification
from reticent.pipeline._neighbour import Mislabelled
from reticent.pipeline._proven import Proven, prove_again
from reticent.pipeline._reruns import Claimed, Reruns, run_again
from reticent.product import Provenance, is_trained_on, table_digest, versions
from reticent.run import Run
from reticent.train import size_class

__all__ = ["Claims", "examine_claims", "stated_claims", "three_epsilons"]

# Trainings that are watched if time allows and no number is asked for: some dozens bring the bound within a tenth of
# the exact epsilon (decision 0022).
MOST_WATCHED = 50
# Share of the audit's time that watching may take in any case, even if the earlier stages have used up all of it:
# a claim that was never put to the test would be the weakest part of the report.
LEAST_SHARE_OF_TIME = 0.2
IN_FILE = "as a file in the product's folder says"
# math.exp overflows above 709. What attacks can show grows with the logarithm of the number of records only, so no
# audit of real size comes near this.
LARGEST_EXPONENT = 500


@dataclass(frozen=True, kw_only=True)
class Claims:
    """What is claimed about a product's privacy, and what watching its training shows.

    Parameters
    ----------
    provenance : Provenance
        Where the product comes from, with what is claimed of it; its guarantee is worked out again, or None.
    watched : Identification or None
        What an adversary who watched the training found out.
    watched_here : bool
        Whether this audit has watched it; else a file in the product's folder says so.
    proven : Proven
        What the recipe guarantees, worked out again.
    is_late : bool
        Whether the training could be watched, and the deadline left no time for it.
    reruns : Reruns or None
        What was shown by running a generator again, of which no step can be watched.
    """

    provenance: Provenance
    watched: Identification | None = None
    watched_here: bool = False
    proven: Proven = Proven()  # noqa: RUF009 (it is frozen)
    is_late: bool = False
    reruns: Reruns | None = None

    @property
    def training_counts(self) -> bool:
        """Whether what was seen of the training is a reason of the decision: a stranger's file can only speak against the product."""
        watched = self.watched
        if self.reruns is not None:
            return True
        return watched is not None and (self.watched_here or watched.contradicted)

    @property
    def checks(self) -> tuple[Check, ...]:
        """What is stated of the training, put to the test by watching it."""
        return () if self.watched is None else self.watched.evidence.checks

    @property
    def claim(self) -> Claim | None:
        """The claimed epsilon, with what it is claimed under."""
        epsilon, guarantee = self.provenance.claimed_epsilon, self.provenance.guarantee
        if epsilon is None:
            return None
        if guarantee is None:
            return Claim(epsilon=epsilon)
        return Claim(
            epsilon=epsilon, delta=guarantee.delta, relation=guarantee.relation
        )

    @property
    def vulnerability_bound(self) -> float | None:
        """The largest vulnerability that the claim allows; exact, with delta, if there is a guarantee."""
        claim, guarantee = self.claim, self.provenance.guarantee
        # The exact trade-off curve gives a smaller bound than the formula for (epsilon, delta).
        if guarantee is not None and guarantee.holds:
            return guarantee.advantage
        return None if claim is None else vulnerability_bound(claim.epsilon)


def examine_claims(case: Case, table: Table, run: Run) -> Claims:
    """Return what is claimed of the product, and watch its training if that can be done.

    Parameters
    ----------
    case : Case
        What is audited.
    table : Table
        The whole table, for the provenance.
    run : Run
        Seed, store, time, workers.
    """
    claims = stated_claims(case, table)
    plan = case.plan
    watchable = None if plan.trainer is None else plan.trainer.watching()
    runs = MOST_WATCHED if plan.watch is None else plan.watch
    in_file = plan.watched
    if in_file is not None and in_file.contradicted:
        return replace(claims, watched=in_file)
    if plan.trainer is None or claims.claim is None or runs == 0:
        return replace(claims, watched=in_file)
    if watchable is None and not case.kind.can_run_again:
        return replace(claims, watched=in_file)
    if not run.effort.allows(0):
        return replace(claims, watched=in_file, is_late=True)
    guarantee = claims.provenance.guarantee
    seconds = None
    if plan.watch is None:
        least = LEAST_SHARE_OF_TIME * run.effort.seconds
        left = max(run.effort.seconds_left, least)
        # The deadline is hard; the planned minutes are not.
        seconds = min(left, run.effort.seconds_to_deadline)
    if watchable is None:
        terms = Claimed(delta=claims.claim.delta, relation=_relation(guarantee))
        reruns = run_again(case, terms, runs=plan.watch, seconds=seconds, run=run)
        return replace(claims, reruns=reruns)
    watch = WatchPlan(
        trainer=watchable,
        neighbour=Mislabelled(),
        relation=_relation(guarantee),
        runs=runs,
        seconds=seconds,
        claimed=claims.claim.epsilon,
        claimed_by=_by(guarantee),
        delta=None if guarantee is None else guarantee.delta,
        level=plan.policy.confidence,
    )
    # One record more, so that the table with the canary has the stated number of rows.
    watched = run_identification(case.split.defender, watch, run=run)
    return replace(claims, watched=watched, watched_here=True)


def stated_claims(case: Case, table: Table) -> Claims:
    """Return what the provenance, the recipe and the caller say of the product's privacy."""
    plan, stated = case.plan, case.plan.provenance
    guarantee = stated.guarantee
    # Of a product made here the guarantee is computed, of one made elsewhere it is what its file states.
    if plan.product is None and plan.trainer is not None:
        guarantee = plan.trainer.guarantee(len(case.split.defender))
    elif guarantee is None and plan.trainer is not None:
        # Whoever names the recipe of a synthetic table states what it guarantees.
        members = case.split.defender
        guarantee = plan.trainer.table_guarantee(members, Terms(delta=_usual_delta(len(members))))  # fmt: skip
    claims = [stated.claimed_epsilon]
    if guarantee is not None and guarantee.holds:
        claims.append(guarantee.epsilon)
    # Of several numbers in a file the boldest is the claim.
    claimed = min((c for c in claims if c is not None), default=None)
    if plan.claimed_epsilon is not None:
        claimed = plan.claimed_epsilon
    if guarantee is None:
        proven = Proven()
    elif plan.product is None:
        proven = prove_again(guarantee, case)
        guarantee = replace(guarantee, witnessed=True)
    else:
        proven = prove_again(guarantee, case)
        guarantee = proven.guarantee
    seed = case.seed if plan.product is None else stated.seed
    # The owner's key never vouches for a seed that a stranger may have written.
    is_known = plan.product is None or is_trained_on(stated, table)
    return Claims(
        proven=proven,
        provenance=replace(
            stated,
            recipe=plan.trainer.recipe if plan.trainer else stated.recipe,
            data_fingerprint=table_digest(table, seed=seed if is_known else None),
            seed=seed,
            classes=table.classes,
            versions=versions(),
            claimed_epsilon=claimed,
            guarantee=guarantee,
        ),
    )


def three_epsilons(claims: Claims, evidence: Evidence) -> Epsilons | None:
    """Return the three epsilons; None if nothing is claimed.

    The audited epsilon is what an adversary who watched the training has shown, or else what the attacks on the product have.

    Parameters
    ----------
    claims : Claims
        What is said of the product, and what watching its training has shown.
    evidence : Evidence
        What attacks on the product have shown.
    """
    claim, watched = claims.claim, claims.watched
    guarantee = claims.provenance.guarantee
    if claim is None:
        return None
    claimed = claim.epsilon
    proven, says = claims.proven.epsilon, claims.proven.by
    if watched is not None:
        found = watched.epsilons
        method = found.method if claims.watched_here else f"{IN_FILE}: {found.method}"
        return replace(
            found, claimed=claimed, proven=proven, proven_by=says, method=method
        )
    # A bare epsilon is taken at its word, as pure differential privacy.
    delta = 0.0 if guarantee is None else guarantee.delta
    if claims.reruns is not None:
        return Epsilons(
            delta=delta,
            relation=_relation(guarantee).value,
            claimed=claimed,
            claimed_by=_by(guarantee),
            proven=proven,
            proven_by=says,
            audited=claims.reruns.audited,
            ceiling=claims.reruns.ceiling,
            method=claims.reruns.method,
        )
    shown = _at_delta(evidence.epsilon.low, delta, evidence.epsilon_ceiling)
    return Epsilons(
        delta=delta,
        relation=_relation(guarantee).value,
        claimed=claimed,
        claimed_by=_by(guarantee),
        proven=proven,
        proven_by=says,
        audited=Estimate(
            value=shown,
            low=shown,
            # A lower bound only: attacks never show that epsilon is small.
            high=math.inf,
            level=evidence.epsilon.level,
            method=evidence.epsilon.method,
        ),
        ceiling=_at_delta(evidence.epsilon_ceiling, delta, evidence.epsilon_ceiling),
        method="attacks on the finished product",
    )


def _at_delta(shown: float, delta: float, ceiling: float) -> float:
    """Return the lower bound at a delta that follows from one shown for delta 0.

    A true-positive rate is at most e^epsilon times the false-positive rate plus delta, and no false-positive rate
    below e^-ceiling can be shown. So the bound falls by at most delta e^ceiling before the logarithm is taken.
    """
    if delta == 0 or shown > LARGEST_EXPONENT:
        return shown
    left = math.exp(shown) - delta * math.exp(ceiling)
    # A ratio of rates of at most 1 shows nothing, and no epsilon is negative.
    return math.log(left) if left > 1 else 0.0


def _usual_delta(rows: int) -> float:
    """Return a failure probability well below one person in a table of so many rows, of which the power of ten is public."""
    return 1 / (10 * size_class(rows))


def _relation(guarantee: Guarantee | None) -> Relation:
    return Relation.ADD_REMOVE if guarantee is None else Relation(guarantee.relation)


def _by(guarantee: Guarantee | None) -> str:
    return (
        "stated with the audit"
        if guarantee is None
        else f"whoever trained it: {guarantee.mechanism}"
    )
