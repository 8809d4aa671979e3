"""Turn the scores of attacks into evidence, for everyone and for groups of people."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent.evidence._estimate import Estimate, Joint, best_of
from reticent.evidence._gathered import AttackEvidence, GroupEvidence
from reticent.evidence._scores import UnitGroups, UnitScores
from reticent.evidence.epsilon import epsilon_lower_bound
from reticent.evidence.ltu import (
    ltu_accuracy,
    privacy_from_accuracy,
)
from reticent.evidence.roc import exposed_share, roc_points, tpr_at_fpr
from reticent.evidence.vulnerability import guesses, vulnerability
from reticent.evidence.worst_case import worst_case_density

__all__ = [
    "Asked",
    "measure_attack",
    "measure_groups",
    "strongest",
    "widened_accuracy",
    "worst_privacy",
]

# 33 false-positive rates, spaced evenly on a logarithmic axis: low rates matter most for privacy.
ROC_RATES = tuple(float(f"{10**e:.3g}") for e in np.linspace(-4, np.log10(0.99), 33))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The questions that the scores of every attack must answer, and the confidence of the answers.

    Parameters
    ----------
    fpr : float
        False-positive rate at which the true-positive rate is stated.
    exposed_below : float
        Individual privacy below which a member counts as exposed.
    joint : Joint
        The confidence of all statements about all attacks together.
    """

    fpr: float = 0.001
    exposed_below: float = 0.1
    joint: Joint = Joint()  # noqa: RUF009 (it is frozen)


def measure_attack(
    name: str,
    scores: UnitScores,
    *,
    asked: Asked,
    family: str = "queries",
    rng: np.random.Generator,
) -> AttackEvidence:
    """Turn the scores of one attack into evidence.

    Parameters
    ----------
    name : str
        Name of the attack.
    scores : UnitScores
        Scores of the attack, larger meaning more like a member.
    asked : Asked
        Rates and joint confidence.
    family : str
        What the attacker does besides querying.
    rng : numpy.random.Generator
        For the halves on which decision thresholds are learned, and the order of tied scores.
    """
    members, nonmembers = scores.members, scores.nonmembers
    each, joint = asked.joint.each, asked.joint.state
    accuracy = joint(widened_accuracy(scores, level=each))
    called, called_out = guesses(members, nonmembers, rng=rng)
    return AttackEvidence(
        name=name,
        family=family,
        auc=accuracy,
        privacy=privacy_from_accuracy(accuracy),
        tpr_at_fpr=joint(tpr_at_fpr(members, nonmembers, fpr=asked.fpr, level=each)),
        fpr=asked.fpr,
        exposed=joint(
            exposed_share(members, nonmembers, below=asked.exposed_below, level=each)
        ),
        vulnerability=joint(vulnerability(called, called_out, level=each)),
        epsilon=joint(epsilon_lower_bound(members, nonmembers, level=each, rng=rng)),
        roc=tuple(
            roc_points(members, nonmembers, fprs=ROC_RATES, level=asked.joint.level)
        ),
    )


def widened_accuracy(scores: UnitScores, *, level: float) -> Estimate:
    """Return the LTU accuracy of scores, its interval widened by how much their learning adds to its spread.

    Parameters
    ----------
    scores : UnitScores
        Scores of one attack.
    level : float
        Confidence, in (0, 1).

    Examples
    --------
    >>> sides = {"members": np.arange(10.0), "nonmembers": np.arange(10.0)}
    >>> narrow = widened_accuracy(UnitScores(**sides), level=0.95)
    >>> wide = widened_accuracy(UnitScores(**sides, spread=1.5), level=0.95)
    >>> round((wide.value - wide.low) / (narrow.value - narrow.low), 6)
    1.5
    """
    accuracy = ltu_accuracy(scores.members, scores.nonmembers, level=level)
    if scores.spread == 1:
        return accuracy
    value = accuracy.value
    return replace(
        accuracy,
        low=max(0.0, value - scores.spread * (value - accuracy.low)),
        high=min(1.0, value + scores.spread * (accuracy.high - value)),
        method=f"{accuracy.method}, widened by permutations",
    )


def measure_groups(
    scores: UnitScores,
    groups: UnitGroups,
    *,
    smallest: int,
    joint: Joint,
    rng: np.random.Generator,
) -> tuple[GroupEvidence, ...]:
    """Return the privacy of each group that is large enough; intervals hold jointly over groups and statements.

    Parameters
    ----------
    scores : UnitScores
        Scores of the strongest attack.
    groups : UnitGroups
        Group of each unit.
    smallest : int
        Smallest number of members, and of non-members, that a group must have to be named.
    joint : Joint
        The confidence, shared with other statements.
    rng : numpy.random.Generator
        For the halves on which the decision threshold is learned, and for permutations.
    """
    members, nonmembers = scores.members, scores.nonmembers
    member_groups, nonmember_groups = groups.members, groups.nonmembers
    called, called_out = guesses(members, nonmembers, rng=rng)
    names = groups.names(smallest=smallest)
    each, level = joint.times(max(1, len(names))).each, joint.level
    why = f"joint over {len(names)} groups"
    evidence = []
    for name in names:
        inside, outside = member_groups == name, nonmember_groups == name
        accuracy = ltu_accuracy(members[inside], nonmembers[outside], level=each)
        worst = worst_case_density(
            members[inside], nonmembers[outside], feature="score", level=each, rng=rng
        )
        evidence.append(
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
    return tuple(evidence)


def strongest(attacks: Sequence[AttackEvidence]) -> AttackEvidence:
    """Return the attack with the largest LTU accuracy."""
    return max(attacks, key=lambda attack: attack.auc.value)


def worst_privacy(privacies: Sequence[Estimate], *, level: float) -> Estimate:
    """Return an estimate of the smallest of several privacy scores, paying for the choice.

    This is the mirror image of :func:`best_of`: from joint intervals, it takes the smallest low and the smallest high end.
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
