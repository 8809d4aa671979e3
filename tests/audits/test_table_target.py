"""The column that models predict if nobody names one: which columns are tried, and that leaving some out loses nothing."""

import numpy as np
import pandas as pd
import pytest

from made_tables import people
from reticent.audits import SyntheticTableKind, _table_utility
from reticent.audits._table_utility import ChosenTarget, chosen_target, losses_of
from reticent.data import Coder, table_from_frame
from reticent.run import stream


def coded(frame):
    table = table_from_frame(frame, target=None)
    return Coder(table.features, table.schema).code(table.features)


def auxiliary(seed, *, name):
    """People with a column of many values beside one that is easy to guess."""
    rng = stream(seed, f"test/target/{name}")
    frame = people(240, rng)
    frame["code"] = [f"code {k}" for k in rng.integers(0, 60, len(frame))]
    frame["twin"] = frame["sex"].map({"f": "one", "m": "two"})
    return frame


def every_column(table):
    """The choice with a model for every column, in their order."""
    half = len(table) // 2
    learn, judged = table.take(np.arange(half)), table.take(np.arange(half, len(table)))
    saved = []
    for j in range(table.codes.shape[1]):
        lost, constant = losses_of(learn, judged, j, constant_of=learn)
        saved.append(1 - lost.sum() / constant.sum())
    return int(np.argmax(saved))


def test_columns_that_cannot_win_change_nothing(seed, monkeypatch):
    table = coded(auxiliary(seed, name="all"))
    expected = every_column(table)
    asked = []

    def counted(learn, judged, place, *, constant_of):
        asked.append(place)
        return losses_of(learn, judged, place, constant_of=constant_of)

    monkeypatch.setattr(_table_utility, "losses_of", counted)
    assert chosen_target(table) == ChosenTarget(place=expected, untried=0)
    # Some people of the second half have a code that nobody of the first has, while the twin is never missed.
    assert len(asked) < table.codes.shape[1]


def test_no_model_saves_more_than_the_bound(seed):
    table = coded(auxiliary(seed, name="bound"))
    half = len(table) // 2
    learn, judged = table.take(np.arange(half)), table.take(np.arange(half, len(table)))
    for j in range(table.codes.shape[1]):
        most = _table_utility._most_saved(learn, judged, j, constant_of=learn)
        lost, constant = losses_of(learn, judged, j, constant_of=learn)
        assert 1 - lost.sum() / constant.sum() <= most


def test_columns_of_many_values_are_left_out_and_counted(seed, monkeypatch):
    frame = auxiliary(seed, name="work")
    table = coded(frame)
    # The work of all columns but the one of 60 codes, in trees times rows: half of the people learn.
    half = len(table) // 2
    learn, judged = table.take(np.arange(half)), table.take(np.arange(half, len(table)))
    trees = [_table_utility._trees(learn, judged, j) for j in range(frame.shape[1])]
    assert int(np.argmax(trees)) == frame.columns.get_loc("code")
    enough = half * sum(trees)
    monkeypatch.setattr(_table_utility, "MOST_WORK", enough)
    assert chosen_target(table).untried == 0
    monkeypatch.setattr(_table_utility, "MOST_WORK", enough - 1)
    left = chosen_target(table)
    assert left.untried == 1
    assert left.place == every_column(coded(frame.drop(columns="code")))


@pytest.mark.parametrize(("untried", "words"), [(0, "best"), (1, "best (1 column of many values not tried)"), (3, "best (3 columns of many values not tried)")])  # fmt: skip
def test_the_report_says_how_many_columns_were_not_tried(untried, words, monkeypatch):
    from reticent.attack.synthetic import Tables
    from reticent.audits import synthetic_table

    table = coded(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    tables = Tables(records=table, synthetic=table, auxiliary=table, names=("a", "b"))
    monkeypatch.setattr(
        synthetic_table,
        "chosen_target",
        lambda _: ChosenTarget(place=1, untried=untried),
    )
    kind = SyntheticTableKind()
    assert kind._judged_column(tables) == "b"
    assert kind._why_chosen(tables).endswith(words)
    assert SyntheticTableKind("a")._why_chosen(tables) == ""
