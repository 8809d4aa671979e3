"""Whether anything that never sees the product tells members from non-members."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier

from reticent.attack.blind._people import FOLDS, People, sample_people
from reticent.attack.blind._permute import (
    TESTS,
    accuracy_of,
    permutation_tests,
)
from reticent.attack.blind._power import Visible, visible
from reticent.attack.blind._properties import Properties, describe, ridge
from reticent.data import (
    Finding,
    Severity,
    Split,
    telling_columns,
    without_empty_columns,
)
from reticent.run import one_thread

__all__ = ["BlindBaseline", "blind_baseline"]

Array = NDArray[np.float32]

FEWEST_PEOPLE = (
    8  # on either side: with fewer, hardly any permutation exists that could be rare
)
TREES = 40  # of the boosted classifier; on small tables they are most of the time of the baseline
MOST_LEARNED = 800  # properties that the linear classifier learns from, those that differ most among the records to learn from
AT_RANDOM = "The audit drew the members at random from one table: what an attack finds beyond chance is due to the product."
GIVEN = "What an attack finds beyond that is due to the product; smaller differences, and some of other kinds, cannot be ruled out."
CLASSIFIERS = ("boosted trees", "a quadratic classifier")


@dataclass(frozen=True, kw_only=True)
class BlindBaseline:
    """What can be told about membership by the records alone.

    Parameters
    ----------
    accuracy : float
        LTU accuracy of the strongest sign, without the product; 1/2 is chance. Chosen among many, it leans upwards.
    p_value : float
        Of "members and non-members are alike", over all tests together.
    sign : str
        What the strongest sign is: a column, a pair of columns, a classifier.
    false_alarm : float
        Probability of an alarm if the two sides are alike.
    rows, of_rows : int
        Records that were looked at, and all.
    visible : Visible or None
        The smallest differences that would have been noticed; None if there are too few people to notice any.
    """

    accuracy: float
    p_value: float
    sign: str
    false_alarm: float
    rows: int
    of_rows: int
    visible: Visible | None

    @property
    def beats_chance(self) -> bool:
        """Whether the two sides were told apart."""
        return self.p_value <= self.false_alarm

    def finding(self, *, at_random: bool) -> Finding:
        """Return the finding: ``stop`` if the sides were told apart, else a note that says what would have been noticed.

        Parameters
        ----------
        at_random : bool
            Whether this audit itself drew the members at random from one table.
        """
        looked = (
            f", looking at {self.rows:,} of {self.of_rows:,} records"
            if self.rows < self.of_rows
            else ""
        )
        if self.beats_chance:
            return Finding(
                name="blind_baseline",
                severity=Severity.STOP,
                text=(
                    f"members and non-members were told apart without the product, by {self.sign} (accuracy {self.accuracy:.3f} "
                    f"against 0.5 by chance, p = {self.p_value:.2g}{looked}): the two sides differ by more than membership, so attacks "
                    "cannot be judged; divide the table at random."
                ),
            )
        seen = (
            f"One of the kinds looked for that gives an attacker an accuracy of {max(self.visible.accuracy, self.visible.learned_accuracy):.3f} would "
            f"have been seen with a probability of {100 * self.visible.power:.0f} %. "
            if self.visible
            else "There are too few people to see any. "
        )
        return Finding(
            name="blind_baseline",
            severity=Severity.NOTE,
            text=f"no difference between members and non-members was seen without the product (p = {self.p_value:.2g}{looked}). "
            + seen
            + (AT_RANDOM if at_random else GIVEN),
        )


def blind_baseline(
    split: Split, *, rng: np.random.Generator, false_alarm: float = 0.01
) -> BlindBaseline:
    """Try to tell the defender's records from the reserved ones by the records alone.

    Three tests share the probability of a false alarm equally. The first compares hundreds of properties of the records, described without
    tags: columns, categories, spreads, the class, products of two, and how the class fits the rest of its record; its statistic is the
    largest difference. For the other two, people are halved at random; boosted trees and a linear classifier of the properties learn from one half and score
    the other, and the reverse; the better of the two counts. All p-values are by permuting the tags of people, which is exact. They are
    dependent; three times the smallest is valid whatever the dependence (Bonferroni).

    Parameters
    ----------
    split : Split
        The divided table.
    rng : numpy.random.Generator
        Stream of the sample, the halves, the classifiers and the permutations.
    false_alarm : float
        Probability of an alarm if the two sides are alike.

    References
    ----------
    .. [1] Westfall & Young, "Resampling-based multiple testing", 1993: the largest of several statistics, by permutation.
    .. [2] Lopez-Paz & Oquab, "Revisiting classifier two-sample tests", arXiv:1610.06545.
    """
    people = sample_people(split, rng=rng)
    if np.bincount(people.unit_tags, minlength=2).min() < FEWEST_PEOPLE:
        return BlindBaseline(
            accuracy=0.5,
            p_value=1.0,
            sign="nothing",
            false_alarm=false_alarm,
            rows=len(people),
            of_rows=people.total,
            visible=None,
        )
    with one_thread():
        properties = describe(people, rng=rng)
        scores = [_scores(people, properties, k, rng) for k in range(FOLDS)]
        tests = permutation_tests(people, properties.values, scores, rng=rng)
    first = min(range(TESTS), key=lambda test: tests[test].p_value)
    best = tests[first].strongest
    if first == 0:
        accuracy = accuracy_of(properties.values[:, best], people)
        sign = properties.names[best]
    else:
        gap = tests[first].observed[best] * tests[first].errors[best]
        accuracy, sign = float(0.5 + gap), CLASSIFIERS[best]
    return BlindBaseline(
        accuracy=accuracy,
        p_value=min(1.0, TESTS * tests[first].p_value),
        sign=sign,
        false_alarm=false_alarm,
        rows=len(people),
        of_rows=people.total,
        visible=visible(people, properties, tests, false_alarm=false_alarm),
    )


def _scores(
    people: People, properties: Properties, k: int, rng: np.random.Generator
) -> Array:
    """Return ranks of one half by classifiers that learned from the other, in shares of the half, around 0."""
    learn, judge = np.flatnonzero(people.fold != k), np.flatnonzero(people.fold == k)
    scores = np.column_stack(
        [
            _trees(people, properties.fit, learn, judge, rng),
            _linear(people.tags, properties.values, learn, judge),
        ]
    )
    ranks = np.apply_along_axis(rankdata, 0, scores) / len(judge)
    return np.asarray(ranks - ranks.mean(axis=0), dtype=np.float32)


def _trees(
    people: People,
    fit: Array,
    learn: NDArray[np.int64],
    judge: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return scores of boosted trees that learned from the records and from how their target fits."""
    tags = people.tags[learn]
    columns = telling_columns(people.matrix[learn], tags.astype(np.float64))
    model = HistGradientBoostingClassifier(
        max_iter=TREES,
        learning_rate=0.15,
        max_leaf_nodes=15,
        min_samples_leaf=max(10, len(learn) // 200),
        categorical_features=np.append(people.categorical[columns], False),
        early_stopping=False,
        random_state=int(rng.integers(2**31 - 1)),
    )

    def inputs(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.column_stack([people.matrix[np.ix_(rows, columns)], fit[rows]])

    model.fit(without_empty_columns(inputs(learn)), tags)
    scores: NDArray[np.float64] = model.decision_function(inputs(judge))
    return scores


def _linear(
    tags: NDArray[np.bool_],
    values: Array,
    learn: NDArray[np.int64],
    judge: NDArray[np.int64],
) -> Array:
    """Return scores of a ridge regression of the tags on the properties, squares and products among them."""
    inputs, asked = values[learn], values[judge]
    answers = tags[learn].astype(np.float32)[:, None]
    if values.shape[1] > MOST_LEARNED:
        gaps = np.abs((answers - answers.mean()).T @ inputs)[0]
        columns = np.sort(np.argsort(-gaps, kind="stable")[:MOST_LEARNED])
        inputs, asked = inputs[:, columns], asked[:, columns]
    # As much as the data say about one property: differences of many are then added up, and not fitted one by one.
    return ridge(inputs, answers, asked, penalty=float(len(learn)))[:, 0]
