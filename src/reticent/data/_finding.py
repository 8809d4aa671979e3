"""What the reader of a verdict should know about the data: a named sentence with a severity."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Severity", "quoted"]

MOST_NAMES = 20  # names listed in a finding; tables with more columns than this are counted, not listed


class Severity(StrEnum):
    """How much a finding weighs."""

    NOTE = "note"
    WARNING = "warning"
    OPEN = "open"  # something was not looked at: the audit cannot end in a release, but may end in a refusal
    STOP = "stop"  # the audit cannot end in a release or a refusal


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something about the data that the reader of a verdict should know.

    Parameters
    ----------
    name : str
        Which check found it.
    severity : Severity
        ``note``, ``warning``, ``open`` (there is no release) or ``stop`` (the audit is inconclusive).
    text : str
        What was found, why it matters, what to do. Names columns and groups, never records.
    """

    name: str
    severity: Severity
    text: str


def quoted(names: list[str]) -> str:
    """Return names in quotation marks, separated by commas; a long list is cut and counted.

    Examples
    --------
    >>> quoted(["age", "sex"])
    "'age', 'sex'"
    """
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
