"""What the file of a product contains, byte by byte: read without building objects and without running anything."""

from reticent.product.contents._read import contents_of, read_contents, stored_bytes
from reticent.product.contents._tables import (
    BesideCells,
    beside_cells,
    with_files,
)
from reticent.product.contents._values import (
    Contents,
    NamedArray,
    NamedTexts,
    Tree,
    Unread,
    place_of,
)

__all__ = [
    "BesideCells",
    "Contents",
    "NamedArray",
    "NamedTexts",
    "Tree",
    "Unread",
    "beside_cells",
    "contents_of",
    "place_of",
    "read_contents",
    "stored_bytes",
    "with_files",
]
