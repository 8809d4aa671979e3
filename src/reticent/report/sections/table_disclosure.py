"""Neighbours, singling out, linkability and attribute inference: what describes a synthetic table and decides nothing."""

from collections.abc import Iterator
from functools import partial

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import DescribedTable, Disclosure, Estimate, PrivacyLoss
from reticent.report._dossier import Dossier
from reticent.report._markup import block, heading, lead, table
from reticent.report._terminal import Fitting, grid, on_two_lines, paragraph, stack
from reticent.report.words import whole

__all__ = ["TableDisclosureSection"]

HEADS = ("question", "members", "non-members", "without the table", "difference")
ACCURACY_HEADS = ("adversarial accuracy", "both terms", "of real rows", "of synthetic rows")  # fmt: skip
WORDS = (
    "What European guidance asks of anonymous data, each as a difference between members and people whom the generator never saw: what a table tells about everybody "
    "is its purpose, and only the difference is a leak. Intervals hold one by one, and the verdict does not rest on them."
)


class TableDisclosureSection:
    """Whether people can be singled out, linked or guessed, and whether rows lie too near."""

    title = "Singling out, linkability, inference"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return the three questions and the adversarial accuracies; None for a model."""
        described = _described(dossier)
        if described is None:
            return None
        return block(
            lead(WORDS),
            table(HEADS, _questions(described)),
            heading("Nearest neighbours"),
            lead(*_neighbour_words(described)),
            lead(_coverage(_recipe(dossier))),
            table(ACCURACY_HEADS, _accuracies(described, _recipe(dossier))),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        described = _described(dossier)
        if described is None:
            return None
        return stack(
            paragraph(WORDS),
            grid(
                (HEADS[0], *HEADS[1:3], HEADS[4]),
                ((q, m, n, d) for q, m, n, _, d in _questions(described)),
            ),
            paragraph(*_neighbour_words(described), _coverage(_recipe(dossier))),
            Fitting(partial(_accuracy_grid, described, _recipe(dossier))),
        )


def _described(dossier: Dossier) -> DescribedTable | None:
    synthetic = dossier.evidence.synthetic
    return None if synthetic is None else synthetic.described


def _recipe(dossier: Dossier) -> PrivacyLoss | None:
    """Return the losses of tables that were made again; None if there are none."""
    synthetic = dossier.evidence.synthetic
    if synthetic is None or synthetic.recipe is None:
        return None
    return synthetic.recipe.loss


def _questions(described: DescribedTable) -> Iterator[tuple[str, str, str, str, str]]:
    found: list[tuple[str, Disclosure | None]] = [
        ("singled out by one value", described.singling_out.values),
        ("singled out by several values", described.singling_out.rows),
        ("two halves of a record linked", described.linkability),
        *((f"'{each.column}' guessed", each.success) for each in described.inference),
    ]
    for question, success in found:
        if success is not None:
            yield (
                question,
                f"{success.members.value:.3f}",
                f"{success.nonmembers.value:.3f}",
                f"{success.baseline.value:.3f}",
                str(success.excess),
            )


def _neighbour_words(described: DescribedTable) -> list[str]:
    loss = described.loss
    return [
        "Whether a row's nearest neighbour is of its own table; 1/2 is ideal, ties count one half, and the sizes are made equal. Low for real rows means "
        "that synthetic ones lie too near; the two terms part where a generator forgets kinds of people.",
        f"Privacy loss of this table, the accuracy on non-members minus that on members: {whole(loss.loss)} (p = {loss.p_value:.2g}); a loss of {loss.visible:.3f} would "
        "have been seen with a probability of 80 %. Near 0 it is no guarantee: exact values that are re-emitted are not seen by any distance.",
    ]


def _coverage(recipe: PrivacyLoss | None) -> str:
    """Return what the losses speak of: this table, or tables of the recipe as well."""
    if recipe is None:
        return "Losses and their intervals are over people and speak of this table alone: its generator was not run again."
    return (
        f"The same generator made {recipe.tables} tables again of the same members, this one not among them. Their mean privacy loss, which is that of the recipe: "
        f"{whole(recipe.loss)} (p = {recipe.p_value:.2g}), with an interval over people and such tables; the p-value is over people alone. What is not said to be of the recipe speaks of this table."
    )


def _accuracy_grid(
    described: DescribedTable, recipe: PrivacyLoss | None, *, narrow: bool
) -> RenderableType:
    return grid(
        ACCURACY_HEADS,
        (
            (name, *(on_two_lines(each, narrow) for each in estimates))
            for name, *estimates in _accuracies(described, recipe)
        ),
        narrow=narrow,
    )


def _accuracies(
    described: DescribedTable, recipe: PrivacyLoss | None
) -> Iterator[tuple[str, Estimate, Estimate, Estimate]]:
    named = [
        ("synthetic rows and members", described.loss.train),
        ("synthetic rows and non-members", described.loss.test),
    ]
    if recipe is not None:
        named += [
            ("tables of the recipe and members", recipe.train),
            ("tables of the recipe and non-members", recipe.test),
        ]
    for name, accuracy in named:
        yield name, accuracy.mean, accuracy.real, accuracy.synthetic
