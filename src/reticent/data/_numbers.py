"""Turn records into numbers, for tree ensembles and for attacks that look at the records."""

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OrdinalEncoder

from reticent.data._table import ColumnKind, Table

__all__ = ["as_numbers", "telling_columns", "without_empty_columns"]

# scikit-learn's HistGradientBoosting takes at most 255 categories. Codes are ranks by frequency from 0,
# so 254 are used at most, and all rarer categories share the last one.
MOST_CATEGORIES = 253
# Columns that boosted trees learn from, whose time grows with the columns: more than tables of people have, and minutes where 5,000 take hours.
MOST_COLUMNS = 1_000


def as_numbers(table: Table) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the records as numbers for a tree ensemble, and which columns are categories.

    The target is the last column: a class is a category, a quantity is a number like any other.
    """
    frame = table.features
    names = table.schema.names(ColumnKind.CATEGORICAL)
    is_categorical = np.array(
        [c in names for c in frame.columns] + [not table.is_quantity]
    )
    matrix = np.empty((len(table), frame.shape[1] + 1))
    for j, column in enumerate(frame.columns):
        if is_categorical[j]:
            codes = OrdinalEncoder().fit_transform(
                frame[[column]].fillna("\0missing").astype(str)
            )[:, 0]
            order = np.argsort(np.argsort(-np.bincount(codes.astype(int))))
            matrix[:, j] = np.minimum(order[codes.astype(int)], MOST_CATEGORIES)
        else:
            matrix[:, j] = frame[column]
    matrix[:, -1] = (
        table.target if table.is_quantity else np.minimum(table.target, MOST_CATEGORIES)
    )
    return matrix, is_categorical


def without_empty_columns(inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return records to learn from in which a column without any value is zero.

    scikit-learn's boosted trees cannot put a column into bins of which they see no value, and a part of the records may have none where the
    whole table has some. A constant column is never split, so that no answer depends on it.

    Examples
    --------
    >>> without_empty_columns(np.array([[1.0, np.nan], [np.nan, np.nan]]))
    array([[ 1.,  0.],
           [nan,  0.]])
    """
    empty = np.isnan(inputs).all(axis=0)
    if not empty.any():
        return inputs
    filled = inputs.copy()
    filled[:, empty] = 0.0
    return filled


def telling_columns(
    inputs: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the columns to learn from, in their order: all of up to 1,000, else those most correlated with what is learned.

    Whoever learns from some records and judges others passes the first alone, so that the choice is a part of the learning.

    Parameters
    ----------
    inputs : array of float, shape (n, d)
        Records to learn from; a missing value counts as the mean of its column.
    values : array of float, shape (n,)
        What is learned about them.

    Examples
    --------
    >>> telling_columns(np.zeros((4, 2)), np.arange(4.0))
    array([0, 1])
    """
    count = inputs.shape[1]
    if count <= MOST_COLUMNS:
        return np.arange(count)
    known = ~np.isnan(inputs)
    total = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, inputs, 0.0)
    centred = np.where(known, centred - centred.sum(axis=0) / total, 0.0)
    length = np.sqrt((centred**2).sum(axis=0))
    products = np.abs(centred.T @ (values - values.mean()))
    correlation = products / np.where(length > 0, length, 1.0)
    return np.sort(np.argsort(-correlation, kind="stable")[:MOST_COLUMNS])
