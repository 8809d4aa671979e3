"""The interactive page of a plan: sliders over exact tables, no network and no approximation."""

import html
import json
from importlib import resources

from reticent.account import BELIEFS, FALSE_RATES, Plan, PlanTable

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
    style = _resource("page.css") + _resource("plan.css")
    data = {
        "kind": kind,
        "stops": {
            "risk": table.risks,
            "rows": table.rows,
            "batch": table.batches,
            "epochs": table.epochs,
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
    sliders = "".join(
        _slider(name, words, len(stops), asked[k])
        for k, (name, words, stops) in enumerate(
            (
                ("risk", _LABELS[kind], table.risks),
                ("rows", "rows of the table", table.rows),
                ("batch", "records in a step", table.batches),
                ("epochs", "epochs", table.epochs),
            )
        )
    )
    body = resources.files("reticent.report").joinpath("plan.html").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>A private training, planned</title><style>{style}</style></head>\n<body>"
        + body.replace("{sliders}", sliders)
        + '<script id="data" type="application/json">'
        + json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
        + f"</script><script>{_resource('plan.js')}</script></body></html>\n"
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


def _slider(name: str, words: str, stops: int, at: int) -> str:
    return (
        f'<label class="slider" for="{name}"><span>{html.escape(words)}</span><output id="{name}-value"></output>'
        f'<input id="{name}" type="range" min="0" max="{stops - 1}" step="1" value="{at}"></label>'
    )


def _resource(name: str) -> str:
    return resources.files("reticent.report").joinpath(name).read_text(encoding="utf-8")
