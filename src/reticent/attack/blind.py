"""The blind baseline: tell members from non-members without looking at the product.

If that is possible, they differ by more than membership (another year, another hospital), and every
attack on the product would mistake that difference for a leak.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from reticent.data import (
    Finding,
    Severity,
    Split,
    as_numbers,
    telling_columns,
    without_empty_columns,
)
from reticent.run import one_thread

__all__ = ["BlindBaseline", "blind_baseline"]

PERMUTATIONS = 999  # with the observed order 1,000, so p-values are multiples of 0.001
MOST_ROWS = 40_000  # bounds the time; the test is exact for any number, more records only add power
ROUNDING = 1e-9  # permutations that differ from the observed one by less count as ties


@dataclass(frozen=True, kw_only=True)
class BlindBaseline:
    """What a classifier that sees only records can tell about membership.

    Parameters
    ----------
    accuracy : float
        Cross-fitted LTU accuracy without the product; 1/2 is chance.
    p_value : float
        Permutation p-value of "no better than chance".
    """

    accuracy: float
    p_value: float

    def finding(self, *, false_alarm: float) -> Finding:
        """Return the finding: ``stop`` if the baseline beats chance, else a note.

        Parameters
        ----------
        false_alarm : float
            Probability of a stop if the two sides are alike.
        """
        beats_chance = self.p_value <= false_alarm
        if not beats_chance:
            return Finding(
                name="blind_baseline",
                severity=Severity.NOTE,
                text=(
                    "without the product, members and non-members cannot be told apart "
                    f"(accuracy {self.accuracy:.3f} against 0.5 by chance, p = {self.p_value:.2g}): what an attack finds is due to the product."
                ),
            )
        return Finding(
            name="blind_baseline",
            severity=Severity.STOP,
            text=(
                f"a classifier that never saw the product tells members from non-members (accuracy {self.accuracy:.3f} "
                f"against 0.5 by chance, p = {self.p_value:.2g}): the two sides differ by more than membership, so attacks "
                "cannot be judged; divide the table at random."
            ),
        )


def blind_baseline(split: Split, *, rng: np.random.Generator) -> BlindBaseline:
    """Try to tell the defender's records from the reserved ones by the records alone.

    Units are halved at random; a gradient-boosted classifier that learned from one half scores the
    other, and vice versa. Within a half the scores do not depend on its tags, so permuting
    the tags of its units gives an exact null distribution. The two halves' p-values are
    dependent; twice the smaller one is valid whatever the dependence (Bonferroni).

    Parameters
    ----------
    split : Split
        The divided table.
    rng : numpy.random.Generator
        Stream of the halves, the sample to learn from and the permutations.
    """
    tables = split.defender, split.reserved
    tags = np.repeat([1, 0], [len(part) for part in tables])
    both = split.defender.join(split.reserved)
    units, unit_of_row = np.unique(both.units, return_inverse=True)
    fold_of_unit = np.empty(len(units), dtype=np.int64)
    tag_of_unit = np.zeros(len(units), dtype=np.int64)
    tag_of_unit[unit_of_row] = tags
    for tag in (0, 1):
        shuffled = rng.permutation(np.flatnonzero(tag_of_unit == tag))
        fold_of_unit[shuffled] = np.arange(len(shuffled)) % 2
    fold = fold_of_unit[unit_of_row]
    matrix, categorical = as_numbers(both)
    accuracies, p_values = [], []
    for k in (0, 1):
        learn, judge = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if len(learn) > MOST_ROWS:
            learn = rng.choice(learn, MOST_ROWS, replace=False)
        columns = telling_columns(matrix[learn], tags[learn].astype(np.float64))
        model = HistGradientBoostingClassifier(
            max_iter=60,
            learning_rate=0.1,
            max_leaf_nodes=15,
            min_samples_leaf=max(10, len(learn) // 200),
            categorical_features=categorical[columns],
            early_stopping=False,
            random_state=int(rng.integers(2**31 - 1)),
        )
        with one_thread():
            model.fit(
                without_empty_columns(matrix[np.ix_(learn, columns)]), tags[learn]
            )
            scores = model.decision_function(matrix[np.ix_(judge, columns)])
        accuracy, p_value = _permutation_test(
            scores, tags[judge], unit_of_row[judge], rng=rng
        )
        accuracies.append(accuracy)
        p_values.append(p_value)
    return BlindBaseline(
        accuracy=float(np.mean(accuracies)), p_value=min(1.0, 2 * min(p_values))
    )


def _permutation_test(
    scores: NDArray[np.float64],
    tags: NDArray[np.int64],
    units: NDArray[np.int64],
    *,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return accuracy and p-value of the mean-rank difference, permuting whole units."""
    _, tied = np.unique(scores, return_inverse=True)
    counts = np.bincount(tied)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[tied]
    names, unit = np.unique(units, return_inverse=True)
    rank_sum = np.bincount(unit, weights=ranks)
    rows = np.bincount(unit).astype(np.float64)
    member = np.zeros(len(names), dtype=bool)
    member[unit] = tags == 1

    def difference(chosen: NDArray[np.bool_]) -> float:
        m = rows[chosen].sum()
        mean_in = rank_sum[chosen].sum() / m
        mean_out = rank_sum[~chosen].sum() / (len(scores) - m)
        return float(mean_in - mean_out)

    observed = difference(member)
    as_large = sum(
        difference(rng.permutation(member)) >= observed - ROUNDING
        for _ in range(PERMUTATIONS)
    )
    return 0.5 + observed / len(scores), (1 + as_large) / (1 + PERMUTATIONS)
