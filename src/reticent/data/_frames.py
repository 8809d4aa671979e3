"""Take records as callers have them, in any kind of data frame or array, as a pandas frame that loses no type."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from reticent.errors import InvalidInput, InvalidTable

__all__ = ["as_frame", "as_values"]


def as_frame(X: Any, *, name: str = "X") -> pd.DataFrame:
    """Return records as a pandas frame whose columns have the types that their values have.

    Parameters
    ----------
    X : data frame or array, shape (n, d)
        A frame of pandas, Polars, PyArrow, Modin or any other library that Narwhals knows, lazy or not; or an array. The
        columns of an array are called ``x0``, ``x1``, ...
    name : str
        What errors call it.

    Raises
    ------
    InvalidInput
        If it is neither, or has not two dimensions.

    Examples
    --------
    >>> as_frame(np.array([[1, "a"], [2, "b"]], dtype=object)).dtypes.iloc[0]
    dtype('int64')
    """
    if isinstance(X, pd.DataFrame):
        return _with_types(X)
    if hasattr(X, "toarray"):
        raise InvalidInput(
            f"{name} is a sparse matrix, which would be filled up with zeros; pass {name}.toarray() if it fits into memory."
        )
    native = nw.from_native(X, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    if isinstance(native, nw.DataFrame):
        if native.implementation.is_pandas_like():
            return _with_types(native.to_pandas())
        # Arrow keeps what pandas' own types would lose: whole numbers beside missing ones, decimals, dates.
        return _with_types(native.to_arrow().to_pandas(date_as_object=False))
    if isinstance(X, dict):
        raise InvalidInput(
            f"{name} is a dictionary, which is no table; pass pandas.DataFrame({name})."
        )
    array = np.asarray(X)
    if array.dtype.names is not None:
        return _with_types(pd.DataFrame(array))
    if array.ndim != 2:
        raise InvalidInput(
            f"{name} has shape {array.shape}, but must have one row per record and one column per feature."
        )
    frame = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
    if array.dtype.kind in "US":
        # An array has one type, so a single text has made texts of all numbers: read them as a text file would be read.
        return frame.apply(_numbers_again)
    return _with_types(frame)


def as_values(values: Any, *, role: str) -> pd.Series:
    """Return one value per record, with the type that the values have.

    Parameters
    ----------
    values : array-like or series
        Targets, groups, units or parts.
    role : str
        What they are, for errors.

    Raises
    ------
    InvalidInput
        If there are several values per record.
    """
    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    if isinstance(native, nw.Series | nw.DataFrame):
        values = native.to_pandas()
    if not isinstance(values, pd.Series | pd.DataFrame):
        values = np.asarray(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0] if isinstance(values, np.ndarray) else values.iloc[:, 0]
    if values.ndim != 1:
        raise InvalidInput(
            f"the {role} has shape {values.shape}, but reticent audits models with one {role} per record; audit one column at a time."
        )
    column = pd.Series(values).reset_index(drop=True)
    return column.infer_objects() if column.dtype == object else column


def _with_types(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose object columns have the type of the values in them, where these have one."""
    has_objects = any(dtype.kind == "O" for dtype in frame.dtypes)
    return frame.infer_objects() if has_objects else frame


def _numbers_again(texts: pd.Series) -> pd.Series:
    """Return texts as numbers if all of them are; NaN is how an array writes that a number is missing."""
    if texts.dtype.kind == "S" or (len(texts) and isinstance(texts.iloc[0], bytes)):
        raise InvalidTable(
            f"column {texts.name!r} holds bytes, not texts; decode it, for example with numpy.char.decode."
        )
    absent = texts.isin(["nan", "None", ""])
    numbers = pd.to_numeric(texts.mask(absent), errors="coerce")
    if (numbers.isna() & ~absent).any():
        return texts.astype(object).mask(absent)
    return numbers.astype(np.float64)
