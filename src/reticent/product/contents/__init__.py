"""What the file of a product contains, byte by byte: read without building objects and without running anything."""

from reticent.product.contents._read import contents_of, read_contents
from reticent.product.contents._values import (
    Contents,
    NamedArray,
    NamedTexts,
    Tree,
    Unread,
    place_of,
)

__all__ = [
    "Contents",
    "NamedArray",
    "NamedTexts",
    "Tree",
    "Unread",
    "contents_of",
    "place_of",
    "read_contents",
]
