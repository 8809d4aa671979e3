"""Privacy loss of synthetic tables: how much nearer they are to their training rows than to rows they have not seen.

References
----------
.. [1] Yale et al., "Assessing privacy and quality of synthetic health data", AIDR 2019.
.. [2] Pedersen, thesis 2022, Eq. 2.12 to 2.14 and section 4.1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from reticent._check import in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._adversarial import Pair, Sides, survey
from reticent.evidence._distances import Distance, Distinct, search_for
from reticent.evidence._estimate import Estimate
from reticent.evidence._resampling import (
    Places,
    around,
    counts_of,
    half_samples,
    pair_of,
    permutation_p_value,
    require_rows,
    terms_of,
)
from reticent.evidence.columns import Columns
from reticent.evidence.neighbours import AdversarialAccuracy, accuracy_of

__all__ = ["PrivacyLoss", "privacy_loss"]

POWER = 0.8  # with which a visible loss would have been seen, as elsewhere in an audit


@dataclass(frozen=True, kw_only=True)
class PrivacyLoss:
    """How much nearer a synthetic table is to its training rows than to rows it has not seen.

    Parameters
    ----------
    loss : Estimate
        Adversarial accuracy of the test rows minus that of the training rows, the mean over the generated tables; 0 if nothing was
        memorised, near 1/2 for a copy. With several tables the interval covers generating again (``covers="trainer"``).
    real, synthetic : Estimate
        The same for each of the two terms.
    subsampled : Estimate
        The loss with an interval from half samples, which holds away from 0 too.
    p_value : float
        That the loss is 0, against a loss above 0: tags of training and test rows are permuted while the tables stay as they are.
    visible : float
        The smallest loss that would have been seen with a probability of 80 %.
    train, test : AdversarialAccuracy
        Resemblance losses: adversarial accuracy of the training rows and of the test rows. With several tables, means over the tables, whose intervals cover
        generating again, and the smallest p-values times the number of tables.
    tables : int
        Number of generated tables.
    """

    loss: Estimate
    real: Estimate
    synthetic: Estimate
    subsampled: Estimate
    p_value: float
    visible: float
    train: AdversarialAccuracy
    test: AdversarialAccuracy
    tables: int


def privacy_loss(
    train: Columns,
    test: Columns,
    tables: Sequence[Columns],
    *,
    distance: Distance = "euclid",
    level: float,
    rng: np.random.Generator,
    permutations: int = 199,
) -> PrivacyLoss:
    """Return resemblance to training and test rows, and their difference, over one or more generated tables.

    All sets are corrected to the size of the smallest, so that sizes do not matter.

    Parameters
    ----------
    train, test : Columns
        Independent rows that the generator has seen, and rows of the same law that it has not.
    tables : sequence of Columns
        Tables that one generator made from the training rows, each by itself.
    distance, level, rng, permutations
        As in :func:`adversarial_accuracy`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def rows(points):
    ...     return Columns(numbers=points, codes=np.empty((len(points), 0)), ranges=[[-4, 4]] * 2)
    >>> a, b, c = rng.normal(size=(3, 100, 2))
    >>> copied = privacy_loss(rows(a), rows(b), [rows(a)], level=0.95, rng=rng)
    >>> copied.loss.value > 0.4, copied.p_value
    (True, 0.005)
    >>> fresh = privacy_loss(rows(a), rows(b), [rows(c)], level=0.95, rng=rng)
    >>> fresh.loss.low < 0 < fresh.loss.high, fresh.visible < 0.2
    (True, True)
    """
    in_open_unit(level, "level")
    if not tables:
        raise InvalidInput("there is no generated table; pass at least one.")
    named = {f"table {number}": table for number, table in enumerate(tables, 1)}
    require_rows({"training": train, "test": test, **named}, permutations)
    seed = int(rng.integers(2**63))
    each = [
        _one_table(
            Distinct.of((train, test, table)),
            distance,
            level=level,
            # The same permutations of people for every table, because the tables share them.
            shared=np.random.default_rng(seed),
            rng=rng,
            permutations=permutations,
        )
        for table in tables
    ]
    losses = np.array([one.observed for one in each])
    permuted = np.mean([one.permuted for one in each], axis=0)
    halves = np.mean([one.halves for one in each], axis=0)
    compared = float(np.mean([one.compared for one in each]))
    spread = _spread_of_tables(losses)
    people = permuted.std(axis=0, ddof=1)
    loss, real, synthetic = (
        around(
            float(losses[:, j].mean()),
            float(people[j]),
            (spread[j], len(tables)),
            level,
        )
        for j in range(3)
    )
    half = around(
        loss.value,
        float(halves[:, 0].std(ddof=1)) if len(halves) else math.inf,
        (spread[0], len(tables)),
        level,
        method="half samples",
    )
    reach = float(ndtri(1 - (1 - level) / 2) + ndtri(POWER))
    return PrivacyLoss(
        loss=loss,
        real=real,
        synthetic=synthetic,
        subsampled=half,
        p_value=permutation_p_value(permuted[:, 0] >= compared - 1e-12),
        visible=min(1.0, reach * math.hypot(people[0], spread[0])),
        train=_mean_accuracy([one.train for one in each]),
        test=_mean_accuracy([one.test for one in each]),
        tables=len(tables),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _OneTable:
    """The losses of one table: mean, real term, synthetic term; observed, as the lists have it, permuted and halved."""

    observed: NDArray[np.float64]
    compared: float
    permuted: NDArray[np.float64]
    halves: NDArray[np.float64]
    train: AdversarialAccuracy
    test: AdversarialAccuracy


def _one_table(
    table: Distinct,
    distance: Distance,
    *,
    level: float,
    shared: np.random.Generator,
    rng: np.random.Generator,
    permutations: int,
) -> _OneTable:
    (train, test, made), u = table.places, len(table)
    size = min(len(train), len(test), len(made))
    sets = ((train, made, u, size), (test, made, u, size))
    pairs = [pair_of(*places) for places in sets]
    old = [pair_of(*places, biased=True) for places in sets]
    seen = survey(search_for(table, distance), [*pairs, *old])

    def loss_of(a: Places, b: Places, c: Places, size: int) -> NDArray[np.float64]:
        counts = counts_of(c, u)
        one, two = (
            seen.sides(Pair(first=counts_of(p, u), second=counts, size=size))
            for p in (a, b)
        )
        return _difference(two, one)

    both = np.concatenate([train, test])
    permuted = []
    for _ in range(permutations):
        mixed = shared.permutation(both)
        permuted.append(loss_of(mixed[: len(train)], mixed[len(train) :], made, size))
    halves = [
        loss_of(a, b, c, half)
        for (a, b, c), half in half_samples((train, test, made), rng)
    ]
    train_accuracy, test_accuracy = (
        accuracy_of(
            seen,
            sets[j],
            biased=seen.observed[2 + j].mean,
            exact=seen.observed[j],
            level=level,
            rng=rng,
            permutations=permutations,
        )
        for j in range(2)
    )
    return _OneTable(
        observed=_difference(seen.observed[1], seen.observed[0]),
        compared=float(loss_of(train, test, made, size)[0]),
        permuted=np.array(permuted),
        halves=np.array(halves),
        train=train_accuracy,
        test=test_accuracy,
    )


def _mean_accuracy(each: Sequence[AdversarialAccuracy]) -> AdversarialAccuracy:
    """Return the mean over tables, with intervals over people and tables.

    The length over people is the mean of those of the tables: the tables share their people, so that a mean over tables does not make it shorter. Student's
    length over tables is added by the squares.
    """
    count = len(each)

    def mean(part: Callable[[AdversarialAccuracy], Estimate]) -> Estimate:
        parts = [part(one) for one in each]
        values = np.array([e.value for e in parts])
        value, between = float(values.mean()), 0.0
        if count > 1:
            tail = 1 - (1 - parts[0].level) / 2
            quantile = float(stdtrit(count - 1, tail))
            between = quantile * float(values.std(ddof=1)) / math.sqrt(count)
        below = float(np.mean([e.value - e.low for e in parts]))
        above = float(np.mean([e.high - e.value for e in parts]))
        return Estimate(
            value=value,
            low=max(0.0, value - math.hypot(below, between)),
            high=min(1.0, value + math.hypot(above, between)),
            level=parts[0].level,
            method=parts[0].method,
            covers="trainer" if count > 1 else parts[0].covers,
        )

    return AdversarialAccuracy(
        real=mean(lambda one: one.real),
        synthetic=mean(lambda one: one.synthetic),
        mean=mean(lambda one: one.mean),
        subsampled=mean(lambda one: one.subsampled),
        p_value=min(1.0, len(each) * min(one.p_value for one in each)),
        p_value_terms=min(1.0, len(each) * min(one.p_value_terms for one in each)),
        biased=float(np.mean([one.biased for one in each])),
        size=each[0].size,
    )


def _difference(test: Sides, train: Sides) -> NDArray[np.float64]:
    return terms_of(test) - terms_of(train)


def _spread_of_tables(losses: NDArray[np.float64]) -> list[float]:
    """Return the standard error of the mean over tables that comes from generating; 0 for a single table."""
    if len(losses) < 2:
        return [0.0] * losses.shape[1]
    return [float(s) for s in losses.std(axis=0, ddof=1) / math.sqrt(len(losses))]
