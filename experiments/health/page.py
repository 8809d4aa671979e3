"""Write the page that sets our figures beside those of chapter 3 of the thesis.

python experiments/health/page.py

It is written from results.json and bounds.json, whatever is finished of them.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from figures import bars
from scipy.stats import t as student
from settings import (
    BUDGETS,
    CURVE,
    GAINS,
    GROWN,
    LEVELS,
    LONGER,
    MODELS,
    REPEATED,
    SETTLING,
    STEPS,
    TABLES,
    models_needed,
)

from reticent.run import write_text

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/experiments/health.md"
FIGURE = PAGE.parent / "health_bounds.svg"
LEVEL = 0.95
JUDGES = ("logistic regression", "gradient boosting", "random forest")
# Of the thesis, for the table that each of ours stands in for: Tables 3.1 and 3.2 (rows, columns, positives of train and test in per cent), Table 3.3 (rates of positives by level, in per cent)
# and Table 3.4 (HealthGAN, with noise).
SOURCE = {
    "stroke": {"name": "1, mortality of diabetics", "rows": 2085, "columns": 12, "positives": (6.28, 6.04), "rates": (4.46, 5.37, 5.23, 4.22, 4.89),
               "auc": (0.723, 0.724), "train": (0.545, 0.539), "test": (0.534, 0.550), "loss": (-0.011, 0.012)},
    "framingham": {"name": "2, mortality in kidney injury", "rows": 2119, "columns": 34, "positives": (23.4, 25.9), "rates": (17.8, 19.1, 20.1, 19.6, 18.9),
                   "auc": (0.614, 0.657), "train": (0.856, 0.860), "test": (0.868, 0.872), "loss": (0.012, 0.012)},
    "cardio": {"name": "3, readmission", "rows": 1719, "columns": 7, "positives": (3.03, 2.97), "rates": (2.60, 2.39, 2.68, 3.20, 2.97),
               "auc": (0.713, 0.720), "train": (0.628, 0.627), "test": (0.648, 0.649), "loss": (0.022, 0.020)},
}  # fmt: skip
# What the figure shows, under which name, and in which colour.
FOUND, PROVEN, PRINTED, WORST, NOISE = "#2a9d8f", "#1b5e8c", "#e9a23b", "#c8553d", "#7d4f9e"  # fmt: skip
SHOWN = {
    "largest gradient of the value found": ("value: largest gradient found", FOUND),
    "intervals and norms together, half range": ("value: intervals and norms, half range", PROVEN),
    "  of the weights (Theorem 3.1.1), range": ("value: Theorem 3.1.1, range", PRINTED),
    "  in L2": ("value: Xie et al., no fakes, in L2", PRINTED),
    "  without the fakes": ("value: Xie et al., no fakes", PRINTED),
    "Xie et al. (3.1)": ("value: Xie et al. (3.1)", PRINTED),
    "largest gradient of the penalty found": ("penalty: largest gradient found", FOUND),
    "penalty by spectral norms": ("penalty: spectral norms", PROVEN),
    "penalty as printed (Theorem 3.1.3)": ("penalty: Theorem 3.1.3 as printed", WORST),
    "norm of the deviation from batch to batch": ("sum of a batch: change to the next batch", FOUND),
    "norm of the thesis's noise, level 0.0001": ("noise of the thesis, level 1e-4", NOISE),
    "norm of the thesis's noise, level 1e-07": ("noise of the thesis, level 1e-7", NOISE),
}  # fmt: skip


def main() -> None:
    kept = json.loads((HERE / "results.json").read_text())
    bounds = json.loads((HERE / "bounds.json").read_text())
    text = (HERE / "page.md").read_text(encoding="utf-8")
    done = [table for table in TABLES if models(kept, table, "healthgan", 0.0)]
    column = bounds["thesis, 300 steps"]
    rows = {words: (column[name], colour) for name, (words, colour) in SHOWN.items()}
    write_text(FIGURE, bars("How far a record moves a sum: found, proven and printed", rows))  # fmt: skip
    values = {
        "shapes": shapes(kept),
        "settings": "\n\n".join(f"**{t}**\n\n{settings(kept, t)}" for t in TABLES if models(kept, t, "tree", 1.0)),
        "rates": rates(kept, done),
        "beside": beside(kept, done),
        "effects": effects(kept, done),
        "curve": curve(kept, done),
        "bounds": bound_table(bounds),
        "epsilons": epsilons(bounds["thesis, initial"]),
        "finished": "; ".join(f"{finished(kept, table)} on {table}" for table in done),
        "again": again(kept),
        "settled": settled(kept),
        "grown": grown(kept),
        "long": long_ones(kept, done),
        "without": without(kept, done),
        "wanted": str(MODELS),
        "steps": str(STEPS),
        "last": str(CURVE[-1]),
        "minutes": f"{sum(v['seconds'] for k, v in kept.items() if ' ' in k) / 60:.0f}",
    }  # fmt: skip
    values |= claims(kept, done, bounds)
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    write_text(PAGE, text)


def finished(kept: dict, table: str) -> str:
    """Return how many models of each level there are, in words."""
    counts = [len(models(kept, table, "healthgan", level)) for level in LEVELS]
    if len(set(counts)) == 1:
        return f"{counts[0]} at each of {len(LEVELS)} levels"
    return ", ".join(f"{n} at level {level:g}" for n, level in zip(counts, LEVELS, strict=True))  # fmt: skip


def again(kept: dict) -> str:
    """Say what pairs with other seeds answered to the one question that they were asked."""
    _, (_, level), numbers = REPEATED
    gains, firsts = (
        paired_gains(kept, asked, STEPS, lambda m: m["positives"])
        for asked in (numbers, range(MODELS))
    )
    return f"{len(gains)} of {len(numbers)} pairs with other seeds were then asked that one question, at level {level:g}: {interval(gains, sign='+')}, where the first {MODELS} had {interval(firsts, sign='+')} at this level"


def paired_gains(kept: dict, numbers: range, steps: int, measure: Callable[[dict], float]) -> list[float]:  # fmt: skip
    """Return what the largest level of noise changes, in each finished pair of models."""
    table, (none, level), _ = REPEATED
    names = [[f"{table} healthgan {noise:g} {steps} {number}" for noise in (none, level)] for number in numbers]  # fmt: skip
    return [measure(kept[b]) - measure(kept[a]) for a, b in names if a in kept and b in kept]  # fmt: skip


def settled(kept: dict) -> str:
    """Say what the pairs found whose number was chosen by the spread of the earlier ones."""
    gains = paired_gains(kept, SETTLING, STEPS, lambda m: m["positives"])
    areas = paired_gains(kept, SETTLING, STEPS, auc)
    both = paired_gains(kept, REPEATED[2], STEPS, lambda m: m["positives"]) + gains
    if len(gains) < 3:
        return "They were not run"
    return f"{len(gains)} of {len(SETTLING)}, which are as many as show 2.4 points four times in five by the spread of the 36 before: {interval(gains, sign='+')} in positives, which {verdict(gains, GAINS['positives'])}, and {interval(areas, sign='+')} in area under the curve. The plan judges these by themselves. That all {len(both)} pairs with other seeds might be taken together, none of which gave rise to the question, was thought of after their results were seen, so this counts for less: {interval(both, sign='+')} in positives, which {verdict(both, GAINS['positives'])}"  # fmt: skip


def grown(kept: dict) -> str:
    """Say what noise changes after ten times as many steps."""
    steps, numbers = GROWN
    gains = paired_gains(kept, numbers, steps, lambda m: m["positives"])
    areas = paired_gains(kept, numbers, steps, auc)
    if len(gains) < 3:
        return f"Pairs of models with {steps:,} steps are fixed in settings.py and were not run, so this is left open"
    return f"{len(gains)} of {len(numbers)} pairs with {steps:,} steps: {interval(areas, sign='+')} in area under the curve, which {verdict(areas, GAINS['auc'])}, and {interval(gains, sign='+')} in positives, which {verdict(gains, GAINS['positives'])}"  # fmt: skip


def verdict(values: list[float], gain: float) -> str:
    """Say what an interval says about a gain as large as the thesis's."""
    own = np.array(values)
    half = student.ppf((1 + LEVEL) / 2, len(own) - 1) * own.std(ddof=1) / np.sqrt(len(own))  # fmt: skip
    low, high = own.mean() - half, own.mean() + half
    found = "lies above 0" if low > 0 else "reaches across 0" if high >= 0 else "lies below 0"  # fmt: skip
    return f"{found} and {'excludes' if high < gain or low > gain else 'does not exclude'} the thesis's {gain:g}"  # fmt: skip


def long_ones(kept: dict, done: list[str]) -> str:
    """Name the tables on which one training went on to the end, and how far."""
    reached = {table: max((s for s in LONGER if models(kept, table, "healthgan", 0.0, s)), default=STEPS) for table in done}  # fmt: skip
    return ", ".join(f"{steps:,} steps on {table}" for table, steps in reached.items())


def without(kept: dict, done: list[str]) -> str:
    """Name the tables where no model of HealthGAN made a positive, and what came of one longer training of each."""
    words = []
    for table in done:
        rates = [m["positives"] for level in LEVELS for m in models(kept, table, "healthgan", level)]  # fmt: skip
        if np.mean(rates) > 0.001:
            continue
        later = [
            f"{100 * m['positives']:.1f} % after {steps:,}"
            for steps in LONGER
            for m in models(kept, table, "healthgan", 0.0, steps)[:1]
        ]
        words.append(f"on {table}, {len(rates)} models have {100 * np.mean(rates):.2f} % of positives in the mean, at most {100 * max(rates):.1f} % (one longer training without noise: {', '.join(later) or 'not run'})")  # fmt: skip
    return "; ".join(words)


def claims(kept: dict, done: list[str], bounds: dict) -> dict[str, str]:
    """Return the figures that the answers to the four claims rest on."""
    first, later = bounds["thesis, initial"], bounds["thesis, 300 steps"]
    jitter = later["norm of the deviation from batch to batch"]
    noise = [later[f"norm of the thesis's noise, level {level:g}"] for level in (LEVELS[-1], LEVELS[1])]  # fmt: skip
    first_models = {
        level: kept[name]
        for level in LEVELS
        if (name := f"{done[0]} healthgan {level:g} {STEPS} 0") in kept
    }
    spread = float(np.std([m["positives"] for m in first_models.values()], ddof=1))
    costs = [m["seconds"] for level in LEVELS for m in models(kept, done[0], "healthgan", level)]  # fmt: skip
    none, noisy = pooled(kept, done[0], auc)
    gains = np.subtract(noisy, none)
    rates_none, rates_noisy = pooled(kept, done[0], lambda m: m["positives"])
    won = [
        tree["synthetic"][judge]["auc"] > wgan["synthetic"][judge]["auc"]
        for table in TABLES
        for epsilon in BUDGETS
        for tree, wgan in zip(models(kept, table, "tree", epsilon), models(kept, table, "wgan", epsilon), strict=False)
        for judge in JUDGES
    ]  # fmt: skip
    losses = [
        model["loss"]
        for level in LEVELS
        for model in models(kept, done[0], "healthgan", level)
    ]
    above, below = sum(low > 0 for low, _, _ in losses), sum(high < 0 for _, _, high in losses)  # fmt: skip
    return {
        "jitter": f"{jitter:.0f}",
        "noise_high": f"{noise[0]:.2f}",
        "ratio_low": f"{jitter / noise[0]:,.0f}",
        "ratio_high": f"{jitter / noise[1]:,.0f}",
        "so_far": f"{interval(list(gains), sign='+')} in area under the curve and {interval(list(np.subtract(rates_noisy, rates_none)), sign='+')} in the rate of positives.",
        "decided": decided(list(gains), list(np.subtract(rates_noisy, rates_none))),
        "ends": ", ".join(f"{100 * model['positives']:.1f}" for model in first_models.values()),
        "spread": f"{100 * spread:.1f}",
        "needed": f"{models_needed(GAINS['positives'], spread)}",
        "levels": ", ".join(f"{level:g}" for level in first_models),
        "cost": f"{np.mean(costs):.0f}",
        "hours": f"{np.mean(costs) * 200_000 / STEPS / 3600:.1f}",
        "printed_penalty": f"{later['penalty as printed (Theorem 3.1.3)']:.1g}",
        "spectral_penalty": f"{later['penalty by spectral norms']:.0f}",
        "found_penalty": f"{later['largest gradient of the penalty found']:.0f}",
        "one_step": f"{(first['largest gradient of the value found'] / (2 * LEVELS[-1])) ** 2 / 2:.1g}",
        "better": f"{sum(won)} of {len(won)}",
        "loss_so_far": f"Of {len(losses)} trainings of HealthGAN at all levels, the interval of the privacy loss (over people) lies above 0 in {above}, below 0 in {below}, and contains 0 in the others; the mean is {np.mean([loss[1] for loss in losses]):+.3f}, the largest {max(loss[1] for loss in losses):+.3f}.",
    }  # fmt: skip


def decided(areas: list[float], rates: list[float]) -> str:
    """Say what the finished pairs say about gains as large as the thesis's."""
    if len(areas) < 3:
        return "That is far too little to find or to exclude an effect."
    words = []
    for values, name, gain in ((areas, "area under the curve", GAINS["auc"]), (rates, "the rate of positives", GAINS["positives"])):  # fmt: skip
        own = np.array(values)
        half = student.ppf((1 + LEVEL) / 2, len(own) - 1) * own.std(ddof=1) / np.sqrt(len(own))  # fmt: skip
        low, high = own.mean() - half, own.mean() + half
        found = "found" if low > 0 else "excluded" if high < gain else "neither found nor excluded"  # fmt: skip
        words.append(f"a gain of {gain:g} in {name}, the thesis's, is {found}")
    look = "" if len(areas) == MODELS else ", a look on the way to all of them"
    return f"By {len(areas)} of {MODELS} pairs{look}, {' and '.join(words)}."


def models(kept: dict, table: str, generator: str, noise: float, steps: int | None = None) -> list[dict]:  # fmt: skip
    """Return the finished models of a setting, in the order of their numbers."""
    steps = (STEPS if generator == "healthgan" else 0) if steps is None else steps
    names = [f"{table} {generator} {noise:g} {steps} {m}" for m in range(MODELS)]
    return [kept[name] for name in names if name in kept]


def interval(values: list[float], digits: int = 3, sign: str = "") -> str:
    """Return a mean and its interval by Student's t over models; of one or two models the mean alone, since a deviation of two says next to nothing."""
    own = np.array(values)
    if not len(own):
        return "not run"
    if len(own) < 3:
        return f"{own.mean():{sign}.{digits}f} ({'one model' if len(own) == 1 else 'two models'})"
    half = student.ppf((1 + LEVEL) / 2, len(own) - 1) * own.std(ddof=1) / np.sqrt(len(own))  # fmt: skip
    mean = own.mean()
    return f"**{mean:{sign}.{digits}f}** [{mean - half:{sign}.{digits}f}, {mean + half:{sign}.{digits}f}]"


def auc(model: dict) -> float:
    """Return the mean over the three judges, the thesis's being not named."""
    return float(np.mean([model["synthetic"][judge]["auc"] for judge in JUDGES]))


def shapes(kept: dict) -> str:
    lines = ["| table of the thesis | rows, columns, positives of both halves | in its place | rows of both halves, columns, positives |", "|---|---|---|---|"]  # fmt: skip
    for table, source in SOURCE.items():
        theirs = f"{source['rows']:,}, {source['columns']}, {source['positives'][0]} / {source['positives'][1]} %"
        own = kept.get(table)
        ours = "not run" if own is None else f"{own['rows'][0]:,} / {own['rows'][1]:,}, {own['columns']}, {100 * own['positives'][0]:.1f} / {100 * own['positives'][1]:.1f} %"  # fmt: skip
        lines.append(f"| {source['name']} | {theirs} | {table} | {ours} |")
    return "\n".join(lines)


def settings(kept: dict, table: str) -> str:
    """Return everything measured of one table."""
    lines = [
        "| generator | proven epsilon | models | AUC: logistic regression | boosting | forest | positives | distance of columns | resemblance train | test | real / synthetic side | privacy loss |",
        "|---|---:|---:|---|---|---|---|---|---|---|---|---|",
    ]
    real = kept.get(table)
    if real is not None:
        cells = " | ".join(f"{real['synthetic'][judge]['auc']:.3f}" for judge in JUDGES)
        lines.append(f"| the training half itself | | | {cells} | {real['positives'][0]:.3f} | {real['far']:.3f} | | | | |")  # fmt: skip
    rows = [(f"HealthGAN, level {level:g}" if level else "HealthGAN", "healthgan", level) for level in LEVELS]  # fmt: skip
    rows += [(f"{words}, epsilon {epsilon:g}", name, epsilon) for epsilon in BUDGETS for words, name in (("DP WGAN, 1-Lipschitz", "wgan"), ("tree", "tree"))]  # fmt: skip
    for words, generator, noise in rows:
        found = models(kept, table, generator, noise)
        if not found:
            continue
        epsilon = found[0]["epsilon"]
        aucs = " | ".join(interval([m["synthetic"][judge]["auc"] for m in found]) for judge in JUDGES)  # fmt: skip
        sides = " / ".join(f"{np.mean([m['sides'][j] for m in found]):.2f}" for j in (0, 1)) if "sides" in found[0] else ""  # fmt: skip
        columns = interval([m["far"] for m in found]) if "far" in found[0] else ""
        lines.append(
            f"| {words} | {'none' if np.isinf(epsilon) else f'{epsilon:.3g}'} | {len(found)} | {aucs} | {interval([m['positives'] for m in found])} | {columns} "
            f"| {interval([m['train'] for m in found], 2)} | {interval([m['test'] for m in found], 2)} | {sides} | {interval([m['loss'][1] for m in found])} |"
        )  # fmt: skip
    return "\n".join(lines)


def rates(kept: dict, done: list[str]) -> str:
    """Return Table 3.3."""
    lines = [f"| | {' | '.join(f'{t}, thesis | ours' for t in done)} |", f"|---|{'---:|---|' * len(done)}"]  # fmt: skip
    for place, words in enumerate(("training half", "test half")):
        cells = [f"{SOURCE[t]['positives'][place]} | {100 * kept[t]['positives'][place]:.1f}" for t in done]  # fmt: skip
        lines.append(f"| {words} | {' | '.join(cells)} |")
    for place, level in enumerate(LEVELS):
        cells = [f"{SOURCE[t]['rates'][place]} | {interval([100 * m['positives'] for m in models(kept, t, 'healthgan', level)], 1)}" for t in done]  # fmt: skip
        lines.append(f"| level {level:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def pooled(kept: dict, table: str, measure) -> tuple[list[float], list[float]]:
    """Return a measure of the models without noise, and its mean over the levels that are finished for the same number."""
    none, noisy = [], []
    for number in range(MODELS):
        pairs = [kept.get(f"{table} healthgan {level:g} {STEPS} {number}") for level in LEVELS]  # fmt: skip
        others = [measure(model) for model in pairs[1:] if model is not None]
        if pairs[0] is not None and others:
            none.append(measure(pairs[0]))
            noisy.append(float(np.mean(others)))
    return none, noisy


MEASURES = {
    "area under the curve, mean of three judges": (auc, "auc"),
    "positives": (lambda m: m["positives"], "positives"),
    "distance of columns": (lambda m: m["far"], None),
    "resemblance to the test half": (lambda m: m["test"], None),
    "privacy loss": (lambda m: m["loss"][1], None),
}


def beside(kept: dict, done: list[str]) -> str:
    """Return Table 3.4: HealthGAN and the four levels together, the thesis's best level beside them."""
    lines = ["| table | measure | thesis: no noise | with noise | ours: no noise | with noise, four levels |", "|---|---|---:|---:|---|---|"]  # fmt: skip
    for table in done:
        source = SOURCE[table]
        theirs = {
            "area under the curve, mean of three judges": source["auc"],
            "positives": (source["rates"][0] / 100, max(source["rates"][1:]) / 100),
            "resemblance to the test half": source["test"],
            "privacy loss": source["loss"],
        }
        for words, (measure, _) in MEASURES.items():
            none, noisy = pooled(kept, table, measure)
            pair = theirs.get(words)
            printed = f"{pair[0]:.3f} | {pair[1]:.3f}" if pair else " | "
            lines.append(f"| {table} | {words} | {printed} | {interval(none)} | {interval(noisy)} |")  # fmt: skip
    return "\n".join(lines)


def effects(kept: dict, done: list[str]) -> str:
    """Return what noise changes, model by model, and what could have been seen."""
    lines = ["| table | measure | with noise less without, pairs of models | gain of the thesis | deviation of a model without noise | deviation of a difference | models per level that would see that gain |", "|---|---|---|---:|---:|---:|---:|"]  # fmt: skip
    for table in done:
        for words, (measure, gain) in MEASURES.items():
            none, noisy = pooled(kept, table, measure)
            gains = np.subtract(noisy, none)
            spread, paired = (np.std(v, ddof=1) if len(v) > 1 else None for v in (none, gains))  # fmt: skip
            spreads = " | " if spread is None else f"{spread:.3f} | {paired:.3f}"
            # Where no model has a positive, there is no spread either.
            needed = "" if not spread or gain is None else str(models_needed(GAINS[gain], spread))  # fmt: skip
            wanted = f"{GAINS[gain] if gain else ''} | {spreads} | {needed}"
            lines.append(f"| {table} | {words} | {interval(gains, sign='+')} | {wanted} |")  # fmt: skip
    return "\n".join(lines)


def curve(kept: dict, done: list[str]) -> str:
    lines = ["| table | steps | AUC: logistic regression | boosting | forest | positives | distance of columns | resemblance test | privacy loss |", "|---|---:|---:|---:|---:|---:|---:|---:|---|"]  # fmt: skip
    for table in done:
        for steps in (*CURVE, *LONGER):
            for m in models(kept, table, "healthgan", 0.0, steps)[:1]:
                aucs = " | ".join(f"{m['synthetic'][j]['auc']:.3f}" for j in JUDGES)
                low, loss, high = m["loss"]
                lines.append(f"| {table} | {steps:,} | {aucs} | {m['positives']:.3f} | {m['far']:.3f} | {m['test']:.2f} | {loss:+.3f} [{low:+.3f}, {high:+.3f}] |")  # fmt: skip
    return "\n".join(lines)


def bound_table(bounds: dict) -> str:
    lines = [f"| | {' | '.join(bounds)} |", f"|---|{'---:|' * len(bounds)}"]
    for name in next(iter(bounds.values())):
        cells = " | ".join(f"{column[name]:.3g}" for column in bounds.values())
        lines.append(f"| {name.replace('  ', '&nbsp;&nbsp;')} | {cells} |")
    return "\n".join(lines)


def epsilons(column: dict) -> str:
    """Return what the thesis's levels prove: epsilon is at least mu^2 / 2 of all steps together, for every delta below one half."""
    proven = column["intervals and norms together, half range"] + column["penalty by spectral norms"]  # fmt: skip
    printed = column["  added up, as it must be"]
    found = column["largest gradient of the value found"]
    lines = [f"| level | {STEPS} steps, proven bound | 200,000 steps, proven bound | 200,000 steps, bound as printed | one step, if the largest gradient of the value found were a bound |", "|---:|---:|---:|---:|---:|"]  # fmt: skip
    for level in LEVELS[1:]:
        cells = [
            5 * steps * (reach / (2 * level)) ** 2 / 2
            for steps, reach in ((STEPS, proven), (200_000, proven), (200_000, printed), (0.2, found))
        ]  # fmt: skip
        lines.append(f"| {level:g} | {' | '.join(f'{c:.1g}' for c in cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
