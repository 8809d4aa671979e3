"""Copies: which people's rows stand in a synthetic table as they are, beside people that the generator has not seen."""

from dataclasses import dataclass

import numpy as np

from reticent._check import in_open_unit
from reticent.evidence._adversarial import none_drawn
from reticent.evidence._distances import Distinct
from reticent.evidence._estimate import Estimate
from reticent.evidence._resampling import require_rows
from reticent.evidence.columns import Columns
from reticent.evidence.proportion import clopper_pearson
from reticent.evidence.vulnerability import vulnerability

__all__ = ["Copies", "count_copies"]


@dataclass(frozen=True, kw_only=True)
class Copies:
    """Shares of identical rows, with what coincidence gives.

    Parameters
    ----------
    members, nonmembers : Estimate
        Share of training rows, and of test rows, that occur in the synthetic table.
    excess : Estimate
        The first minus the second: what is no coincidence.
    rows_of_train, rows_of_test : Estimate
        Share of synthetic rows that are identical to a training row, and to a test row. If one set is larger, its share is the mean over subsamples of the size of
        the smaller. The intervals take synthetic rows for independent.
    """

    members: Estimate
    nonmembers: Estimate
    excess: Estimate
    rows_of_train: Estimate
    rows_of_test: Estimate


def count_copies(
    train: Columns, test: Columns, synthetic: Columns, *, level: float
) -> Copies:
    """Return how many rows of a synthetic table are copies, beside what rows that the generator has not seen give.

    In a coarse table rows are equal by coincidence, and only the excess over the test rows tells of copying.

    Parameters
    ----------
    train, test, synthetic : Columns
        Independent rows, coded alike; see :func:`one_row_per_unit`.
    level : float
        Confidence of each interval, in (0, 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def rows(points):
    ...     return Columns(numbers=points, codes=np.empty((len(points), 0)), ranges=[[-4, 4]] * 2)
    >>> a, b = rng.normal(size=(2, 100, 2))
    >>> found = count_copies(rows(a), rows(b), rows(a[:10]), level=0.95)
    >>> print(found.members, found.excess, found.rows_of_train)
    0.10 [0.04, 0.18] 0.10 [0.01, 0.18] 1 [0.69, 1]
    """
    in_open_unit(level, "level")
    require_rows({"training": train, "test": test, "synthetic": synthetic})
    table = Distinct.of((train, test, synthetic))
    in_train, in_test, made = table.places
    u = len(table)
    occurs = np.bincount(made, minlength=u) > 0
    member, nonmember = occurs[in_train], occurs[in_test]
    size = min(len(train), len(test))

    def rows(places: np.ndarray) -> Estimate:
        met = np.bincount(places, minlength=u)[made]
        chances = none_drawn(len(places), size)
        hits = float((1 - chances[np.minimum(met, len(chances) - 1)]).sum())
        return clopper_pearson(min(hits, float(len(made))), len(made), level=level)

    return Copies(
        members=clopper_pearson(float(member.sum()), len(member), level=level),
        nonmembers=clopper_pearson(float(nonmember.sum()), len(nonmember), level=level),
        excess=vulnerability(member, nonmember, level=level),
        rows_of_train=rows(in_train),
        rows_of_test=rows(in_test),
    )
