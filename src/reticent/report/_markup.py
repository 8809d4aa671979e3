"""Elements of the page. Escaping is a type: what is not Markup is text, and is escaped wherever it stands."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reticent._visible import visible_page

__all__ = [
    "block",
    "card",
    "finished",
    "heading",
    "key",
    "lead",
    "listed",
    "marked",
    "note",
    "page",
    "resource",
    "table",
    "template",
    "two",
    "warning",
    "wrapped",
]

ENVIRONMENT = Environment(
    loader=PackageLoader("reticent.report", "templates"),
    # Names of columns, classes and groups come from strangers' tables (decision 0026).
    autoescape=True,
    # A misspelt name in a template is an error, not an empty place in a report.
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def template(source: str) -> Callable[..., Markup]:
    """Return a function of named values that fills a template.

    It escapes every value that is not Markup, and refuses a name that it was not given.

    Examples
    --------
    >>> template("<p>{{ name }}</p>")(name="<b>")
    Markup('<p>&lt;b&gt;</p>')
    """
    parsed = ENVIRONMENT.from_string(source)

    def fill(**values: object) -> Markup:
        return Markup(parsed.render(**values))

    return fill


def block(*parts: str | None) -> Markup:
    """Return parts of the page one after the other; what is empty or None is left out."""
    return Markup("").join(part for part in parts if part)


def lead(*sentences: str) -> Markup:
    """Return a paragraph of sentences below a heading; empty ones are left out."""
    return _element("lead", " ".join(sentence for sentence in sentences if sentence))


def note(words: str) -> Markup:
    """Return a paragraph in small letters."""
    return _element("note", words)


def warning(words: str) -> Markup:
    """Return a paragraph that is set apart."""
    return _element("warning", words)


def heading(words: str, level: int = 3) -> Markup:
    """Return a heading inside a section."""
    return _element("heading", words, level)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table; a narrow screen scrolls it, not the page."""
    return _element("table", heads, rows)


def marked(word: str) -> Markup:
    """Return a word in the colour of what it says: kept, broken, behaved, warning."""
    return _element("marked", word)


def wrapped(words: str) -> Markup:
    """Return the words of a cell that may take several lines."""
    return _element("wrapped", words)


def listed(items: Iterable[str]) -> Markup:
    """Return a list of sentences."""
    return _element("listed", items)


def key(entries: Iterable[tuple[str, str]]) -> Markup:
    """Return what the colours of a figure mean: names of style variables, and words."""
    return _element("key", entries)


def card(*parts: str | None) -> Markup:
    """Return a figure with its key in a frame."""
    return _element("card", block(*parts))


def two(*parts: str | None) -> Markup:
    """Return frames that stand side by side on a wide screen."""
    return _element("two", block(*parts))


def page(title: str, body: Markup) -> str:
    """Return a page that needs nothing from outside."""
    return finished(
        "page.html.j2",
        title=title,
        body=body,
        style=resource("page.css"),
        script=resource("page.js"),
    )


def finished(name: str, **values: object) -> str:
    """Return a whole page: the one door through which every page leaves, whoever wrote its parts.

    Escaping keeps names from becoming markup. What remains are characters that turn the reading direction around or are not seen at all;
    they are replaced here, also in the markup of sections of the user's own.

    Parameters
    ----------
    name : str
        The template of the page.
    **values : object
        What it shows; all but Markup is escaped.
    """
    return visible_page(ENVIRONMENT.get_template(name).render(**values))


@cache
def resource(name: str) -> Markup:
    """Return a style or a script that comes with the package."""
    text = resources.files("reticent.report").joinpath(name).read_text(encoding="utf-8")
    return Markup(text)


@cache
def _elements() -> Any:
    return ENVIRONMENT.get_template("elements.html.j2").module


def _element(name: str, *arguments: object) -> Markup:
    markup = getattr(_elements(), name)(*arguments)
    assert isinstance(markup, Markup), "macros of an escaping environment return Markup"
    return markup
