"""Compare defences of one table: train every one of them on the same halves, attack each with its own models, say which to take."""

import math
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from reticent.audits import kind_of
from reticent.data import Split, Table
from reticent.errors import InvalidInput
from reticent.evidence import Comparison, Defended, compare_defences
from reticent.pipeline._case import Case, train_seed
from reticent.pipeline._choose import choose
from reticent.pipeline._defences import (
    DEFAULT_MODEL,
    Candidate,
    candidates_of,
    defences_around,
)
from reticent.pipeline._input import table_of
from reticent.pipeline._plan import FEWEST_MODELS, AuditPlan
from reticent.pipeline._pool import SIZES, Games, PoolSize, Targets, play, train_pool
from reticent.policy import Policy, read_policy
from reticent.report import ComparedDefence, ComparisonReport
from reticent.run import Effort, Run, content_of, workers_of
from reticent.train import trainer_of

__all__ = ["ComparePlan", "compare", "run_comparison"]

# Models of each defence if nobody says how long it may take: 8 independent splits, with which an interval of a difference is about
# a quarter wider than with very many.
USUAL_MODELS = 16
RATES = (0.01, 0.001)  # false-positive rates at which attacks are compared


@dataclass(frozen=True, kw_only=True)
class ComparePlan:
    """Which defences are compared, and by which rules one of them is recommended.

    Parameters
    ----------
    candidates : tuple of Candidate
        The defences. The first is what the others are compared with.
    policy : Policy
        Its limits on privacy, true-positive rate and gain say which defences would do.
    models : int or None
        Models of each defence, even and at least 4; by default 16, or as many as the minutes of the run allow.
    subject : mapping of str to str
        Names for the page.
    repeat : str
        How to run it again.
    audit : str
        The command that audits a recipe on the same table, up to the recipe; empty for a call in Python.
    """

    candidates: tuple[Candidate, ...]
    policy: Policy = field(default_factory=lambda: read_policy("default"))
    models: int | None = None
    subject: dict[str, str] = field(default_factory=dict)
    repeat: str = ""
    audit: str = ""

    def __post_init__(self) -> None:
        if len(self.candidates) < 2:
            raise InvalidInput(
                f"there are {len(self.candidates)} defences, but a comparison needs at least two; name another with --trainer, or leave "
                "--trainer out to compare a usual set."
            )
        recipes = [each.trainer.recipe for each in self.candidates]
        for recipe in recipes:
            if recipes.count(recipe) > 1:
                raise InvalidInput(
                    f"the defence {recipe} is named twice, which would compare it with itself; name it once."
                )
        if len({each.trainer.quantity for each in self.candidates}) > 1:
            raise InvalidInput(
                "some of the defences predict a class and others a quantity, so they cannot be compared; name trainers of one kind."
            )
        models = self.models
        if models is not None and (models < FEWEST_MODELS or models % 2):
            raise InvalidInput(
                f"{models} models of each defence cannot hold every record in half of them, at least twice; use an even number from {FEWEST_MODELS}."
            )


def compare(
    X: Table | pd.DataFrame | ArrayLike,
    y: str | ArrayLike | None = None,
    trainers: Sequence[object] = (),
    *,
    around: object = None,
    policy: Policy | Path | str = "default",
    models: int | None = None,
    minutes: float | None = None,
    seed: int = 0,
    workers: int | None = None,
) -> ComparisonReport:
    """Compare defences of one table, and say which one to take.

    Each defence trains a model on each of the same random halves of the records, and each model is attacked with the other models of its own
    defence, so that the attacker runs the defence as well. Differences are paired over the same halves and people.

    Parameters
    ----------
    X : Table, data frame or array, shape (n, d)
        Records.
    y : str or array-like, shape (n,), optional
        Targets, or the column of the frame that holds them; none for a table.
    trainers : sequence of trainer, estimator or str
        The defences, the first of which the others are compared with; by default a usual set around ``around``.
    around : trainer, estimator or str, optional
        The undefended model of that set; by default a random forest.
    policy : Policy, path or str
        Its limits say which defences would do.
    models : int, optional
        Models of each defence, even; by default 16, or what ``minutes`` allow.
    minutes : float, optional
        About how long it may take.
    seed : int
        Seed of halves, trainings and attacks.
    workers : int, optional
        Processes; by default one per core.

    Returns
    -------
    ComparisonReport
        With ``comparison``, ``advice``, ``save(folder)`` and a text form.

    Examples
    --------
    >>> from reticent.data import builtin_table
    >>> trees = [f"sklearn.tree.DecisionTreeClassifier(min_samples_leaf={leaf})" for leaf in (1, 40)]
    >>> report = compare(builtin_table(), trainers=trees, models=8, workers=1)
    >>> report.comparison.differences[0].privacy.low > 0  # larger leaves remember less
    True
    """
    first = trainer_of(trainers[0] if trainers else around or DEFAULT_MODEL)
    table = table_of(X, y, quantity=first.quantity)
    rules = policy if isinstance(policy, Policy) else read_policy(policy)
    if trainers:
        candidates = candidates_of(trainers)
    else:
        candidates = defences_around(first, rows=len(table) // 2)
    plan = ComparePlan(candidates=candidates, policy=rules, models=models)
    effort = Effort(minutes=minutes, workers=workers_of(workers))
    return run_comparison(table, plan, run=Run(seed=seed, effort=effort))


def run_comparison(table: Table, plan: ComparePlan, *, run: Run) -> ComparisonReport:
    """Train, attack and compare; say which defence to take.

    Parameters
    ----------
    table : Table
        The records. Those of the auxiliary part, if the table names parts, take no part in it.
    plan : ComparePlan
        The defences and the policy.
    run : Run
        Seed, store, effort.
    """
    split = _halves(table, run)
    cases = [
        Case.of(table, AuditPlan(trainer=each.trainer, policy=plan.policy), split, run)
        for each in plan.candidates
    ]
    models = _models(cases, plan, run)
    sides = cases[0].sides
    defended, masks, splits = [], None, None
    for case in cases:
        pool = train_pool(
            case, PoolSize(models=models, chosen="asked for"), _width(case), run
        )
        games = Games(
            pool=pool, sides=sides, kind=case.kind, seed=run.seed, most=models
        )
        played = run.keep_each(
            "attacking every model",
            Targets,
            case.kind.quick_attacks,
            play,
            shared=games,
            depends=[
                case.content + content_of("compare", models, attack)
                for attack in case.kind.quick_attacks
            ],
        )
        errors, baseline = pool.errors()
        assert case.plan.trainer is not None
        defended.append(
            Defended(
                name=case.plan.trainer.recipe,
                scores={
                    attack.name: targets.scores
                    for attack, targets in zip(
                        case.kind.quick_attacks, played, strict=True
                    )
                },
                errors=np.array([sides.by_unit(row) for row in errors]),
                baseline=np.array([sides.by_unit(row) for row in baseline]),
            )
        )
        masks, splits = pool.masks[:, sides.first], pool.pairs
    assert masks is not None
    assert splits is not None
    comparison = compare_defences(
        defended,
        masks,
        splits=splits,
        fpr=RATES,
        level=plan.policy.confidence,
        rng=run.rng("compare"),
    )
    return _report(comparison, plan, rows=len(cases[0].both) // 2, run=run)


def _command(audit: str, recipe: str) -> str:
    """Return how to train and audit what is taken."""
    if not recipe:
        return ""
    if audit:
        return f"{audit} {shlex.quote(recipe)}"
    return f"reticent.audit({recipe!r}, X, y)"


def _halves(table: Table, run: Run) -> Split:
    """Return members and non-members of the table's own parts, or all records in two halves; which half is which plays no role."""
    if table.parts is not None:
        return Split.by_part(table)
    return Split.by_unit(table, rng=run.rng("split"), fractions=(0.5, 0.5, 0.0))


def _width(case: Case) -> int:
    """Return how many numbers an answer has."""
    return max(1, len(case.both.classes))


def _models(cases: Sequence[Case], plan: ComparePlan, run: Run) -> int:
    """Return how many models of each defence are trained: what was asked for, what is usual, or what the time allows."""
    if plan.models is not None:
        return plan.models
    if run.effort.minutes is None:
        run.say(
            f"{USUAL_MODELS} models of each of {len(cases)} defences are trained; --models or --minutes changes that."
        )
        return USUAL_MODELS

    def measure() -> float:
        seconds = 0.0
        for case in cases:
            assert case.plan.trainer is not None
            started = time.perf_counter()
            case.plan.trainer.train(case.split.defender, seed=train_seed(run.seed))
            seconds += time.perf_counter() - started
        return seconds

    depends = sum((case.content for case in cases[1:]), cases[0].content)
    once = run.keep("compare/seconds", float, measure, depends=depends)
    each = once / run.effort.workers.count
    fitting = [size for size in SIZES if size * each <= 60 * run.effort.minutes]
    models = max(fitting, default=FEWEST_MODELS)
    run.say(
        f"One model of each of {len(cases)} defences takes about {once:.0f} s, so {models} of each are trained, in about "
        f"{math.ceil(models * each / 60)} minutes."
    )
    return models


def _report(
    comparison: Comparison, plan: ComparePlan, *, rows: int, run: Run
) -> ComparisonReport:
    words = {c.trainer.recipe: c.words for c in plan.candidates}
    choice = choose(plan.policy, comparison, words=words)
    defences = []
    for candidate, evidence in zip(plan.candidates, comparison.defences, strict=True):
        guarantee = candidate.trainer.guarantee(rows)
        holds = guarantee is not None and guarantee.holds
        defences.append(
            ComparedDefence(
                family=candidate.family,
                change=candidate.change,
                recipe=candidate.trainer.recipe,
                epsilon=guarantee.epsilon if guarantee is not None and holds else None,
                delta=guarantee.delta if guarantee is not None and holds else None,
                outcome=choice.outcomes[evidence.name],
            )
        )
    return ComparisonReport(
        comparison=comparison,
        defences=tuple(defences),
        taken=choice.name,
        advice=choice.sentence,
        status=choice.exit_status,
        command=_command(plan.audit, choice.name),
        kind=kind_of(plan.candidates[0].trainer, None).name,
        policy=plan.policy.name,
        limits=choice.limits,
        subject=plan.subject,
        seed=run.seed,
        repeat=plan.repeat,
    )
