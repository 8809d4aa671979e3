"""The likelihood ratio of trees of pairwise marginals.

References
----------
.. [1] Andrey, Le Bars & Tommasi, "TAMIS: tailored membership inference attacks on synthetic data", arXiv:2504.00758.
.. [2] Chow & Liu, "Approximating discrete probability distributions with dependence trees", IEEE Trans. Inf. Theory 14, 1968.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree

from reticent.attack.synthetic._base import Comparison, Tables
from reticent.attack.synthetic.marginals import CELLS, pair_table

__all__ = ["TreeLikelihood"]

HALF = 0.5  # count added to every cell, so that no probability is 0


class TreeLikelihood(Comparison):
    r"""Guess that a record was used if a tree of pairwise marginals explains it better on the synthetic table than on other people's records [1]_.

    The tree :math:`T` of largest mutual information [2]_ is learned from the synthetic table, which is what generators such as MST and PrivBayes
    keep of the real one. The score is :math:`\log p_S(u) - \log p_A(u)` with
    :math:`p(u) = \prod_{(i,j)\in T} p(u_i, u_j) / \prod_i p(u_i)^{\deg_i - 1}`.
    """

    name = "tree_likelihood"
    columns = ("tree_likelihood",)

    def compare(self, tables: Tables) -> NDArray[np.float64]:
        """Return the log-likelihood ratio of each record."""
        records, synthetic, auxiliary = (
            t.bins.astype(np.int64)
            for t in (tables.records, tables.synthetic, tables.auxiliary)
        )
        edges = _tree(synthetic)
        ratio = _log_likelihood(records, synthetic, edges)
        return (ratio - _log_likelihood(records, auxiliary, edges))[:, None]


def _tree(bins: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the edges of the tree with the largest sum of mutual information."""
    d = bins.shape[1]
    information = np.zeros((d, d))
    for i, j in combinations(range(d), 2):
        joint = pair_table(bins, i, j) / len(bins)
        product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        seen = joint > 0
        information[i, j] = (joint[seen] * np.log(joint[seen] / product[seen])).sum()
    if d < 2:
        return []
    # The smallest spanning tree of what is missing to the largest; one is added because a weight of 0 would be no edge.
    missing = np.triu(information.max() - information + 1.0, 1)
    rows, columns = minimum_spanning_tree(missing).nonzero()
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True)]


def _log_likelihood(
    records: NDArray[np.int64],
    others: NDArray[np.int64],
    edges: list[tuple[int, int]],
) -> NDArray[np.float64]:
    d = records.shape[1]
    degree = np.zeros(d)
    total = np.zeros(len(records))
    for i, j in edges:
        joint = np.log((pair_table(others, i, j) + HALF) / (len(others) + 1))
        total += joint[records[:, i], records[:, j]]
        degree[[i, j]] += 1
    for j in range(d):
        single = np.bincount(others[:, j], minlength=CELLS)
        single_log = np.log((single + HALF) / (len(others) + 1))
        total -= (degree[j] - 1) * single_log[records[:, j]]
    return total
