"""Write the page that sets our figures beside those of D5.3, and its pictures."""

import json
import math
from pathlib import Path

import figures
import numpy as np
from scipy.special import ndtr
from settings import BELIEF, DELTA, STEPS, noise_for
from summary import mean_interval

from reticent.account import analytic_noise, gaussian_epsilon
from reticent.evidence import clopper_pearson
from reticent.run import write_text

__all__ = ["PAGE", "RESULTS", "write_page"]

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path("docs/experiments/identifiability.md")

# Table 5.1 of the source: advantage and share of runs whose belief exceeds 0.9; 1,000 runs each.
SOURCE = {
    "bounded, local": (0.239, 0.002),
    "bounded, global": (0.194, 0.0),
    "unbounded, local": (0.228, 0.002),
    "unbounded, global": (0.273, 0.004),
}
SOURCE_RUNS = 1000
NOISES = ("renyi", "belief", "exact")
BELIEFS = (
    0.52,
    0.75,
    0.9,
    0.99,
)  # of the notebooks that the source's authors published


def write_page(results: dict, page: Path) -> None:
    """Write the page and its pictures."""
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    for name, value in {
        "table": _table(results),
        "noises": _noises(),
        "audited": _audited(results),
        "neighbours": _neighbours(results),
        "accuracy": _accuracy(results),
        "figure_4_2": _figure_4_2(),
        **_words(results),
    }.items():
        text = text.replace("{" + name + "}", value)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, text)
    for name in (
        "beliefs",
        "sensitivity",
        "accuracies",
        "distances",
        "guarantee",
        "bounds",
    ):
        drawn = getattr(figures, name)(results)
        write_text(page.parent / f"identifiability_{name}.svg", drawn)


def _table(results: dict) -> str:
    lines = []
    for where, (advantage, share) in SOURCE.items():
        right = clopper_pearson(
            (1 + advantage) / 2 * SOURCE_RUNS, SOURCE_RUNS, level=0.95
        )
        above = clopper_pearson(share * SOURCE_RUNS, SOURCE_RUNS, level=0.95)
        theirs = [advantage, 2 * right.low - 1, 2 * right.high - 1]
        for noise in ("renyi", "exact"):
            cell = results["cells"][f"{where.replace(', ', '-')}-{noise}"]
            shown = noise == "renyi"
            cells = [
                where,
                "source's" if shown else "exact",
                _three(theirs) if shown else "",
                _three(cell["advantage"]),
                _three(cell["advantage_of_distances"]),
                f"{cell['advantage_bound']:.3f}",
                _three([share, above.low, above.high]) if shown else "",
                _three(cell["exceeded"]),
                f"{cell['exceeded_bound']:.4f}",
                f"{cell['runs']:,}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _figure_4_2() -> str:
    """Return beliefs and advantages at some (epsilon, delta): the source's formulas, and the exact values at its noise and at the least."""
    lines = []
    for delta in (1e-2, 1e-4, 1e-6):
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            row = [f"{epsilon:g}", f"{delta:g}"]
            row += [f"{1 / (1 + math.exp(-epsilon)):.3f}"]
            classical = epsilon / math.sqrt(2 * math.log(1.25 / delta))
            exact = 1 / analytic_noise(epsilon, delta)
            row += [
                f"{figures.belief_kept(mu, delta):.3f}" for mu in (classical, exact)
            ]
            row += [f"{2 * ndtr(mu / 2) - 1:.3f}" for mu in (classical, exact)]
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _noises() -> str:
    lines = []
    for belief in BELIEFS:
        epsilon = math.log(belief / (1 - belief))
        source = noise_for("renyi", belief=belief)
        for how in NOISES:
            noise = noise_for(how, belief=belief)
            mu = math.sqrt(STEPS) / noise
            cells = [
                f"{belief:g}",
                f"{epsilon:.3f}",
                {"renyi": "source's", "belief": "belief kept", "exact": "exact"}[how],
                f"{noise:.3f}",
                f"{100 * (noise / source - 1):+.0f} %",
                f"{gaussian_epsilon(mu, DELTA):.3f}",
                f"{2 * ndtr(mu / 2) - 1:.4f}",
                f"{ndtr((mu**2 / 2 - epsilon) / mu):.4f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _audited(results: dict) -> str:
    lines = []
    for name, cell in results["cells"].items():
        if cell["runs"] < 100:
            continue
        cells = [
            name.replace("-", ", "),
            f"{cell['runs']:,}",
            f"{cell['multiplier']:.2f}",
            f"{cell['epsilon_stated']:.3f}"
            if "local" not in name
            else f"({cell['epsilon_stated']:.3f})",
            f"{cell['epsilon']:.3f}",
            f"{cell['ceiling']:.3f}",
            _three(cell["noise"]),
            f"{cell['calibration']:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _neighbours(results: dict) -> str:
    lines, told = [], results["neighbours"]
    for name, words in {
        "ssim": "SSIM, most unlike",
        "ssim-2": "second",
        "ssim-3": "third",
        "alike-3": "SSIM, third most alike",
        "alike-2": "second",
        "alike-1": "most alike",
        "gradient": "largest distance of gradients at the start",
    }.items():
        cell = results["cells"][
            "bounded-global-exact" + ("" if name == "ssim" else f"-{name}")
        ]
        pair = told["pairs"][name]
        cells = [
            words,
            f"{pair['dissimilarity']:.3f}",
            f"{pair['classes'][0]} for {pair['classes'][1]}",
            f"{cell['distance_mean']:.2f} ({cell['distance'][1]:.2f} to {cell['distance'][5]:.2f})",
            _three(cell["advantage_of_distances"]),
            f"{cell['epsilon']:.3f}",
            f"{cell['runs']:,}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _accuracy(results: dict) -> str:
    found = results["trainings"]
    lines = []
    for rows, reach, plain in sorted(
        {
            (t["rows"], t["reach"], t["plain"])
            for t in found.values()
            if t["noise"] != "none"
        },
        key=lambda key: (key[2], key[0], key[1]),
    ):
        tail = "-plain" if plain else ""
        ours = {how: found.get(f"{rows}-{how}-{reach:g}{tail}") for how in NOISES}
        bare = found.get(f"{rows}-none-1")
        if ours["renyi"] is None or ours["exact"] is None:
            continue
        words = {1.0: "C", 2.0: "2C"}.get(reach, f"{reach:g} C, held fixed")
        cells = [
            f"{rows:,}",
            "plain descent" if plain else "Adam",
            words,
            _percent(bare) if bare and not plain else "",
            *(_percent(ours[how]) for how in NOISES),
            _gain(ours["renyi"], ours["exact"]),
            f"{len(ours['exact']['correct'])}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _words(results: dict) -> dict[str, str]:
    told, cells = results["neighbours"], results["cells"]
    same = _same(results)
    sides = ("unbounded-global-renyi", "unbounded-global-exact")
    shortest = min(cells[name]["distance"][0] for name in sides)
    noise = {how: results["noise"][how] for how in NOISES}
    mu = {how: math.sqrt(STEPS) / noise[how] for how in NOISES}
    odds = math.log(BELIEF / (1 - BELIEF))
    minutes = results["minutes"]
    plain = cells["bounded-global-exact-plain"]
    return {
        "same": f"{max(same):.2f}",
        "same_runs": str(len(same)),
        "shortest": f"{shortest:.3f}",
        "correlations": _list(told["correlation"], ".2f"),
        "farther": _list([100 * share for share in told["farther_than_chosen"]], ".0f"),
        "chosen": _list(told["distance"]["chosen"], ".2f"),
        "median": _list(told["distance"]["median"], ".2f"),
        "largest": _list(told["distance"]["largest"], ".2f"),
        "looked_at": f"{told['looked_at']:,}",
        "unclipped": str(told["unclipped"]),
        "removed": f"{told['removed']['class']}",
        "plain_distance": f"{plain['distance_mean']:.2f}",
        "plain_advantage": _three(plain["advantage_of_distances"]),
        "plain_runs": str(plain["runs"]),
        "adam_distance": f"{cells['bounded-global-exact']['distance_mean']:.2f}",
        "bounded_source": _three(
            cells["bounded-global-renyi"]["advantage_of_distances"]
        ),
        "gradient_first": f"{cells['bounded-global-exact-gradient']['distance_path'][0][2]:.2f}",
        "beyond": _beyond(cells),
        "missed": _missed(cells),
        "pooled": _pooled(results["pooled"]),
        "minutes": f"{sum(minutes.values()):.0f}",
        "watched": f"{minutes['watched']:.0f}",
        "trained": f"{minutes['trained']:.0f}",
        "runs": f"{sum(cell['runs'] for cell in cells.values()):,}",
        "trainings": str(sum(len(t["correct"]) for t in results["trainings"].values())),
        **{f"z_{how}": f"{noise[how]:.3f}" for how in NOISES},
        **{
            f"less_{how}": f"{100 * (1 - noise[how] / noise['renyi']):.0f}"
            for how in NOISES
        },
        **{f"advantage_{how}": f"{2 * ndtr(mu[how] / 2) - 1:.4f}" for how in NOISES},
        **{
            f"above_{how}": f"{100 * ndtr((mu[how] ** 2 / 2 - odds) / mu[how]):.2f} %"
            for how in NOISES
        },
    }


def _same(results: dict) -> list[float]:
    """Return how far final log-odds with local noise are from those with global noise and the same seeds, unbounded."""
    made = []
    for noise in ("renyi", "exact"):
        names = [f"unbounded-{where}-{noise}" for where in ("local", "global")]
        # As many as the shorter of the two has.
        pairs = zip(*(results["cells"][n]["final"] for n in names), strict=False)
        made += [abs(a - b) for a, b in pairs]
    return made


def _beyond(cells: dict) -> str:
    """Return which lower bounds exceed the epsilon that they bound, as one in twenty may."""
    names = [n for n, cell in cells.items() if cell["epsilon"] > cell["epsilon_stated"]]
    told = f"Bounds at 95 % may exceed the exact epsilon in one row of twenty; {len(names) or 'none'} of {len(cells)} do"
    return (
        f"{told}: {'; '.join(n.replace('-', ', ') for n in names)}."
        if names
        else f"{told}."
    )


def _missed(cells: dict) -> str:
    """Return which counted advantages have intervals that miss what the distances imply."""
    missing = []
    for where in SOURCE:
        for noise in ("renyi", "exact"):
            name = f"{where.replace(', ', '-')}-{noise}"
            _, low, high = cells[name]["advantage"]
            if not low <= cells[name]["advantage_of_distances"][0] <= high:
                missing.append(
                    f"{name.replace('-', ', ')} ({cells[name]['runs']:,} runs)"
                )
    total = 2 * len(SOURCE)
    if not missing:
        return f"all {total} intervals hold what the distances imply"
    return f"{len(missing)} of {total} intervals miss what the distances imply: {', '.join(missing)}"


def _pooled(pooled: dict) -> str:
    return (
        f"{pooled['runs']:,} runs with seeds of their own, each log-odds standardised by what its distances imply: mean {pooled['mean']:+.2f} standard "
        f"errors from 0, deviation {pooled['deviation']:.3f}, p = {pooled['p']:.2f} (Kolmogorov-Smirnov against the normal distribution)."
    )


def _three(values: list[float]) -> str:
    value, low, high = values
    if high - low < 5e-4:
        return f"{value:.3f}"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _percent(training: dict | None) -> str:
    if training is None:
        return ""
    found = np.array(list(training["correct"].values())) / 100
    mean, low, high = mean_interval(found)
    return f"{mean:.1f}" if len(found) < 3 else f"{mean:.1f} [{low:.1f}, {high:.1f}]"


def _gain(before: dict, after: dict) -> str:
    """Return the mean gain over trainings with the same seed, in points."""
    seeds = before["correct"].keys() & after["correct"].keys()
    gains = np.array([after["correct"][s] - before["correct"][s] for s in seeds]) / 100
    mean, low, high = mean_interval(gains)
    if len(gains) < 3:
        return f"{mean:+.1f}"
    return f"**{mean:+.1f}** [{low:+.1f}, {high:+.1f}]"


def _list(values: list[float], form: str) -> str:
    shown = [format(value, form) for value in values]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


if __name__ == "__main__":
    write_page(json.loads(RESULTS.read_text(encoding="utf-8")), PAGE)
