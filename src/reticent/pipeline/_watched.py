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
    Check,
    Curve,
    Epsilons,
    Estimate,
    Identification,
    Sampling,
    WatchedEvidence,
    ceiling_of_steps,
    check_training,
    epsilon_of_steps,
    measure_beliefs,
    mu_lower_bound,
    noise_level,
    noise_upper_bound,
    normality,
    path_of,
    refutes,
    split_level,
)
from reticent.pool import Trace, Truth

__all__ = [
    "Claim",
    "Words",
    "identification",
    "training_checks",
    "watched_evidence",
]

# The search for the true noise ends at an eighth of the stated noise: by then a claim is refuted many times over, and
# curves with less noise need ever finer grids.
LEAST = 8
COARSE = 1e-3  # grid of the privacy loss where many curves are compared
# Share of the error that the checks of the training get: they have thousands of numbers, and a false alarm refuses a release.
ERROR_OF_CHECKS = 0.02
# p-values below which a warning is given. A training that is watched is tested twice in every audit, so a warning
# about a correct one must be far rarer than one in twenty.
ALARM_OF_NORMALITY, ALARM_OF_CALIBRATION = 1e-3, 1e-4

# What watching cannot see, whoever trains.
TRUSTED = (
    "each record's gradient depends on that record alone: layers and loss were not run again without it",
    "nobody knows the noise or the batches beforehand: that they look random does not say who has their seed",
    "bound, noise, number of steps and everything else that was set did not follow from these records",
    "the weights follow from the released sums, and nothing else is released: no other run, no loss, no earlier state",
    "other records are treated like the one that was followed",
    "what was known of the columns before the first step was declared, or learned as stated: only the steps were watched",
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The epsilon that is claimed for a training, and the one that its recipe proves."""

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
    error = 1 - level
    # Checks and bound together err with the probability that is stated.
    audited, ceiling = _audited(
        trace, truth, odds[:, -1], stated, delta, 1 - (1 - ERROR_OF_CHECKS) * error
    )
    audited = replace(audited, level=level)
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
        checks=training_checks(trace, truth, level=level),
        trusted=TRUSTED,
    )


def training_checks(trace: Trace, truth: Truth, *, level: float) -> tuple[Check, ...]:
    """Put what is stated of a training to the test, if its noise was kept, with the checks' part of the error at a level."""
    if not truth.seen:
        return ()
    sampling = None
    # In a shuffled table records take part by turns, which is stated and accounted for.
    if trace.place is None:
        # A record that the table lacks takes part in nothing.
        sampling = Sampling(rate=trace.rate, taken=truth.taken[truth.first])
    return check_training(
        truth.seen,
        sampling=sampling,
        error=ERROR_OF_CHECKS * (1 - level),
    )


def _audited(
    trace: Trace,
    truth: Truth,
    final: NDArray[np.float64],
    stated: PrivateTraining,
    delta: float,
    level: float,
) -> tuple[Estimate, float]:
    """Return the better of two lower bounds on epsilon, paying for the choice, and about what it would be if everything is as stated.

    One rests on the noise of every step, the other on how often the adversary was right. Of a training that is as stated the first
    shows more, so that the ceiling is that of the first, whichever is better here.
    """
    # Guesses need runs on both tables; with one kind there is only the bound by noise, and no choice to pay for.
    one_sided = truth.first.all() or not truth.first.any()
    each = split_level(level, 1 if one_sided else 2)
    # Whoever knows the place of a record in a shuffled table sees it take part for certain.
    watched = replace(stated, sampling_rate=trace.known_rate)
    if trace.place is not None:
        # Only the steps in which the record takes part tell anything about it.
        watched = replace(watched, steps=max(1, int(trace.place[0].sum())))
    bound = _by_guesses(truth, final, watched, delta, each)
    noise = truth.noise(trace)
    # Every step of every run is a draw of the noise, so this bound is usually the better one (decision 0022).
    by_noise = epsilon_of_steps(
        trace.lengths, noise, watched, scales=trace.scales, delta=delta, level=each
    )
    if by_noise.low >= bound.low:
        bound = by_noise
    ceiling = ceiling_of_steps(
        watched, runs=trace.runs, samples=noise.size, delta=delta, level=each
    )
    if not one_sided:
        bound = bound.stated(level=level, why="the better of two bounds")
    return bound, ceiling


def _by_guesses(
    truth: Truth,
    final: NDArray[np.float64],
    stated: PrivateTraining,
    delta: float,
    level: float,
) -> Estimate:
    """Return the bound from the adversary's final log-odds alone, in the stated mechanism's own form."""
    one, two = final[truth.first], final[~truth.first]
    # A precedence test needs at least two runs on either side.
    if min(len(one), len(two)) < 2:
        return Estimate(
            value=0.0, low=0.0, high=math.inf, level=level, method="too few runs"
        )
    # Full batches are a Gaussian mechanism, for which the bound on mu is exact; sampled ones have no closed form.
    if stated.sampling_rate == 1:
        mu = mu_lower_bound(one, two, level=level)
        bound, method = gaussian_epsilon(mu.low, delta), mu.method
    else:

        def curves(multiplier: float) -> Curve:
            # With little noise losses are large, and only the accountant's own grid holds them.
            grid = COARSE if multiplier > 0.3 else None
            return trade_off(
                replace(stated, noise_multiplier=multiplier), grid=grid
            ).tprs

        bound, method = 0.0, "not beyond the stated curve"
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
                # The accountant rounds epsilon up by less than this share, and a lower bound must not be rounded up.
                bound = trade_off(least).epsilon(delta) * (1 - COARSE)
    return Estimate(
        value=bound,
        low=bound,
        high=math.inf,
        level=level,
        method=f"final guesses: {method}",
        covers="trainer",
    )


def _sampling(trace: Trace) -> str:
    if trace.place is not None:
        return f"shuffled, {round(1 / trace.rate)} batches an epoch"
    return (
        "full batches" if trace.rate == 1 else f"Poisson sampling at {trace.rate:.3g}"
    )


def _warnings(evidence: WatchedEvidence) -> tuple[str, ...]:
    warnings = []
    if evidence.normality < ALARM_OF_NORMALITY:
        warnings.append(
            f"the noise does not look normal (p = {evidence.normality:.1g}), so the bound that rests on it may be wrong"
        )
    if evidence.calibration.p_value < ALARM_OF_CALIBRATION:
        warnings.append(
            f"the adversary's beliefs do not come true as often as they say (p = {evidence.calibration.p_value:.1g}): the training does "
            "not release what it states"
        )
    return tuple(warnings)
