"""An identification as a file: JSON for machines, a page and text for people."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from reticent._codec import decode, encode
from reticent._json import read_json, write_json
from reticent.errors import InvalidInput, OutputRefused
from reticent.evidence import Identification
from reticent.report._markup import block, heading, page, template, warning
from reticent.report._terminal import paragraph, stack, visible
from reticent.report._version_2 import IDENTIFICATION_1, identification_from_version_1
from reticent.report.sections.epsilons import (
    EpsilonsSection,
    epsilons_block,
    epsilons_text,
    refuted_sentence,
)
from reticent.report.sections.watched import (
    WatchedSection,
    watched_block,
    watched_notes,
    watched_text,
    watched_words,
)
from reticent.report.words import capital
from reticent.run import write_text

__all__ = [
    "IDENTIFICATION_FILE",
    "IDENTIFICATION_NAME",
    "identification_json",
    "print_identification",
    "read_identification",
    "render_identification",
    "save_identification",
]

IDENTIFICATION_NAME = "reticent-identification-2"
IDENTIFICATION_FILE = "identification.json"

_BANNER = template(
    """\
<h1>Is the guarantee of this training true? {{ what }}</h1>
<div class="verdict {{ css }}"><strong>{{ word }}</strong><p>{{ sentence }}</p></div>"""
)
_HOW = template(
    "<pre>{{ repeat }}</pre><p>Seed {{ seed }}. Recipe <code>{{ recipe }}</code>.</p>"
)


def identification_json(found: Identification) -> str:
    """Return the result of watching a training as JSON text."""
    content = {"schema": IDENTIFICATION_NAME, **encode(found)}
    return write_json(content)


def read_identification(text: str) -> Identification:
    """Return what :func:`identification_json` wrote; what version 0.1 wrote is converted.

    Raises
    ------
    InvalidInput
        If the text is not an identification.
    """
    content = read_json(text, "JSON that `reticent identify --json` printed")
    schema = content.pop("schema", None)
    if schema == IDENTIFICATION_1:
        content = identification_from_version_1(content)
    elif schema != IDENTIFICATION_NAME:
        raise InvalidInput(
            f"the schema is {schema!r}, but {IDENTIFICATION_NAME!r} is read here; write it again with this version."
        )
    identification: Identification = decode(Identification, content)
    return identification


def save_identification(found: Identification, folder: Path | str) -> Path:
    """Write ``identification.json`` and ``identification.html``; return the folder.

    In the folder of a product, they are part of its audit.

    Raises
    ------
    OutputRefused
        If the folder cannot be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputRefused(
            f"the folder {folder} cannot be made ({error.strerror or error}); choose another."
        ) from error
    write_text(folder / IDENTIFICATION_FILE, identification_json(found))
    write_text(folder / "identification.html", render_identification(found))
    return folder


def render_identification(found: Identification) -> str:
    """Return the result as a self-contained page."""
    word, sentence = _verdict(found)
    what = " · ".join(found.subject.values())
    body = block(
        _BANNER(
            what=what,
            css="REFUSE" if found.contradicted else "INCONCLUSIVE",
            word=word,
            sentence=sentence,
        ),
        *(warning(f"{capital(words)}.") for words in found.warnings),
        heading(EpsilonsSection.title, 2),
        epsilons_block(found.epsilons),
        heading(WatchedSection.title, 2),
        watched_block(found),
        heading("How to repeat it", 2),
        _HOW(repeat=found.repeat, seed=found.seed, recipe=found.recipe),
    )
    return page(f"{word}: {what}", body)


def print_identification(found: Identification, console: Console) -> None:
    """Print the result: the three epsilons first, then the beliefs."""
    word, sentence = _verdict(found)
    head = Text(word, style="bold red" if found.contradicted else "bold yellow")
    what = visible(" · ".join(found.subject.values()))
    head.append(f"  {what}", style="not bold dim")
    console.print()
    console.print(
        stack(
            head,
            paragraph(sentence),
            paragraph(*(f"Note: {words}." for words in found.warnings), style="yellow"),
            Text(EpsilonsSection.title, style="bold"),
            epsilons_text(found.epsilons),
            Text(WatchedSection.title, style="bold"),
            watched_text(found),
            paragraph(
                watched_words(found), *watched_notes(found.evidence), style="dim"
            ),
        ),
        markup=False,
    )


def _verdict(found: Identification) -> tuple[str, str]:
    """Return what was found in a word and in a sentence or two."""
    sentence = refuted_sentence(found.epsilons)
    false = found.departures
    if false:
        stated = "; ".join(f"that {check.asked} (found: {check.found})" for check in false)  # fmt: skip
        sentence += f" The training is not the one that its guarantee speaks of. It is not true {stated}."
    if found.epsilons.refuted:
        return "REFUTED", sentence
    return "NOT AS STATED" if false else "NOT REFUTED", sentence
