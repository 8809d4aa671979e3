"""Exact values that a generator re-emits: the leak that no distance sees."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic._base import Comparison, Tables
from reticent.attack.synthetic._counts import excess, occurrences, tuples

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
        codes = tables.records.codes, tables.synthetic.codes, tables.auxiliary.codes
        sizes = len(codes[1]), len(codes[2])
        total = np.zeros(len(codes[0]))
        known = f"{self.name} by columns"
        chosen = _chosen(codes[0].shape[1], self.size)
        if known not in tables.to_auxiliary:
            tables.to_auxiliary[known] = np.column_stack(
                [
                    occurrences(tuples(codes[0], which), tuples(codes[2], which))
                    for which in chosen
                ]
            ).astype(np.float32)
        for k, which in enumerate(chosen):
            keys = tuples(codes[0], which)
            counts = occurrences(keys, tuples(codes[1], which))
            total += excess(counts, tables.to_auxiliary[known][:, k], sizes)
        return total[:, None]


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
