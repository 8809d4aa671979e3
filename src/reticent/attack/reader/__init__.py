"""The attack of whoever holds the product's file: every record is looked for in it, as the product itself sees it."""

from reticent.attack.reader._attack import Reader
from reticent.attack.reader._counts import (
    FileCounts,
    FoundAt,
    count_file,
    first_alone,
)
from reticent.attack.reader._search import search_file

__all__ = [
    "FileCounts",
    "FoundAt",
    "Reader",
    "count_file",
    "first_alone",
    "search_file",
]
