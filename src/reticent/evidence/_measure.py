"""Gather everything that is said about one product: the evidence of an audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.evidence._estimate import Estimate, best_of, split_level
from reticent.evidence.calibration import Calibration
from reticent.evidence.epsilon import epsilon_lower_bound
from reticent.evidence.histogram import Histogram
from reticent.evidence.ltu import (
    ltu_accuracy,
    privacy_from_accuracy,
)
from reticent.evidence.pool import PoolEvidence
from reticent.evidence.roc import RocPoint, exposed_share, roc_points, tpr_at_fpr
from reticent.evidence.vulnerability import guesses, vulnerability
from reticent.evidence.worst_case import WorstCase, worst_case_density

__all__ = [
    "AttackEvidence",
    "Evidence",
    "GroupEvidence",
    "InsiderEvidence",
    "RegimeEvidence",
    "measure_attack",
    "measure_groups",
    "strongest",
    "worst_privacy",
]

ROC_RATES = tuple(float(f"{10**e:.3g}") for e in np.linspace(-4, np.log10(0.99), 33))


@dataclass(frozen=True, kw_only=True)
class AttackEvidence:
    """What one attack showed; its intervals hold jointly with those of the other attacks.

    Parameters
    ----------
    name : str
        The attack.
    threat : str
        Whose attack it is: ``"outsider"``.
    auc : Estimate
        LTU accuracy over all pairs, which is the area under the ROC curve.
    privacy : Estimate
        ``min(2 (1 - auc), 1)``.
    tpr_at_fpr : Estimate
        True-positive rate at the policy's false-positive rate ``fpr``.
    exposed : Estimate
        Share of members whose individual privacy is below the policy's value.
    vulnerability : Estimate
        TPR - FPR at a threshold learned on other records.
    epsilon : Estimate
        Lower bound on epsilon.
    roc : tuple of RocPoint
        The curve, each point with an interval of its own.
    """

    name: str
    threat: str
    auc: Estimate
    privacy: Estimate
    tpr_at_fpr: Estimate
    fpr: float
    exposed: Estimate
    vulnerability: Estimate
    epsilon: Estimate
    roc: tuple[RocPoint, ...]


@dataclass(frozen=True, kw_only=True)
class GroupEvidence:
    """Privacy of the members of one group, judged by the strongest attack.

    Parameters
    ----------
    name : str
        The group.
    members, nonmembers : int
        Its size on either side.
    privacy : Estimate
        Privacy score; intervals hold jointly over groups.
    vulnerability : Estimate
        TPR - FPR of the attack's decisions inside the group, the threshold learned on other records of all groups.
    worst_case : Estimate
        The most that any adversary who sees the attack's score could reach inside the group.
    """

    name: str
    members: int
    nonmembers: int
    privacy: Estimate
    vulnerability: Estimate
    worst_case: Estimate


@dataclass(frozen=True, kw_only=True)
class RegimeEvidence:
    """Rounds of the retraining attacker in one regime."""

    name: str
    rounds: int
    wins: float
    privacy: Estimate


@dataclass(frozen=True, kw_only=True)
class InsiderEvidence:
    """What the LTU insider achieves by retraining; ``privacy`` is that of the worst regime."""

    regimes: tuple[RegimeEvidence, ...]
    privacy: Estimate


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All bounded statements of an audit.

    Parameters
    ----------
    utility : Estimate
        Utility score on reserved records.
    guessing_utility : float
        Utility of always answering the most frequent class.
    privacy, tpr_at_fpr, exposed : Estimate
        Of the best attack of the outsider, paying for the choice.
    attacks : tuple of AttackEvidence
        Every attack that was run.
    epsilon : Estimate
        Largest lower bound on epsilon.
    epsilon_ceiling : float
        Largest bound any attack on so many records could have given.
    smallest_leak : float
        LTU accuracy this audit tells from chance with 80 % power.
    members, nonmembers : int
        Independent units on the two sides.
    groups : tuple of GroupEvidence
        Privacy by group.
    insider : InsiderEvidence or None
        The retraining attacker, if it was run.
    scores : Histogram
        Scores of the strongest attack.
    individual : Histogram
        Individual privacy of members (and, for comparison, of non-members).
    calibration : Calibration or None
        Of the attack that predicts probabilities of membership.
    theorems : mapping of str to float
        pR, pD, eR, eD and the LTU accuracies that Theorems 1 and 2 guarantee by the 0-1
        loss and by the loss.
    worst_case : tuple of WorstCase
        The most that any adversary could reach, by what it sees of an answer.
    subgroup_aware : Estimate or None
        The same for one who sees the strongest attack's score and the group.
    vulnerability_bound : float or None
        The largest vulnerability that the claimed epsilon allows.
    pool : PoolEvidence or None
        What many models tell, if they were trained.
    """

    utility: Estimate
    guessing_utility: float
    privacy: Estimate
    tpr_at_fpr: Estimate
    exposed: Estimate
    attacks: tuple[AttackEvidence, ...]
    epsilon: Estimate
    epsilon_ceiling: float
    smallest_leak: float
    members: int
    nonmembers: int
    groups: tuple[GroupEvidence, ...]
    insider: InsiderEvidence | None
    scores: Histogram
    individual: Histogram
    calibration: Calibration | None
    theorems: Mapping[str, float]
    worst_case: tuple[WorstCase, ...]
    subgroup_aware: Estimate | None
    vulnerability_bound: float | None
    pool: PoolEvidence | None


def measure_attack(
    name: str,
    members: NDArray[np.float64],
    nonmembers: NDArray[np.float64],
    *,
    fpr: float,
    exposed_below: float,
    level: float,
    statements: int,
    rng: np.random.Generator,
) -> AttackEvidence:
    """Turn one attack's scores into statements.

    Parameters
    ----------
    name : str
        The attack.
    members, nonmembers : array of float
        Its scores, one per unit, larger meaning more like a member.
    fpr, exposed_below : float
        What the policy asks about.
    level : float
        Joint confidence of all statements of the audit.
    statements : int
        How many statements share it.
    rng : numpy.random.Generator
        For the halves on which decision thresholds are learned.
    """
    each = split_level(level, statements)
    why = f"joint over {statements} statements"

    def joint(estimate: Estimate) -> Estimate:
        return estimate.stated(level=level, why=why)

    accuracy = joint(ltu_accuracy(members, nonmembers, level=each))
    called, called_out = guesses(members, nonmembers, rng=rng)
    return AttackEvidence(
        name=name,
        threat="outsider",
        auc=accuracy,
        privacy=privacy_from_accuracy(accuracy),
        tpr_at_fpr=joint(tpr_at_fpr(members, nonmembers, fpr=fpr, level=each)),
        fpr=fpr,
        exposed=joint(
            exposed_share(members, nonmembers, below=exposed_below, level=each)
        ),
        vulnerability=joint(vulnerability(called, called_out, level=each)),
        epsilon=joint(epsilon_lower_bound(members, nonmembers, level=each)),
        roc=tuple(roc_points(members, nonmembers, fprs=ROC_RATES, level=level)),
    )


def measure_groups(
    members: NDArray[np.float64],
    nonmembers: NDArray[np.float64],
    member_groups: NDArray[np.str_],
    nonmember_groups: NDArray[np.str_],
    *,
    smallest: int,
    level: float,
    statements: int,
    rng: np.random.Generator,
) -> tuple[GroupEvidence, ...]:
    """Return the privacy of each large enough group; intervals hold jointly over groups and statements.

    Parameters
    ----------
    members, nonmembers : array of float
        Scores of the strongest attack, one per unit.
    member_groups, nonmember_groups : array of str
        Group of each unit.
    smallest : int
        Fewest members, and fewest non-members, of a group that is named.
    level : float
        Joint confidence.
    statements : int
        Other statements that share it.
    rng : numpy.random.Generator
        For the halves on which the decision threshold is learned, and for permutations.
    """
    called, called_out = guesses(members, nonmembers, rng=rng)
    names = [
        str(name)
        for name in np.unique(np.concatenate([member_groups, nonmember_groups]))
        if min((member_groups == name).sum(), (nonmember_groups == name).sum())
        >= smallest
    ]
    each = split_level(level, statements * max(1, len(names)))
    why = f"joint over {len(names)} groups"
    made = []
    for name in names:
        inside, outside = member_groups == name, nonmember_groups == name
        accuracy = ltu_accuracy(members[inside], nonmembers[outside], level=each)
        worst = worst_case_density(
            members[inside], nonmembers[outside], feature="score", level=each, rng=rng
        )
        made.append(
            GroupEvidence(
                name=name,
                members=int(inside.sum()),
                nonmembers=int(outside.sum()),
                privacy=privacy_from_accuracy(accuracy.stated(level=level, why=why)),
                vulnerability=vulnerability(
                    called[inside], called_out[outside], level=each
                ).stated(level=level, why=why),
                worst_case=worst.estimate.stated(level=level, why=why),
            )
        )
    return tuple(made)


def strongest(attacks: Sequence[AttackEvidence]) -> AttackEvidence:
    """Return the attack with the largest LTU accuracy."""
    return max(attacks, key=lambda attack: attack.auc.value)


def worst_privacy(privacies: Sequence[Estimate], *, level: float) -> Estimate:
    """Return an estimate of the smallest of several privacy scores, paying for the choice.

    The mirror image of :func:`best_of`: joint intervals, smallest low and smallest high end.
    """
    mirrored = [
        Estimate(
            value=-p.value, low=-p.high, high=-p.low, level=p.level, method=p.method
        )
        for p in privacies
    ]
    best = best_of(mirrored, level=level)
    return Estimate(
        value=-best.value,
        low=-best.high,
        high=-best.low,
        level=level,
        method=best.method,
        covers=privacies[0].covers,
    )
