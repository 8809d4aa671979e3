"""Text from strangers, shown so that it cannot steer what shows it.

A name in a table, a product or a dossier may hold the codes by which terminals change colours, titles and clipboards, or
characters that turn the reading direction around. Everything that reticent prints goes through these two functions.
"""

import re

__all__ = ["visible", "visible_json"]

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


def _shown(character: str) -> str:
    if character.isprintable() or character in "\n\t":
        return character
    return " " if character.isspace() and ord(character) > 0x9F else REPLACEMENT


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
