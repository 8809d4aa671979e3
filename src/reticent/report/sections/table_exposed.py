"""Who is exposed by a synthetic table, and by what: rows, values, neighbourhoods. No record and no value stands here."""

from collections.abc import Iterator

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import SyntheticEvidence, people, strongest
from reticent.report._dossier import Dossier
from reticent.report._markup import block, heading, lead, table
from reticent.report._terminal import grid, paragraph, stack
from reticent.report.sections.file import about_people, was_seen
from reticent.report.words import percent, plain, whole

__all__ = ["TableExposedSection"]

HEADS = ("by what", "members", "non-members")
COLUMN_HEADS = ("column", "exact values", "in at most 16 bins")
MOST_COLUMNS = 8  # shown; the others tell less
# Attacks by what they look at, in the words of the report.
KINDS = (
    ("copied rows", ("identical_rows", "hamming_difference")),
    (
        "rows nearby",
        ("rank_distance", "gower_distance", "distance_ratio", "density_ratio"),
    ),
    ("exact values", ("exact_values", "exact_pairs", "exact_triples")),
    ("frequencies in bins", ("tree_likelihood", "pair_marginals")),
)


class TableExposedSection:
    """Rows that are copied, values that one person has, neighbourhoods, and the columns that tell."""

    title = "Who is exposed, and by what"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return counts of people, accuracies by what is compared, and columns; None for a model."""
        synthetic = dossier.evidence.synthetic
        if synthetic is None:
            return None
        return block(
            lead(*_words(dossier, synthetic)),
            table(HEADS, _found(dossier)),
            heading("What is compared"),
            table(
                ("what is compared", "LTU accuracy", "strongest attack"),
                _by_kind(dossier),
            ),
            heading("Columns"),
            lead(*_column_words(synthetic)),
            table(COLUMN_HEADS, _columns(synthetic)),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        synthetic = dossier.evidence.synthetic
        if synthetic is None:
            return None
        return stack(
            paragraph(*_words(dossier, synthetic)),
            grid(HEADS, _found(dossier)),
            grid(
                ("what is compared", "LTU accuracy", "strongest attack"),
                _by_kind(dossier),
            ),
            paragraph(*_column_words(synthetic)),
            grid(COLUMN_HEADS, _columns(synthetic)),
        )


def _words(dossier: Dossier, synthetic: SyntheticEvidence) -> list[str]:
    evidence = dossier.evidence
    words = [
        f"Every record of {evidence.members:,} members and {evidence.nonmembers:,} non-members was compared with the {synthetic.rows:,} synthetic rows, "
        f"and with {synthetic.auxiliary:,} records of other people.",
    ]
    if not was_seen(evidence.file):
        words.append(
            "The generator never saw the non-members, so what is found of them is coincidence, and as much of what is found of members may be."
        )
    if synthetic.searched is not None:
        words.append(
            f"The nearest rows were looked for among {synthetic.searched:,} evenly spaced rows of each table that has more; equal rows and values among all."
        )
    if evidence.file is not None:
        words += about_people(evidence.file)
        words += [
            f"The file holds more than its cells: {what}."
            for what in evidence.file.besides[:MOST_COLUMNS]
        ]
    isolated = synthetic.isolated
    if isolated is not None:
        words.append(
            f"Among the {percent(isolated.share)} of people whom nobody resembles, the strongest attack has an LTU accuracy of {whole(isolated.accuracy)}."
        )
    return words


def _found(dossier: Dossier) -> Iterator[tuple[str, str, str]]:
    file = dossier.evidence.file
    if file is None:
        return
    smallest = file.smallest_group
    for what, at in (
        ("their whole row is in the synthetic table", file.rows),
        (
            f"a value that fewer than {smallest} people have"
            + (
                ""
                if file.values is None
                else f", besides the cells ({file.values.place})"
                if file.values.stage
                else f", in '{file.values.place}'"
            ),
            file.values,
        ),
    ):
        yield (
            what,
            people(0 if at is None else at.members, smallest),
            people(0 if at is None else at.nonmembers, smallest),
        )


def _by_kind(dossier: Dossier) -> Iterator[tuple[str, str, str]]:
    """Yield the strongest attack of each kind."""
    by_name = {attack.name: attack for attack in dossier.evidence.attacks}
    for what, names in KINDS:
        attacks = [by_name[name] for name in names if name in by_name]
        if attacks:
            best = strongest(attacks)
            yield what, str(best.auc), plain(best.name)


def _column_words(synthetic: SyntheticEvidence) -> list[str]:
    leaking = synthetic.leaking
    words = [
        "The LTU accuracy of one column's values alone: how much more frequent a person's value is in the synthetic table than among other people. The "
        "intervals hold together over all columns."
    ]
    if not leaking:
        return [*words, "No column by itself tells members from others."]
    names = ", ".join(f"'{column.name}'" for column in leaking[:MOST_COLUMNS])
    return [*words, f"These tell members from others: {names}."]


def _columns(synthetic: SyntheticEvidence) -> Iterator[tuple[str, str, str]]:
    for column in synthetic.columns[:MOST_COLUMNS]:
        yield (
            column.name,
            str(column.accuracy),
            "–" if column.rounded is None else str(column.rounded),
        )
