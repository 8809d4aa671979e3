"""What an adversary that watches every step of the training came to believe."""

from collections.abc import Sequence

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import Identification, PathPoint, WatchedEvidence
from reticent.report._dossier import Dossier
from reticent.report._markup import (
    block,
    card,
    heading,
    key,
    lead,
    listed,
    table,
    two,
    wrapped,
)
from reticent.report._terminal import grid, paragraph, stack
from reticent.report.plots import UNIT_TICKS, round_ticks
from reticent.report.svg import Axis, Plot
from reticent.report.words import capital, p_words, percent

__all__ = [
    "WatchedSection",
    "watched_block",
    "watched_notes",
    "watched_text",
    "watched_words",
]

WHO = (
    "The adversary knows every record except whether one of them was used, the initial weights, and who else took part in each step, and sees everything "
    "that the training releases on its way. Nobody who sees only the finished model knows more."
)
HEADS = ("", "found", "the mechanism allows")
CHECK_HEADS = ("", "it is stated that", "found", "p-value")
CHECKED = (
    "Each statement is put to the test; a p-value pays for all steps, tensors and pairs among which the smallest was chosen. One that is false stops the release: the "
    "guarantee then speaks of another training. That a statement holds means that nothing was found against it."
)
TRUSTED = "The guarantee rests on this as well, and watching cannot see it:"
_DEPARTS = 0.01  # p-value below which the notes speak of a departure


class WatchedSection:
    """The strongest adversary that a mechanism's guarantee speaks of."""

    title = "What an adversary that watches every step finds out"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return the beliefs beside what the mechanism allows; None if nothing was watched."""
        return None if dossier.watched is None else watched_block(dossier.watched)

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        return None if dossier.watched is None else watched_text(dossier.watched)


def watched_block(watched: Identification) -> Markup:
    """Return what was found, for a page."""
    evidence = watched.evidence
    sides = [("member", "runs with the record"), ("other", "runs without it")]
    path = ("member", "middle run, and 90 % of runs")
    return block(
        lead(WHO, watched_words(watched)),
        table(HEADS, _rows(evidence)),
        two(
            card(_beliefs(evidence), key([*sides, ("bad", "belief")])),
            card(_belief_path(evidence), key([path, ("soft", "not knowing")])),
            card(_sensitivity_path(evidence), key([path])),
            card(
                _calibration(evidence),
                key(
                    [
                        ("other", "what came true, with joint intervals"),
                        ("soft", "diagonal"),
                    ]
                ),
            ),
        ),
        listed(watched_notes(evidence)),
        *_checks_block(evidence),
    )


def watched_text(watched: Identification) -> RenderableType:
    """Return what was found, for a terminal."""
    evidence = watched.evidence
    parts: list[RenderableType | None] = [grid(HEADS, _rows(evidence), ragged=True)]
    if evidence.checks:
        parts.append(paragraph(CHECKED))
        parts.append(grid(CHECK_HEADS, _check_rows(evidence), ragged=True))
    if evidence.trusted:
        parts.append(paragraph(TRUSTED, *(f"- {each};" for each in evidence.trusted)))
    return stack(*parts)


def watched_words(watched: Identification) -> str:
    """Return what was watched, in a sentence."""
    evidence = watched.evidence
    return (
        f"{evidence.runs:,} trainings of {evidence.steps:,} steps on {watched.rows:,} rows, {watched.sampling}, {watched.relation} neighbours; "
        f"sensitivity {watched.sensitivity}; the tables differ in {watched.neighbour}."
    )


def watched_notes(evidence: WatchedEvidence) -> list[str]:
    """Return whether beliefs and noise are what they should be."""
    come = "come" if evidence.calibration.p_value >= _DEPARTS else "do not come"
    looks = "looks" if evidence.normality >= _DEPARTS else "does not look"
    return [
        f"Beliefs {come} true as often as they say ({p_words(evidence.calibration.p_value)}); the noise "
        f"{looks} normal ({p_words(evidence.normality)}).",
        "What the mechanism allows is exact, by its privacy loss distribution.",
    ]


def _checks_block(evidence: WatchedEvidence) -> list[Markup]:
    """Return what is stated of the training beside what was found, and what is taken on trust."""
    parts = []
    if evidence.checks:
        rows = (
            (word, wrapped(asked), wrapped(found), p_value)
            for word, asked, found, p_value in _check_rows(evidence)
        )
        parts += [heading("What is stated, and what was found"), lead(CHECKED)]
        parts.append(table(CHECK_HEADS, rows))
    if evidence.trusted:
        parts += [heading("Taken on trust"), lead(TRUSTED)]
        parts.append(listed(f"{capital(each)}." for each in evidence.trusted))
    return parts


def _check_rows(evidence: WatchedEvidence) -> list[tuple[str, str, str, str]]:
    return [
        (
            "holds" if check.passed else "FALSE",
            check.asked,
            check.found,
            p_words(check.p_value) if check.alarm else "",
        )
        for check in evidence.checks
    ]


def _rows(evidence: WatchedEvidence) -> list[tuple[str, str, str]]:
    exceeded = evidence.exceeded
    return [
        (
            "advantage (TPR - FPR) of its guesses",
            str(evidence.advantage),
            f"at most {evidence.advantage_bound:.3f}",
        ),
        (
            f"runs in which it believes the truth with more than {percent(evidence.belief)}",
            exceeded.percent,
            f"at most {percent(evidence.exceeded_bound)}",
        ),
        ("noise, as a multiple of the stated noise", str(evidence.noise), "1"),
    ]


def _beliefs(evidence: WatchedEvidence) -> Markup:
    """Draw the final beliefs in the first table, of runs that used it and that did not."""
    histogram = evidence.beliefs
    # Some air above the highest bar, and an axis also if there is none.
    top = max(*histogram.members, *histogram.nonmembers, 1e-6) * 1.08
    plot = _half(
        Axis(
            low=0.0,
            high=1.0,
            ticks=UNIT_TICKS,
            label="final belief that the record was used",
        ),
        Axis(
            low=0.0,
            high=top,
            ticks=round_ticks(0.0, top),
            label="share of runs",
            percent=True,
        ),
        "Final beliefs of runs with and without the record",
    )
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


def _calibration(evidence: WatchedEvidence) -> Markup:
    """Draw beliefs against how often they came true."""
    plot = _half(
        Axis(low=0.0, high=1.0, ticks=UNIT_TICKS, label="final belief"),
        Axis(low=0.0, high=1.0, ticks=UNIT_TICKS, label="how often it was true"),
        "Calibration of final beliefs",
    )
    plot.line([(0.0, 0.0), (1.0, 1.0)], "chance")
    for each in evidence.calibration.bins:
        observed = each.observed
        tip = (
            f"belief {each.predicted:.2f}, true in {observed} of {each.records:,} runs"
        )
        plot.rise(each.predicted, observed.low, observed.high, "whisker thin")
        plot.dot(each.predicted, observed.value, "point", tip, radius=4)
    return plot.svg("plot-belief-calibration")


def _belief_path(evidence: WatchedEvidence) -> Markup:
    """Draw the belief in the truth over steps."""
    plot = _path(
        evidence.belief_path,
        Axis(low=0.0, high=1.0, ticks=UNIT_TICKS, label="belief in the truth"),
        "Belief in the truth over steps",
    )
    plot.line([(plot.x.low, 0.5), (plot.x.high, 0.5)], "chance")
    plot.line(
        [(plot.x.low, evidence.belief), (plot.x.high, evidence.belief)],
        "limit",
        f"a belief of {evidence.belief:g}",
    )
    return plot.svg("plot-belief-path")


def _sensitivity_path(evidence: WatchedEvidence) -> Markup:
    """Draw how far apart the two tables' sums lie over steps."""
    top = 1.08 * max(point.high for point in evidence.sensitivity_path) or 1.0
    plot = _path(
        evidence.sensitivity_path,
        Axis(low=0.0, high=top, ticks=round_ticks(0.0, top), label="local sensitivity"),
        "Local sensitivity over steps",
    )
    return plot.svg("plot-sensitivity-path")


def _path(points: Sequence[PathPoint], y: Axis, title: str) -> Plot:
    # An axis from 1 to 1 would have no length.
    last = max(points[-1].step, 2)
    steps = sorted({1, *(round(t) for t in round_ticks(1, last) if 1 < t <= last)})
    plot = _half(Axis(low=1, high=last, ticks=steps, label="step"), y, title)
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


def _half(x: Axis, y: Axis, title: str) -> Plot:
    """Return an empty drawing that shares its line with another."""
    plot = Plot(x=x, y=y, title=title, width=440, height=330, left=60)
    plot.axes()
    return plot
