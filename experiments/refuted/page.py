"""Write the page on claims put to the test."""

import json
import math
from pathlib import Path

from reticent.evidence import clopper_pearson
from reticent.run import write_text

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "experiments" / "refuted.md"

WHY = {
    "the tanh filter, accounted as in its source": "Each element of a gradient is bounded by c, its length only by c times the root of the number of parameters. The source (Amian, M.Sc. thesis, INRS) scales noise to c.",
    "noise scaled to local sensitivity": "The noise follows the longest gradient of the table in use. Without the record that gradient is another one, and so is the noise: its scale alone tells the tables apart. (D5.3 scales noise to the distance of the two tables at hand; then this very pair gains nothing, and nothing is guaranteed about any other.)",
    "a denominator that depends on the data (Opacus)": "Opacus divides by the number of records over the number of batches, rounded down: 40 with 160 records, 39 with 159. Sum and noise come out on another scale. The twin has 162 records: both tables are divided by 32.",
    "shuffling, accounted as Poisson sampling": "A record of a shuffled table takes part once in every epoch, and whoever knows where the others are knows where: nothing is left of what Poisson sampling would hide.",
    "noise too small by 20 %": "Somebody forgot a factor.",
    "a clip that does nothing": "The norm is stated, and gradients pass as they are.",
}


def _epsilon(epsilon):
    """Return an epsilon; one of 100 protects nobody, whatever its decimals."""
    if epsilon is None or math.isinf(epsilon):
        return "–"
    return f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.2f}"


def write_page(results):
    rows = []
    for fault in results["faults"]:
        for kind in ("false", "true"):
            found = fault[kind]
            rows.append(
                f"| {fault['name'] if kind == 'false' else 'its true twin'} | {_epsilon(found['claimed'])} | "
                f"{_epsilon(found['proven']) if found['proven'] is not None else 'none'} | {_epsilon(found['audited'])} | "
                f"{_epsilon(found['ceiling'])} | {found['runs']:,} x {found['steps']} | "
                f"{'**REFUTED**' if found['refuted'] else 'not refuted'} |"
            )
    why = "\n".join(f"- **{name[0].upper()}{name[1:]}.** {WHY[name]}" for name in WHY)
    audits = "\n".join(
        f"| {h['name']} | {h['truth']:.3f} | {h['median']:.3f} | {h['above']} of {h['audits']} | {_share(h)} |"
        for h in results["proven"]
    )
    write_text(
        PAGE,
        f"""# Claims put to the test

Made by `python experiments/refuted/run.py` ({results["minutes"]:.0f} CPU minutes): an adversary watches every step of trainings on the built-in table ({results["rows"]} rows with the canary, a linear model; for Opacus a
network of 500 hidden units), with and without one record. Delta is 1e-5, neighbours differ by one record more or less. **Claimed** is what the mistaken accounting says, **proven** what the recipe guarantees, **audited** a lower bound with 95 % confidence;
**ceiling** is what the method could have shown had everything been as claimed.

| training | claimed | proven | audited, at least | ceiling | runs x steps | |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

{why}

## True claims are not refuted

The bound may exceed the truth in at most 5 % of audits. {results["proven"][0]["runs"]} runs per audit:

| training | true epsilon | middle bound | bounds above the truth | share, 95 % interval |
|---|---|---|---|---|
{audits}

## What the figures do not say

A claim that is not refuted is not shown to be true. The record is a mislabelled copy of one in the table (for local sensitivity one with measures four times as large, for Opacus a made-up one); another record may be told apart more easily. **Two of the false trainings were not the first that was tried.** Noise scaled to local sensitivity was not
refuted (about 1.2 to 1.3 shown, 2.00 claimed) with a mislabelled copy, with the record of the longest gradient at the start, or with the far-out record while gradients were clipped to 100: it shows only where the record changes the longest gradient. Shuffling was first watched by an adversary that does not know
the others' places, with less noise (0.5, claimed 18.91): that showed 8.00, and refuted nothing. The rows say that such trainings can be refuted, not that every audit of them does. Noise is seeded here, as always when a training is watched. The audited epsilon is one of the training and its steps:
whoever sees only the finished model learns less.
""",
    )


def _share(found):
    share = clopper_pearson(found["above"], found["audits"], level=0.95)
    return f"{100 * share.value:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}]"


if __name__ == "__main__":
    write_page(json.loads((HERE / "results.json").read_text()))
