r"""Nearest-neighbour adversarial accuracy of synthetic tables: resemblance, privacy loss and copies.

An adversary gets a point and says "real" if its nearest neighbour is real. If the synthetic table has the law of the real rows, it is right half of
the time. The original measure [1]_ compares strictly, and with one point more in the other set than in the own one: it is below 1/2 for a
perfect generator, a little on continuous data and far on categorical data. The form here [2]_ leaves one point out of the other set too
and counts ties as one half, so that its expectation is exactly 1/2.

It has two terms. That of the real points is low if synthetic rows lie nearer to real rows than these do to each other (copies, jitter). That of the synthetic points
is high if synthetic rows lie close together (mode collapse), and the terms then differ.

A value near 1/2, or a privacy loss near 0, is no evidence of privacy: a table that re-emits single values of its people passes. These
numbers are computed from real rows and are not differentially private; whoever selects a release by them spends privacy.

References
----------
.. [1] Yale et al., "Assessing privacy and quality of synthetic health data", AIDR 2019.
.. [2] Pedersen, thesis 2022, section 4.1; the values of its Eq. 4.6 to 4.8 are derived again, see the reference pages.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent._check import in_open_unit
from reticent.evidence._adversarial import Sides, Survey, survey
from reticent.evidence._distances import Distance, Distinct, search_for
from reticent.evidence._estimate import Estimate
from reticent.evidence._resampling import (
    Places,
    around,
    half_samples,
    pair_of,
    permutation_p_value,
    require_rows,
    terms_of,
)
from reticent.evidence.columns import Columns

__all__ = ["AdversarialAccuracy", "accuracy_of", "adversarial_accuracy"]


@dataclass(frozen=True, kw_only=True)
class AdversarialAccuracy:
    """How well the nearest neighbour tells real from synthetic rows; 1/2 is ideal.

    Parameters
    ----------
    real, synthetic : Estimate
        The term of the real points and that of the synthetic points. Both have expectation 1/2 if the laws are equal.
    mean : Estimate
        Their mean. These three intervals rest on the standard deviation over permutations of the tags, which is right near 1/2.
    subsampled : Estimate
        The mean, with an interval from half samples. It is wider, and holds away from 1/2 too: use it where a bound must hold.
    p_value : float
        That both sets have the same law, from the mean, two-sided.
    p_value_terms : float
        The same from whichever term is further from 1/2; averaging can hide a term that is high behind one that is low.
    biased : float
        The original strict form with all points, for comparison only: do not judge a table by it.
    size : int
        Rows per set to which the accuracy is corrected if the sets differ in size.
    """

    real: Estimate
    synthetic: Estimate
    mean: Estimate
    subsampled: Estimate
    p_value: float
    p_value_terms: float
    biased: float
    size: int


def adversarial_accuracy(
    real: Columns,
    synthetic: Columns,
    *,
    distance: Distance = "euclid",
    level: float,
    rng: np.random.Generator,
    permutations: int = 199,
) -> AdversarialAccuracy:
    r"""Return the unbiased nearest-neighbour adversarial accuracy of two sets of rows.

    With :math:`d_1` the distance of a point to its nearest in its own set (itself left out) and :math:`s_1 \le s_2` the distances to the two nearest
    of the n points of the other set, the value of the point is 0 if :math:`s_2 < d_1`, :math:`1/2n` if :math:`s_1 < d_1 = s_2`,
    :math:`1/n` if :math:`s_1 < d_1 < s_2`, 1/2 if all three are equal, :math:`(n+1)/2n` if :math:`d_1 = s_1 < s_2` and 1 if :math:`d_1 < s_1`.
    For sets of different sizes the value is the exact mean over all subsamples of equal size.

    Parameters
    ----------
    real, synthetic : Columns
        At least two independent rows each, coded alike; see :func:`one_row_per_unit` for people with several rows.
    distance : {"euclid", "hamming", "mixed"}
        The root of the squared differences, with 1 for a category that differs; the number of columns that differ; or the sum of absolute
        differences, with 1 for a category that differs (Gower). Numbers are in units of their ranges except for "hamming".
    level : float
        Confidence of each interval, in (0, 1).
    rng : numpy.random.Generator
        Draws permutations and half samples.
    permutations : int
        Number of permutations, at least 19.

    Raises
    ------
    InvalidInput
        If a set has fewer than two rows or the sets are coded differently.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def rows(points):
    ...     return Columns(numbers=points, codes=np.empty((len(points), 0)), ranges=[[-4, 4]] * 2)
    >>> a, b = rng.normal(size=(2, 200, 2))
    >>> near_half = adversarial_accuracy(rows(a), rows(b), level=0.95, rng=rng)
    >>> near_half.mean.low < 0.5 < near_half.mean.high
    True
    >>> adversarial_accuracy(rows(a), rows(a), level=0.95, rng=rng).mean.value < 0.01
    True
    """
    in_open_unit(level, "level")
    require_rows({"real": real, "synthetic": synthetic}, permutations)
    table = Distinct.of((real, synthetic))
    (first, second), u = table.places, len(table)
    size = min(len(real), len(synthetic))
    observed = [
        pair_of(first, second, u, size),
        pair_of(first, second, u, size, biased=True),
    ]
    seen = survey(search_for(table, distance), observed)
    return accuracy_of(
        seen,
        (first, second, u, size),
        biased=seen.observed[1].mean,
        exact=seen.observed[0],
        level=level,
        rng=rng,
        permutations=permutations,
    )


def accuracy_of(
    seen: Survey,
    sets: tuple[Places, Places, int, int],
    *,
    biased: float,
    exact: Sides,
    level: float,
    rng: np.random.Generator,
    permutations: int,
) -> AdversarialAccuracy:
    """Return the accuracy of two sets, given by their distinct rows, from what was seen of all neighbours."""
    first, second, u, size = sets
    both = np.concatenate([first, second])

    def terms(a: Places, b: Places, size: int) -> NDArray[np.float64]:
        return terms_of(seen.sides(pair_of(a, b, u, size)))

    permuted = []
    for _ in range(permutations):
        mixed = rng.permutation(both)
        permuted.append(terms(mixed[: len(first)], mixed[len(first) :], size))
    under_null = np.array(permuted)
    halves = np.array(
        [terms(a, b, half) for (a, b), half in half_samples((first, second), rng)]
    )
    spread = under_null.std(axis=0, ddof=1)
    compared = np.abs(terms(first, second, size) - 0.5)
    far = np.abs(under_null - 0.5)
    mean, real, synthetic = (
        around(value, float(spread[j]), None, level, ends=(0.0, 1.0))
        for j, value in enumerate(terms_of(exact))
    )
    return AdversarialAccuracy(
        real=real,
        synthetic=synthetic,
        mean=mean,
        subsampled=around(
            mean.value,
            float(halves[:, 0].std(ddof=1)) if len(halves) else math.inf,
            None,
            level,
            ends=(0.0, 1.0),
            method="half samples",
        ),
        p_value=permutation_p_value(far[:, 0] >= compared[0] - 1e-12),
        p_value_terms=permutation_p_value(
            far[:, 1:].max(axis=1) >= compared[1:].max() - 1e-12
        ),
        biased=biased,
        size=size,
    )
