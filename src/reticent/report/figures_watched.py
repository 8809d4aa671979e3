"""The drawings of what an adversary that watches every step came to believe."""

from collections.abc import Sequence

from reticent.evidence import PathPoint, WatchedEvidence
from reticent.report._plots import UNIT_TICKS, round_ticks
from reticent.report._svg import Axis, Plot
from reticent.report.words import percent

__all__ = ["belief_path", "beliefs", "calibration", "sensitivity_path"]


def beliefs(evidence: WatchedEvidence) -> str:
    """Draw the final beliefs in the first table, of runs that used it and that did not."""
    histogram = evidence.beliefs
    top = max(*histogram.members, *histogram.nonmembers, 1e-6) * 1.08
    plot = Plot(
        x=Axis(
            low=0.0,
            high=1.0,
            ticks=UNIT_TICKS,
            label="final belief that the record was used",
        ),
        y=Axis(
            low=0.0,
            high=top,
            ticks=round_ticks(0.0, top),
            label="share of runs",
            percent=True,
        ),
        title="Final beliefs of runs with and without the record",
        width=440,
        height=330,
        left=60,
    )
    plot.axes()
    for css, shares, who in (
        ("nonmember", histogram.nonmembers, "without the record"),
        ("member", histogram.members, "with the record"),
    ):
        for left, right, share in zip(
            histogram.edges, histogram.edges[1:], shares, strict=False
        ):
            plot.bar(
                left,
                right,
                share,
                css,
                f"{percent(share)} of runs {who} end at a belief of {left:.2f} to {right:.2f}",
            )
    plot.rise(
        evidence.belief,
        0.0,
        top,
        "limit",
        f"a belief of {evidence.belief:g}, exceeded in {percent(evidence.exceeded.value)} of runs",
    )
    return plot.svg("plot-beliefs")


def calibration(evidence: WatchedEvidence) -> str:
    """Draw beliefs against how often they came true."""
    plot = Plot(
        x=Axis(low=0.0, high=1.0, ticks=UNIT_TICKS, label="final belief"),
        y=Axis(low=0.0, high=1.0, ticks=UNIT_TICKS, label="how often it was true"),
        title="Calibration of final beliefs",
        width=440,
        height=330,
        left=60,
    )
    plot.axes()
    plot.line([(0.0, 0.0), (1.0, 1.0)], "chance")
    for each in evidence.calibration.bins:
        observed = each.observed
        tip = (
            f"belief {each.predicted:.2f}, true in {observed} of {each.records:,} runs"
        )
        plot.rise(each.predicted, observed.low, observed.high, "whisker thin")
        plot.dot(each.predicted, observed.value, "point", tip, radius=4)
    return plot.svg("plot-belief-calibration")


def belief_path(evidence: WatchedEvidence) -> str:
    """Draw the belief in the truth over steps."""
    plot = _path(
        evidence.belief_path,
        (0.0, 1.0),
        UNIT_TICKS,
        "belief in the truth",
        "Belief in the truth over steps",
    )
    plot.line([(plot.x.low, 0.5), (plot.x.high, 0.5)], "chance")
    plot.line(
        [(plot.x.low, evidence.belief), (plot.x.high, evidence.belief)],
        "limit",
        f"a belief of {evidence.belief:g}",
    )
    return plot.svg("plot-belief-path")


def sensitivity_path(evidence: WatchedEvidence) -> str:
    """Draw how far apart the two tables' sums lie over steps."""
    top = 1.08 * max(point.high for point in evidence.sensitivity_path) or 1.0
    plot = _path(
        evidence.sensitivity_path,
        (0.0, top),
        round_ticks(0.0, top),
        "local sensitivity",
        "Local sensitivity over steps",
    )
    return plot.svg("plot-sensitivity-path")


def _path(
    points: Sequence[PathPoint],
    ends: tuple[float, float],
    ticks: Sequence[float],
    label: str,
    title: str,
) -> Plot:
    last = max(points[-1].step, 2)
    steps = sorted({1, *(round(t) for t in round_ticks(1, last) if 1 < t <= last)})
    plot = Plot(
        x=Axis(low=1, high=last, ticks=steps, label="step"),
        y=Axis(low=ends[0], high=ends[1], ticks=ticks, label=label),
        title=title,
        width=440,
        height=330,
        left=60,
    )
    plot.axes()
    plot.area(
        [(p.step, p.high) for p in points]
        + [(p.step, p.low) for p in reversed(points)],
        "band",
    )
    plot.line([(p.step, p.middle) for p in points], "curve")
    for p in points:
        plot.dot(
            p.step,
            p.middle,
            "hit",
            f"step {p.step}: {p.middle:.3g} (90 % of runs: {p.low:.3g} to {p.high:.3g})",
            radius=7,
        )
    return plot
