"""From what was watched to evidence and the three epsilons."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from reticent.account import (
    PrivateTraining,
    gaussian_epsilon,
    trade_off,
)
from reticent.attack import log_odds
from reticent.evidence import (
    Curve,
    Epsilons,
    Estimate,
    Identification,
    WatchedEvidence,
    ceiling_of_steps,
    epsilon_of_steps,
    measure_beliefs,
    mu_ceiling,
    mu_lower_bound,
    noise_level,
    noise_upper_bound,
    normality,
    path_of,
    refutes,
    split_level,
)
from reticent.pool import Trace, Truth

__all__ = ["Claim", "Words", "identification", "watched_evidence"]

LEAST = 8  # noise below this part of the stated one is not looked for
COARSE = 1e-3  # grid of the privacy loss where many curves are compared


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What is said of a training, and what can be said of it without watching."""

    claimed: float | None
    claimed_by: str
    proven: float | None
    says: str


@dataclass(frozen=True, kw_only=True)
class Words:
    """What the report says of a watched training beside its numbers; see :class:`~reticent.evidence.Identification`."""

    relation: str
    sensitivity: str
    neighbour: str
    recipe: str
    rows: int
    warnings: tuple[str, ...] = ()
    subject: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    repeat: str = ""


def identification(
    trace: Trace, evidence: WatchedEvidence, *, claim: Claim, words: Words
) -> Identification:
    """Put the evidence of what was watched beside what is claimed and proven: the three epsilons."""
    proven = claim.proven
    many = f"{trace.runs:,} training{'s' if trace.runs > 1 else ''}"
    return Identification(
        epsilons=Epsilons(
            delta=evidence.delta,
            relation=words.relation,
            claimed=claim.claimed,
            claimed_by=claim.claimed_by,
            proven=proven if proven is None or math.isfinite(proven) else None,
            proven_by=claim.says,
            audited=evidence.epsilon,
            ceiling=evidence.ceiling,
            method=f"an adversary that watched every step of {many}",
        ),
        evidence=evidence,
        relation=words.relation,
        sensitivity=words.sensitivity,
        sampling=_sampling(trace),
        neighbour=words.neighbour,
        recipe=words.recipe,
        rows=words.rows,
        warnings=(*words.warnings, *_warnings(evidence)),
        subject=words.subject,
        seed=words.seed,
        repeat=words.repeat,
    )


def watched_evidence(
    trace: Trace,
    truth: Truth,
    *,
    stated: PrivateTraining,
    delta: float,
    belief: float,
    level: float,
) -> WatchedEvidence:
    """Turn a trace and its answers into evidence.

    Parameters
    ----------
    trace, truth : Trace, Truth
        What was seen, and what was true.
    stated : PrivateTraining
        The mechanism as it is stated.
    delta, belief, level : float
        As in :class:`WatchPlan`.
    """
    allowed, odds = trade_off(stated), log_odds(trace)
    beliefs = measure_beliefs(odds, truth.first, belief=belief, level=level)
    noise = truth.noise(trace)
    audited, ceiling = _audited(trace, truth, odds[:, -1], stated, delta, level)
    return WatchedEvidence(
        runs=trace.runs,
        steps=trace.steps,
        size=trace.size,
        rate=trace.rate,
        prior=0.5,
        advantage=beliefs.advantage,
        advantage_bound=allowed.advantage,
        belief=belief,
        exceeded=beliefs.exceeded,
        exceeded_bound=allowed.probability_of_belief(belief),
        beliefs=beliefs.beliefs,
        calibration=beliefs.calibration,
        belief_path=beliefs.path,
        sensitivity_path=path_of(trace.distance),
        noise=noise_level(noise, level=level),
        normality=normality(noise),
        epsilon=audited,
        ceiling=ceiling,
        delta=delta,
    )


def _audited(
    trace: Trace,
    truth: Truth,
    final: NDArray[np.float64],
    stated: PrivateTraining,
    delta: float,
    level: float,
) -> tuple[Estimate, float]:
    """Return the better of two lower bounds on epsilon, paying for the choice, and what its method could have shown.

    One rests on the noise of every step, the other on how often the adversary was right.
    """
    one_sided = truth.first.all() or not truth.first.any()
    each = split_level(level, 1 if one_sided else 2)
    # Whoever knows the place of a record in a shuffled table sees it take part for certain.
    told = replace(stated, sampling_rate=trace.known_rate)
    if trace.place is not None:
        told = replace(told, steps=max(1, int(trace.place[0].sum())))
    found, ceiling = _by_guesses(truth, final, told, delta, each)
    noise = truth.noise(trace)
    by_noise = epsilon_of_steps(
        trace.lengths, noise, told, scales=trace.scales, delta=delta, level=each
    )
    if by_noise.low >= found.low:
        found = by_noise
        ceiling = ceiling_of_steps(
            told, runs=trace.runs, samples=noise.size, delta=delta, level=each
        )
    if not one_sided:
        found = found.stated(level=level, why="the better of two bounds")
    return found, ceiling


def _by_guesses(
    truth: Truth,
    final: NDArray[np.float64],
    stated: PrivateTraining,
    delta: float,
    level: float,
) -> tuple[Estimate, float]:
    """Return the bound from the adversary's final log-odds alone, in the stated mechanism's own form."""
    one, two = final[truth.first], final[~truth.first]
    if min(len(one), len(two)) < 2:
        nothing = Estimate(
            value=0.0, low=0.0, high=math.inf, level=level, method="too few runs"
        )
        return nothing, 0.0
    if stated.sampling_rate == 1:
        mu = mu_lower_bound(one, two, level=level)
        bound, method = gaussian_epsilon(mu.low, delta), mu.method
        never_wrong = mu_ceiling(len(one), len(two), level=level)
        ceiling = gaussian_epsilon(never_wrong, delta)
    else:

        def curves(multiplier: float) -> Curve:
            # With little noise losses are large, and only the accountant's own grid holds them.
            grid = COARSE if multiplier > 0.3 else None
            return trade_off(
                replace(stated, noise_multiplier=multiplier), grid=grid
            ).tprs

        bound, ceiling, method = 0.0, 0.0, "not beyond the stated curve"
        # Where the stated curve is kept, the search could only end below the claim: noise tells more there.
        if refutes(one, two, tprs=curves(stated.noise_multiplier), level=level):
            most = noise_upper_bound(
                one,
                two,
                tprs_of=curves,
                between=(
                    stated.noise_multiplier / LEAST,
                    2 * stated.noise_multiplier,
                ),
                level=level,
                relative=0.02,
            )
            method = most.method
            if math.isfinite(most.high):
                least = replace(stated, noise_multiplier=most.high)
                bound = trade_off(least).epsilon(delta) * (1 - COARSE)
            least = replace(stated, noise_multiplier=stated.noise_multiplier / LEAST)
            ceiling = trade_off(least).epsilon(delta)
    made = Estimate(
        value=bound,
        low=bound,
        high=math.inf,
        level=level,
        method=f"final guesses: {method}",
        covers="trainer",
    )
    return made, ceiling


def _sampling(trace: Trace) -> str:
    if trace.place is not None:
        return f"shuffled, {round(1 / trace.rate)} batches an epoch"
    return (
        "full batches" if trace.rate == 1 else f"Poisson sampling at {trace.rate:.3g}"
    )


def _warnings(evidence: WatchedEvidence) -> tuple[str, ...]:
    made = []
    if evidence.normality < 1e-3:
        made.append(
            f"the noise does not look normal (p = {evidence.normality:.1g}), so the bound that rests on it may be wrong"
        )
    if evidence.calibration.p_value < 1e-4:
        made.append(
            f"the adversary's beliefs do not come true as often as they say (p = {evidence.calibration.p_value:.1g}): the training does "
            "not release what it states"
        )
    return tuple(made)
