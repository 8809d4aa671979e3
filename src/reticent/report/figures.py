"""The drawings of the report, from numbers of the dossier alone."""

import math

from reticent.evidence import AttackEvidence, Estimate, Histogram, strongest
from reticent.report._dossier import Dossier
from reticent.report._svg import Axis, Plot
from reticent.report.words import percent

__all__ = ["calibration", "groups", "individual", "roc", "scoreboard", "scores"]

_UNIT_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def scoreboard(dossier: Dossier) -> str:
    """Draw utility and privacy with their intervals and limits."""
    limits, evidence = dossier.policy.limits, dossier.evidence
    rows: list[tuple[str, Estimate, float | None]] = [
        ("utility", evidence.utility, limits.utility_at_least),
        ("privacy, outsider", evidence.privacy, limits.privacy_at_least),
    ]
    if evidence.insider:
        limit = (
            limits.insider_privacy_at_least
            if "insider" in dossier.policy.decides_on
            else None
        )
        rows.append(("privacy, insider", evidence.insider.privacy, limit))
    low = min(0.0, *(row[1].low for row in rows))
    plot = _rows_plot(
        [row[0] for row in rows],
        "score (1 is best)",
        "Utility and privacy with intervals",
        low=low,
    )
    for place, (name, estimate, limit) in enumerate(reversed(rows)):
        _row(plot, place, name, estimate, limit)
    return plot.svg("plot-scoreboard")


def groups(dossier: Dossier) -> str:
    """Draw the privacy of each group with its interval."""
    found = sorted(dossier.evidence.groups, key=lambda g: g.privacy.value)
    limit = dossier.policy.limits.group_privacy_at_least
    plot = _rows_plot(
        [g.name for g in found],
        "privacy score (1 is best)",
        "Privacy by group",
        left=180,
    )
    for place, group in enumerate(reversed(found)):
        _row(
            plot,
            place,
            f"{group.name} ({group.members:,} members)",
            group.privacy,
            limit,
        )
    return plot.svg("plot-groups")


def roc(dossier: Dossier) -> str:
    """Draw the ROC curves on logarithmic axes, with the band of the best attack."""
    ticks = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    plot = Plot(
        x=Axis(
            low=1e-4,
            high=1.0,
            ticks=ticks,
            label="false-positive rate: share of non-members wronged",
            log=True,
            percent=True,
        ),
        y=Axis(
            low=1e-4,
            high=1.0,
            ticks=ticks,
            label="true-positive rate: share of members found",
            log=True,
            percent=True,
        ),
        title="ROC curves on logarithmic axes",
        height=440,
    )
    attacks = dossier.evidence.attacks
    best = strongest(attacks)
    unresolved = [p.fpr for p in best.roc if not p.resolved]
    if unresolved:
        edge = min(1.0, 1 / dossier.evidence.nonmembers)
        plot.area([(1e-4, 1e-4), (edge, 1e-4), (edge, 1.0), (1e-4, 1.0)], "unseen")
    plot.axes()
    if unresolved:
        plot.note(1.15e-4, 0.62, "too few non-members to see", css="note")
    band = [(p.fpr, max(p.tpr.high, 1e-4)) for p in best.roc]
    band += [(p.fpr, max(p.tpr.low, 1e-4)) for p in reversed(best.roc)]
    plot.area(band, "band")
    plot.line([(1e-4, 1e-4), (1.0, 1.0)], "chance")
    for number, attack in enumerate(attacks):
        if attack is not best:
            plot.line(_curve(attack), f"other other-{number % 4}")
    plot.line(_curve(best), "curve")
    limits = dossier.policy.limits
    if limits.tpr_at_most:
        plot.parts.append(_diamond(plot, limits.tpr_at_fpr, limits.tpr_at_most))
    for point in best.roc:
        tip = (
            f"{best.name.replace('_', ' ')}: at FPR {percent(point.fpr)} TPR {percent(point.tpr.value)} "
            f"({percent(point.tpr.low)} to {percent(point.tpr.high)})"
        )
        if not point.resolved:
            tip += "; too few non-members to see this rate"
        plot.dot(point.fpr, max(point.tpr.value, 1e-4), "hit", tip, radius=7)
    return plot.svg("plot-roc")


def scores(dossier: Dossier) -> str:
    """Draw the scores of members and non-members side by side."""
    histogram = dossier.evidence.scores
    best = strongest(dossier.evidence.attacks).name.replace("_", " ")
    edges = histogram.edges
    plot = _histogram_plot(
        histogram,
        f"score of the attack '{best}' (right: like a member)",
        "Scores of members and non-members",
        (edges[0], edges[-1]),
    )
    for css, shares, who in (
        ("nonmember", histogram.nonmembers, "non-members"),
        ("member", histogram.members, "members"),
    ):
        for left, right, share in zip(edges, edges[1:], shares, strict=False):
            plot.bar(
                left,
                right,
                share,
                css,
                f"{percent(share)} of {who} score {left:.3g} to {right:.3g}",
            )
    return plot.svg("plot-scores")


def individual(dossier: Dossier) -> str:
    """Draw how individual privacy is distributed over members, against no leak."""
    histogram = dossier.evidence.individual
    edges, bins = histogram.edges, len(histogram.members)
    plot = _histogram_plot(
        histogram,
        "individual privacy score (left: exposed)",
        "Individual privacy of members",
        (0.0, 1.0),
    )
    for left, right, share in zip(edges, edges[1:], histogram.members, strict=False):
        plot.bar(
            left,
            right,
            share,
            "member",
            f"{percent(share)} of members have individual privacy {left:.2f} to {right:.2f}",
        )
    # Without a leak the wins of a member are uniform: half of the members reach a score of 1.
    flat = 0.5 / bins
    plot.line(
        [(0.0, flat), (edges[-2], flat), (edges[-2], 0.5 + flat), (1.0, 0.5 + flat)],
        "chance",
    )
    below = dossier.policy.limits.exposed_below
    plot.rise(
        below,
        0.0,
        plot.y.high,
        "limit",
        f"individual privacy below {below:g} counts as exposed",
    )
    return plot.svg("plot-individual")


def calibration(dossier: Dossier) -> str:
    """Draw predicted against observed membership."""
    curve = dossier.evidence.calibration
    plot = Plot(
        x=Axis(
            low=0.0,
            high=1.0,
            ticks=_UNIT_TICKS,
            label="predicted probability of membership",
        ),
        y=Axis(low=0.0, high=1.0, ticks=_UNIT_TICKS, label="share that were members"),
        title="Calibration of predicted membership",
        width=440,
        height=360,
    )
    plot.axes()
    plot.line([(0.0, 0.0), (1.0, 1.0)], "chance")
    for each in curve.bins if curve else ():
        observed = each.observed
        tip = f"predicted {each.predicted:.2f}, observed {observed} of {each.records:,} people"
        plot.rise(each.predicted, observed.low, observed.high, "whisker")
        plot.dot(each.predicted, observed.value, "point", tip)
    return plot.svg("plot-calibration")


def _rows_plot(
    names: list[str], label: str, title: str, *, low: float = 0.0, left: int = 140
) -> Plot:
    places = [float(p) for p in range(len(names))]
    plot = Plot(
        x=Axis(low=low, high=1.0, ticks=_UNIT_TICKS, label=label),
        y=Axis(low=-0.6, high=len(names) - 0.4, ticks=places, label=""),
        title=title,
        height=74 + 46 * len(names),
        left=left,
    )
    plot.axes(y_labels=[_shorten(name) for name in reversed(names)])
    return plot


def _row(
    plot: Plot, place: int, name: str, estimate: Estimate, limit: float | None
) -> None:
    tip = f"{name}: {estimate} at {estimate.level:.0%} confidence"
    if limit is not None:
        plot.rise(
            limit, place - 0.36, place + 0.36, "limit", f"limit: at least {limit:g}"
        )
    plot.span(estimate.low, estimate.high, place, "whisker", tip)
    plot.dot(estimate.value, place, "point", tip, radius=6)


def _histogram_plot(
    histogram: Histogram, label: str, title: str, ends: tuple[float, float]
) -> Plot:
    top = max(*histogram.members, *histogram.nonmembers, 1e-6) * 1.08
    step = (ends[1] - ends[0]) / 4
    digits = 2 if step < 10 else 0
    return _with_axes(
        Plot(
            x=Axis(
                low=ends[0],
                high=ends[1],
                ticks=[round(ends[0] + k * step, digits) for k in range(5)],
                label=label,
            ),
            y=Axis(
                low=0.0,
                high=top,
                ticks=_round_ticks(top),
                label="share of people",
                percent=True,
            ),
            title=title,
            width=440,
            height=310,
        )
    )


def _round_ticks(top: float) -> list[float]:
    """Return two to five ticks at round shares, from 0 to at most the top."""
    raw = top / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw)
    return [round(k * step, 9) for k in range(5) if k * step <= top]


def _with_axes(plot: Plot) -> Plot:
    plot.axes()
    return plot


def _curve(attack: AttackEvidence) -> list[tuple[float, float]]:
    return [(p.fpr, max(p.tpr.value, 1e-4)) for p in attack.roc]


def _diamond(plot: Plot, x: float, y: float) -> str:
    at, up = plot.px(x), plot.py(y)
    return (
        f'<path class="limit-mark" d="M{at} {up - 7} L{at + 7} {up} L{at} {up + 7} L{at - 7} {up} Z" '
        f'data-tip="limit: at FPR {percent(x)} a TPR of at most {percent(y)}" tabindex="0"/>'
    )


def _shorten(name: str, most: int = 24) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
