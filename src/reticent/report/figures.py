"""The drawings of what the product leaks, from numbers of the dossier alone."""

from reticent.evidence import AttackEvidence, Estimate, strongest
from reticent.report._dossier import Dossier
from reticent.report._plots import (
    MARK,
    UNIT_TICKS,
    fill_histogram,
    histogram_plot,
    interval,
    reach,
    row_name,
    rows_plot,
)
from reticent.report._svg import Axis, Plot
from reticent.report.words import POOL_NAMES, looks_inside, percent, plain

__all__ = ["calibration", "groups", "individual", "roc", "scoreboard", "scores"]


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
    plot = rows_plot(
        len(rows),
        "score (1 is best)",
        "Utility and privacy with intervals",
        ends=reach([row[1].low for row in rows], least=1.0),
    )
    for place, (name, estimate, limit) in enumerate(reversed(rows)):
        _row(plot, place, name, estimate, limit)
    return plot.svg("plot-scoreboard")


def groups(dossier: Dossier) -> str:
    """Draw the privacy of each group with its interval."""
    found = sorted(dossier.evidence.groups, key=lambda g: g.privacy.value)
    limit = dossier.policy.limits.group_privacy_at_least
    plot = rows_plot(len(found), "privacy score (1 is best)", "Privacy by group")
    for place, group in enumerate(reversed(found)):
        _row(
            plot, place, group.name, group.privacy, limit, f"{group.members:,} members"
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
        height=470,
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
    others = [attack for attack in attacks if attack is not best]
    for number, attack in enumerate(others):
        family = "pool" if attack.name in POOL_NAMES else "query"
        if looks_inside(attack.name):
            family = "inside"
        plot.line(_curve(attack), f"other {family} other-{number % 4}")
    for attack in others:
        # A wide line that nobody sees catches the mouse; the nearest to the best lies on top.
        tip = f"{plain(attack.name)}: LTU accuracy {attack.auc}, TPR {attack.tpr_at_fpr} at FPR {percent(attack.fpr)}"
        plot.line(_curve(attack), "catch", tip)
    plot.line(_curve(best), "curve")
    limits = dossier.policy.limits
    if limits.tpr_at_most:
        plot.parts.append(_diamond(plot, limits.tpr_at_fpr, limits.tpr_at_most))
    for point in best.roc:
        tip = (
            f"{plain(best.name)}: at FPR {percent(point.fpr)} TPR {percent(point.tpr.value)} "
            f"({percent(point.tpr.low)} to {percent(point.tpr.high)})"
        )
        if not point.resolved:
            tip += "; too few non-members to see this rate"
        plot.dot(point.fpr, max(point.tpr.value, 1e-4), "hit", tip, radius=7)
    return plot.svg("plot-roc")


def scores(dossier: Dossier) -> str:
    """Draw the scores of members and non-members side by side."""
    histogram = dossier.evidence.scores
    best = plain(strongest(dossier.evidence.attacks).name)
    plot = histogram_plot(
        histogram,
        f"score of the attack '{best}' (right: like a member)",
        "Scores of members and non-members",
        (histogram.edges[0], histogram.edges[-1]),
    )
    fill_histogram(plot, histogram, "score", ".3g")
    return plot.svg("plot-scores")


def individual(dossier: Dossier) -> str:
    """Draw how individual privacy is distributed over members, against no leak."""
    histogram = dossier.evidence.individual
    edges, bins = histogram.edges, len(histogram.members)
    plot = histogram_plot(
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
    """Draw predicted against observed membership, with the band of the bins' joint intervals."""
    curve = dossier.evidence.calibration
    plot = Plot(
        x=Axis(
            low=0.0,
            high=1.0,
            ticks=UNIT_TICKS,
            label="predicted probability of membership",
        ),
        y=Axis(low=0.0, high=1.0, ticks=UNIT_TICKS, label="share that were members"),
        title="Calibration of predicted membership",
        width=440,
        height=330,
        left=60,
    )
    plot.axes()
    bins = curve.bins if curve else ()
    plot.area(
        [(b.predicted, b.observed.high) for b in bins]
        + [(b.predicted, b.observed.low) for b in reversed(bins)],
        "band-other",
    )
    plot.line([(0.0, 0.0), (1.0, 1.0)], "chance")
    for each in bins:
        observed = each.observed
        tip = f"predicted {each.predicted:.2f}, observed {observed} of {each.records:,} people"
        plot.rise(each.predicted, observed.low, observed.high, "whisker thin")
        plot.dot(each.predicted, observed.value, "point", tip, radius=4)
    return plot.svg("plot-calibration")


def _row(
    plot: Plot,
    place: int,
    name: str,
    estimate: Estimate,
    limit: float | None,
    more: str = "",
) -> None:
    if limit is not None:
        plot.rise(
            limit, place - 0.42, place + 0.02, "limit", f"limit: at least {limit:g}"
        )
    row_name(plot, place, name, str(estimate))
    interval(plot, place + MARK, name, estimate, more=more)


def _curve(attack: AttackEvidence) -> list[tuple[float, float]]:
    return [(p.fpr, max(p.tpr.value, 1e-4)) for p in attack.roc]


def _diamond(plot: Plot, x: float, y: float) -> str:
    at, up = plot.px(x), plot.py(y)
    return (
        f'<path class="limit-mark" d="M{at} {up - 7} L{at + 7} {up} L{at} {up + 7} L{at - 7} {up} Z" '
        f'data-tip="limit: at FPR {percent(x)} a TPR of at most {percent(y)}" tabindex="0"/>'
    )
