"""Exact nearest neighbours among mixed columns: all distances in blocks that stay in the cache."""

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic._base import record_blocks
from reticent.data import Coded

__all__ = ["MOST_ROWS", "nearest"]

# Rows of a table that records are compared with: the time grows with records times rows. Of a longer table, evenly spaced rows are taken; copies
# are found by hashing among all rows.
MOST_ROWS = 20_000
# A missing number lies at 3 on the scale, so that differences above 1 mean one of the two is missing.
MOST_APART = np.float32(1.0)


def nearest(records: Coded, others: Coded) -> dict[str, NDArray[np.float64]]:
    """Return the distance of each record to its nearest row of another table, by ranks, by range and by number of cells.

    Distances are mean differences over the columns, 0 exactly for equal rows; ``hamming`` is a number of cells.

    Parameters
    ----------
    records : Coded
        The records.
    others : Coded
        The rows among which the nearest is looked for; of more than 20,000, evenly spaced ones.
    """
    if len(others) > MOST_ROWS:
        chosen = np.linspace(0, len(others) - 1, MOST_ROWS).astype(np.int64)
        others = others.take(chosen)
    n, d = records.codes.shape
    result = {name: np.empty(n) for name in ("ranks", "gower", "hamming")}
    # Column by column, contiguous.
    mine = [records.ranks.T.copy(), records.scaled.T.copy()]
    theirs = [others.ranks.T.copy(), others.scaled.T.copy()]
    # Only where a number is missing, or lies outside of the range, can a difference exceed 1.
    cut = [
        (a.max(axis=1, initial=0) > 1)
        | (b.max(axis=1, initial=0) > 1)
        | (a.min(axis=1, initial=0) < 0)
        | (b.min(axis=1, initial=0) < 0)
        for a, b in zip(mine, theirs, strict=True)
    ]
    my_codes, their_codes = records.codes.T.copy(), others.codes.T.copy()
    is_number = records.numeric
    for block in record_blocks(n, len(others)):
        unequal = np.zeros((block.stop - block.start, len(others)), dtype=np.int16)
        for column in np.flatnonzero(~is_number):
            unequal += my_codes[column, block, None] != their_codes[column]
        for name, a, b, clipped in zip(
            ("ranks", "gower"), mine, theirs, cut, strict=True
        ):
            total = unequal.astype(np.float32)
            for j in range(len(a)):
                apart = np.abs(a[j, block, None] - b[j])
                if clipped[j]:
                    np.minimum(apart, MOST_APART, out=apart)
                total += apart
            result[name][block] = total.min(axis=1) / d
        for column in np.flatnonzero(is_number):
            unequal += my_codes[column, block, None] != their_codes[column]
        result["hamming"][block] = unequal.min(axis=1)
    return result
