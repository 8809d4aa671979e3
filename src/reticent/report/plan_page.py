"""The interactive page of a plan: sliders over exact tables, no network and no approximation."""

from jinja2.utils import htmlsafe_json_dumps

from reticent.account import BELIEFS, FALSE_RATES, Plan, PlanTable
from reticent.report._markup import finished, resource
from reticent.report.plan_text import RECITAL_26

__all__ = ["render_plan"]

_LABELS = {
    "belief": "highest belief",
    "advantage": "largest advantage",
    "tpr": "largest true-positive rate",
    "epsilon": "epsilon",
}


def render_plan(
    table: PlanTable, *, kind: str, asked: tuple[int, int, int, int]
) -> str:
    """Return the page.

    Parameters
    ----------
    table : PlanTable
        Exact plans for every combination of stops.
    kind : str
        What the risk slider moves: ``"belief"``, ``"advantage"``, ``"tpr"`` or ``"epsilon"``.
    asked : tuple of int
        Stops at which the page opens: risk, rows, batch, epochs.
    """
    stops = table.stops
    data = {
        "kind": kind,
        "stops": {
            "risk": stops.risks,
            "rows": stops.rows,
            "batch": stops.batches,
            "epochs": stops.epochs,
        },
        "asked": asked,
        "false": FALSE_RATES,
        "beliefs": BELIEFS,
        "plans": [None if plan is None else _numbers(plan) for plan in table.plans],
        "curves": [
            None if c is None else [c.true_rates, c.chances, c.losses, c.used, c.unused]
            for c in table.curves
        ],
    }
    sliders = [
        (name, words, len(values), at)
        for (name, words, values), at in zip(
            (
                ("risk", _LABELS[kind], stops.risks),
                ("rows", "rows of the table", stops.rows),
                ("batch", "records in a step", stops.batches),
                ("epochs", "epochs", stops.epochs),
            ),
            asked,
            strict=True,
        )
    ]
    return finished(
        "plan.html.j2",
        sliders=sliders,
        recital=RECITAL_26,
        data=htmlsafe_json_dumps(data, separators=(",", ":")),
        style=resource("page.css") + resource("plan.css"),
        script=resource("plan.js"),
    )


def _numbers(plan: Plan) -> dict[str, object]:
    return {
        "noise_multiplier": plan.noise_multiplier,
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "relation": plan.relation,
        "epsilon_other": plan.epsilon_other,
        "belief": plan.belief,
        "prior": plan.prior,
        "advantage": plan.advantage,
        "tpr": plan.tpr,
        "fpr": plan.fpr,
        "accuracy": plan.accuracy,
        "steps": plan.steps,
        "sampling_rate": plan.sampling_rate,
    }
