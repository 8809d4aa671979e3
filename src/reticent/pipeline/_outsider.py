"""Run the outsider's attacks on product and controls; turn scores into evidence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reticent.attack import (
    Attack,
    Challenge,
)
from reticent.evidence import (
    Calibration,
    Evidence,
    GroupEvidence,
    best_of,
    calibration,
    epsilon_ceiling,
    individual_histogram,
    individual_privacy,
    measure_attack,
    measure_groups,
    pair_wins,
    privacy_from_accuracy,
    score_histogram,
    smallest_visible_leak,
    split_level,
    strongest,
    theorem_1,
    theorem_2,
    utility,
)
from reticent.pipeline._answers import Null
from reticent.pipeline._controls import memorised_internals, memorising, unrelated
from reticent.pipeline._many import measure_pool
from reticent.pipeline._plan import (
    WHITE_BOX_ATTACKS,
    AuditPlan,
    PerRecord,
    Progress,
)
from reticent.pipeline._sides import Sides
from reticent.pipeline._stages import Arrays, Stages
from reticent.pipeline._worst import aware_of_groups, worst_cases
from reticent.policy import Control, Policy
from reticent.run import stream

__all__ = ["Outsider", "attack_and_measure", "per_record_risk"]


@dataclass(frozen=True, kw_only=True)
class Outsider:
    """What follows from answers alone, before the insider is heard."""

    evidence: Evidence
    controls: tuple[Control, ...]
    best_scores: NDArray[np.float64]
    posterior: NDArray[np.float64] | None

    @property
    def members(self) -> int:
        return self.evidence.members

    @property
    def nonmembers(self) -> int:
        return self.evidence.nonmembers


def score_all(
    challenge: Challenge,
    attacks: Sequence[Attack],
    sides: Sides,
    *,
    seed: int,
    name: str,
    probabilities: dict[str, NDArray[np.float64]] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Return the scores of every attack, one per record."""
    made = {}
    for attack in attacks:
        scores = attack.score(
            challenge,
            knowledge=sides.knowledge(),
            rng=stream(seed, f"attack/{name}/{attack.name}"),
        )
        made[attack.name] = scores.values
        if probabilities is not None and scores.probabilities is not None:
            probabilities[attack.name] = scores.probabilities
    return made


def attack_and_measure(
    challenge: Challenge,
    sides: Sides,
    plan: AuditPlan,
    content: tuple[str, ...],
    stages: Stages,
    progress: Progress,
    *,
    memorised: NDArray[np.float64],
    null: Null,
    groups: NDArray[np.object_] | None,
    pool_chosen: str = "asked for",
) -> Outsider:
    """Run the outsider's attacks on product and controls; turn scores into evidence.

    Whoever holds the file of a product that can be opened is an outsider who looks inside.
    """
    if challenge.internals is not None:
        known = {attack.name for attack in plan.attacks}
        added = [attack for attack in WHITE_BOX_ATTACKS if attack.name not in known]
        plan = replace(plan, attacks=(*plan.attacks, *added))
    policy = plan.policy
    total = len(plan.attacks) + 2
    scores: dict[str, NDArray[np.float64]] = {}
    predicted: dict[str, NDArray[np.float64]] = {}
    for number, attack in enumerate(plan.attacks):
        progress("attacking", number, total)

        def make(attack: Attack = attack) -> Arrays:
            own: dict[str, NDArray[np.float64]] = {}
            values = score_all(
                challenge,
                [attack],
                sides,
                seed=plan.seed,
                name="product",
                probabilities=own,
            )
            made: Arrays = {"values": values[attack.name]}
            if attack.name in own:
                made["probabilities"] = own[attack.name]
            return made

        arrays = stages.get(
            f"scores/{attack.name}", (*content, attack, plan.pool), make
        )
        scores[attack.name] = np.asarray(arrays["values"], dtype=np.float64)
        if "probabilities" in arrays:
            predicted[attack.name] = np.asarray(
                arrays["probabilities"], dtype=np.float64
            )
    progress("attacking", total - 2, total)
    controls = _controls(challenge, sides, plan, memorised, null)
    progress("attacking", total, total)

    statements = policy.statements * len(plan.attacks)
    measured = []
    for name, values in scores.items():
        members, nonmembers = sides.divide(values)
        measured.append(
            measure_attack(
                name,
                members,
                nonmembers,
                fpr=policy.limits.tpr_at_fpr,
                exposed_below=policy.limits.exposed_below,
                level=policy.confidence,
                statements=statements,
                rng=stream(plan.seed, f"guesses/{name}"),
            )
        )
    best = strongest(measured)
    members, nonmembers = sides.divide(scores[best.name])
    nonmember_rows = ~sides.tags
    right = challenge.probabilities.argmax(axis=1) == challenge.labels
    classes = challenge.probabilities.shape[1]
    frequencies = np.bincount(challenge.labels[nonmember_rows], minlength=classes)
    loss = 1 - challenge.true_class_probability()
    by_group = _groups(
        scores[best.name], sides, groups, policy, len(plan.attacks), plan.seed
    )
    evidence = Evidence(
        utility=utility(
            int(right[nonmember_rows].sum()),
            int(nonmember_rows.sum()),
            classes=classes,
            level=split_level(policy.confidence, policy.statements),
            independent=len(nonmembers),
        ).stated(
            level=policy.confidence, why=f"joint over {policy.statements} statements"
        ),
        guessing_utility=float(
            (classes * frequencies.max() / frequencies.sum() - 1) / (classes - 1)
        ),
        privacy=privacy_from_accuracy(
            best_of([a.auc for a in measured], level=policy.confidence)
        ),
        tpr_at_fpr=best_of([a.tpr_at_fpr for a in measured], level=policy.confidence),
        exposed=best_of([a.exposed for a in measured], level=policy.confidence),
        attacks=tuple(measured),
        epsilon=best_of([a.epsilon for a in measured], level=policy.confidence),
        epsilon_ceiling=epsilon_ceiling(
            len(members),
            len(nonmembers),
            level=split_level(policy.confidence, statements),
        ),
        smallest_leak=smallest_visible_leak(
            len(members),
            len(nonmembers),
            level=split_level(policy.confidence, statements),
        ),
        members=len(members),
        nonmembers=len(nonmembers),
        groups=by_group,
        insider=None,
        scores=score_histogram(members, nonmembers),
        individual=individual_histogram(members, nonmembers),
        calibration=_calibration(predicted, sides, policy),
        theorems=_theorems(loss, right, sides),
        worst_case=worst_cases(
            challenge,
            sides,
            scores[best.name],
            attack=best.name,
            attacks=len(measured),
            level=policy.confidence,
            seed=plan.seed,
        ),
        subgroup_aware=aware_of_groups(by_group, level=policy.confidence),
        vulnerability_bound=None,
        pool=None
        if sides.pool is None
        else measure_pool(
            challenge,
            sides,
            sides.pool,
            _posterior(predicted),
            groups,
            policy=policy,
            seed=plan.seed,
            chosen=pool_chosen,
            content=content,
            stages=stages,
        ),
    )
    return Outsider(
        evidence=evidence,
        controls=controls,
        best_scores=scores[best.name],
        posterior=_posterior(predicted),
    )


def _controls(
    challenge: Challenge,
    sides: Sides,
    plan: AuditPlan,
    memorised: NDArray[np.float64],
    null: Null,
) -> tuple[Control, ...]:
    def scorer(
        sides: Sides,
    ) -> Callable[..., Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]]:
        def score(
            asked: Challenge, attacks: Sequence[Attack], name: str
        ) -> Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
            made = score_all(asked, attacks, sides, seed=plan.seed, name=name)
            return {key: sides.divide(values) for key, values in made.items()}

        return score

    features = challenge.features
    caught = memorising(
        Challenge(
            probabilities=memorised,
            labels=challenge.labels,
            features=features,
            internals=None
            if challenge.internals is None
            else memorised_internals(
                memorised, challenge.labels, layers=challenge.internals.layers
            ),
        ),
        plan.attacks,
        scorer(sides),
        limit=plan.policy.limits.privacy_at_least or 0.9,
        level=plan.policy.confidence,
    )
    rows, labels, null_sides = null.rows, challenge.labels, sides
    if rows is not None:
        labels = labels[rows]
        null_sides = sides.halves(rows, rng=stream(plan.seed, "control/halves"))
        features = None if features is None else features[rows]
    quiet = unrelated(
        Challenge(
            probabilities=null.probabilities,
            labels=labels,
            features=features,
            internals=null.internals,
        ),
        plan.attacks,
        scorer(null_sides),
        what=null.what,
    )
    return caught, quiet


def _groups(
    scores: NDArray[np.float64],
    sides: Sides,
    groups: NDArray[np.object_] | None,
    policy: Policy,
    attacks: int,
    seed: int,
) -> tuple[GroupEvidence, ...]:
    if groups is None:
        return ()
    members, nonmembers = sides.divide(scores)
    names = groups[sides.first].astype(str)
    # The attack was chosen on the same records, so its choice is paid for here too.
    statements = attacks * (
        policy.statements if policy.limits.group_privacy_at_least is not None else 1
    )
    return measure_groups(
        members,
        nonmembers,
        names[sides.unit_tags],
        names[~sides.unit_tags],
        smallest=policy.smallest_group,
        level=policy.confidence,
        statements=statements,
        rng=stream(seed, "groups"),
    )


def _posterior(
    predicted: Mapping[str, NDArray[np.float64]],
) -> NDArray[np.float64] | None:
    """Return each record's probability of membership, from the best informed attack that gives one."""
    for name in ("combined_pool", "learned_outputs"):
        if name in predicted:
            return predicted[name]
    return None


def _calibration(
    predicted: Mapping[str, NDArray[np.float64]], sides: Sides, policy: Policy
) -> Calibration | None:
    probabilities = _posterior(predicted)
    if probabilities is None:
        return None
    per_unit = sides.by_unit(probabilities)
    # At least 20 people a bin: fewer would say too much of each.
    bins = max(2, min(10, len(per_unit) // 20))
    return calibration(per_unit, sides.unit_tags, level=policy.confidence, bins=bins)


def _theorems(
    loss: NDArray[np.float64], right: NDArray[np.bool_], sides: Sides
) -> dict[str, float]:
    """Return what Theorems 1 and 2 guarantee an attacker, by 1 - p(true class) and 0-1 loss."""
    members, nonmembers = loss[sides.tags], loss[~sides.tags]
    p_r, p_d, first = theorem_1(members, nonmembers)
    e_r, e_d, second = theorem_2(members, nonmembers)
    wrong = (~right).astype(float)
    error_r, error_d, third = theorem_2(wrong[sides.tags], wrong[~sides.tags])
    return {
        "p_reserved": p_r,
        "p_defender": p_d,
        "theorem_1": first,
        "e_reserved": e_r,
        "e_defender": e_d,
        "theorem_2": second,
        "error_reserved": error_r,
        "error_defender": error_d,
        "theorem_2_zero_one": third,
    }


def per_record_risk(core: Outsider, sides: Sides, ids: NDArray[np.int64]) -> PerRecord:
    scores = sides.by_unit(core.best_scores)
    wins = pair_wins(scores[sides.unit_tags], scores[~sides.unit_tags])
    privacy = np.empty(len(scores))
    privacy[sides.unit_tags] = individual_privacy(wins)
    privacy[~sides.unit_tags] = np.minimum(2 * (1 - wins.nonmembers), 1.0)
    posterior = np.full(len(scores), np.nan)
    if core.posterior is not None:
        posterior = sides.by_unit(core.posterior)
    return PerRecord(
        row=ids[sides.first],
        member=sides.unit_tags,
        score=scores,
        privacy=privacy,
        posterior=posterior,
    )
