"""Claimed, proven and audited epsilon of a product that claims privacy."""

import math
from dataclasses import replace

from reticent.account import Guarantee, PrivateTraining, Relation, trade_off
from reticent.data import Table
from reticent.evidence import Epsilons, Estimate, Evidence, Identification
from reticent.pipeline._identify import WatchPlan, identify
from reticent.pipeline._neighbour import Mislabelled, PrivateTrainer
from reticent.pipeline._plan import Progress
from reticent.pipeline._stages import Stages
from reticent.product import Trainer
from reticent.train import (
    PrivateModuleTrainer,
    PrivateNetworkTrainer,
    guarantee_of,
)

__all__ = ["three_epsilons", "watch_training"]


def watch_training(
    trainer: Trainer | None,
    members: Table,
    *,
    guarantee: Guarantee | None,
    claimed: float,
    runs: int,
    seconds: float | None,
    seed: int,
    workers: int,
    level: float,
    stages: Stages,
    progress: Progress,
) -> Identification | None:
    """Watch the training of a product whose recipe is known; None if it has no steps to watch, or none are asked for."""
    private = _private(trainer)
    if private is None or runs == 0:
        return None
    plan = WatchPlan(
        trainer=private,
        neighbour=Mislabelled(),
        relation=_relation(guarantee),
        runs=runs,
        seconds=seconds,
        claimed=claimed,
        claimed_by=_by(guarantee),
        delta=None if guarantee is None else guarantee.delta,
        level=level,
        seed=seed,
        workers=workers,
    )
    # One record more, so that the table with the canary has the stated number of rows.
    return identify(members, plan, stages=stages, progress=progress)


def three_epsilons(
    *,
    claimed: float | None,
    guarantee: Guarantee | None,
    trainer: Trainer | None,
    rows: int,
    evidence: Evidence,
    watched: Identification | None,
) -> Epsilons | None:
    """Return the three epsilons; None if nothing is claimed.

    Audited is what an adversary that watched the training has shown, or else what the attacks on the product have.

    Parameters
    ----------
    claimed : float or None
        What whoever trained the product says.
    guarantee : Guarantee or None
        The guarantee that goes with it.
    trainer : Trainer or None
        The recipe.
    rows : int
        Records that trained the product.
    evidence : Evidence
        What attacks on the product have shown.
    watched : Identification or None
        What watching the training has shown.
    """
    if claimed is None:
        return None
    proven, says = _proven(trainer, guarantee, rows, watched)
    if watched is not None:
        return replace(watched.epsilons, claimed=claimed, proven=proven, proven_by=says)
    delta = 0.0 if guarantee is None else guarantee.delta
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
            high=math.inf,
            level=evidence.epsilon.level,
            method=evidence.epsilon.method,
        ),
        ceiling=_at_delta(evidence.epsilon_ceiling, delta, evidence.epsilon_ceiling),
        method="attacks on the finished product",
    )


def _at_delta(shown: float, delta: float, ceiling: float) -> float:
    """Return what an epsilon shown for delta 0 is worth at a delta.

    A true-positive rate is at most e^epsilon times the false-positive rate plus delta, and no false-positive rate
    below e^-ceiling can be shown.
    """
    if delta == 0 or shown > 500:
        return shown
    left = math.exp(shown) - delta * math.exp(ceiling)
    return math.log(left) if left > 1 else 0.0


def _proven(
    trainer: Trainer | None,
    guarantee: Guarantee | None,
    rows: int,
    watched: Identification | None,
) -> tuple[float | None, str]:
    """Return what the recipe guarantees, worked out again, and how; None if it is not known."""
    private = _private(trainer)
    if private is not None and guarantee is not None:
        recipe = private.private
        if recipe.noise != "secret":
            return (
                None,
                "the noise is drawn from a seed: whoever knows the seed can subtract it",
            )
        found = guarantee_of(
            recipe, rows=rows, delta=guarantee.delta, relation=_relation(guarantee)
        )
        epsilon = found.epsilon if math.isfinite(found.epsilon) else None
        return epsilon, "privacy loss distribution of the recipe, worked out again"
    if watched is not None:
        return watched.epsilons.proven, watched.epsilons.proven_by
    if guarantee is not None:
        if not guarantee.holds:
            return None, _void(guarantee.caveats, guarantee.epsilon)
        steps = PrivateTraining(
            noise_multiplier=guarantee.noise_multiplier,
            sampling_rate=guarantee.sampling_rate,
            steps=guarantee.steps,
            relation=_relation(guarantee),
        )
        return trade_off(steps).epsilon(guarantee.delta), (
            "privacy loss distribution of the noise, sampling and steps that are stated with it"
        )
    return None, "the recipe of the training is not known to this audit"


def _void(caveats: tuple[str, ...], epsilon: float) -> str:
    """Return why there is no guarantee, and what it would be otherwise."""
    return f"void: {'; '.join(caveats)}. Without that it would be {epsilon:.2f}"


def _private(trainer: Trainer | None) -> PrivateTrainer | None:
    if isinstance(trainer, PrivateNetworkTrainer | PrivateModuleTrainer):
        return trainer
    return None


def _relation(guarantee: Guarantee | None) -> Relation:
    return Relation.ADD_REMOVE if guarantee is None else Relation(guarantee.relation)


def _by(guarantee: Guarantee | None) -> str:
    return (
        "stated with the audit"
        if guarantee is None
        else f"whoever trained it: {guarantee.mechanism}"
    )
