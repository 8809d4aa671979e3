"""Utility and privacy on one axis, with intervals and limits."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import Statement
from reticent.report._dossier import Dossier
from reticent.report._markup import block, card, lead
from reticent.report._terminal import paragraph
from reticent.report.plots import interval_row, reach, rows_plot
from reticent.report.words import capital, percent, whole

__all__ = ["ScoresSection", "scoreboard"]


class ScoresSection:
    """What the product is good for, and how well it hides whom it was trained on."""

    title = "Utility and privacy"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return all scores of which 1 is the best, as a figure."""
        if not _scores(dossier):
            return None
        words = (
            f"Bars are intervals that hold together with {percent(dossier.policy.confidence)} confidence; the red marks "
            f"are the limits of the policy '{dossier.policy.name}'."
        )
        return block(
            lead(words, *utility_words(dossier)),
            card(scoreboard(dossier)),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return what the utility has to be compared with; the scores stand among the limits."""
        return paragraph(*utility_words(dossier))


def utility_words(dossier: Dossier) -> list[str]:
    """Return what an answer without any feature is worth, and the scores that belong to the utility."""
    utility = dossier.evidence.utility
    words = [
        f"{capital(utility.baseline_words)} would have a utility of {utility.baseline:.2f}."
    ]
    if utility.gain is not None and utility.gain != utility.score:
        words.append(
            f"Of the errors of that answer the product saves {whole(utility.gain)}."
        )
    if any(s.estimate is not None and s.estimate.high == 1 for s in _scores(dossier)):
        words.append(
            "No score exceeds 1: where an interval ends there, the end is a cap and not a measurement."
        )
    words += [
        f"{capital(name)} is {estimate}." for name, estimate in utility.beside.items()
    ]
    return words


def scoreboard(dossier: Dossier) -> Markup:
    """Draw scores with their intervals and limits."""
    rows = _scores(dossier)
    estimates = [s.estimate for s in rows if s.estimate is not None]
    plot = rows_plot(
        len(rows),
        "score (1 is best)",
        "Utility and privacy with intervals",
        ends=reach([estimate.low for estimate in estimates], least=1.0),
    )
    for place, (statement, estimate) in enumerate(
        reversed(list(zip(rows, estimates, strict=True)))
    ):
        check = dossier.check(statement.measure)
        limit = None if check is None else check.limit.value
        interval_row(plot, place, statement.label, estimate, limit=limit)
    return plot.svg("plot-scoreboard")


def _scores(dossier: Dossier) -> list[Statement]:
    """Return statements that fit on one axis up to 1, what nobody attacks first."""
    scores = [
        s
        for s in dossier.statements
        # An epsilon or a share that should be low would be misread on an axis where 1 is best.
        if s.better == "higher" and s.estimate is not None and s.estimate.high <= 1
    ]
    return sorted(scores, key=lambda s: bool(s.threat))
