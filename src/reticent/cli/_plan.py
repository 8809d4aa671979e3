"""What `reticent plan` does once its options are parsed."""

import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from reticent.account import Course, make_plan, plan_table
from reticent.cli._risk import Risk, delta_of, relation_of, target_of
from reticent.errors import InvalidInput
from reticent.report import plan_json, print_plan, render_plan
from reticent.run import write_text

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

    risk: Risk
    rows: int | None
    batch: int | None
    epochs: float | None
    steps: int | None
    rate: float | None
    html: Path | None
    workers: int
    json: bool


def plan(options: PlanOptions) -> int:
    """Plan, print, and write the page if asked; return the exit status."""
    kind, risk, target = target_of(options.risk, options.rows)
    course = _course(options)
    delta = delta_of(options.risk, options.rows)
    relation = relation_of(options.risk.relation)
    fpr = options.risk.fpr if options.risk.fpr is not None else 0.001
    made = make_plan(
        target(risk),
        course,
        delta=delta,
        relation=relation,
        prior=options.risk.prior,
        fpr=fpr,
    )
    if options.html is not None:
        if options.rows is None or options.batch is None or options.epochs is None:
            raise InvalidInput(
                "the page has sliders for rows, batch and epochs, but steps and a rate were given; use --rows, --batch and --epochs with --html."
            )
        risks = sorted({*STOPS[kind], risk})
        risks = [r for r in risks if kind != "tpr" or r > fpr]
        risks = [r for r in risks if kind != "belief" or r > options.risk.prior]
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
            prior=options.risk.prior,
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
