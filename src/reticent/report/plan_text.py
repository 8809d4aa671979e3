"""A plan as text and as JSON."""

import json
import math

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reticent.account import Plan
from reticent.report.words import percent

__all__ = ["RECITAL_26", "plan_json", "plan_sentences", "print_plan"]

# What a bound on belief has to do with the law, and what it has not.
RECITAL_26 = (
    "Recital 26 of the GDPR asks for all means reasonably likely to be used to identify a person, such as singling out. The bound on "
    "belief holds, except with probability delta, against every means, likely or not, of finding out from this training whether a record was used. It "
    "does not bound what can be learned about a person in other ways, and it is not legal advice: whether a product counts as anonymous is decided elsewhere."
)


def plan_json(plan: Plan) -> str:
    """Return a plan as JSON; its keys are interface."""
    content = {
        "target": plan.target,
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "relation": plan.relation,
        "noise_multiplier": plan.noise_multiplier,
        "advantage": plan.advantage,
        "belief": plan.belief,
        "prior": plan.prior,
        "tpr": plan.tpr,
        "fpr": plan.fpr,
        "accuracy": plan.accuracy,
        "steps": plan.steps,
        "sampling_rate": plan.sampling_rate,
        "epsilon_other_relation": plan.epsilon_other,
        "comparison": {
            "advantage_of_source": plan.comparison.advantage,
            "belief_of_source": plan.comparison.belief,
            "renyi_epsilon": plan.comparison.renyi_epsilon,
        },
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def plan_sentences(plan: Plan) -> list[str]:
    """Return what a plan means for one person in the table."""
    right = 100 * plan.accuracy
    return [
        f"Before the release somebody believes with {percent(plan.prior)} that your record was used; after it, with at most "
        f"{percent(plan.belief)}, except with probability {plan.delta:g}.",
        f"The best attacker there can be guesses right in {right:.1f} of 100 cases, where {100 * max(plan.prior, 1 - plan.prior):.0f} "
        "would be right without the release.",
        f"An attacker who wrongs {percent(plan.fpr)} of the non-members points out at most {percent(plan.tpr)} of the members.",
    ]


def print_plan(plan: Plan, console: Console) -> None:
    """Print a plan: the noise first, then all that is equivalent to it."""
    console.print()
    console.print(
        Text(f"Noise multiplier {plan.noise_multiplier:g}", style="bold").append(
            f"  for {plan.steps:,} steps in which each record takes part with probability {plan.sampling_rate:.4g}",
            style="not bold dim",
        )
    )
    console.print()
    console.print(Padding(Text(f"Asked for: {plan.target}."), (0, 2)))
    for sentence in plan_sentences(plan):
        console.print(Padding(Text(sentence), (0, 2)))
    table = Table(
        title="Equivalent statements about the same training",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
    )
    table.add_column("statement")
    table.add_column("value", justify="right")
    for words, value in _rows(plan):
        table.add_row(words, value)
    console.print(table)
    console.print(_comparison(plan))
    console.print(
        Padding(
            Text(
                "Exact, from the privacy loss distribution; it holds if batches are drawn at random record by record (Poisson), "
                "gradients are clipped per record, and the noise comes from a source nobody can guess.",
                style="dim",
            ),
            (0, 2),
        )
    )
    console.print(Padding(Text(RECITAL_26, style="dim"), (1, 2, 0, 2)))


def _rows(plan: Plan) -> list[tuple[str, str]]:
    other = "replace-one" if plan.relation == "add/remove" else "add/remove"
    return [
        (
            f"epsilon at delta {plan.delta:g}, {plan.relation}",
            f"{_up(plan.epsilon)}",
        ),
        (f"the same noise under {other}", f"epsilon {_up(plan.epsilon_other)}"),
        (
            f"highest belief from {percent(plan.prior)}, except with probability {plan.delta:g}",
            percent(plan.belief),
        ),
        ("largest advantage (TPR - FPR) of any attack", _up(plan.advantage)),
        (f"largest TPR at FPR {percent(plan.fpr)}", percent(plan.tpr)),
        ("chance that the best attacker guesses right", percent(plan.accuracy)),
    ]


def _comparison(plan: Plan) -> Table:
    table = Table(
        title="For comparison only: other formulas for the same epsilon",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
    )
    table.add_column("formula")
    table.add_column("says", justify="right")
    table.add_column("exact", justify="right")
    # A bound below the exact value understates the risk, so it is marked.
    low = " (too low)"
    theirs = plan.comparison
    table.add_row(
        "advantage, D5.3 (classical Gaussian)",
        f"{theirs.advantage:.3f}" + (low if theirs.advantage < plan.advantage else ""),
        _up(plan.advantage),
    )
    # The source's formula knows even odds only.
    if plan.prior == 0.5:
        table.add_row(
            "highest belief, D5.3: 1/(1 + exp(-epsilon))",
            f"{theirs.belief:.3f}" + (low if theirs.belief < plan.belief else ""),
            f"{plan.belief:.3f}",
        )
    if theirs.renyi_epsilon is not None:
        table.add_row(
            "epsilon, Rényi accounting",
            f"{theirs.renyi_epsilon:.3f}",
            _up(plan.epsilon),
        )
    return table


def _up(value: float) -> str:
    """Return a bound with three digits behind the point, never rounded down."""
    return (
        # The tolerance keeps 2.007 from becoming 2.008: a thousand times it is 2007.0000000000002 in floating point.
        f"{math.ceil(value * 1000 - 1e-9) / 1000:.3f}"
        if math.isfinite(value)
        else "infinite"
    )
