"""The worst case of an audit: what any adversary could reach, by what it sees of an answer."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, xlogy

from reticent.attack import Challenge
from reticent.evidence import (
    Estimate,
    GroupEvidence,
    WorstCase,
    split_level,
    subgroup_aware,
    worst_case_density,
    worst_case_discrete,
    worst_case_vectors,
)
from reticent.pipeline._sides import Sides
from reticent.run import stream

__all__ = ["aware_of_groups", "worst_cases"]


def worst_cases(
    challenge: Challenge,
    sides: Sides,
    scores: NDArray[np.float64],
    *,
    attack: str,
    attacks: int,
    level: float,
    seed: int,
) -> tuple[WorstCase, ...]:
    """Return the worst case for four views of an answer, intervals jointly.

    Parameters
    ----------
    challenge : Challenge
        The product's answers.
    sides : Sides
        Tags and units.
    scores : array of float
        Scores of the strongest attack, which is the best single number there is.
    attack : str
        Its name.
    attacks : int
        How many it was chosen from; the choice is paid for.
    level : float
        Joint confidence.
    seed : int
        Of the run.
    """
    p = challenge.probabilities.clip(0.0, 1.0)
    wrong = (p.argmax(axis=1) != challenge.labels).astype(np.float64)
    phi = logit(challenge.true_class_probability().clip(1e-6, 1 - 1e-6))
    answer = np.column_stack(
        [
            sides.by_unit(column)
            for column in (
                phi,
                xlogy(p, p).sum(axis=1),
                challenge.labels.astype(np.float64),
            )
        ]
    )
    each = split_level(level, 3 + attacks)
    errors = np.round(
        sides.by_unit(wrong), 2
    )  # of a person with several records: the share
    made = (
        worst_case_discrete(
            errors[sides.unit_tags],
            errors[~sides.unit_tags],
            feature="0-1 loss",
            level=each,
            rng=stream(seed, "worst/0-1"),
        ),
        worst_case_density(
            *sides.divide(phi),
            feature="loss",
            level=each,
            rng=stream(seed, "worst/loss"),
        ),
        worst_case_vectors(
            answer[sides.unit_tags],
            answer[~sides.unit_tags],
            feature="answer and class",
            level=each,
            rng=stream(seed, "worst/answer"),
        ),
        worst_case_density(
            *sides.divide(scores),
            feature=f"score of {attack.replace('_', ' ')}",
            level=each,
            rng=stream(seed, "worst/score"),
        ),
    )
    return tuple(
        WorstCase(
            feature=w.feature,
            estimate=w.estimate.stated(
                level=level,
                why=f"joint over 4 views and the choice among {attacks} attacks",
            ),
            plug_in=w.plug_in,
            bias=w.bias,
            p_value=w.p_value,
        )
        for w in made
    )


def aware_of_groups(
    groups: tuple[GroupEvidence, ...], *, level: float
) -> Estimate | None:
    """Return the worst case of an adversary who knows each person's group as well."""
    if len(groups) < 2:
        return None
    return subgroup_aware(
        [(float(g.members + g.nonmembers), g.worst_case) for g in groups], level=level
    )
