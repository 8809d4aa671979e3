"""What the pool tells beyond the attacks on the product: spread over models, losses, groups, convergence."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from reticent.attack import (
    Attack,
    Challenge,
    Knowledge,
    LikelihoodRatio,
    RelativeRatio,
    score_targets,
)
from reticent.evidence import (
    Convergence,
    DisparityEvidence,
    LossQuantile,
    PoolEvidence,
    TargetsEvidence,
    crossed,
    disparity_of,
    loss_quantiles,
    ltu_accuracy,
    measure_targets,
    posterior_histogram,
)
from reticent.pipeline._sides import Sides
from reticent.pipeline._stages import Arrays, Stages
from reticent.policy import Policy
from reticent.pool import Pool
from reticent.run import stream

__all__ = ["measure_pool"]

# Cheap enough to be played against every model, and strong with few shadows.
QUICK: tuple[Attack, ...] = (RelativeRatio(), LikelihoodRatio())
RATES = (0.01, 0.001)
SHARES = (0.5, 0.9, 0.99, 0.999)
FEWEST_PAIRS = 3  # independent models that a comparison of groups needs
MOST_TARGETS = 64


def measure_pool(
    challenge: Challenge,
    sides: Sides,
    pool: Pool,
    posterior: NDArray[np.float64] | None,
    groups: NDArray[np.object_] | None,
    *,
    policy: Policy,
    seed: int,
    chosen: str,
    content: tuple[object, ...],
    stages: Stages,
) -> PoolEvidence:
    """Return what a pool tells about the trainer, the people and the groups.

    Parameters
    ----------
    challenge : Challenge
        The product's answers.
    sides : Sides
        Tags and units.
    pool : Pool
        The models.
    posterior : array of float or None
        Each record's predicted probability of membership.
    groups : array of object or None
        Group of each record.
    policy : Policy
        For confidence and the smallest group.
    seed : int
        Of the run.
    chosen : str
        How the size of the pool was chosen.
    content, stages
        For stages that are kept.
    """
    on_targets: dict[str, NDArray[np.float64]] = {}
    targets = np.array([], dtype=np.int64)
    for attack in QUICK:

        def play(attack: Attack = attack) -> Arrays:
            models, found = score_targets(
                attack,
                pool,
                units=sides.units,
                most=MOST_TARGETS,
                rng=stream(seed, f"targets/{attack.name}"),
            )
            by_unit = np.array([sides.by_unit(row) for row in found])
            return {"models": models, "scores": by_unit}

        arrays = stages.get(
            f"targets/{attack.name}", (*content, attack, len(pool)), play
        )
        targets = np.asarray(arrays["models"], dtype=np.int64)
        on_targets[attack.name] = np.asarray(arrays["scores"], dtype=np.float64)
    masks = pool.masks[targets][:, sides.first]
    return PoolEvidence(
        models=len(pool),
        chosen=chosen,
        targets=_targets(on_targets, masks, pool.pairs[targets], policy, seed),
        convergence=_convergence(challenge, sides, pool, policy, seed),
        losses=_losses(posterior, sides, policy),
        posterior=None
        if posterior is None
        else posterior_histogram(*sides.divide(posterior)),
        disparity=_disparity(
            on_targets["lira"], masks, pool.pairs[targets], sides, groups, policy
        ),
    )


def _targets(
    scores: Mapping[str, NDArray[np.float64]],
    masks: NDArray[np.bool_],
    pairs: NDArray[np.int64],
    policy: Policy,
    seed: int,
) -> tuple[TargetsEvidence, ...]:
    if len(np.unique(pairs)) < 2:
        return ()
    return tuple(
        measure_targets(
            name,
            values,
            masks,
            clusters=pairs,
            fpr=RATES,
            level=policy.confidence,
            rng=stream(seed, f"targets/bootstrap/{name}"),
        )
        for name, values in scores.items()
    )


def _convergence(
    challenge: Challenge, sides: Sides, pool: Pool, policy: Policy, seed: int
) -> tuple[Convergence, ...]:
    """Return what the quick attacks reach with 4, 8, 16, ... models."""
    sizes = [4]
    while 2 * sizes[-1] < len(pool):
        sizes.append(2 * sizes[-1])
    made = []
    for models in sorted({*sizes, len(pool)}):
        part = pool.first(models)
        for attack in QUICK:
            values = attack.score(
                challenge,
                knowledge=Knowledge(tags=sides.sealed(), pool=part),
                rng=stream(seed, f"convergence/{attack.name}"),
            ).values
            accuracy = ltu_accuracy(*sides.divide(values), level=policy.confidence)
            made.append(Convergence(attack=attack.name, models=models, auc=accuracy))
    return tuple(made)


def _losses(
    posterior: NDArray[np.float64] | None, sides: Sides, policy: Policy
) -> tuple[LossQuantile, ...]:
    """Return quantiles of the effective privacy loss: the log-odds of the posterior."""
    if posterior is None:
        return ()
    odds = sides.by_unit(logit(posterior.clip(1e-12, 1 - 1e-12)))
    # A quantile beyond what so many people can show is left out.
    shares = [share for share in SHARES if len(odds) * (1 - share) >= 5]
    return loss_quantiles(odds, shares=shares, level=policy.confidence)


def _disparity(
    scores: NDArray[np.float64],
    masks: NDArray[np.bool_],
    pairs: NDArray[np.int64],
    sides: Sides,
    groups: NDArray[np.object_] | None,
    policy: Policy,
) -> DisparityEvidence | None:
    if groups is None or len(np.unique(pairs)) < FEWEST_PAIRS:
        return None
    names = groups[sides.first].astype(str)
    inside, outside = names[sides.unit_tags], names[~sides.unit_tags]
    large = [
        name
        for name in np.unique(names)
        if min((inside == name).sum(), (outside == name).sum()) >= policy.smallest_group
    ]
    if len(large) < 2:
        return None
    its = np.isin(names, large)
    found = crossed(
        scores[:, its] > 0,  # a likelihood ratio above 1
        masks[:, its],
        names[its],
        clusters=pairs,
        level=policy.confidence,
    )
    return disparity_of(found, attack="lira")
