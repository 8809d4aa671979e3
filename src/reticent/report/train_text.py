"""What a private training promises and is worth, as text."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reticent.account import Promise
from reticent.evidence import Estimate
from reticent.report.promise import promise_rows, promise_sentence
from reticent.report.words import percent

__all__ = ["print_training"]


def print_training(
    console: Console,
    *,
    subject: str,
    rows: int,
    asked: str,
    promise: Promise,
    accuracy: Estimate | None,
    guessing: float | None,
    warnings: Sequence[str],
    folder: str,
    audit: str | None,
) -> None:
    """Print what was trained, what it promises, what it is worth, and what to do next."""

    def say(text: str, style: str = "") -> None:
        console.print(Padding(Text(text, style=style), (0, 2)))

    console.print()
    head = (
        "Trained with a guarantee" if promise.holds else "Trained without a guarantee"
    )
    console.print(
        Text(head, style="bold" if promise.holds else "bold red").append(
            f"  {subject}, {rows:,} rows", style="not bold dim"
        )
    )
    console.print()
    say(f"Asked for: {asked}.")
    say(promise_sentence(promise))
    for caveat in promise.caveats:
        say(f"Note: {caveat}.", "yellow")
    table = Table(
        title="The promise, in equivalent statements"
        if promise.holds
        else "What the promise would be with secret noise",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
    )
    table.add_column("statement")
    table.add_column("value", justify="right")
    for words, value in promise_rows(promise):
        table.add_row(words, value)
    console.print(table)
    say(f"How: {promise.mechanism}.", "dim")
    say(f"Treated as public: {'; '.join(promise.public)}.", "dim")
    console.print()
    if accuracy is not None and guessing is not None:
        say(
            f"Accuracy on rows it has not seen: {percent(accuracy.value)} [{percent(accuracy.low)}, {percent(accuracy.high)}]; "
            f"the largest class alone gives {percent(guessing)}. These figures are exact counts over rows that were kept aside; the promise does not "
            "cover them."
        )
    for warning in warnings:
        say(f"Note: {warning}.", "yellow")
    console.print(Text(f"  Product: {folder}"), soft_wrap=True)
    if audit is not None:
        console.print(Text(f"  Put it to the test: {audit}"), soft_wrap=True)
    else:
        say(
            "All rows were used, so nobody is left to compare with: this product cannot be audited on this table."
        )
