"""Records as numbers: which columns are learned from, and columns without a value."""

import numpy as np
import pytest
import sklearn
from packaging.version import Version
from sklearn.ensemble import HistGradientBoostingClassifier

from reticent.data import telling_columns, without_empty_columns
from reticent.data._numbers import MOST_COLUMNS
from reticent.run import stream


def test_ordinary_tables_keep_all_columns(seed):
    inputs = stream(seed, "numbers").normal(size=(30, MOST_COLUMNS))
    assert np.array_equal(
        telling_columns(inputs, np.arange(30.0)), np.arange(MOST_COLUMNS)
    )
    assert without_empty_columns(inputs) is inputs


def test_a_wide_table_keeps_the_columns_that_correlate(seed):
    rng = stream(seed, "numbers")
    inputs = rng.normal(size=(50, 3 * MOST_COLUMNS))
    inputs[rng.random(inputs.shape) < 0.1] = np.nan
    inputs[:, 5] = np.nan
    values = rng.normal(size=50)
    values += 10 * np.nan_to_num(inputs[:, 2_500])
    columns = telling_columns(inputs, values)
    naive = []
    for column in inputs.T:
        known = ~np.isnan(column)
        mean = column[known].mean() if known.any() else 0.0
        filled = np.where(known, column, mean)
        same = np.ptp(filled) == 0
        naive.append(0.0 if same else abs(np.corrcoef(filled, values)[0, 1]))
    assert set(columns) == set(np.argsort(naive)[-MOST_COLUMNS:])
    assert 2_500 in columns
    assert 5 not in columns
    assert (np.diff(columns) > 0).all()


def test_trees_learn_from_records_of_which_a_column_is_empty(seed):
    rng = stream(seed, "numbers")
    inputs = np.column_stack([rng.normal(size=80), np.full(80, np.nan)])
    tags = inputs[:, 0] > 0
    if Version(sklearn.__version__) >= Version("1.8"):  # older ones take such a column
        with pytest.raises(ValueError, match="window shape"):
            HistGradientBoostingClassifier(max_iter=2).fit(inputs, tags)
    model = HistGradientBoostingClassifier(max_iter=5)
    model.fit(without_empty_columns(inputs), tags)
    asked = inputs.copy()
    asked[:, 1] = 7.0  # a value that nobody has seen changes no answer
    assert np.array_equal(model.predict_proba(asked), model.predict_proba(inputs))
