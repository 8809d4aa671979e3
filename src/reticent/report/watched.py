"""What an adversary that watches every step came to believe: sections, a page of its own, text."""

from collections.abc import Sequence
from importlib import resources

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reticent.evidence import Epsilons, Identification
from reticent.report import figures_watched
from reticent.report._markup import card, key, lead, listed, table, text
from reticent.report.epsilons import (
    epsilons_rows,
    epsilons_section,
    refuted_sentence,
)
from reticent.report.words import p_words, percent

__all__ = [
    "epsilons_table",
    "print_identification",
    "render_identification",
    "watched_section",
    "watched_table",
]

WHO = (
    "The adversary knows every record but whether one of them was used, the initial weights, who else took part in each step, and sees everything the training "
    "releases on its way. Nobody who sees only the finished model knows more."
)


def watched_section(found: Identification | None) -> str:
    """Return the section of a page; empty if nothing was watched."""
    if found is None:
        return ""
    evidence = found.evidence
    sides = [("member", "runs with the record"), ("other", "runs without it")]
    return (
        "<h2>What an adversary that watches every step finds out</h2>"
        + lead(WHO, _watched_words(found))
        + table(("", "found", "the mechanism allows"), _cells(found))
        + '<div class="two">'
        + card(figures_watched.beliefs(evidence), key([*sides, ("bad", "belief")]))
        + card(
            figures_watched.belief_path(evidence),
            key([("member", "middle run, and 90 % of runs"), ("soft", "not knowing")]),
        )
        + card(
            figures_watched.sensitivity_path(evidence),
            key([("member", "middle run, and 90 % of runs")]),
        )
        + card(
            figures_watched.calibration(evidence),
            key([("other", "what came true, intervals jointly"), ("soft", "diagonal")]),
        )
        + "</div>"
        + listed(_notes(found))
    )


def render_identification(found: Identification) -> str:
    """Return a page of its own."""

    def part(name: str) -> str:
        return (
            resources.files("reticent.report")
            .joinpath(name)
            .read_text(encoding="utf-8")
        )

    word = "REFUTED" if found.epsilons.refuted else "NOT REFUTED"
    css = "REFUSE" if found.epsilons.refuted else "INCONCLUSIVE"
    what = " · ".join(found.subject.values())
    body = (
        f"<h1>Is the guarantee of this training true? {text(what)}</h1>"
        f'<div class="verdict {css}"><strong>{word}</strong><p>{text(refuted_sentence(found.epsilons))}</p></div>'
        + "".join(
            f'<p class="warning">{text(_capital(w))}.</p>' for w in found.warnings
        )
        + epsilons_section(found.epsilons, told=True)
        + watched_section(found)
        + "<h2>How to repeat it</h2>"
        + f"<pre>{text(found.repeat)}</pre>"
        + f"<p>Seed {found.seed}. Recipe <code>{text(found.recipe)}</code>.</p>"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{word}: {text(what)}</title><style>{part('page.css')}</style></head>\n"
        f'<body><main>{body}</main><div id="tip" role="status"></div><script>{part("page.js")}</script></body></html>\n'
    )


def print_identification(found: Identification, console: Console) -> None:
    """Print the result: the three epsilons first, then beliefs."""

    def say(words: str, style: str = "") -> None:
        console.print(Padding(Text(words, style=style), (0, 2)))

    refuted = found.epsilons.refuted
    head = Text(
        "REFUTED" if refuted else "NOT REFUTED",
        style="bold red" if refuted else "bold yellow",
    )
    head.append(f"  {' · '.join(found.subject.values())}", style="not bold dim")
    console.print()
    console.print(head)
    console.print()
    say(refuted_sentence(found.epsilons))
    for warning in found.warnings:
        say(f"Note: {warning}.", "yellow")
    console.print(epsilons_table(found.epsilons))
    console.print(watched_table(found))
    say(_watched_words(found), "dim")
    for note in _notes(found):
        say(note, "dim")


def epsilons_table(epsilons: Epsilons) -> Table:
    """Return the three epsilons for a terminal."""
    return _table(
        f"Three epsilons (delta {epsilons.delta:.2g}, {epsilons.relation})",
        ("", "epsilon", "where it comes from"),
        epsilons_rows(epsilons),
    )


def watched_table(found: Identification) -> Table:
    """Return what the adversary that watched found, for a terminal."""
    return _table(
        "The adversary that watched every step",
        ("", "found", "the mechanism allows"),
        _rows(found),
    )


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    made = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for head in heads:
        made.add_column(head)
    for row in rows:
        made.add_row(*row)
    return made


def _watched_words(found: Identification) -> str:
    e = found.evidence
    return (
        f"{e.runs:,} trainings of {e.steps:,} steps on {found.rows:,} rows, {found.sampling}, {found.relation} neighbours; sensitivity {found.sensitivity}; "
        f"the tables differ in {found.neighbour}."
    )


def _rows(found: Identification) -> list[tuple[str, str, str]]:
    e = found.evidence
    return [
        (
            "advantage (TPR - FPR) of its guesses",
            str(e.advantage),
            f"at most {e.advantage_bound:.3f}",
        ),
        (
            f"runs in which it believes the truth more than {percent(e.belief)}",
            f"{percent(e.exceeded.value)} [{percent(e.exceeded.low)}, {percent(e.exceeded.high)}]",
            f"at most {percent(e.exceeded_bound)}",
        ),
        ("noise, in units of the stated one", str(e.noise), "1"),
    ]


def _cells(found: Identification) -> list[tuple[str, ...]]:
    return [tuple(text(cell) for cell in row) for row in _rows(found)]


def _notes(found: Identification) -> list[str]:
    e = found.evidence
    return [
        f"Beliefs {'come' if e.calibration.p_value >= 0.01 else 'do not come'} true as often as they say ({p_words(e.calibration.p_value)}); the noise "
        f"{'looks' if e.normality >= 0.01 else 'does not look'} normal ({p_words(e.normality)}).",
        "What the mechanism allows is exact, by its privacy loss distribution.",
    ]


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
