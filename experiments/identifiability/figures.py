"""The pictures of the page, each a file that stands alone."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import expit, ndtr, ndtri
from settings import BELIEF, CLIP, DELTA, STEPS
from summary import BELIEFS

from reticent.account import analytic_noise
from reticent.report import Axis, Plot

__all__ = [
    "accuracies",
    "belief_kept",
    "beliefs",
    "bounds",
    "distances",
    "guarantee",
    "sensitivity",
]

STYLE = (
    "text{font:13px sans-serif;fill:#333}.tick,.note{font-size:12px}.grid{stroke:#e4e4e4}"
    ".box{fill:#cfe3f1;stroke:#1b5e8c}.box.other{fill:#f6dfc8;stroke:#a85b12}.whisker{stroke:#1b5e8c}.whisker.other{stroke:#a85b12}"
    ".middle{fill:#1b5e8c}.middle.other{fill:#a85b12}.limit{stroke:#b00020;stroke-dasharray:5 3;fill:none}"
    ".chance{stroke:#888;stroke-dasharray:3 3;fill:none}.curve{fill:none;stroke:#1b5e8c;stroke-width:1.8}"
    ".curve.other{stroke:#a85b12}.curve.thin{stroke-width:1;stroke-dasharray:2 2}.band{fill:#1b5e8c;opacity:.18}.band.other{fill:#a85b12}"
    ".point{fill:#1b5e8c;opacity:.55}.point.other{fill:#a85b12}"
)
Box = tuple[str, Sequence[float], str]  # name, quantiles, colour


def beliefs(results: dict) -> str:
    """Draw the final beliefs in the truth of the eight cells of Table 5.1 (Figure 5.1 a)."""
    boxes: list[Box] = []
    for noise, css in (("renyi", ""), ("exact", "other")):
        for where in (
            "bounded, local",
            "bounded, global",
            "unbounded, local",
            "unbounded, global",
        ):
            cell = results["cells"][f"{where.replace(', ', '-')}-{noise}"]
            words = {"renyi": "source's noise", "exact": "exact noise"}[noise]
            boxes.append((f"{where}, {words}", cell["quantiles"], css))
    plot = _rows(
        [name for name, _, _ in boxes],
        Axis(
            low=0,
            high=1,
            ticks=(0, 0.2, 0.4, 0.6, 0.8, 1),
            label="final belief in the table that was used",
        ),
        "Final beliefs in the truth: 5th, 25th, 50th, 75th and 95th percentile of runs",
    )
    _fill(plot, boxes)
    _upright(plot, 0.5, "chance")
    _upright(plot, BELIEF, "limit")
    return _standing(plot, "beliefs")


def sensitivity(results: dict) -> str:
    """Draw how far apart the two tables' sums lie over the steps (Figure 5.1 b)."""
    plot = Plot(
        x=Axis(low=1, high=STEPS, ticks=(1, 5, 10, 15, 20, 25, 30), label="step"),
        y=Axis(
            low=0,
            high=7,
            ticks=range(8),
            label="distance of the two sums of clipped gradients",
        ),
        title="Distance of the sums over the steps",
    )
    plot.axes()
    for name, css, words in (
        ("bounded-global-exact", "", "bounded: the pair chosen by SSIM"),
        ("unbounded-global-exact", "other", "unbounded: the record chosen by SSIM"),
    ):
        path = results["cells"][name]["distance_path"]
        ends = [(p[0], p[3]) for p in path] + [(p[0], p[1]) for p in reversed(path)]
        plot.area(ends, f"band {css}")
        plot.line([(p[0], p[2]) for p in path], f"curve {css}")
        plot.note(STEPS, path[-1][3] + 0.18, words, anchor="end")
    for value, words in (
        (CLIP, "C"),
        (2 * CLIP, "2C, what global bounded noise is scaled to"),
    ):
        plot.line([(1, value), (STEPS, value)], "limit")
        plot.note(1.3, value + 0.18, words)
    return _standing(plot, "sensitivity")


def accuracies(results: dict) -> str:
    """Draw the test accuracy of every training (Figure 5.2)."""
    kept = [
        t
        for t in results["trainings"].values()
        if not t["plain"] and t["noise"] != "none"
    ]
    order = {"renyi": 0, "belief": 1, "exact": 2}
    kept.sort(key=lambda t: (t["rows"], t["reach"], order[t["noise"]]))
    names = [
        f"{t['rows']:,} records, {_reach(t['reach'])}, {_noise(t['noise'])}"
        for t in kept
    ]
    plot = _rows(
        names,
        Axis(
            low=0,
            high=1,
            ticks=(0, 0.2, 0.4, 0.6, 0.8, 1),
            label="test accuracy",
            percent=True,
        ),
        "Test accuracy of every training, and the mean",
        left=270,
    )
    for place, t in zip(range(len(kept) - 1, -1, -1), kept, strict=True):
        css = "other" if t["noise"] == "exact" else ""
        found = np.array(list(t["correct"].values())) / 10_000
        for value in found:
            plot.dot(float(value), place, f"point {css}", radius=3.2)
        mean = float(found.mean())
        plot.slab(mean - 0.001, mean + 0.001, place, f"middle {css}", half=9)
    return _standing(plot, "accuracies")


def distances(results: dict) -> str:
    """Draw the distances over all steps of neighbours from most to least unlike (Figure 5.3)."""
    cells, pairs = results["cells"], results["neighbours"]["pairs"]
    boxes: list[Box] = []
    for name in (
        "gradient",
        "ssim",
        "ssim-2",
        "ssim-3",
        "alike-3",
        "alike-2",
        "alike-1",
    ):
        found = cells["bounded-global-exact" + ("" if name == "ssim" else f"-{name}")]
        a, b = pairs[name]["classes"]
        words = f"{pairs[name]['dissimilarity']:.3f} ({a} for {b})"
        if name == "gradient":
            words = "by gradient: " + words
        boxes.append((words, found["distance"], "other" if name == "gradient" else ""))
    plot = _rows(
        [name for name, _, _ in boxes],
        Axis(
            low=0,
            high=6.2,
            ticks=range(7),
            label="distance of the two sums, all steps and runs",
        ),
        "Distance by the dissimilarity of the pair, 1 - SSIM",
    )
    _fill(plot, boxes)
    _upright(plot, 2 * CLIP, "limit")
    return _standing(plot, "distances")


def guarantee(results: dict) -> str:
    """Draw how often the belief in the truth exceeds a value, and the most that the noise allows."""
    plot = Plot(
        x=Axis(
            low=0.5,
            high=0.98,
            ticks=(0.5, 0.6, 0.7, 0.8, 0.9),
            label="belief in the truth",
        ),
        y=Axis(
            low=1e-3,
            high=1,
            ticks=(0.001, 0.01, 0.1, 1),
            label="share of runs that exceed it",
            log=True,
            percent=True,
        ),
        title="How often a belief is exceeded",
        height=400,
    )
    plot.axes()
    fine = np.linspace(0.5, 0.98, 97)
    for noise, css in (("renyi", ""), ("exact", "other")):
        mu = math.sqrt(STEPS) / results["noise"][noise]
        odds = np.log(fine / (1 - fine))
        bound = ndtr((mu**2 / 2 - odds) / mu)
        plot.line(list(zip(fine, bound, strict=True)), f"curve thin {css}")
        cell = results["cells"][f"bounded-local-{noise}"]
        seen = [
            (b, s) for b, s in zip(BELIEFS, cell["above"], strict=True) if s >= 1e-3
        ]
        plot.line([p for p in seen if p[0] <= 0.98], f"curve {css}")
    plot.line([(BELIEF, 1e-3), (BELIEF, 1)], "chance")
    plot.line([(0.5, DELTA), (0.98, DELTA)], "limit")
    plot.note(0.505, DELTA * 1.15, "delta")
    plot.note(
        0.505, 0.0018, "dashed: exact; blue: the source's noise; brown: exact noise"
    )
    return _standing(plot, "guarantee")


def belief_kept(mu: float, delta: float) -> float:
    """Return the belief that is exceeded with probability delta if two normal releases lie mu deviations apart."""
    return float(expit(mu**2 / 2 - mu * ndtri(delta)))


def bounds(results: dict) -> str:
    """Draw what the source's bounds say and what is true of Gaussian noise, over epsilon (Figure 4.2)."""
    del results  # nothing was run for it
    epsilons = np.linspace(0.05, 6, 60)
    shown = []
    for title, label, printed, exact in (
        (
            "Belief",
            "belief in the truth",
            lambda e, _: 1 / (1 + math.exp(-e)),
            belief_kept,
        ),
        (
            "Advantage",
            "advantage of the best adversary",
            lambda e, d: 2 * ndtr(e / math.sqrt(2 * math.log(1.25 / d)) / 2) - 1,
            lambda mu, _: 2 * ndtr(mu / 2) - 1,
        ),
    ):
        low = 0.5 if title == "Belief" else 0.0
        plot = Plot(
            x=Axis(low=0, high=6, ticks=range(7), label="epsilon"),
            y=Axis(
                low=low,
                high=1,
                ticks=(0.5, 0.6, 0.7, 0.8, 0.9, 1)
                if low
                else (0, 0.2, 0.4, 0.6, 0.8, 1),
                label=label,
            ),
            title=f"{title} against epsilon",
            height=320,
        )
        plot.axes()
        for delta, css in ((1e-2, ""), (1e-6, "other")):
            least = [1 / analytic_noise(float(e), delta) for e in epsilons]
            true = [exact(mu, delta) for mu in least]
            said = [printed(float(e), delta) for e in epsilons]
            plot.line(list(zip(epsilons, true, strict=True)), f"curve {css}")
            plot.line(list(zip(epsilons, said, strict=True)), f"curve thin {css}")
        words = "dashed: the source's formula; blue: delta 0.01; brown: delta 1e-6"
        at = (5.9, low + 0.04, "end") if low else (0.1, 0.93, "start")
        plot.note(at[0], at[1], words, anchor=at[2])
        shown.append(_standing(plot, title.lower()))
    return _stacked(shown)


def _stacked(drawings: Sequence[str]) -> str:
    """Return drawings of one size one below another."""
    width, height = (
        int(v) for v in drawings[0].split('viewBox="0 0 ')[1].split('"')[0].split()
    )
    inner = "".join(
        d.replace(
            "<svg ", f'<svg y="{k * height}" width="{width}" height="{height}" ', 1
        )
        for k, d in enumerate(drawings)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height * len(drawings)}">{inner}</svg>\n'


def _rows(names: Sequence[str], x: Axis, title: str, left: int = 230) -> Plot:
    plot = Plot(
        x=x,
        y=Axis(low=-0.5, high=len(names) - 0.5, ticks=range(len(names)), label=""),
        title=title,
        width=680,
        height=66 + 30 * len(names),
        left=left,
    )
    plot.axes(y_labels=list(reversed(names)))
    return plot


def _fill(plot: Plot, boxes: Sequence[Box]) -> None:
    for place, (_, q, css) in zip(range(len(boxes) - 1, -1, -1), boxes, strict=True):
        plot.span(q[1], q[5], place, f"whisker {css}")
        plot.slab(q[2], q[4], place, f"box {css}", half=8)
        width = (plot.x.high - plot.x.low) / 500
        plot.slab(q[3] - width, q[3] + width, place, f"middle {css}", half=8)


def _upright(plot: Plot, value: float, css: str) -> None:
    plot.rise(value, plot.y.low, plot.y.high, css)


def _reach(reach: float) -> str:
    return {1.0: "C", 2.0: "2C"}.get(reach, f"{reach:g}C")


def _noise(noise: str) -> str:
    return {"renyi": "source's noise", "exact": "exact noise", "belief": "belief kept"}[
        noise
    ]


def _standing(plot: Plot, name: str) -> str:
    """Return a drawing that needs no page around it."""
    inner = str(plot.svg(name)).split(">", 1)
    head = inner[0].replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    back = f'<rect width="{plot.width}" height="{plot.height}" fill="white"/>'
    return f"{head}><style>{STYLE}</style>{back}{inner[1]}\n"
