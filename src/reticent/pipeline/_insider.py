"""Play the retraining insider within a share of time, and stop when the answer is settled."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.attack import Regime, RetrainingRounds, play_round
from reticent.audits import Answers
from reticent.evidence import (
    InsiderEvidence,
    RegimeEvidence,
    privacy_from_rounds,
    split_level,
    worst_privacy,
)
from reticent.pipeline._case import Case, train_seed
from reticent.policy import Policy
from reticent.run import Content, Run, content_of

__all__ = ["LOOKS", "play_insider"]

# Numbers of rounds after which the interval may be looked at; each look is paid for.
LOOKS = (8, 16, 32, 64, 100)
# Rounds stop once the insider's privacy lies on one side of a limit; this one, the default policy's limit on privacy
# (decision 0008), is used where the policy sets none.
USUAL_LIMIT = 0.9
# The insider may use most of the time that the earlier stages have left, but always a quarter of the whole: a stage
# that ran late must not silence the strongest attacker.
SHARE_OF_REST, LEAST_SHARE = 0.8, 0.25
SHORTEST = 1e-4  # seconds per training that planning assumes at least, because a clock may show 0


@dataclass(frozen=True, kw_only=True)
class _Replica:
    """The product trained once more: its answers, and how long that took."""

    answers: NDArray[np.float64]
    seconds: float


def play_insider(case: Case, answers: Answers, run: Run) -> InsiderEvidence | None:
    """Return what retraining shows in each regime that time allows; None if there is time for none, or no recipe.

    The number of rounds is planned from the time one training takes, before any result is
    seen, and stored: a resumed run plays the same rounds, however long it takes. Each regime stops
    early at one of the planned looks if its interval is wholly on one side of the limit;
    the intervals are corrected by Bonferroni for looks, regimes and the other statements.

    Parameters
    ----------
    case : Case
        What is audited.
    answers : Answers
        The product's, on members and then on non-members.
    run : Run
        Seed, store, time, workers.
    """
    plan = case.plan
    # The first training alone must end before the deadline.
    if plan.trainer is None or not run.effort.allows(answers.seconds):
        return None
    # Coded once for all rounds; every round trains on a different selection of the same rows.
    everybody = plan.trainer.prepared(case.both)
    rounds = RetrainingRounds(
        trainer=plan.trainer,
        defender=everybody.take(np.flatnonzero(case.sides.tags)),
        reserved=everybody.take(np.flatnonzero(~case.sides.tags)),
        answers=answers.outputs,
        train_seed=train_seed(case.product_seed),
        seed=run.seed,
    )
    # Planned from the budget, not from the clock, but for what was already used.
    budget = run.effort.seconds
    seconds = min(
        max(SHARE_OF_REST * run.effort.seconds_left, LEAST_SHARE * budget),
        run.effort.seconds_to_deadline,
    )
    replica = run.keep(
        "insider/replica", _Replica, lambda: _timed(rounds), depends=case.content
    )
    planned = run.keep(
        "insider/plan",
        NDArray[np.int64],
        lambda: plan_rounds(
            replica.seconds,
            seconds,
            most_rounds=plan.rounds,
            workers=run.effort.workers.count,
        ),
        depends=case.content + content_of(plan.rounds),
    )
    looks = {
        regime: sorted({look for look in (*LOOKS, int(most)) if look <= most})
        for regime, most in zip(Regime, planned, strict=True)
        if most > 0
    }
    if not looks:
        return None
    return _play(rounds, replica.answers, looks, case, run)


def _play(
    rounds: RetrainingRounds,
    replica: NDArray[np.float64],
    looks: dict[Regime, list[int]],
    case: Case,
    run: Run,
) -> InsiderEvidence:
    policy = case.plan.policy
    # Each look could end the game, so each one has its part of the error, whether it is reached or not.
    peeks = sum(len(numbers) for numbers in looks.values())
    decides = policy.decides("insider")
    # An insider that decides nothing takes no confidence from the statements that do.
    statements = policy.statements(case.plan.measures) if decides else 1
    each = split_level(policy.confidence, statements * peeks)
    limit = _limit(policy)
    results = []
    for regime, numbers in looks.items():
        wins: list[float] = []
        for look in numbers:
            wins += run.keep_each(
                f"retraining, {regime}",
                float,
                range(len(wins), look),
                play_round,
                shared=(rounds, regime, replica),
                depends=_round_contents(case, regime, len(wins), look),
            )
            privacy = privacy_from_rounds(sum(wins), len(wins), level=each)
            # Wholly on one side of the limit: more rounds could only change the digits.
            if privacy.low >= limit or privacy.high < limit:
                break
        results.append(
            RegimeEvidence(
                name=regime.value,
                rounds=len(wins),
                wins=float(sum(wins)),
                privacy=privacy.stated(
                    level=policy.confidence,
                    why=f"joint over {peeks} looks in {len(looks)} regimes",
                ),
            )
        )
    return InsiderEvidence(
        regimes=tuple(results),
        privacy=worst_privacy([r.privacy for r in results], level=policy.confidence),
    )


def _round_contents(case: Case, regime: Regime, start: int, stop: int) -> list[Content]:
    return [
        case.content + content_of(regime.value, number) for number in range(start, stop)
    ]


def _limit(policy: Policy) -> float:
    """Return the privacy on either side of which the insider's question is settled."""
    for measure in ("insider_privacy", "privacy"):
        limit = policy.limit(measure)
        if limit is not None and limit.judges:
            return limit.value
    return USUAL_LIMIT


def _timed(rounds: RetrainingRounds) -> _Replica:
    started = time.perf_counter()
    answers = rounds.replica()
    return _Replica(answers=answers, seconds=time.perf_counter() - started)


def plan_rounds(
    one: float, seconds: float, *, most_rounds: int, workers: int
) -> NDArray[np.int64]:
    """Return the largest number of rounds per regime whose trainings fit into the time.

    Each regime has a third of the time. A round costs one training in the original order
    (the other model is the replica) and two in the shuffled regimes. Numbers are taken from
    ``LOOKS``, so that a little more or less time does not change them.

    Parameters
    ----------
    one : float
        Seconds that one training takes.
    seconds : float
        Time of the insider.
    most_rounds : int
        Largest number per regime.
    workers : int
        Trainings at the same time.

    Examples
    --------
    >>> plan_rounds(1.0, 60.0, most_rounds=100, workers=2).tolist()
    [32, 16, 16]
    """
    trainings = seconds * workers / max(one, SHORTEST) / len(Regime)
    allowed = [look for look in LOOKS if look < most_rounds] + [most_rounds]

    def most(cost: int) -> int:
        return max((look for look in allowed if cost * look <= trainings), default=0)

    return np.array([most(1), most(2), most(2)], dtype=np.int64)
