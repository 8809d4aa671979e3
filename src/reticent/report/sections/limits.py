"""Every limit of the policy, and how it fared."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import Limit
from reticent.policy import Outcome
from reticent.report._dossier import Dossier
from reticent.report._markup import marked, table
from reticent.report._terminal import grid

__all__ = ["LimitsSection"]

HEADS = ("quantity", "found", "limit", "outcome")


class LimitsSection:
    """What the verdict rests on."""

    title = "Limits of the policy"

    def html(self, dossier: Dossier) -> Markup:
        """Return one row per limit."""
        return table(
            HEADS,
            (
                (
                    check.label,
                    "–" if check.estimate is None else check.estimate,
                    _limit(check.limit, "≥", "≤"),
                    marked(check.outcome),
                )
                for check in dossier.decision.limits
            ),
        )

    def text(self, dossier: Dossier) -> RenderableType:
        """Return the same for a terminal."""
        return grid(
            HEADS,
            (
                (
                    check.label,
                    "-" if check.estimate is None else check.estimate,
                    _limit(check.limit, ">=", "<="),
                    "BROKEN" if check.outcome == Outcome.BROKEN else check.outcome,
                )
                for check in dossier.decision.limits
            ),
        )


def _limit(limit: Limit, at_least: str, at_most: str) -> str:
    sign = at_least if limit.at_least is not None else at_most
    return f"{sign} {limit.value:.4g}"
