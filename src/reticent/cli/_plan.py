"""What `reticent plan` does once its options are parsed."""

import os
import sys
from dataclasses import asdict

from reticent.account import Course, Stops, make_plan, plan_table
from reticent.cli._options import PlanOptions
from reticent.errors import InvalidInput
from reticent.pipeline import Risk
from reticent.report import Screen, plan_json, print_plan, render_plan
from reticent.run import write_text

__all__ = ["run"]

# Stops of the page's sliders, as factors of what was asked for. Each combination of stops is computed exactly, so
# their number multiplies the time.
FACTORS = (0.5, 1.0, 2.0)
# Stops of the slider for the risk; what was asked for is added to them.
STOPS = {
    "belief": (0.6, 0.75, 0.9, 0.99),
    "advantage": (0.05, 0.1, 0.2, 0.4),
    "tpr": (0.005, 0.01, 0.05, 0.2),
    "epsilon": (0.5, 1.0, 2.0, 4.0, 8.0),
}


def run(options: PlanOptions) -> int:
    """Plan, print, and write the page if asked; return the exit status."""
    risk = Risk(**asdict(options.risk))
    target = risk.target(options.rows)
    course = _course(options)
    terms = risk.terms(options.rows)
    planned = make_plan(target, course, terms)
    if options.html is not None:
        if options.rows is None or options.batch is None or options.epochs is None:
            raise InvalidInput(
                "the page has sliders for rows, batch and epochs, but steps and a rate were given; use --rows, --batch and --epochs with --html."
            )
        kind, limits = risk.kind, sorted({*STOPS[risk.kind], risk.limit})
        # A stop that asks for no more than chance gives would need infinite noise.
        limits = [limit for limit in limits if kind != "tpr" or limit > terms.fpr]
        limits = [limit for limit in limits if kind != "belief" or limit > risk.prior]
        # Small tables may round to nothing, and a training has at least one row.
        stops = Stops(
            risks=limits,
            rows=[max(1, round(f * options.rows)) for f in FACTORS],
            batches=[max(1, round(f * options.batch)) for f in FACTORS],
            epochs=[f * options.epochs for f in FACTORS],
        )
        table = plan_table(
            lambda limit: risk.target(options.rows, limit=limit),
            stops,
            terms,
            workers=options.workers or os.cpu_count() or 1,
        )
        page = render_plan(table, kind=kind, asked=(limits.index(risk.limit), 1, 1, 1))
        write_text(options.html, page)
    if options.json:
        sys.stdout.write(plan_json(planned))
        return 0
    console = Screen()
    print_plan(planned, console)
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
        "the length of the training is not given; give --rows, --batch and --epochs, or --steps and --rate."
    )
