"""Privacy and vulnerability by group, and which groups differ over models of the same recipe."""

from collections.abc import Sequence

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import (
    DisparityEvidence,
    Evidence,
    GroupPrivacy,
    GroupSpread,
    PairDifference,
)
from reticent.report._dossier import Dossier
from reticent.report._markup import block, card, heading, key, lead, note, table
from reticent.report._terminal import Fitting, grid, on_two_lines, paragraph, stack
from reticent.report.plots import interval, interval_row, reach, row_name, rows_plot
from reticent.report.sections.bound import BOUND_KEY, bound_words, bounds, draw_bound
from reticent.report.svg import LANE, Plot
from reticent.report.words import p_words, plain, whole

__all__ = [
    "GroupsSection",
    "disparity_words",
    "pairs_that_differ",
    "vulnerability",
]

ALARM = 0.05  # adjusted p-values below this are marked
MOST_PAIRS = 10  # brackets beyond these would hide each other
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


class GroupsSection:
    """Whether a group is less protected than the others."""

    title = "Privacy by group"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return two figures and a table; None if there are no groups."""
        evidence = dossier.evidence
        if not evidence.groups:
            return None
        rows = (
            (
                group.name,
                f"{group.members:,}",
                group.privacy,
                group.vulnerability,
                group.worst_case,
            )
            for group in sorted(evidence.groups, key=lambda g: g.privacy.value)
        )
        words, entries = _vulnerability_words(dossier)
        return block(
            lead(
                worst_off_words(evidence),
                f"Groups of at least {dossier.policy.smallest_group} members and non-members; intervals hold together over groups.",
            ),
            card(_privacy(dossier)),
            heading("Vulnerability by group"),
            lead(*words),
            card(vulnerability(dossier), key(entries)),
            note("For this product and its strongest attack:"),
            table(
                (
                    "group",
                    "members",
                    "privacy (1 is best)",
                    "vulnerability (0 is best)",
                    "worst case (0 is best)",
                ),
                rows,
            ),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the table and the sentence on differences."""
        evidence = dossier.evidence
        if not evidence.groups:
            return None

        def make(*, narrow: bool) -> RenderableType:
            return grid(
                ("group", "members", "privacy", "vulnerability", "worst case"),
                (
                    (
                        group.name,
                        f"{group.members:,}",
                        on_two_lines(group.privacy, narrow),
                        on_two_lines(group.vulnerability, narrow),
                        on_two_lines(group.worst_case, narrow),
                    )
                    for group in sorted(evidence.groups, key=lambda g: g.privacy.value)
                ),
                narrow=narrow,
            )

        return stack(
            paragraph(
                worst_off_words(evidence),
                "Privacy: 1 is best. Vulnerability and worst case: 0 is best.",
            ),
            Fitting(make),
            paragraph(disparity_words(evidence, most=10)),
        )


def worst_off_words(evidence: Evidence) -> str:
    """Return which group is protected least, and whether the intervals tell it from the best protected one."""
    by_privacy = sorted(evidence.groups, key=lambda group: group.privacy.value)
    worst, best = by_privacy[0], by_privacy[-1]
    if worst is best:
        return ""
    words = f"Worst off is '{worst.name}' with a privacy score of {whole(worst.privacy)}; best off is '{best.name}' with {whole(best.privacy)}."
    if worst.privacy.high < best.privacy.low:
        return words
    return f"{words} Their intervals overlap, so this product does not show that they differ."


def named_spreads(evidence: Evidence) -> tuple[GroupSpread, ...]:
    """Return the groups over models, of those that are large enough to be named for the product."""
    if evidence.pool is None or evidence.pool.disparity is None:
        return ()
    names = {group.name for group in evidence.groups}
    return tuple(g for g in evidence.pool.disparity.groups if g.name in names)


def pairs_that_differ(evidence: Evidence) -> list[PairDifference]:
    """Return pairs of named groups with an adjusted p-value below 0.05, the surest first."""
    if evidence.pool is None or evidence.pool.disparity is None:
        return []
    names = {spread.name for spread in named_spreads(evidence)}
    return sorted(
        (
            pair
            for pair in evidence.pool.disparity.pairs
            if pair.adjusted < ALARM and {pair.first, pair.second} <= names
        ),
        key=lambda pair: (pair.adjusted, -abs(pair.difference.value)),
    )


def disparity_words(evidence: Evidence, *, most: int) -> str:
    """Return whether groups differ over models, and which, naming some pairs; empty if they were not compared."""
    if evidence.pool is None or evidence.pool.disparity is None:
        return ""
    disparity = evidence.pool.disparity
    pairs = pairs_that_differ(evidence)
    verdict = "differ" if disparity.p_value < ALARM else "do not clearly differ"
    # The joint test has few degrees of freedom with few models, so single pairs may differ clearly where it does not.
    weak = "; weak with few models" if pairs and disparity.p_value >= ALARM else ""
    whole = f"Over models the groups {verdict} ({p_words(disparity.p_value)}, all groups at once{weak})."
    rule = (
        "without a correction"
        if disparity.correction == "none"
        else f"after {disparity.correction}'s correction"
    )
    if not pairs:
        return f"{whole} No pair differs {rule}."
    named = [
        f"{high} above {low} by {abs(pair.difference.value):.2f} ({p_words(pair.adjusted)})"
        for pair in pairs[:most]
        for high, low in [_ordered(pair)]
    ]
    more = f"; and {len(pairs) - most} more" if len(pairs) > most else ""
    return f"{whole} Pairs that differ {rule}: {'; '.join(named)}{more}."


def vulnerability(dossier: Dossier) -> Markup:
    """Draw the vulnerability of each group: over the models of a pool, or else for the product alone."""
    disparity = dossier.evidence.pool and dossier.evidence.pool.disparity
    if disparity and named_spreads(dossier.evidence):
        return _over_models(dossier, disparity)
    return _of_product(dossier)


def _vulnerability_words(
    dossier: Dossier,
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the sentences above the figure of vulnerability, and its key."""
    evidence = dossier.evidence
    entries = [("other", "reached by the strongest attack"), ("third", "worst case")]
    words = [
        "What the strongest attack reached inside each group, and what the best adversary who sees its score could reach; 0 is good, 1 is worst.",
        bound_words(dossier),
    ]
    if named_spreads(evidence) and evidence.pool and evidence.pool.disparity:
        disparity, pool = evidence.pool.disparity, evidence.pool
        models = pool.targets[0].targets if pool.targets else pool.models
        words = [
            f"How well '{plain(disparity.attack)}' tells members from non-members inside each group, over {models} models of the same recipe; "
            "0 is good, 1 is worst.",
            "The box holds half of the models, its line all of them; the point below it is the mean, with an interval that covers other runs "
            "of the trainer.",
            disparity_words(evidence, most=3),
            _bracket_words(evidence, disparity),
            bound_words(dossier),
        ]
        entries = [("third", "spread over models"), ("other", "mean with interval")]
    if evidence.vulnerability_bound is not None:
        entries.append(BOUND_KEY)
    return words, entries


def _bracket_words(evidence: Evidence, disparity: DisparityEvidence) -> str:
    """Return how to read the brackets."""
    pairs = len(pairs_that_differ(evidence))
    if not pairs:
        return ""
    shown = (
        f"The {MOST_PAIRS} surest of {pairs} such pairs are joined"
        if pairs > MOST_PAIRS
        else "Such pairs are joined"
    )
    return f"{shown} by brackets: * p < 0.05, ** p < 0.01, *** p < 0.001, adjusted by {disparity.correction}."


def _privacy(dossier: Dossier) -> Markup:
    """Draw the privacy of each group with its interval."""
    groups = sorted(dossier.evidence.groups, key=lambda g: g.privacy.value)
    limit = dossier.policy.limit(GroupPrivacy.name)
    value = limit.value if limit is not None and limit.judges else None
    plot = rows_plot(len(groups), "privacy score (1 is best)", "Privacy by group")
    for place, group in enumerate(reversed(groups)):
        interval_row(
            plot,
            place,
            group.name,
            group.privacy,
            limit=value,
            more=f"{group.members:,} members",
        )
    return plot.svg("plot-groups")


def _over_models(dossier: Dossier, disparity: DisparityEvidence) -> Markup:
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
        ends=reach(values + bounds(dossier)),
        pitch=74,
        ruled=-0.5,
        right=28 + (LANE * (1 + max(lanes)) if lanes else 0),
    )
    draw_bound(plot, dossier, len(spreads))
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


def _of_product(dossier: Dossier) -> Markup:
    groups = sorted(dossier.evidence.groups, key=lambda g: g.vulnerability.value)
    both = [e for g in groups for e in (g.vulnerability, g.worst_case)]
    plot = rows_plot(
        len(groups),
        "vulnerability (0 is good, 1 is worst)",
        "Vulnerability by group",
        ends=reach([e.low for e in both] + [e.high for e in both] + bounds(dossier)),
        pitch=66,
        ruled=-0.5,
    )
    draw_bound(plot, dossier, len(groups))
    for place, group in enumerate(groups):
        row_name(plot, place, group.name, str(group.vulnerability))
        interval(plot, place - 0.1, f"{group.name}, reached", group.vulnerability)
        interval(
            plot, place - 0.32, f"{group.name}, worst case", group.worst_case, "third"
        )
    return plot.svg("plot-vulnerability")


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
    # Short brackets first, so that they lie nearest to their rows.
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


def _ordered(pair: PairDifference) -> tuple[str, str]:
    if pair.difference.value >= 0:
        return pair.first, pair.second
    return pair.second, pair.first
