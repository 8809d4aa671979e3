"""The neighbour that differs most: against a double loop, with ties, copies and samples."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.attack import (
    Euclidean,
    Gower,
    StructuralSimilarity,
    most_dissimilar_pair,
    most_dissimilar_record,
)
from reticent.data import table_from_frame
from reticent.errors import InvalidInput, InvalidTable
from reticent.run import stream

SMALL = StructuralSimilarity(shape=(11, 11), dynamic_range=1)


def a_table(rows, rng):
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=rows),
            "town": rng.choice(np.array(["a", "b", None], dtype=object), size=rows),
        }
    )
    return table_from_frame(frame, target=np.arange(rows) % 2)


def some_images(rows, rng):
    return rng.random((rows, 121))


CASES = [(Gower(), a_table), (Euclidean(), a_table), (SMALL, some_images)]


@pytest.mark.parametrize(("distance", "make"), CASES)
def test_record_agrees_with_a_double_loop(distance, make):
    table = make(23, stream(0, "record"))
    matrix = distance.between(table, table)
    means = [sum(matrix[i, j] for j in range(23) if j != i) / 22 for i in range(23)]
    chosen = most_dissimilar_record(table, distance, rng=stream(0, "unused"))
    assert chosen.row == int(np.argmax(means))
    assert chosen.dissimilarity == pytest.approx(max(means))
    assert (chosen.looked_at, chosen.out_of) == (23, 23)


@pytest.mark.parametrize(("distance", "make"), CASES)
def test_pair_agrees_with_a_double_loop(distance, make):
    rng = stream(0, "pair")
    table, candidates = make(13, rng), make(17, rng)
    matrix = distance.between(table, candidates)
    best = max((matrix[i, j], i, j) for i in range(13) for j in range(17))
    pair = most_dissimilar_pair(table, candidates, distance, rng=rng)
    assert (pair.dissimilarity, pair.row, pair.candidate) == best
    assert pair.looked_at == pair.out_of == (13, 17)


def test_replacing_or_removing_makes_the_neighbour():
    # An outlier of the table itself is removed; an outlier among the candidates comes in for what is farthest from it.
    table = np.array([[2.0], [3.0], [1.0], [9.0]])
    rng = stream(0, "unused")
    assert most_dissimilar_record(table, Gower(), rng=rng).row == 3
    pair = most_dissimilar_pair(table, np.array([[5.0], [50.0]]), Gower(), rng=rng)
    assert (pair.row, pair.candidate, pair.dissimilarity) == (2, 1, 1.0)


@pytest.mark.parametrize(("distance", "make"), CASES)
def test_copies_are_tied_and_the_first_is_taken(distance, make):
    rng = stream(0, "ties")
    table = make(20, rng)
    rows = np.tile(np.arange(20), 3)
    copies = table[rows] if isinstance(table, np.ndarray) else table.take(rows)
    assert most_dissimilar_record(copies, distance, rng=rng).row < 20
    pair = most_dissimilar_pair(copies, copies, distance, rng=rng)
    assert pair.row < 20
    assert pair.candidate < 20
    assert pair.row < pair.candidate  # the same two the other way round come later


@pytest.mark.parametrize(
    ("distance", "record"),
    [(Gower(), [3.0, 0.1]), (Euclidean(), [3.0, 0.1]), (SMALL, [0.3] * 121)],
)
def test_equal_records_have_no_dissimilarity(distance, record):
    table = np.array([record] * 4)
    rng = stream(0, "unused")
    chosen = most_dissimilar_record(table, distance, rng=rng)
    assert (chosen.row, chosen.dissimilarity) == (0, 0.0)
    pair = most_dissimilar_pair(table, table, distance, rng=rng)
    assert (pair.row, pair.candidate, pair.dissimilarity) == (0, 0, 0.0)


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.integers(-50, 50), min_size=2, max_size=12),
    others=st.lists(st.integers(-50, 50), min_size=1, max_size=12),
)
def test_one_number_is_farthest_at_an_end(values, others):
    table, candidates = (np.array(v, dtype=float)[:, None] for v in (values, others))
    rng = np.random.default_rng(0)
    row = most_dissimilar_record(table, Gower(), rng=rng).row
    sums = [sum(abs(a - b) for b in values) for a in values]
    assert row == sums.index(max(sums))
    pair = most_dissimilar_pair(table, candidates, Gower(), rng=rng)
    gaps = [[abs(a - b) for b in others] for a in values]
    largest = max(map(max, gaps))
    assert gaps[pair.row][pair.candidate] == largest
    assert pair.row == min(i for i, row in enumerate(gaps) if largest in row)
    assert pair.candidate == gaps[pair.row].index(largest)


def test_long_tables_are_sampled_and_the_result_says_so():
    table = stream(0, "long").normal(size=(500, 2))
    chosen = most_dissimilar_record(table, Euclidean(), most=50, rng=stream(1, "rows"))
    assert (chosen.looked_at, chosen.out_of) == (50, 500)
    rows = np.sort(stream(1, "rows").choice(500, 50, replace=False))
    among = most_dissimilar_record(table[rows], Euclidean(), rng=stream(0, "unused"))
    assert (chosen.row, chosen.dissimilarity) == (rows[among.row], among.dissimilarity)

    pair = most_dissimilar_pair(
        table[:30], table[30:], Euclidean(), most=40, rng=stream(1, "rows")
    )
    assert (pair.looked_at, pair.out_of) == ((30, 40), (30, 470))
    others = 30 + np.sort(stream(1, "rows").choice(470, 40, replace=False))
    assert 30 + pair.candidate in others
    everything = most_dissimilar_pair(
        table[:30], table[30:], Euclidean(), most=500, rng=stream(1, "rows")
    )
    assert everything.looked_at == (30, 470)


def test_frames_with_any_index_are_counted_from_zero():
    frame = pd.DataFrame({"x": [1.0, 9.0, 2.0, 1.5]}, index=[7, 7, 3, 1])
    rng = stream(0, "unused")
    assert most_dissimilar_record(frame, Gower(), rng=rng).row == 1
    pair = most_dissimilar_pair(frame, frame.iloc[[2, 1]], Gower(), rng=rng)
    assert (pair.row, pair.candidate) == (0, 1)


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A distance of somebody else's."""

    matrix: tuple

    def between(self, first, second):
        return np.array(self.matrix)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (((0, 1),), r"shape \(1, 2\) instead of \(2, 2\)"),
        (((0, np.nan), (1, 0)), "1 of 4 dissimilarities"),
        (((0, -1), (-1, 0)), "2 of 4 dissimilarities .* negative"),
    ],
)
def test_distances_that_are_none_are_refused(matrix, words):
    table, rng = np.ones((2, 1)), stream(0, "unused")
    with pytest.raises(InvalidInput, match=words):
        most_dissimilar_record(table, Fixed(matrix=matrix), rng=rng)
    with pytest.raises(InvalidInput, match=words):
        most_dissimilar_pair(table, table, Fixed(matrix=matrix), rng=rng)


def test_too_few_records_are_refused():
    rng, one, none = stream(0, "unused"), np.ones((1, 2)), np.ones((0, 2))
    with pytest.raises(InvalidTable, match="the table has 1 records, so none can be"):
        most_dissimilar_record(one, Gower(), rng=rng)
    with pytest.raises(InvalidTable, match="1 records and there are 0 candidates"):
        most_dissimilar_pair(one, none, Gower(), rng=rng)
    with pytest.raises(InvalidTable, match="0 records and there are 1 candidates"):
        most_dissimilar_pair(none, one, Gower(), rng=rng)
    with pytest.raises(InvalidInput, match="most must be at least 2, got 1"):
        most_dissimilar_record(np.ones((3, 2)), Gower(), most=1, rng=rng)
    assert most_dissimilar_pair(one, one, Gower(), rng=rng).dissimilarity == 0
