"""Play the retraining insider within a share of time, and stop when the answer is settled."""

import functools
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reticent.attack import Regime, RetrainingRounds
from reticent.evidence import (
    InsiderEvidence,
    RegimeEvidence,
    privacy_from_rounds,
    split_level,
    worst_privacy,
)
from reticent.pipeline._stages import Arrays, Stages

__all__ = ["LOOKS", "play_insider"]

# Numbers of rounds after which the interval may be looked at; each look is paid for.
LOOKS = (8, 16, 32, 64, 100)


def play_insider(
    rounds: RetrainingRounds,
    *,
    content: tuple[object, ...],
    stages: Stages,
    limit: float,
    level: float,
    statements: int,
    most_rounds: int,
    seconds: float,
    workers: int,
    progress: Callable[[str, int, int], None],
) -> InsiderEvidence | None:
    """Return what retraining shows in each regime that time allows; None if in none.

    The number of rounds is planned from the time one training takes, before any result is
    seen, and kept with the stages: a resumed run plays the same rounds, however long it takes. Each regime stops
    early at one of the planned looks if its interval is wholly on one side of the limit;
    the intervals are Bonferroni's over looks, regimes and the other statements.
    """
    stage = stages.get("insider/replica", content, lambda: _timed_replica(rounds))
    replica = np.asarray(stage["replica"], dtype=np.float64)
    planned = stages.get(
        "insider/plan",
        (*content, most_rounds),
        lambda: {
            "rounds": _plan(float(stage["seconds"]), seconds, most_rounds, workers)
        },
    )
    looks = {
        regime: [
            look for look in (*LOOKS, int(most)) if look <= most and look <= most_rounds
        ]
        for regime, most in zip(Regime, planned["rounds"], strict=True)
        if most > 0
    }
    if not looks:
        return None
    peeks = sum(len(set(its)) for its in looks.values())
    each = split_level(level, statements * peeks)
    total = sum(its[-1] for its in looks.values())
    done, results = 0, []
    for regime, its in looks.items():
        wins: list[float] = []
        for look in sorted(set(its)):
            numbers = range(len(wins), look)
            chunk = stages.get(
                f"insider/{regime}/{look}",
                (*content, regime, numbers),
                functools.partial(
                    _play_chunk, rounds, regime, numbers, replica, workers
                ),
            )
            wins += [float(w) for w in chunk["wins"]]
            progress("retraining", done + look, total)
            privacy = privacy_from_rounds(sum(wins), len(wins), level=each)
            if privacy.low >= limit or privacy.high < limit:
                break
        done += its[-1]
        results.append(
            RegimeEvidence(
                name=regime.value,
                rounds=len(wins),
                wins=float(sum(wins)),
                privacy=privacy.stated(
                    level=level, why=f"joint over {peeks} looks in {len(looks)} regimes"
                ),
            )
        )
    progress("retraining", total, total)
    return InsiderEvidence(
        regimes=tuple(results),
        privacy=worst_privacy([r.privacy for r in results], level=level),
    )


def _play_chunk(
    rounds: RetrainingRounds,
    regime: Regime,
    numbers: range,
    replica: NDArray[np.float64],
    workers: int,
) -> Arrays:
    return {"wins": rounds.play_many(regime, numbers, replica=replica, workers=workers)}


def _timed_replica(rounds: RetrainingRounds) -> Arrays:
    started = time.perf_counter()
    replica = rounds.replica()
    return {"replica": replica, "seconds": np.array(time.perf_counter() - started)}


def _plan(
    one: float, seconds: float, most_rounds: int, workers: int
) -> NDArray[np.int64]:
    """Return the largest number of rounds per regime whose trainings fit into the time.

    Each regime has a third of the time. A round costs one training in the original order
    (the other model is the replica) and two in the shuffled regimes. Numbers are taken from
    ``LOOKS``, so that a little more or less time does not change them.
    """
    trainings = seconds * workers / max(one, 1e-4) / len(Regime)
    allowed = [look for look in LOOKS if look < most_rounds] + [most_rounds]

    def most(cost: int) -> int:
        return max((look for look in allowed if cost * look <= trainings), default=0)

    return np.array([most(1), most(2), most(2)], dtype=np.int64)
