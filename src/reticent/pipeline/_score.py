"""Run the outsider's attacks on the product and on both controls, wherever there are workers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.attack import Attack, Knowledge, Lessons, Need
from reticent.audits import Answers, Kind, Sides
from reticent.errors import InvalidInput, ReticentError
from reticent.evidence import AttackFailed, AttackSkipped, UnitScores
from reticent.pipeline._ask import Null
from reticent.pipeline._case import Case
from reticent.pipeline._file import Files
from reticent.pipeline._plan import AuditPlan
from reticent.run import Content, Run, Work, content_of, stream, timetable

__all__ = ["PRODUCT", "Arena", "Scored", "Trial", "score_all"]

PRODUCT, MEMORISING, UNRELATED = "product", "memorising", "unrelated"
# Records of either side on which work is timed before a deadline: enough to be above its fixed costs, few enough to be
# quick.
TRIAL_RECORDS = 1_000


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One product under attack: what attackers see of it, and what else they know."""

    challenge: Any
    knowledge: Knowledge[Any]
    sides: Sides

    def part(self, seed: int) -> "Trial":
        """Return the product with at most 1,000 members and 1,000 non-members, on which work is timed."""
        rng = stream(seed, "attack/trial")
        rows = [
            rng.permutation(np.flatnonzero(self.sides.tags == tag))[:TRIAL_RECORDS]
            for tag in (True, False)
        ]
        chosen = np.sort(np.concatenate(rows))
        sides = Sides(self.sides.tags[chosen], self.sides.units[chosen])
        pool = self.knowledge.pool
        return Trial(
            challenge=self.challenge.take(chosen),
            knowledge=Knowledge(
                tags=sides.sealed(), pool=None if pool is None else pool.take(chosen)
            ),
            sides=sides,
        )

    def without_file(self) -> "Trial":
        """Return the product with what was found in its file, and without the file; as it is if that was not searched."""
        if self.challenge.searched is None:
            return self
        return replace(self, challenge=replace(self.challenge, file=None))


@dataclass(frozen=True, kw_only=True)
class Arena:
    """The product and both controls under attack, and what attackers may have.

    Parameters
    ----------
    trials : mapping of str to Trial
        ``"product"``, ``"memorising"`` and ``"unrelated"``.
    has : frozenset of Need
        What attacks may need and get.
    depends : Content
        What all scores depend on.
    """

    trials: Mapping[str, Trial]
    has: frozenset[Need]
    depends: Content = Content(())  # noqa: RUF009 (it is frozen)

    @property
    def product(self) -> Trial:
        """The product."""
        return self.trials[PRODUCT]

    @property
    def control(self) -> Trial:
        """The product that memorises, on which work is timed: to look at results on the product would have to be paid for."""
        return self.trials[MEMORISING]

    def sent(self, plan: AuditPlan) -> Mapping[str, Trial]:
        """Return the trials as processes need them.

        A file that was searched stays here: attacks of ours need no more than what was found in it, and it may have hundreds of megabytes. An attack that the user named
        may read it itself.
        """
        named = (*(plan.attacks or ()), *plan.own_attacks)
        if Need.FILE not in self.has or any(Need.FILE in a.needs for a in named):
            return self.trials
        return {name: trial.without_file() for name, trial in self.trials.items()}

    @property
    def pool(self) -> Any:
        """Models of the same recipe; None if there are none."""
        return self.product.knowledge.pool

    @property
    def nbytes(self) -> int:
        """Size of a copy in bytes."""
        size: int = 0 if self.pool is None else self.pool.nbytes
        return size + sum(int(t.challenge.nbytes) for t in self.trials.values())

    @classmethod
    def of(
        cls,
        case: Case,
        answers: Answers,
        null: Null,
        files: Files,
        *,
        pool: Any,
        run: Run,
    ) -> "Arena":
        """Return the arena of a case."""
        kind, sides, features = case.kind, case.sides, case.features
        knowledge = Knowledge(tags=sides.sealed(), pool=pool)
        challenge = kind.challenge(answers, case.both, features)
        if files.product is not None:
            challenge = files.product.beside(challenge)
        table, null_sides, null_pool = case.both, sides, pool
        if null.rows is not None:
            table, features = table.take(null.rows), features[null.rows]
            # Where the product itself is the control, a random half of the non-members plays the members.
            null_sides = sides.halves(null.rows, rng=run.rng("control/halves"))
            null_pool = None if pool is None else pool.take(null.rows)
        unrelated = kind.challenge(null.answers, table, features)
        if files.unrelated is not None:
            unrelated = files.unrelated.beside(unrelated)
        has = {Need.ANSWERS, Need.RECORDS}
        has |= {Need.INTERNALS} if answers.internals is not None else set()
        has |= {Need.POOL} if pool is not None else set()
        has |= {Need.FILE} if files.product is not None else set()
        has |= {Need.SYNTHETIC} if answers.released is not None else set()
        has |= {Need.CRITIC} if answers.critic is not None else set()
        has |= {Need.AUXILIARY} if case.split.auxiliary is not None else set()
        trials = {
            PRODUCT: Trial(challenge=challenge, knowledge=knowledge, sides=sides),
            MEMORISING: Trial(
                challenge=kind.memorised(challenge, case.known),
                knowledge=knowledge,
                sides=sides,
            ),
            UNRELATED: Trial(
                challenge=unrelated,
                knowledge=Knowledge(tags=null_sides.sealed(), pool=null_pool),
                sides=null_sides,
            ),
        }
        models = 0 if pool is None else len(pool)
        return cls(
            trials=trials,
            has=frozenset(has),
            # A pool is determined by the case and its size: smaller ones are the first part of larger ones.
            depends=case.content + content_of(models),
        )

    @classmethod
    def of_outputs(
        cls, kind: Kind, challenge: Any, tags: NDArray[np.bool_], *, run: Run
    ) -> "Arena":
        """Return the arena of answers that were saved before: one half of the non-members stands for the unrelated product."""
        sides = Sides(tags, np.arange(len(tags)))
        knowledge: Knowledge[Any] = Knowledge(tags=sides.sealed())
        rows = np.flatnonzero(~tags)
        halves = sides.halves(rows, rng=run.rng("control/halves"))
        return cls(
            trials={
                PRODUCT: Trial(challenge=challenge, knowledge=knowledge, sides=sides),
                MEMORISING: Trial(
                    challenge=kind.memorised(challenge, tags),
                    knowledge=knowledge,
                    sides=sides,
                ),
                UNRELATED: Trial(
                    challenge=challenge.take(rows),
                    knowledge=Knowledge(tags=halves.sealed()),
                    sides=halves,
                ),
            },
            has=frozenset({Need.ANSWERS}),
        )


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What came of one attack on one product: scores, or why there are none."""

    values: NDArray[np.float64] | None = None
    probabilities: NDArray[np.float64] | None = None
    spread: float = 1.0
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Scores of all attacks that ran through.

    Parameters
    ----------
    attacks : tuple of Attack
        Those attacks, in their order.
    values : mapping of str to array
        Their scores on the product, one per record.
    probabilities : mapping of str to array
        Predicted probabilities of membership, of attacks that make any.
    spreads : mapping of str to float
        How much wider their accuracies spread than those of scores that were not learned.
    memorising, unrelated : mapping of str to UnitScores
        Their scores on the controls, one per unit.
    failed, skipped : tuple
        Attacks that raised an exception, and attacks that were not started.
    """

    attacks: tuple[Attack, ...]
    values: Mapping[str, NDArray[np.float64]]
    probabilities: Mapping[str, NDArray[np.float64]]
    spreads: Mapping[str, float]
    memorising: Mapping[str, UnitScores]
    unrelated: Mapping[str, UnitScores]
    failed: tuple[AttackFailed, ...]
    skipped: tuple[AttackSkipped, ...]


def score_all(plan: AuditPlan, arena: Arena, run: Run) -> Scored:
    """Run every attack whose needs are met on the product, on one that memorises and on one that cannot know the members.

    Parameters
    ----------
    plan : AuditPlan
        The attacks.
    arena : Arena
        The three products.
    run : Run
        Seed, store, workers.
    """
    attacks, unmet = _chosen(plan, arena.has)
    attacks, late = _in_time(attacks, arena.control, run)
    items = _items(attacks, tuple(arena.trials))
    attempts = run.with_room(arena.nbytes).keep_each(
        "attacking",
        tuple[Attempt, ...],
        items,
        _attempt,
        shared=(run.seed, arena.sent(plan)),
        depends=[arena.depends + content_of(*item) for item in items],
    )
    by_key = {
        (which, attack.name): attempt
        for (whichever, attack), tried in zip(items, attempts, strict=True)
        for which, attempt in zip(whichever, tried, strict=True)
    }
    return _scored(attacks, by_key, arena.trials, (*unmet, *late))


def _items(
    attacks: Sequence[Attack], trials: tuple[str, ...]
) -> list[tuple[tuple[str, ...], Attack]]:
    """Return the jobs: which products are attacked together, and by which attack.

    Attacks beside a pool have one job for all products, so that what they learn from the pool is learned once; they take longest, and so
    come first. Every other attack learns from the answers of one product, and has a job for each. Kinds list plain attacks before those that learn, so
    the last ones are begun first: a long job at the end would leave the other workers idle.
    """
    backwards = attacks[::-1]
    beside_pool = [attack for attack in backwards if Need.POOL in attack.needs]
    others = [attack for attack in backwards if Need.POOL not in attack.needs]
    return [
        *((trials, attack) for attack in beside_pool),
        *(((which,), attack) for attack in others for which in trials),
    ]


def _chosen(
    plan: AuditPlan, has: frozenset[Need]
) -> tuple[tuple[Attack, ...], tuple[AttackSkipped, ...]]:
    """Return the attacks whose needs are met, and the user's own attacks whose needs are not."""
    usual = plan.kind.available(has)
    if plan.attacks is not None:
        usual = tuple(attack for attack in plan.attacks if attack.needs <= has)
    from_user = tuple(attack for attack in plan.own_attacks if attack.needs <= has)
    # An attack that the user named must not vanish silently; those of the kind are chosen by what is at hand.
    unmet = tuple(
        AttackSkipped(
            name=attack.name,
            why=f"it needs {', '.join(sorted(attack.needs - has))}, which this audit does not have",
        )
        for attack in plan.own_attacks
        if not attack.needs <= has
    )
    return (*usual, *from_user), unmet


def _in_time(
    attacks: tuple[Attack, ...], trial: Trial, run: Run
) -> tuple[tuple[Attack, ...], tuple[AttackSkipped, ...]]:
    """Return the attacks that should end before the deadline, and the others.

    Each is timed on a few records of the control that memorises, so that the choice looks at no result on the product. In
    the order of the plan, an attack is left out if it, on all three products, would end too late.
    """
    if run.effort.deadline is None:
        return attacks, ()
    part = trial.part(run.seed)
    # Three products: the audited one and two controls. Scaled up linearly; attacks that sort or compare neighbours take a
    # little longer than that.
    times = 3 * len(trial.sides.tags) / len(part.sides.tags)
    works = [
        Work(
            name=attack.name,
            trial=partial(_attempt, (run.seed, {"trial": part}), (("trial",), attack)),
            times=times,
        )
        for attack in attacks
    ]
    late = timetable(works, effort=run.effort).late
    return (
        tuple(attack for attack in attacks if attack.name not in late),
        tuple(AttackSkipped(name=name, why=why) for name, why in late.items()),
    )


def _attempt(
    shared: tuple[int, Mapping[str, Trial]], item: tuple[tuple[str, ...], Attack]
) -> tuple[Attempt, ...]:
    """Let one attack score the records of some products; an exception becomes a failure, not an end."""
    seed, trials = shared
    whichever, attack = item
    lessons, pool = Lessons(), trials[whichever[0]].knowledge.pool
    attempts = []
    for which in whichever:
        trial = trials[which]
        if pool is not None and trial.knowledge.pool is pool:
            # The same models of the same records. The product comes first: what it is judged by does not depend on the controls.
            knowledge = replace(trial.knowledge, lessons=lessons)
            trial = replace(trial, knowledge=knowledge)
        rng = stream(seed, f"attack/{which}/{attack.name}")
        attempts.append(_tried(attack, trial, rng))
    return tuple(attempts)


def _tried(attack: Attack, trial: Trial, rng: np.random.Generator) -> Attempt:
    try:
        scores = attack.score(trial.challenge, knowledge=trial.knowledge, rng=rng)
        values = np.asarray(scores.values, dtype=np.float64)
        # A score too many or too few would shift all tags behind it.
        if values.shape != trial.sides.tags.shape:
            raise InvalidInput(
                f"it gave scores of shape {values.shape} for {len(trial.sides.tags)} records"
            )
    except ReticentError as error:
        return Attempt(failure=f"{type(error).__name__}: {error}")
    except Exception as error:
        # The kind only: a stranger's message could quote cells of the table.
        return Attempt(failure=type(error).__name__)
    return Attempt(
        values=values,
        probabilities=scores.probabilities,
        spread=float(scores.spread),
    )


def _scored(
    attacks: Sequence[Attack],
    by_key: Mapping[tuple[str, str], Attempt],
    trials: Mapping[str, Trial],
    skipped: tuple[AttackSkipped, ...],
) -> Scored:
    failed = []
    for attack in attacks:
        # An attack that fails on a control cannot be checked, so it counts as failed altogether.
        causes = {by_key[which, attack.name].failure for which in trials} - {""}
        if causes:
            failed.append(AttackFailed(name=attack.name, why="; ".join(sorted(causes))))
    lost = {failure.name for failure in failed}
    through = tuple(attack for attack in attacks if attack.name not in lost)

    def values(which: str, name: str) -> NDArray[np.float64]:
        scores = by_key[which, name].values
        assert scores is not None, "a lost attack is not among those that ran through"
        return scores

    def on_control(which: str) -> dict[str, UnitScores]:
        divide = trials[which].sides.divide
        return {
            a.name: replace(
                divide(values(which, a.name)), spread=by_key[which, a.name].spread
            )
            for a in through
        }

    predicted = {a.name: by_key[PRODUCT, a.name].probabilities for a in through}
    return Scored(
        attacks=through,
        values={a.name: values(PRODUCT, a.name) for a in through},
        probabilities={k: p for k, p in predicted.items() if p is not None},
        spreads={a.name: by_key[PRODUCT, a.name].spread for a in through},
        memorising=on_control(MEMORISING),
        unrelated=on_control(UNRELATED),
        failed=tuple(failed),
        skipped=skipped,
    )
