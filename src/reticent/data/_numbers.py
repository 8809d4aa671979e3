"""Turn records into numbers, for tree ensembles and for attacks that look at the records."""

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OrdinalEncoder

from reticent.data._table import ColumnKind, Table

__all__ = ["as_numbers"]

# scikit-learn's HistGradientBoosting takes at most 255 categories. Codes are ranks by frequency from 0,
# so 254 are used at most, and all rarer categories share the last one.
MOST_CATEGORIES = 253


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
