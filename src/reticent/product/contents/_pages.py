"""Find what stands in a page of a Parquet column behind its last cell."""

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["behind_cells"]

BOOLEAN, BYTES = 0, 6  # physical types
PLAIN, OLD_DICTIONARY, RUNS, DICTIONARY, SPLIT = 0, 2, 3, 8, 9  # encodings
GROUP = 8  # values that are packed together
# Writers fill up the last packed run to a whole word.
MOST_PADDING = 64


def behind_cells(
    header: Mapping[int, Any],
    levels: bytes,
    values: bytes,
    *,
    physical: int,
    width: int,
    is_optional: bool,
) -> bytes:
    """Return the bytes of a page behind its last cell; nothing for encodings that are not followed.

    Parameters
    ----------
    header : mapping
        The page's header, as fields by number.
    levels, values : bytes
        Whether cells are missing, if that stands apart, and the unpacked rest of the page.
    physical, width : int
        Type of the column, and bytes of each value of a fixed width.
    is_optional : bool
        Whether cells may be missing.
    """
    about = header.get(8) or header.get(5) or {}
    count, encoding = about.get(1, 0), about.get(4 if 8 in header else 2, 0)
    rest = b""
    if is_optional and 8 in header:
        end, count = _runs(levels, 0, count, 1)
        rest = levels[end:]
    elif is_optional:
        size = int.from_bytes(values[:4], "little")
        end, count = _runs(values[4 : 4 + size], 0, count, 1)
        rest, values = values[4 + end : 4 + size], values[4 + size :]
    return rest + values[_end(values, count, encoding, physical, width) :]


def _end(values: bytes, count: int, encoding: int, physical: int, width: int) -> int:
    """Return where the last of some values ends."""
    if encoding in (DICTIONARY, OLD_DICTIONARY):
        return _runs(values, 1, count, values[0])[0] if count and values else len(values)  # fmt: skip
    if encoding == RUNS and physical == BOOLEAN:
        return 4 + _runs(values[4:], 0, count, 1)[0]
    if encoding == SPLIT or (encoding == PLAIN and physical not in (BOOLEAN, BYTES)):
        return count * width
    if encoding == PLAIN and physical == BOOLEAN:
        return -(-count // 8)
    if encoding != PLAIN:
        return len(values)
    at = 0
    for _ in range(count):
        at += 4 + int.from_bytes(values[at : at + 4], "little")
        if at >= len(values):
            break
    return at


def _runs(data: bytes, at: int, count: int, width: int) -> tuple[int, int]:
    """Return where the last of some values in runs ends, and, of values of one bit, how many are 1."""
    ones = 0
    while count > 0 and at < len(data):
        head = shift = 0
        while at < len(data):
            byte = data[at]
            at += 1
            head |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if head & 1:
            groups = head >> 1
            padded = -(-count // GROUP) + MOST_PADDING // GROUP
            size = min(groups, padded) * width
            if width == 1:
                bits = np.frombuffer(data[at : at + size], dtype=np.uint8)
                ones += int(np.unpackbits(bits, bitorder="little")[:count].sum())
            at, count = at + size, count - groups * GROUP
        else:
            run = min(head >> 1, count)
            size = -(-width // 8)
            ones += run if width == 1 and data[at : at + 1] == b"\1" else 0
            at, count = at + size, count - max(head >> 1, 1)
    return at, ones
