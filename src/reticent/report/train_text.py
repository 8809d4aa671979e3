"""What a private training guarantees and is worth, as text."""

from collections.abc import Callable
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reticent.account import Guarantee
from reticent.evidence import Estimate
from reticent.report._dossier import Dossier
from reticent.report._terminal import paragraph
from reticent.report.sections.guarantee import guarantee_rows, guarantee_sentence
from reticent.report.words import percent

__all__ = ["SynthesisSummary", "TrainingSummary", "print_synthesis", "print_training"]


@dataclass(frozen=True, kw_only=True)
class TrainingSummary:
    """What there is to say about a private training.

    Parameters
    ----------
    subject : str
        What the table is called.
    rows : int
        Rows that were trained on.
    target : str
        The risk that was accepted, in words.
    guarantee : Guarantee or None
        What holds for the product; None if the training adds no noise.
    accuracy : Estimate or None
        Accuracy on rows that were held out, if there are any.
    guessing : float or None
        Accuracy of always answering the most frequent class, on the same rows.
    warnings : tuple of str
        What users should know about the training.
    folder : str
        The folder of the product.
    audit : str or None
        The command that audits it; None if nobody is left to compare with.
    """

    subject: str
    rows: int
    target: str
    guarantee: Guarantee | None
    accuracy: Estimate | None
    guessing: float | None
    warnings: tuple[str, ...]
    folder: str
    audit: str | None


@dataclass(frozen=True, kw_only=True)
class SynthesisSummary:
    """What there is to say about a synthetic table.

    Parameters
    ----------
    subject : str
        What the real table is called.
    rows, columns : int
        Of the synthetic table; how many rows the real one has is not said.
    target : str
        The risk that was accepted, in words.
    guarantee : Guarantee
        What holds for everybody in the real table.
    warnings : tuple of str
        What users should know about the table.
    file : str
        Where it was written.
    dossier : Dossier or None
        What its audit has found; None if there was none.
    audit : str or None
        The command that audits it; None if nobody is left to compare with.
    """

    subject: str
    rows: int
    columns: int
    target: str
    guarantee: Guarantee
    warnings: tuple[str, ...]
    file: str
    dossier: Dossier | None
    audit: str | None


def print_synthesis(summary: SynthesisSummary, console: Console) -> None:
    """Print what was made, what it guarantees, and what to do next."""
    holds = summary.guarantee.holds

    def say(text: str, style: str = "") -> None:
        console.print(paragraph(text, style=style))

    console.print()
    head = "Made with a guarantee" if holds else "Made without a guarantee"
    console.print(
        Text(head, style="bold" if holds else "bold red").append(
            f"  like {summary.subject}: {summary.rows:,} rows, {summary.columns} columns",
            style="not bold dim",
        )
    )
    console.print()
    say(f"Asked for: {summary.target}.")
    _print_guarantee(summary.guarantee, console, say)
    console.print()
    for warning in summary.warnings:
        say(f"Note: {warning}", "yellow")
    if summary.dossier is not None:
        say(_price(summary.dossier))
        say(
            "The guarantee covers the synthetic table alone. What follows was counted on real records without noise: choosing among several tables by it, or passing it "
            "on, spends privacy that the guarantee does not count."
        )
    else:
        say(
            "The guarantee covers the file alone. Choosing among several synthetic tables by how well they fit the records spends privacy that it does not count."
        )
    console.print(Text(f"  Synthetic table: {summary.file}"), soft_wrap=True)
    if summary.audit is not None:
        words = "Put it to the test" if summary.dossier is None else "Audit it again"
        console.print(Text(f"  {words}: {summary.audit}"), soft_wrap=True)
    elif summary.dossier is None:
        say(
            "All rows were used, so nobody is left to compare with: how useful the table is, and whether attacks find anything in it, cannot be told with these records."
        )


def _price(dossier: Dossier) -> str:
    """Return what a model loses that learns from the synthetic table in place of the real one."""
    utility = dossier.evidence.utility
    real = next(iter(utility.beside.values()), None)
    if utility.gain is None or real is None:
        return "There was nothing to predict, so the price of the table against the real one was not measured."
    return (
        f"Its price: on people whom nobody used, a model that learned from the synthetic table saves {utility.gain.percent} of the errors of a constant answer, and "
        f"one that learned from the real rows that were used saves {real.percent}."
    )


def print_training(summary: TrainingSummary, console: Console) -> None:
    """Print what was trained, what it guarantees, what it is worth, and what to do next."""
    guarantee, accuracy = summary.guarantee, summary.accuracy
    holds = guarantee is not None and guarantee.holds

    def say(text: str, style: str = "") -> None:
        console.print(paragraph(text, style=style))

    console.print()
    head = "Trained with a guarantee" if holds else "Trained without a guarantee"
    console.print(
        Text(head, style="bold" if holds else "bold red").append(
            f"  {summary.subject}, {summary.rows:,} rows", style="not bold dim"
        )
    )
    console.print()
    say(f"Asked for: {summary.target}.")
    if guarantee is None:
        say(
            "Nothing is guaranteed: the training adds no noise, so only an audit says what the product tells of its records.",
            "yellow",
        )
    else:
        _print_guarantee(guarantee, console, say)
    console.print()
    if accuracy is not None and summary.guessing is not None:
        say(
            f"Accuracy on rows it has not seen: {accuracy.percent}; "
            f"always answering the most frequent class gives {percent(summary.guessing)}. These figures are exact counts over rows that were kept aside; the guarantee does not "
            "cover them."
        )
    for warning in summary.warnings:
        say(f"Note: {warning}.", "yellow")
    console.print(Text(f"  Product: {summary.folder}"), soft_wrap=True)
    if summary.audit is not None:
        console.print(Text(f"  Put it to the test: {summary.audit}"), soft_wrap=True)
    else:
        say(
            "All rows were used, so nobody is left to compare with: this product cannot be audited on this table."
        )


def _print_guarantee(
    guarantee: Guarantee, console: Console, say: Callable[..., None]
) -> None:
    """Print a guarantee, what it rests on, and its equivalent statements."""
    say(guarantee_sentence(guarantee))
    for caveat in guarantee.caveats:
        say(f"Note: {caveat}.", "yellow")
    table = Table(
        title="The guarantee, in equivalent statements"
        if guarantee.holds
        else "What the guarantee would be with secret noise",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
    )
    table.add_column("statement")
    table.add_column("value", justify="right")
    for words, value in guarantee_rows(guarantee):
        table.add_row(words, value)
    console.print(table)
    say(f"How: {guarantee.mechanism}.", "dim")
    say(f"Treated as public: {'; '.join(guarantee.public)}.", "dim")
