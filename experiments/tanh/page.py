"""Write the page: accuracies beside claimed, audited and proven epsilons; the sweeps; the recurrent networks."""

import json
import math
from pathlib import Path

import numpy as np
from audit import EPOCHS, RUNS
from figure import Curve, Panel, drawn
from recurrent import CHANCE, JUDGED, LENGTH, STEPS, TUNED
from scipy.stats import t as student
from settings import LONG, SHORT, SIZES
from steady import drawn_curves, steady_table, steady_words

from reticent.evidence import clopper_pearson
from reticent.run import write_text

__all__ = ["write_page"]

NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
CURVES = {
    "clip": "DP-SGD: clip to 1",
    "tanh": "tanh filter, as in the thesis",
    "tanh, clip": "tanh filter, then clip to 1",
}
SWEEPS = (
    ("k", "tanh, k {}", (0.1, 1, 10), 1),
    ("c, noise kept at 1.1", "tanh, c {}", (0.1, 1, 10), 1),
    ("noise", "tanh, noise {}", (0.7, 1.1, 4), 1.1),
    ("learning rate, tanh", "tanh, rate {}", (0.015, 0.15, 0.5), 0.15),
    ("learning rate, clip", "clip, rate {}", (0.15, 0.5, 1), 0.15),
)
OTHERS = {
    "tanh, true noise, k 1": "tanh, noise 1.1 times its true bound, k 1",
    "tanh, true noise, k 0.001": "the same, k 0.001 (nearly the sign of each element)",
    "clip, tanh": "clip to 1, then tanh",
    "noise alone": "no filter, no clip (norm a million), noise 1.1",
    "sigmoid": "sigmoid, accounted as the thesis does",
}
REMEDIES = {"none": "none", "clip": "clip the norm", "tanh": "tanh filter"}


def write_page(results: dict, page: Path) -> None:
    """Write the page and its figure."""
    runs, audits = results["runs"], results["audited"]
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    recurrent = results["recurrent"]
    minutes = [
        sum(run["minutes"] for run in runs.values()),
        sum(audit["minutes"] for audit in audits.values()),
        recurrent["minutes"],
    ]
    for name, value in _quoted(runs, audits).items():
        text = text.replace("{" + name + "}", value)
    for name, value in {
        "headline": "\n".join(
            _headline(runs, audits, data, name) for data in NAMES for name in CURVES
        ),
        "epochs": "\n\n".join(_epochs(runs, data) for data in NAMES),
        "sweeps": "\n".join(_sweep(runs, *sweep) for sweep in SWEEPS),
        "others": "\n".join(_other(runs, *pair) for pair in OTHERS.items()),
        "seeds": "\n".join(_seeds(runs, name) for name in CURVES),
        "tuning": "\n".join(_tuning(recurrent["tuning"])),
        "judged": "\n".join(_judged(recurrent["judged"])),
        "tanh_clip": _difference(recurrent["judged"], "tanh", "clip"),
        "tanh_none": _difference(recurrent["judged"], "tanh", "none"),
        "chance": f"{CHANCE:.3f}",
        "minutes": f"{sum(minutes):.0f}",
        "trainings": f"{minutes[0]:.0f}",
        "audits": f"{minutes[1]:.0f}",
        "recurrent": f"{minutes[2]:.0f}",
        "models": str(sum(len(run["correct"]) for run in runs.values())),
        "short_mnist": str(SHORT["mnist"]),
        "short_cifar": str(SHORT["cifar10"]),
        "long_mnist": str(LONG["mnist"]),
        "long_cifar": str(LONG["cifar10"]),
        "size_mnist": f"{SIZES['mnist']:,}",
        "size_cifar": f"{SIZES['cifar10']:,}",
        "audit_runs": str(RUNS),
        "audit_mnist": _steps(audits, "mnist"),
        "audit_cifar": _steps(audits, "cifar10"),
        "length": str(LENGTH),
        "steps": f"{STEPS:,}",
        "steady": steady_table(),
        **steady_words(),
        "tuned": str(len(TUNED)),
        "fresh": str(len(JUDGED)),
    }.items():
        text = text.replace("{" + name + "}", value)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(
        page.with_suffix(".svg"), drawn([_panel(runs, audits, d) for d in NAMES])
    )
    write_text(page.parent / "tanh_stability.svg", drawn_curves())
    write_text(page, text)


def _quoted(runs: dict, audits: dict) -> dict[str, str]:
    """Return the figures that sentences quote, by name."""
    made = {}
    for key, run in runs.items():
        data, name = key.split("/")
        short = _short(runs, data, name)
        for words, one in ((key, short), (f"long {key}", run)):
            hits = next(iter(one["correct"].values()))[-1]
            made[words] = f"{100 * hits / run['test_records']:.2f} %"
        made[f"claimed {key}"] = _number(short["epsilon"]["claimed"][-1])
        if run["lengths"]:
            made[f"median {key}"] = f"{run['lengths'][-1]['median']:.2f}"
    for data in NAMES:
        made[f"claimed {data}"] = _number(audits[f"{data}/tanh"]["claimed"])
        made[f"shown {data}"] = _number(audits[f"{data}/tanh"]["low"])
        last = runs[f"{data}/tanh"]["lengths"][-1]
        made[f"above {data}"] = f"{last['above_one']:,}"
        made[f"longest {data}"] = f"{last['largest']:.0f}"
    return made


def _steps(audits: dict, data: str) -> str:
    epochs, steps = EPOCHS[data], audits[f"{data}/tanh"]["steps"]
    return f"{steps} steps ({epochs} epoch{'s' if epochs > 1 else ''})"


def _accuracy(run: dict, at: int = -1, seed: str = "0") -> str:
    hits, n = run["correct"][seed][at], run["test_records"]
    found = clopper_pearson(hits, n, level=0.95)
    return f"{100 * hits / n:.2f} % [{100 * found.low:.2f}, {100 * found.high:.2f}]"


def _headline(runs: dict, audits: dict, data: str, name: str) -> str:
    key = f"{data}/{name}"
    run, audit = runs[key], audits[key]
    epsilon = run["epsilon"]
    shown = (
        f"**{_number(audit['low'])}**" if audit["refuted"] else _number(audit["low"])
    )
    cells = [
        NAMES[data],
        CURVES[name],
        _number(epsilon["renyi"][-1]),
        _number(epsilon["claimed"][-1]),
        shown,
        _number(epsilon["proven"][-1]),
        _accuracy(run),
    ]
    return f"| {' | '.join(cells)} |"


def _epochs(runs: dict, data: str) -> str:
    own = [runs[f"{data}/{name}"] for name in CURVES]
    tanh = runs[f"{data}/tanh"]
    head = ["steps", "claimed", "proven, tanh", "clip", "tanh", "tanh, then clip"]
    head += ["median length", "above 1, of 1,000", "longest"]
    lines = [f"{NAMES[data]}:", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for at, steps in enumerate(tanh["steps"]):
        epsilon, length = tanh["epsilon"], tanh["lengths"][at]
        cells = [
            f"{steps}",
            _number(epsilon["claimed"][at]),
            _number(epsilon["proven"][at]),
            *(f"{100 * r['correct']['0'][at] / r['test_records']:.1f} %" for r in own),
            f"{length['median']:.2f}",
            f"{length['above_one']}",
            f"{length['largest']:.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(runs: dict, data: str, name: str) -> dict:
    """Return a run of a sweep, or what a curve had reached after as many epochs."""
    run = runs[f"{data}/{name}"]
    if len(run["steps"]) == 1:
        return run
    at = SHORT[data]  # its first moment is before the first epoch's end
    return run | {
        "correct": {seed: [hits[at]] for seed, hits in run["correct"].items()},
        "epsilon": {k: [v[at]] for k, v in run["epsilon"].items()},
    }


def _sweep(runs: dict, what: str, pattern: str, values: tuple, base: float) -> str:
    lines = []
    for value in values:
        name = pattern.format(f"{value:g}")
        if value == base:
            name = pattern.split(",", maxsplit=1)[0]
        cells = [what, f"{value:g}"]
        for data in NAMES:
            run = _short(runs, data, name)
            epsilon = run["epsilon"]
            cells += [
                _accuracy(run),
                _number(epsilon["claimed"][0]),
                _number(epsilon["proven"][0]),
            ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _other(runs: dict, name: str, words: str) -> str:
    cells = [words]
    for data in NAMES:
        run = _short(runs, data, name)
        epsilon = run["epsilon"]
        cells += [
            _accuracy(run),
            _number(epsilon["claimed"][0]),
            _number(epsilon["proven"][0]),
        ]
    return f"| {' | '.join(cells)} |"


def _seeds(runs: dict, name: str) -> str:
    cells = [CURVES[name]]
    for data in NAMES:
        first, more = _short(runs, data, name), runs[f"{data}/{name}, again"]
        hits = [first["correct"]["0"][0], *(h[0] for h in more["correct"].values())]
        cells.append(
            ", ".join(f"{100 * h / first['test_records']:.2f} %" for h in hits)
        )
    return f"| {' | '.join(cells)} |"


def _of(found: list[dict]) -> dict[tuple, list[dict]]:
    """Return the runs of each remedy, size and rate."""
    made: dict[tuple, list[dict]] = {}
    for one in found:
        made.setdefault((one["remedy"], one["size"], one["rate"]), []).append(one)
    return made


def _tuning(found: list[dict]) -> list[str]:
    by = _of(found)
    rates = sorted({rate for _, _, rate in by})
    lines = [
        f"| remedy | {' | '.join(f'rate {rate:g}' for rate in rates)} |",
        "|---" * (len(rates) + 1) + "|",
    ]
    for remedy, size in dict.fromkeys((r, s) for r, s, _ in by):
        cells = [_remedy(remedy, size)]
        for rate in rates:
            own = by[remedy, size, rate]
            mean = np.mean([one["error"] for one in own])
            lost = sum(one["lost"] for one in own)
            cells.append(f"{mean:.3f}" + (f" ({lost} lost)" if lost else ""))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _judged(found: list[dict]) -> list[str]:
    lines = []
    for (remedy, size, rate), own in _of(found).items():
        errors = np.array([one["error"] for one in own])
        low, high = _student(errors)
        cells = [
            _remedy(remedy, size),
            f"{rate:g}",
            f"{errors.mean():.3f} [{low:.3f}, {high:.3f}]",
            f"{sum(one['lost'] for one in own)} of {len(own)}",
            _number(float(np.median([one["median_length"] for one in own]))),
            _number(float(np.max([one["longest"] for one in own]))),
            f"{np.mean([one['cosine_of_longest'] for one in own]):.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _difference(found: list[dict], first: str, second: str) -> str:
    """Return by how much one remedy errs more than another at the settings chosen for each, seed by seed."""
    chosen: dict[str, dict[int, float]] = {}
    for (remedy, _, _), own in _of(found).items():
        # The first of a remedy is the one that was chosen for it.
        chosen.setdefault(remedy, {one["seed"]: one["error"] for one in own})
    each = np.array([e - chosen[second][s] for s, e in chosen[first].items()])
    low, high = _student(each)
    return f"{each.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def _student(values: np.ndarray) -> tuple[float, float]:
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1)
    half /= math.sqrt(len(values))
    return values.mean() - half, values.mean() + half


def _remedy(remedy: str, size: float) -> str:
    if remedy == "none":
        return "none"
    return f"{REMEDIES[remedy]}, {'k' if remedy == 'tanh' else 'norm'} {size:g}"


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "none at all"
    if value >= 1e9:
        return f"{value:.1e}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _panel(runs: dict, audits: dict, data: str) -> Panel:
    def points(name: str, which: str) -> list[tuple[float, float]]:
        run = runs[f"{data}/{name}"]
        shares = [hits / run["test_records"] for hits in run["correct"]["0"]]
        return list(zip(run["epsilon"][which][1:], shares[1:], strict=True))

    audit = audits[f"{data}/tanh"]
    last = points("tanh", "claimed")[-1][1]
    return Panel(
        title=NAMES[data],
        curves=(
            Curve(
                words="DP-SGD, claimed and proven",
                style="clip",
                points=points("clip", "proven"),
            ),
            Curve(
                words="tanh then clip, claimed and proven",
                style="both",
                points=points("tanh, clip", "proven"),
            ),
            Curve(
                words="tanh filter, claimed",
                style="claimed",
                points=points("tanh", "claimed"),
            ),
            Curve(
                words="tanh filter, shown at least",
                style="audited",
                points=[(audit["low"], last)],
            ),
            Curve(
                words="tanh filter, proven",
                style="proven",
                points=points("tanh", "proven"),
            ),
        ),
    )


if __name__ == "__main__":
    kept = Path(__file__).parent / "results.json"
    write_page(
        json.loads(kept.read_text(encoding="utf-8")), Path("docs/experiments/tanh.md")
    )
