"""What the file of the product contains: no record stands here, only how many were found."""

from collections.abc import Iterator

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import FileEvidence, FoundInFile
from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, listed, table, wrapped
from reticent.report._terminal import grid, paragraph, stack
from reticent.report.summary import lone_row_sentence
from reticent.report.words import plain, whole

__all__ = ["FileSection", "about_people", "was_seen"]

HEADS = ("what", "members", "non-members", "where in the file")
MOST_NOTES = 5  # places that could not be read, or are as long as the table; more would hide the rest


class FileSection:
    """What whoever holds the file can read in it without a single query."""

    title = "What the file holds"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return counts and places; None if the file was not read."""
        file = dossier.evidence.file
        if file is None:
            return None
        rows = (
            (what, f"{at.members:,}", f"{at.nonmembers:,}", wrapped(_where(at)))
            for what, at in _found(file)
        )
        return block(
            lead(*_words(dossier, file)),
            table(HEADS, rows) if any(_found(file)) else None,
            listed(_notes(file)) if _notes(file) else None,
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        file = dossier.evidence.file
        if file is None:
            return None
        rows = [
            (what, f"{at.members:,}", f"{at.nonmembers:,}") for what, at in _found(file)
        ]
        return stack(
            paragraph(*_words(dossier, file)),
            grid(HEADS[:3], rows) if rows else None,
            paragraph(*(f"- {words}" for words in _notes(file))),
        )


def _words(dossier: Dossier, file: FileEvidence) -> list[str]:
    per = file.records_per_parameter
    density = (
        "no numbers"
        if not file.parameters
        else f"{file.parameters:,} numbers, {_rate(per)}"
    )
    words = [
        f"The file has {file.size:,} bytes and {density}.",
        f"Every record of {file.members:,} members and {file.nonmembers:,} non-members was looked for in it.",
    ]
    if any(_found(file)) and not was_seen(file):
        words.append(
            "The product never saw the non-members, so those of them that are found are coincidences, and as many of the members may be."
        )
    elif not any(_found(file)):
        words.append(_none_found(file))
    if file.rare_values:
        words.append(
            f"{file.rare_values:,} different values stand in it that fewer than {file.smallest_group} people share."
        )
    reader = next(
        (
            a
            for a in (*dossier.evidence.attacks, *dossier.evidence.aside)
            if a.family == "reads the file"
        ),
        None,
    )
    if reader is not None:
        words.append(
            f"Judged like any other attack, '{plain(reader.name)}' tells members from non-members with an LTU accuracy of {whole(reader.auc)}."
        )
    return words


def _rate(per: float) -> str:
    if per >= 1.5:
        return f"one for every {per:,.0f} members"
    return "one for each member" if per > 2 / 3 else f"{1 / per:,.0f} for each member"


def _found(file: FileEvidence) -> Iterator[tuple[str, FoundInFile]]:
    for what, at in (
        ("whole records", file.rows),
        (f"values of fewer than {file.smallest_group} people", file.values),
        ("thresholds and leaves that point to a record", file.trees),
    ):
        if at is not None:
            yield what, at


def _none_found(file: FileEvidence) -> str:
    """Return what it means that no place shows more of the members than of the others."""
    if was_seen(file):
        return "Members and non-members are found in it alike, which no comparison of the two can see."
    if file.long_axes:
        return (
            "An array has an entry for each member, which tells of each by its place."
        )
    return "None was found. A copy that was encrypted, rotated or mixed with others would not be seen."


def was_seen(file: FileEvidence | None) -> bool:
    """Return whether non-members stand in the file whom whoever made it saw."""
    return file is not None and file.held_out is not None and file.held_out.seen


def about_people(file: FileEvidence) -> list[str]:
    """Return what was found of members whom nobody resembles, and of people who are said to be held out."""
    words = [] if file.lone_row is None else [lone_row_sentence(file.lone_row)]
    held_out = file.held_out
    if held_out is not None and was_seen(file):
        words.append(
            f"Held-out people stand there ({held_out.place}) whom whoever made it must have seen: {held_out.found:,} of their records equal no member's, "
            f"where at most {held_out.factor:g} times as many are explained as equal a member's and are missing there."
        )
    return words


def _where(at: FoundInFile) -> str:
    return f"{at.place} ({at.stage})" if at.stage else at.place


def _notes(file: FileEvidence) -> list[str]:
    notes = about_people(file)
    notes += [
        f"As long as the number of members: {place}."
        for place in file.long_axes[:MOST_NOTES]
    ]
    notes += [f"Could not be read: {words}." for words in file.unread[:MOST_NOTES]]
    left = max(0, len(file.long_axes) - MOST_NOTES) + max(0, len(file.unread) - MOST_NOTES)  # fmt: skip
    return [*notes, f"{left} more of these."] if left else notes
