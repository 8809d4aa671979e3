"""The drawings of worst cases, and of what many models tell of groups, people and the trainer."""

import math
from collections.abc import Sequence

from reticent.evidence import (
    Convergence,
    DisparityEvidence,
    Estimate,
    PairDifference,
    strongest,
)
from reticent.report._dossier import Dossier
from reticent.report._plots import (
    MARK,
    fill_histogram,
    histogram_plot,
    interval,
    reach,
    round_ticks,
    row_name,
    rows_plot,
    upright,
)
from reticent.report._svg import LANE, Axis, Plot
from reticent.report.words import p_words, plain
from reticent.report.words_pool import bound_words, named_spreads, pairs_that_differ

__all__ = ["convergence", "posterior", "vulnerability", "worst_case"]

MOST_PAIRS = 10  # brackets beyond these would hide each other
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


def vulnerability(dossier: Dossier) -> str:
    """Draw the vulnerability of each group: over the models of a pool, or else for the product alone."""
    disparity = dossier.evidence.pool and dossier.evidence.pool.disparity
    if disparity and named_spreads(dossier.evidence):
        return _over_models(dossier, disparity)
    return _of_product(dossier)


def worst_case(dossier: Dossier) -> str:
    """Draw the most that any adversary could reach, by what it sees, and what attacks did reach."""
    evidence = dossier.evidence
    best = strongest(evidence.attacks)
    rows: list[tuple[str, Estimate, str, str]] = [
        (
            f"sees: {_VIEWS.get(case.feature, case.feature)}",
            case.estimate,
            "",
            f"plain estimate {case.plug_in:.3f}; chance alone shows {case.bias:.3f}, which is taken away; "
            f"{p_words(case.p_value)} by permutation",
        )
        for case in evidence.worst_case
    ]
    if evidence.subgroup_aware:
        rows.append(("sees: that score and the group", evidence.subgroup_aware, "", ""))
    rows.append(
        (f"reached: {plain(best.name)} (best)", best.vulnerability, "reached", "")
    )
    for attack in evidence.attacks:
        if attack.name == "shadow" and attack is not best:
            rows.append(("reached: shadow models", attack.vulnerability, "reached", ""))
    bound = evidence.vulnerability_bound
    plot = rows_plot(
        len(rows),
        "vulnerability (0 is good, 1 is worst)",
        "Worst case against what attacks reached",
        ends=reach(
            [e.low for _, e, _, _ in rows]
            + [e.high for _, e, _, _ in rows]
            + _some(bound)
        ),
    )
    upright(plot, best.vulnerability.value, len(rows), "reached-line")
    _bound(plot, dossier, len(rows))
    for place, (name, estimate, css, more) in enumerate(reversed(rows)):
        row_name(plot, place, name, str(estimate))
        interval(plot, place + MARK, name, estimate, css, more)
    return plot.svg("plot-worst-case")


def posterior(dossier: Dossier) -> str:
    """Draw the predicted probabilities of membership of members and non-members."""
    pool = dossier.evidence.pool
    if pool is None or pool.posterior is None:
        return ""
    plot = histogram_plot(
        pool.posterior,
        "predicted probability of membership",
        "Predicted membership of members and non-members",
        (0.0, 1.0),
    )
    fill_histogram(plot, pool.posterior, "are given a probability of", ".2f")
    return plot.svg("plot-posterior")


def convergence(dossier: Dossier) -> str:
    """Draw what attacks reach with parts of the pool."""
    pool = dossier.evidence.pool
    if pool is None or not pool.convergence:
        return ""
    found = pool.convergence
    sizes = sorted({each.models for each in found})
    low = math.floor(20 * min(each.auc.low for each in found) - 1e-9) / 20
    high = math.ceil(20 * max(each.auc.high for each in found) + 1e-9) / 20
    plot = Plot(
        x=Axis(
            low=sizes[0] / 1.25,
            high=sizes[-1] * 1.25,
            ticks=_spaced(sizes),
            label="models in the pool (each step doubles them)",
            log=True,
        ),
        y=Axis(
            low=low,
            high=high,
            ticks=round_ticks(low, high),
            label="LTU accuracy (0.5 is a coin)",
        ),
        title="LTU accuracy against the number of models",
        height=300,
    )
    plot.axes()
    if low <= 0.5 <= high:
        plot.line([(plot.x.low, 0.5), (plot.x.high, 0.5)], "chance")
    for number, attack in enumerate(dict.fromkeys(each.attack for each in found)):
        _course(plot, [each for each in found if each.attack == attack], number)
    return plot.svg("plot-convergence")


_VIEWS = {
    "0-1 loss": "right or wrong",
    "loss": "the loss",
    "answer and class": "answer and class",
}


def _over_models(dossier: Dossier, disparity: DisparityEvidence) -> str:
    spreads = sorted(
        named_spreads(dossier.evidence), key=lambda g: g.vulnerability.value
    )
    place = {spread.name: k for k, spread in enumerate(spreads)}
    pairs = pairs_that_differ(dossier.evidence)[:MOST_PAIRS]
    lanes = _lanes([(place[pair.first], place[pair.second]) for pair in pairs])
    values = [v for s in spreads for v in (s.vulnerability.low, s.vulnerability.high)]
    values += [v for s in spreads for v in (s.box.low, s.box.high)]
    plot = rows_plot(
        len(spreads),
        "vulnerability (0 is good, 1 is worst)",
        "Vulnerability by group over the models of the pool",
        ends=reach(values + _some(dossier.evidence.vulnerability_bound)),
        pitch=74,
        ruled=-0.5,
        right=28 + (LANE * (1 + max(lanes)) if lanes else 0),
    )
    _bound(plot, dossier, len(spreads))
    for k, spread in enumerate(spreads):
        box = spread.box
        tip = (
            f"{spread.name}: half of the models lie between {box.lower:.3f} and {box.upper:.3f}, the median at {box.median:.3f}, "
            f"all between {box.low:.3f} and {box.high:.3f}"
        )
        row_name(plot, k, spread.name, str(spread.vulnerability))
        plot.span(box.low, box.high, k - 0.1, "reach")
        plot.slab(box.lower, box.upper, k - 0.1, "box", tip)
        plot.rise(box.median, k - 0.2, k, "median")
        interval(plot, k - 0.34, f"{spread.name}, mean", spread.vulnerability)
    for pair, lane in zip(pairs, lanes, strict=True):
        _bracket(plot, pair, lane, place, disparity.correction)
    return plot.svg("plot-vulnerability")


def _of_product(dossier: Dossier) -> str:
    found = sorted(dossier.evidence.groups, key=lambda g: g.vulnerability.value)
    both = [e for g in found for e in (g.vulnerability, g.worst_case)]
    plot = rows_plot(
        len(found),
        "vulnerability (0 is good, 1 is worst)",
        "Vulnerability by group",
        ends=reach(
            [e.low for e in both]
            + [e.high for e in both]
            + _some(dossier.evidence.vulnerability_bound)
        ),
        pitch=66,
        ruled=-0.5,
    )
    _bound(plot, dossier, len(found))
    for place, group in enumerate(found):
        row_name(plot, place, group.name, str(group.vulnerability))
        interval(plot, place - 0.1, f"{group.name}, reached", group.vulnerability)
        interval(
            plot, place - 0.32, f"{group.name}, worst case", group.worst_case, "third"
        )
    return plot.svg("plot-vulnerability")


def _bound(plot: Plot, dossier: Dossier, rows: int) -> None:
    bound = dossier.evidence.vulnerability_bound
    if bound is not None:
        upright(plot, bound, rows, "limit", bound_words(dossier))


def _bracket(
    plot: Plot, pair: PairDifference, lane: int, place: dict[str, int], correction: str
) -> None:
    stars = next(words for below, words in _STARS if pair.adjusted < below)
    low, high = sorted((place[pair.first], place[pair.second]))
    tip = (
        f"{pair.first} less {pair.second}: {pair.difference}; {p_words(pair.adjusted)} adjusted ({correction}), "
        f"{p_words(pair.p_value)} alone"
    )
    plot.bracket(high - 0.1, low - 0.1, lane, "pair", stars, tip)


def _lanes(spans: Sequence[tuple[int, int]]) -> list[int]:
    """Return a lane for each span so that spans of one lane at most touch; short ones lie inside.

    Examples
    --------
    >>> _lanes([(0, 2), (0, 1), (1, 2)])
    [1, 0, 0]
    """
    taken: list[list[tuple[int, int]]] = []
    lanes = [0] * len(spans)
    ordered = sorted(enumerate(spans), key=lambda item: abs(item[1][0] - item[1][1]))
    for number, ends in ordered:
        low, high = sorted(ends)
        lane = next(
            (
                k
                for k, others in enumerate(taken)
                if all(high <= a or b <= low for a, b in others)
            ),
            len(taken),
        )
        if lane == len(taken):
            taken.append([])
        taken[lane].append((low, high))
        lanes[number] = lane
    return lanes


def _course(plot: Plot, points: Sequence[Convergence], number: int) -> None:
    css = ("reached", "")[number % 2]
    # A hair to the side, so that intervals of two attacks do not lie on each other.
    aside = 1 + 0.012 * (1 - 2 * (number % 2))
    plot.line(
        [(p.models * aside, p.auc.value) for p in points], f"course {css}".strip()
    )
    for p in points:
        tip = f"{plain(p.attack)} with {p.models} models: LTU accuracy {p.auc} at {p.auc.level:.0%} confidence"
        at = p.models * aside
        plot.rise(at, p.auc.low, p.auc.high, f"whisker thin {css}".strip(), tip)
        plot.dot(at, p.auc.value, f"point {css}".strip(), tip)


def _spaced(sizes: Sequence[int]) -> list[float]:
    """Return the sizes to write at the axis: all but those too near to the last."""
    last = sizes[-1]
    return [float(size) for size in sizes if size == last or size * 1.5 < last]


def _some(bound: float | None) -> list[float]:
    return [] if bound is None else [bound]
