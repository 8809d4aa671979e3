"""A few lines of HTML: text, tables, lists and keys."""

import html
from collections.abc import Iterable, Sequence

__all__ = ["card", "key", "lead", "listed", "table", "text"]


def text(words: object) -> str:
    """Return words that the page shows as they are."""
    return html.escape(str(words))


def lead(*sentences: str) -> str:
    """Return a paragraph of plain sentences; empty ones are left out."""
    return f'<p class="lead">{text(" ".join(s for s in sentences if s))}</p>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already; a narrow screen scrolls it, not the page."""
    head = "".join(f"<th>{text(h)}</th>" for h in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def listed(items: Iterable[str]) -> str:
    """Return a list of plain sentences."""
    return "<ul>" + "".join(f"<li>{text(item)}</li>" for item in items) + "</ul>"


def key(entries: Iterable[tuple[str, str]]) -> str:
    """Return what the colours of a figure mean: names of style variables, and words."""
    items = "".join(
        f'<li><i style="background:var(--{colour})"></i>{text(words)}</li>'
        for colour, words in entries
    )
    return f'<ul class="key">{items}</ul>'


def card(*parts: str) -> str:
    """Return a figure with its key in a frame."""
    return f'<div class="card">{"".join(parts)}</div>'
