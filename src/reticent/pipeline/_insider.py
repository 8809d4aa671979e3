"""Play the retraining insider within a share of time, and stop when the answer is settled."""

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.attack import Regime, Retrained, RetrainingRounds, Round, play_round
from reticent.audits import Answers
from reticent.evidence import (
    Estimate,
    InsiderEvidence,
    RegimeEvidence,
    RegimeLeftOut,
    privacy_from_rounds,
    split_level,
    worst_privacy,
)
from reticent.pipeline._begin import Replica
from reticent.pipeline._case import Case, train_seed
from reticent.policy import Policy
from reticent.run import Run, content_of

__all__ = ["LOOKS", "checked_rounds", "play_insider"]

# Numbers of rounds after which the interval may be looked at; each look is paid for.
LOOKS = (8, 16, 32, 64, 100)
# Rounds of the first regime that train on the members themselves, whatever was seen before: a quarter of those that are planned, within these bounds. The later ones
# may share one model, if all of these gave the product. A trainer that gives it by chance, with probability q each time, passes k rounds with q**(k + 1), the one that is
# shared counted. The fewer rounds follow, the less such luck can show. Whatever q is, sharing adds false alarms in at most 2 of 100 audits with all three regimes, and
# in 3.3 with this one alone (decision 0037).
FEWEST_CHECKED, MOST_CHECKED, CHECKED_SHARE = 2, 8, 4
SEEDED = (Regime.ORIGINAL_SEEDED, Regime.SHUFFLED_SEEDED)
UNKNOWN_SEED = (
    "training again with the recorded seed gives always the same product, and not this one: the product has another seed, or was trained by other "
    "versions or elsewhere, so what somebody who knows its seed could find out is not known"
)
# Rounds stop once the insider's privacy lies on one side of a limit; this one, the default policy's limit on privacy
# (decision 0008), is used where the policy sets none.
USUAL_LIMIT = 0.9
# The insider may use most of the time that the earlier stages have left, but always a quarter of the whole: a stage
# that ran late must not silence the strongest attacker.
SHARE_OF_REST, LEAST_SHARE = 0.8, 0.25
SHORTEST = 1e-4  # seconds per training that planning assumes at least, because a clock may show 0


def play_insider(
    case: Case, answers: Answers, replica: Replica | None, run: Run
) -> InsiderEvidence | None:
    """Return what retraining shows in each regime that time allows; None if there is time for none, or no recipe.

    The number of rounds is planned from the time one training takes, before any result is
    seen, and stored: a resumed run plays the same rounds, however long it takes. Each regime stops
    early at one of the planned looks if its interval is wholly on one side of the limit;
    the intervals are corrected by Bonferroni for looks, regimes and the other statements.

    Rounds are independent given the product, because each trains its own models. Only where training again was seen to give the product is that
    model shared; where it gives always the same other product, the regimes that know the seed are left out.

    Parameters
    ----------
    case : Case
        What is audited.
    answers : Answers
        The product's, on members and then on non-members.
    replica : Replica or None
        The product trained once more; None to do that here.
    run : Run
        Seed, store, time, workers.
    """
    plan = case.plan
    # The first training alone must end before the deadline.
    if plan.trainer is None or not case.kind.plays_insider:
        return None
    if not run.effort.allows(answers.seconds):
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
        as_trained=answers.as_trained,
    )
    # Planned from the budget, not from the clock, but for what was already used.
    budget = run.effort.seconds
    seconds = min(
        max(SHARE_OF_REST * run.effort.seconds_left, LEAST_SHARE * budget),
        run.effort.seconds_to_deadline,
    )
    trained = replica or run.keep(
        "insider/replica", Replica, lambda: _timed(rounds), depends=case.content
    )
    gives = run.keep(
        "insider/gives",
        str,
        lambda: rounds.train_again(trained.answers).value,
        depends=case.content,
    )
    planned = run.keep(
        "insider/plan",
        NDArray[np.int64],
        lambda: plan_rounds(
            trained.seconds,
            seconds,
            most_rounds=plan.rounds,
            workers=run.effort.workers.count,
            gives=Retrained(gives),
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
    game = _Game(rounds=rounds, replica=trained.answers, gives=Retrained(gives))
    return _play(game, looks, case, run)


@dataclass(frozen=True, kw_only=True)
class _Game:
    """The rounds against one product, the answers of the product trained once more, and whether training again gives the product."""

    rounds: RetrainingRounds
    replica: NDArray[np.float64]
    gives: Retrained

    @property
    def left_out(self) -> tuple[RegimeLeftOut, ...]:
        if self.gives != Retrained.OTHER:
            return ()
        return tuple(
            RegimeLeftOut(name=regime.value, why=UNKNOWN_SEED) for regime in SEEDED
        )

    def trainings(self, regime: Regime, rounds: int) -> int:
        """Return how many trainings were planned for so many rounds."""
        return _trainings(rounds, shares=self.may_share(regime))

    def may_share(self, regime: Regime) -> bool:
        """Whether later rounds of a regime may share a model, if the first ones confirm it."""
        return regime == Regime.ORIGINAL_SEEDED and self.gives == Retrained.PRODUCT


@dataclass(kw_only=True)
class _Played:
    """The rounds of one regime so far.

    Parameters
    ----------
    game : _Game
        Whose rounds they are.
    regime : Regime
        What the insider knows.
    looks : list of int
        Planned numbers of rounds after which it is looked whether the answer is settled.
    """

    game: _Game
    regime: Regime
    looks: list[int]
    rounds: list[Round] = field(default_factory=list)
    settled: bool = False

    @property
    def until(self) -> int:
        """Number of rounds to play before the next look; 0 if there is none."""
        ahead = [look for look in self.looks if look > len(self.rounds)]
        if self.settled or not ahead:
            return 0
        checked = checked_rounds(self.looks[-1])
        if self.game.may_share(self.regime) and len(self.rounds) < checked:
            # Before the first look it is found out whether later rounds may share a model.
            return min(checked, ahead[0])
        return ahead[0]

    @property
    def shared(self) -> NDArray[np.float64] | None:
        """The model that further rounds may share; None if each must train its own."""
        confirmed = len(self.rounds) >= checked_rounds(self.looks[-1]) and all(
            one.repeats for one in self.rounds
        )
        may_share = self.game.may_share(self.regime) and confirmed
        return self.game.replica if may_share else None

    @property
    def wins(self) -> float:
        """Rounds that the insider has won; ties count one half."""
        return float(sum(one.win for one in self.rounds))

    def privacy(self, level: float) -> Estimate:
        """Return the insider's privacy with its interval."""
        return privacy_from_rounds(self.wins, len(self.rounds), level=level)

    def look(self, limit: float, *, level: float) -> None:
        """Settle the question, if this is a planned look and the interval lies on one side of the limit, or if there is no time for more."""
        if self.settled or len(self.rounds) not in self.looks:
            return
        privacy = self.privacy(level)
        # Wholly on one side of the limit: more rounds could only change the digits.
        is_clear = privacy.low >= limit or privacy.high < limit
        # Planned with one model for all later rounds, but training again gave other products too: there is no time for more.
        own = _trainings(self.until, shares=False)
        planned = self.game.trainings(self.regime, self.looks[-1])
        self.settled = is_clear or (self.shared is None and own > planned)


def _play(
    game: _Game, looks: dict[Regime, list[int]], case: Case, run: Run
) -> InsiderEvidence:
    policy = case.plan.policy
    # Each look could end the game, so each one has its part of the error, whether it is reached or not.
    peeks = sum(len(numbers) for numbers in looks.values())
    decides = policy.decides("insider")
    # An insider that decides nothing takes no confidence from the statements that do.
    statements = policy.statements(case.plan.measures) if decides else 1
    each = split_level(policy.confidence, statements * peeks)
    limit = _limit(policy)
    regimes = [_Played(game=game, regime=r, looks=n) for r, n in looks.items()]
    # Regimes side by side: whether one stops does not depend on the others, and workers wait for the slowest job once and not for each regime.
    while any(one.until for one in regimes):
        shared = {one.regime: one.shared for one in regimes}
        items = [
            (one.regime, number)
            for one in regimes
            for number in range(len(one.rounds), one.until)
        ]
        results = run.keep_each(
            "retraining",
            Round,
            items,
            play_round,
            shared=(game.rounds, shared),
            depends=[case.content + content_of(r.value, n) for r, n in items],
        )
        for one in regimes:
            one.rounds += [
                result
                for (regime, _), result in zip(items, results, strict=True)
                if regime == one.regime
            ]
            one.look(limit, level=each)
    results_of_regimes = [
        RegimeEvidence(
            name=one.regime.value,
            rounds=len(one.rounds),
            wins=one.wins,
            privacy=one.privacy(each).stated(
                level=policy.confidence,
                why=f"joint over {peeks} looks in {len(looks)} regimes",
            ),
            repeats=sum(result.repeats for result in one.rounds),
        )
        for one in regimes
    ]
    return InsiderEvidence(
        regimes=tuple(results_of_regimes),
        privacy=worst_privacy(
            [r.privacy for r in results_of_regimes], level=policy.confidence
        ),
        trained_again=game.gives,
        left_out=game.left_out,
    )


def _limit(policy: Policy) -> float:
    """Return the privacy on either side of which the insider's question is settled."""
    for measure in ("insider_privacy", "privacy"):
        limit = policy.limit(measure)
        if limit is not None and limit.judges:
            return limit.value
    return USUAL_LIMIT


def _timed(rounds: RetrainingRounds) -> Replica:
    started = time.perf_counter()
    answers = rounds.replica()
    return Replica(answers=answers, seconds=time.perf_counter() - started)


def plan_rounds(
    one: float, seconds: float, *, most_rounds: int, workers: int, gives: Retrained
) -> NDArray[np.int64]:
    """Return the largest number of rounds per regime whose trainings fit into the time.

    Regimes have equal shares of the time. A round costs two trainings. In the original order, where training again gives the product,
    rounds after the first quarter, of at most 8, cost one. Where the product's seed is not known, the regimes that need it have no rounds. Numbers are
    taken from ``LOOKS``, so that a little more or less time does not change them.

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
    gives : Retrained
        What training again gives.

    Examples
    --------
    >>> plan_rounds(1.0, 60.0, most_rounds=100, workers=2, gives=Retrained.PRODUCT).tolist()
    [32, 16, 16]
    >>> plan_rounds(1.0, 60.0, most_rounds=100, workers=2, gives=Retrained.VARIES).tolist()
    [16, 16, 16]
    """
    playable = [r for r in Regime if gives != Retrained.OTHER or r not in SEEDED]
    trainings = seconds * workers / max(one, SHORTEST) / len(playable)
    allowed = [look for look in LOOKS if look < most_rounds] + [most_rounds]

    def most(regime: Regime) -> int:
        if regime not in playable:
            return 0
        shares = regime == Regime.ORIGINAL_SEEDED and gives == Retrained.PRODUCT
        fit = (n for n in allowed if _trainings(n, shares=shares) <= trainings)
        return max(fit, default=0)

    return np.array([most(regime) for regime in Regime], dtype=np.int64)


def _trainings(rounds: int, *, shares: bool) -> int:
    """Return how many trainings so many rounds take, if later ones share a model or none do."""
    return rounds + (min(rounds, checked_rounds(rounds)) if shares else rounds)


def checked_rounds(planned: int) -> int:
    """Return how many of the rounds that are planned train a model of their own in any case.

    Examples
    --------
    >>> [checked_rounds(planned) for planned in LOOKS]
    [2, 4, 8, 8, 8]
    """
    return min(MOST_CHECKED, max(FEWEST_CHECKED, -(-planned // CHECKED_SHARE)))
