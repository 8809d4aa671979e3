"""Records as numbers, for tree ensembles and attacks that look at them."""

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OrdinalEncoder

from reticent.data._table import ColumnKind, Table

__all__ = ["as_numbers"]

# HistGradientBoosting takes at most 255 categories; a longer tail shares the last one.
MOST_CATEGORIES = 253


def as_numbers(table: Table) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the records as numbers for a tree ensemble, target last, and which columns are categories."""
    frame = table.features
    names = table.schema.names(ColumnKind.CATEGORICAL)
    is_categorical = np.array([c in names for c in frame.columns] + [True])
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
    matrix[:, -1] = np.minimum(table.target, MOST_CATEGORIES)
    return matrix, is_categorical
