"""What the audit of a synthetic table did not look at."""

from collections.abc import Iterator

from reticent.report._dossier import Dossier
from reticent.report.sections.not_run import NotRunSection

__all__ = ["TableNotRunSection"]

WORDS = (
    "This audit asks whether somebody was in the real table. Nothing is known about the following. No synthetic table answers every question: "
    "it was judged on the uses that stand in this report, and on no others. The figures here were computed from real records and have no guarantee of "
    "their own: whoever publishes them, or chooses among many tables by them, tells something about these records."
)
SHADOWS = (
    "shadow generators",
    "who was in the table, from tables that the same generator makes of known people",
)
GENERATOR = (
    "the generator itself",
    "what its file or its critic tells; only the rows were looked at",
)
CRITIC = (
    "the weights of the critic",
    "what its file tells beyond its scores; only these were looked at",
)
NEVER = (
    (
        "regenerating insider",
        "who was in the table, if all others, the recipe and its seed are known",
    ),
    ("reconstruction", "whole records from many tables, or from published measures"),
    ("property inference", "what share of the real table has some property"),
    ("poisoning", "what somebody learns who put records into the real table"),
    ("linkage with other releases", "what several tables or models tell together"),
)


class TableNotRunSection(NotRunSection):
    """What was not looked at of a synthetic table."""

    words = WORDS

    def kinds(self, dossier: Dossier) -> Iterator[tuple[str, str]]:
        """Return what was left out, each with what it would look for."""
        if dossier.evidence.pool is None:
            yield SHADOWS
        if not any(attack.name == "critic" for attack in dossier.evidence.attacks):
            yield GENERATOR
        else:
            yield CRITIC
        yield from NEVER
