"""Numbers and names as words, the same in every section."""

import math
from decimal import Decimal

__all__ = ["capital", "epsilon_words", "p_words", "percent", "plain", "whole"]


def percent(share: float) -> str:
    """Return a share as text: 0.001 is '0.1 %'.

    Examples
    --------
    >>> percent(0.001), percent(0.5), percent(0.9986), percent(5e-7)
    ('0.1 %', '50 %', '99.9 %', '0.00005 %')
    """
    number = 100 * share
    if not math.isfinite(number):
        return f"{number} %"
    # From 99.95 on, one decimal would round to 100.0.
    if number == 0 or abs(number) >= 99.95 or abs(number - round(number)) < 1e-9:
        return f"{number:.0f} %"
    if abs(number) >= 1:
        return f"{number:.1f} %"
    # Two digits, but never as 5e-05.
    return f"{Decimal(f'{number:.2g}'):f} %"


def p_words(p_value: float) -> str:
    """Return a p-value as text.

    Examples
    --------
    >>> p_words(0.0000123), p_words(0.0312), p_words(0.5)
    ('p < 0.001', 'p = 0.031', 'p = 0.5')
    """
    # Most tests here are by permutation and resolve no smaller p-value, so none is printed.
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def epsilon_words(epsilon: float | None) -> str:
    """Return an epsilon with as many digits as it deserves; a dash if there is none.

    Examples
    --------
    >>> epsilon_words(2.1972), epsilon_words(221_312.5), epsilon_words(None)
    ('2.20', '221,312', '–')
    """
    if epsilon is None or math.isinf(epsilon):
        return "–"
    # An epsilon of 100 protects nobody, whatever its decimals.
    return f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.2f}"


def whole(estimate: object) -> str:
    """Return a number with its interval as text that no line break cuts in two."""
    return str(estimate).replace(" ", "\u00a0")


def plain(name: str) -> str:
    """Return an attack's name as words: 'combined_pool' is 'combined pool'."""
    return name.replace("_", " ")


def capital(words: str) -> str:
    """Return words that begin a sentence.

    Examples
    --------
    >>> capital("members and non-members differ")
    'Members and non-members differ'
    """
    return words[:1].upper() + words[1:]
