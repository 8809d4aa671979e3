"""Rows that stand in the synthetic table as they stand in the real one, or differ from it in one cell."""

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic._base import Comparison, Tables
from reticent.attack.synthetic._counts import excess, hashed_rows, occurrences

__all__ = ["IdenticalRows"]


class IdenticalRows(Comparison):
    r"""Guess that a record was used if its row is copied, beyond how common the row is.

    The score is :math:`\log\frac{c_S + 1/2}{n_S + 1} - \log\frac{c_A + 1/2}{n_A + 1}` with the number of rows equal to the record in the synthetic
    table :math:`S` and in the auxiliary table :math:`A`. The second column counts rows that are equal but for one cell. Both are found by
    hashing, so that every row is looked at, however long the table.

    Copies are the plainest leak, and an AUC hides them: with one member in a hundred copied it is .505, while those members can be named without
    an error.
    """

    name = "identical_rows"
    columns = ("identical_rows", "near_identical_rows")

    def compare(self, tables: Tables) -> NDArray[np.float64]:
        """Return the excess of equal rows, and of rows that are equal but for one cell."""
        records, synthetic, auxiliary = (
            t.codes for t in (tables.records, tables.synthetic, tables.auxiliary)
        )
        d = records.shape[1]
        equal, near = _equal_and_near(records, synthetic, d)
        if "identical_rows" not in tables.to_auxiliary:
            others = _equal_and_near(records, auxiliary, d)
            tables.to_auxiliary["identical_rows"] = others[0].astype(np.float64)
            tables.to_auxiliary["near_identical_rows"] = others[1].astype(np.float64)
        sizes = len(synthetic), len(auxiliary)
        return np.column_stack(
            [
                excess(equal, tables.to_auxiliary["identical_rows"], sizes),
                excess(near, tables.to_auxiliary["near_identical_rows"], sizes),
            ]
        )


def _equal_and_near(
    records: NDArray[np.int32], others: NDArray[np.int32], d: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many other rows equal each record, and how many differ in at most one cell."""
    mine, theirs = hashed_rows(records), hashed_rows(others)
    whole = (mine.sum(axis=1), theirs.sum(axis=1))
    equal = occurrences(*whole)
    near = equal.copy()
    for j in range(d):
        # The hash of a row without a cell is the sum without its term.
        without = occurrences(whole[0] - mine[:, j], whole[1] - theirs[:, j])
        near += without - equal  # those that differ in just this cell
    return equal, near
