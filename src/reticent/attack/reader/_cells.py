r"""Turn what is found of each record into log-odds, learned from the tags of other people.

A cell says for every record which of a few categories it is in: found or not found at one place. With :math:`m_c` of
:math:`M` known members and :math:`u_c` of :math:`U` known non-members in category :math:`c` of :math:`k`, a record there scores

.. math:: \log \frac{m_c + 1/2}{M + k/2} - \log \frac{u_c + 1/2}{U + k/2}.

Records of a coarse table are found by coincidence, members and non-members alike; then the ratio is near 1, so that coincidences
are their own control.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from reticent.attack._searched import Cell

__all__ = ["best_cells", "log_ratio"]

# Scores are rounded to multiples of this. The ratio of one category differs from fold to fold by chance, and it is low in the folds whose own
# records would have raised it; unrounded, that costs 0.01 to 0.02 of the AUC of 1,200 records (0.738 for 0.75, 0.489 for 0.5), and rounded 0.003.
STEP = 0.25
# Records added to every category, so that none has probability 0 (Jeffreys).
PRIOR = 0.5


def log_ratio(
    categories: NDArray[np.integer],
    tags: NDArray[np.bool_],
    asked: NDArray[np.integer],
) -> NDArray[np.float64]:
    """Return the logarithm of how much more often members are in a category than non-members, rounded to a quarter.

    Parameters
    ----------
    categories : array of int
        Categories of records whose tags are known.
    tags : array of bool
        Those tags.
    asked : array of int
        Categories of the records to score.

    Examples
    --------
    >>> tags = np.array([True, True, False, False])
    >>> log_ratio(np.array([1, 1, 0, 0]), tags, np.array([1, 0])).tolist()
    [1.5, -1.5]
    """
    count = int(max(categories.max(initial=0), asked.max(initial=0))) + 1
    inside = np.bincount(categories[tags], minlength=count) + PRIOR
    outside = np.bincount(categories[~tags], minlength=count) + PRIOR
    ratios = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
    return np.asarray(np.round(ratios / STEP)[asked] * STEP)


def p_value(categories: NDArray[np.integer], tags: NDArray[np.bool_]) -> float:
    """Return Pearson's p-value of "members and non-members are in the same categories"."""
    inside = np.bincount(categories[tags], minlength=categories.max(initial=0) + 1)
    outside = np.bincount(categories[~tags], minlength=len(inside))
    total = inside + outside
    used = total > 0
    if used.sum() < 2 or not inside.any() or not outside.any():
        return 1.0
    expected = total[used] * (inside.sum() / total.sum())
    spread = expected * (outside.sum() / total.sum())
    statistic = ((inside[used] - expected) ** 2 / spread).sum()
    return float(chi2.sf(statistic, used.sum() - 1))


def best_cells(
    cells: Sequence[Cell],
    rows: NDArray[np.int64],
    tags: NDArray[np.bool_],
    *,
    most: int,
    false_alarm: float,
) -> list[Cell]:
    """Return the cells that tell known members from known non-members best.

    Parameters
    ----------
    cells : sequence of Cell
        All cells.
    rows, tags : array
        Records whose tags are known, and the tags.
    most : int
        Largest number of cells.
    false_alarm : float
        Chance that any of them is chosen if none tells anything; Bonferroni's share of it is the limit of each.
    """
    p_values = [p_value(cell.categories[rows], tags) for cell in cells]
    order = sorted(range(len(cells)), key=lambda k: p_values[k])
    limit = false_alarm / max(len(cells), 1)
    return [cells[k] for k in order[:most] if p_values[k] < limit]
