"""Exact values that a generator re-emits: the leak that no distance sees."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic._base import Comparison, Tables
from reticent.attack.synthetic._counts import log_share, occurrences, tuples

__all__ = ["ExactPairs", "ExactTriples", "ExactValues"]

# Tuples of columns that are counted: each takes a sort of all tables. Of more, evenly spaced ones in lexicographic order are taken.
MOST_TUPLES = 400


class ExactValues(Comparison):
    r"""Guess that a record was used if its exact values are more frequent in the synthetic table than among other people.

    .. math:: \mathrm{m1x}(u) = \sum_j \log\frac{c_S(u_j) + 1/2}{n_S + 1} - \log\frac{c_A(u_j) + 1/2}{n_A + 1}

    with the numbers of synthetic and of auxiliary rows that have the record's value in column :math:`j`, as it stands there. A generator that
    draws each column from the observed values (copulas, independent marginals, trees) gives its people away by ages in days and laboratory
    values, although no row of its table is near anybody's.
    """

    name = "exact_values"
    columns = ("exact_values",)
    size = 1

    def compare(self, tables: Tables) -> NDArray[np.float64]:
        """Return the sum of log-ratios over all tuples of columns of one size."""
        records = tables.records.codes
        chosen = _chosen(records.shape[1], self.size)
        known = tables.to_auxiliary
        if self.name not in known:
            # Only the sum is kept: one number per record, however many tuples there are.
            known[self.name] = _log_shares(records, tables.auxiliary.codes, chosen)
        in_synthetic = _log_shares(records, tables.synthetic.codes, chosen)
        return (in_synthetic - known[self.name])[:, None]


def _log_shares(
    records: NDArray[np.int32],
    others: NDArray[np.int32],
    chosen: Sequence[tuple[int, ...]],
) -> NDArray[np.float64]:
    """Return the sum over tuples of columns of the logarithm of how frequent each record's values are in another table."""
    total = np.zeros(len(records))
    for which in chosen:
        counts = occurrences(tuples(records, which), tuples(others, which))
        total += log_share(counts, len(others))
    return total


class ExactPairs(ExactValues):
    """The same for pairs of exact values (m2x)."""

    name = "exact_pairs"
    columns = ("exact_pairs",)
    size = 2


class ExactTriples(ExactValues):
    """The same for triples of exact values (m3x); of more than 400 triples, evenly spaced ones."""

    name = "exact_triples"
    columns = ("exact_triples",)
    size = 3


def _chosen(columns: int, size: int) -> Sequence[tuple[int, ...]]:
    """Return the tuples of columns that are counted."""
    every = list(combinations(range(columns), min(size, columns)))
    if len(every) <= MOST_TUPLES:
        return every
    places = np.linspace(0, len(every) - 1, MOST_TUPLES).astype(int)
    return [every[k] for k in places]
