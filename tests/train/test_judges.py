"""Judges of tables: missing classes, missing values, many categories."""

import numpy as np
import pytest

from reticent.errors import InvalidInput
from reticent.train import JUDGES, CodedRows, judge_scores


def rows(rng: np.random.Generator, n: int) -> tuple[CodedRows, np.ndarray]:
    numbers, codes = rng.normal(size=(n, 2)), rng.integers(0, 80, (n, 1))
    target = (numbers[:, 0] + (codes[:, 0] < 40) > 0.5).astype(int)
    numbers[rng.random((n, 2)) < 0.1] = np.nan
    return CodedRows(numbers=numbers, codes=codes), target


def test_every_judge_ranks_records_with_gaps_and_new_categories():
    rng = np.random.default_rng(0)
    (train, y), (test, truth) = rows(rng, 300), rows(rng, 200)
    test.codes[:5] = 999
    scores = judge_scores(train, y, test, classes=3, seed=0)
    assert tuple(scores) == JUDGES
    for answers in scores.values():
        assert answers.shape == (200, 3)
        assert (answers[:, 2] == 0).all()
        assert ((answers[:, 1] > 0.5) == truth).mean() > 0.7


def test_a_table_of_one_class_ranks_nothing():
    rng = np.random.default_rng(0)
    train, y = rows(rng, 20)
    for answers in judge_scores(train, y * 0, train, classes=2, seed=0).values():
        assert np.array_equal(answers, np.tile([1.0, 0.0], (20, 1)))


def test_targets_must_fit():
    train, y = rows(np.random.default_rng(0), 20)
    with pytest.raises(InvalidInput, match="20 rows and 2 classes"):
        judge_scores(train, y + 1, train, classes=2, seed=0)
