"""What `reticent plan` does once its options are parsed."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from reticent._write import write_text
from reticent.account import (
    Budget,
    Course,
    ErrorRates,
    MaxAdvantage,
    MaxPosterior,
    Relation,
    Target,
    make_plan,
    plan_table,
)
from reticent.errors import InvalidInput
from reticent.report import plan_json, print_plan, render_plan

__all__ = ["PlanOptions", "plan"]

# Stops of the page's sliders, as factors of what was asked for.
FACTORS = (0.5, 1.0, 2.0)
STOPS = {
    "belief": (0.6, 0.75, 0.9, 0.99),
    "advantage": (0.05, 0.1, 0.2, 0.4),
    "tpr": (0.005, 0.01, 0.05, 0.2),
    "epsilon": (0.5, 1.0, 2.0, 4.0, 8.0),
}


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options of `reticent plan`, as typed."""

    belief: float | None
    advantage: float | None
    tpr: float | None
    fpr: float | None
    epsilon: float | None
    delta: float | None
    prior: float
    rows: int | None
    batch: int | None
    epochs: float | None
    steps: int | None
    rate: float | None
    relation: str
    html: Path | None
    workers: int
    json: bool


def plan(options: PlanOptions) -> int:
    """Plan, print, and write the page if asked; return the exit status."""
    kind, risk, target = _target(options)
    course = _course(options)
    delta = _delta(options)
    relation = _relation(options.relation)
    fpr = options.fpr if options.fpr is not None else 0.001
    made = make_plan(
        target(risk),
        course,
        delta=delta,
        relation=relation,
        prior=options.prior,
        fpr=fpr,
    )
    if options.html is not None:
        if options.rows is None or options.batch is None or options.epochs is None:
            raise InvalidInput(
                "the page has sliders for rows, batch and epochs, but steps and a rate were given; use --rows, --batch and --epochs with --html."
            )
        risks = sorted({*STOPS[kind], risk})
        risks = [r for r in risks if kind != "tpr" or r > fpr]
        risks = [r for r in risks if kind != "belief" or r > options.prior]
        rows = [max(1, round(f * options.rows)) for f in FACTORS]
        batches = [max(1, round(f * options.batch)) for f in FACTORS]
        epochs = [f * options.epochs for f in FACTORS]
        table = plan_table(
            target,
            risks=risks,
            rows=rows,
            batches=batches,
            epochs=epochs,
            delta=delta,
            relation=relation,
            prior=options.prior,
            fpr=fpr,
            workers=options.workers,
        )
        page = render_plan(table, kind=kind, asked=(risks.index(risk), 1, 1, 1))
        write_text(options.html, page)
    if options.json:
        sys.stdout.write(plan_json(made))
        return 0
    console = Console(highlight=False)
    print_plan(made, console)
    if options.html is not None:
        console.print(f"  Page: {options.html}", soft_wrap=True)
    return 0


def _target(options: PlanOptions) -> tuple[str, float, Callable[[float], Target]]:
    given = {
        "belief": options.belief,
        "advantage": options.advantage,
        "tpr": options.tpr,
        "epsilon": options.epsilon,
    }
    asked = {name: value for name, value in given.items() if value is not None}
    if len(asked) != 1:
        named = ", ".join(f"--{name}" for name in asked) or "none"
        raise InvalidInput(
            f"a plan has one target, but {named} is given; choose one of --belief, --advantage, --tpr with --fpr, or --epsilon."
        )
    kind, risk = next(iter(asked.items()))
    if kind == "tpr" and options.fpr is None:
        raise InvalidInput(
            "--tpr says how many members may be pointed out, but not at which false-positive rate; add --fpr, for example --fpr 0.001."
        )
    delta = _delta(options)

    def target(value: float) -> Target:
        if kind == "belief":
            return MaxPosterior(belief=value, failure=delta, prior=options.prior)
        if kind == "advantage":
            return MaxAdvantage(advantage=value)
        if kind == "tpr":
            assert options.fpr is not None
            return ErrorRates(tpr=value, fpr=options.fpr)
        return Budget(epsilon=value, delta=delta)

    return kind, risk, target


def _delta(options: PlanOptions) -> float:
    if options.delta is None:
        if options.rows is None:
            raise InvalidInput(
                "delta is not given, nor a number of rows to take one from; add --delta, for example --delta 1e-5."
            )
        # A failure probability well below one person in the table.
        return 1 / (10 * options.rows)
    if options.delta == 0:
        raise InvalidInput(
            "delta is 0, but Gaussian noise has no pure epsilon: rare outputs betray more; allow a small delta such as 1e-5."
        )
    if not 0 < options.delta < 1:
        raise InvalidInput(
            f"delta is {options.delta:g}, but is a probability of failure; use one far below 1, such as 1e-5."
        )
    return options.delta


def _course(options: PlanOptions) -> Course:
    by_epochs = (options.rows, options.batch, options.epochs)
    by_steps = (options.steps, options.rate)
    if all(v is not None for v in by_steps) and options.epochs is None:
        assert options.steps is not None
        assert options.rate is not None
        return Course(steps=options.steps, sampling_rate=options.rate)
    if all(v is not None for v in by_epochs) and not any(
        v is not None for v in by_steps
    ):
        assert options.rows is not None
        assert options.batch is not None
        assert options.epochs is not None
        return Course.of_epochs(
            rows=options.rows, batch=options.batch, epochs=options.epochs
        )
    raise InvalidInput(
        "it is not said how long the training is; give --rows, --batch and --epochs, or --steps and --rate."
    )


def _relation(text: str) -> Relation:
    for relation in Relation:
        if text in (
            relation.value,
            relation.name.lower(),
            relation.value.split("-")[0],
        ):
            return relation
    raise InvalidInput(
        f"the relation {text!r} is not known; use add/remove (a record is there or is not) or replace-one (a record has another content)."
    )
