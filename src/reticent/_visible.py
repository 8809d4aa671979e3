"""Text from strangers, shown so that it cannot steer what shows it.

A name in a table, a product or a dossier may hold the codes by which terminals change colours, titles and clipboards, or
characters that turn the reading direction around. Everything that reticent prints, and every page, goes through one of these functions.
"""

import re

__all__ = ["visible", "visible_json", "visible_page"]

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def visible(words: object) -> str:
    r"""Return words in which every character is printed as itself or as a replacement character.

    Control characters, lone surrogates and invisible characters of format, among them those that turn the reading direction
    around, are replaced. Line feeds and tabs stay; other kinds of space become a plain one.

    Examples
    --------
    >>> visible("red\x1b[31m"), visible("txt.\u202eexe"), visible("a\u00a0b")
    ('red�[31m', 'txt.�exe', 'a b')
    """
    return "".join(map(_shown, str(words)))


def visible_json(text: str) -> str:
    r"""Return JSON text of the same meaning in which characters that could steer a terminal are written as escapes.

    Examples
    --------
    >>> print(visible_json('"caf\u00e9 \x9b31m"'))
    "café \u009b31m"
    """
    return re.sub(
        r"[^\n\x20-\x7e]",
        lambda found: found[0] if found[0].isprintable() else _escaped(found[0]),
        text,
    )


def visible_page(page: str) -> str:
    r"""Return a page in which characters that nobody sees, but which steer what is seen, are replaced.

    These are the ones that :func:`visible` replaces, but for spaces that do not break a line, which are a matter of layout.

    Examples
    --------
    >>> visible_page("<p>txt.\u202eexe</p>") == "<p>txt.\ufffdexe</p>"
    True
    """
    return re.sub(
        r"[^\n\t\x20-\x7e]",
        lambda found: found[0] if _is_wide_space(found[0]) else _shown(found[0]),
        page,
    )


def _shown(character: str) -> str:
    if character.isprintable() or character in "\n\t":
        return character
    return " " if _is_wide_space(character) else REPLACEMENT


def _is_wide_space(character: str) -> bool:
    """Whether a character is a space that is not ASCII; controls that count as spaces lie below."""
    return character.isspace() and ord(character) > 0x9F


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
