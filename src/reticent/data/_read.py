"""Read and validate a table from a file or a data frame."""

import tomllib
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from reticent._check import nearest
from reticent.data._table import MISSING, ColumnKind, Schema, Table
from reticent.errors import InvalidTable

__all__ = ["read_schema", "read_table", "table_from_frame"]

# A target with more different values is taken for a quantity, or for an identifier, that was named by mistake.
MOST_CLASSES = 100
# If more targets than this are missing, the column was probably named by mistake.
MOST_MISSING_TARGETS = 0.5
# Before 3.1, pandas misses the nearest number of about every fourth long decimal unless it is asked to be exact, so that the
# same file had another fingerprint there (seen in 2.2.2, 2.3.3 and 3.0.0). 3.1.1 is exact, and the question is deprecated.
_PRECISION: Literal["round_trip"] | None = (
    "round_trip" if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else None
)
_TRUE = {"true", "t", "yes"}
_FALSE = {"false", "f", "no"}


def read_table(
    path: Path | str,
    *,
    target: str,
    group: str | None = None,
    unit: str | None = None,
    part: str | None = None,
    schema: Schema | None = None,
    quantity: bool = False,
) -> Table:
    """Read a table from CSV, CSV.gz or Parquet.

    Missing values are ``?``, empty cells and NaN (or what the schema says). Columns are
    numeric, boolean or categorical, as the schema declares or as their values show.

    Parameters
    ----------
    path : path
        File ending in ``.csv``, ``.csv.gz``, ``.parquet`` or ``.pq``.
    target : str
        Column with the class, or the quantity, that the product predicts.
    group : str, optional
        Column with subgroups; it stays a feature.
    unit : str, optional
        Column that names the person a record belongs to; it is not a feature.
    part : str, optional
        Column with the values ``defender``, ``reserved``, ``auxiliary``; not a feature.
    schema : Schema, optional
        Declared columns; other columns, or missing ones, are then errors.
    quantity : bool
        Whether the target is a quantity, which regression models predict, and not a class.

    Returns
    -------
    Table

    Raises
    ------
    InvalidTable
        If the file is missing, empty, not a table, or a named column is not in it.
    """
    path = Path(path)
    frame = _read_frame(path, schema.missing if schema else MISSING)
    return table_from_frame(
        frame,
        target=target,
        group=group,
        unit=unit,
        part=part,
        schema=schema,
        name=path.name,
        quantity=quantity,
    )


def read_schema(path: Path | str) -> Schema:
    """Read a schema from TOML: a table ``[columns]`` and, optionally, ``missing = [...]``.

    Raises
    ------
    InvalidTable
        If the file cannot be read or holds unknown keys or kinds.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidTable(
            f"the schema {path} cannot be read ({error}); write it as TOML with a table [columns]."
        ) from error
    for key in content:
        if key not in ("columns", "missing"):
            raise InvalidTable(
                f"the schema {path} has the unknown key {key!r}, which would be ignored; "
                f"{nearest(key, ['columns', 'missing'])}."
            )
    kinds = [kind.value for kind in ColumnKind]
    declared = content.get("columns", {})
    if not isinstance(declared, dict):
        raise InvalidTable(
            f"columns must be a table in the schema {path}, got {declared!r}; write [columns] with name = kind."
        )
    for name, kind in declared.items():
        if kind not in kinds:
            raise InvalidTable(
                f"column {name!r} of the schema {path} is declared {kind!r}, which is not a kind of column; "
                f"{nearest(str(kind), kinds)}."
            )
    columns = {name: ColumnKind(kind) for name, kind in declared.items()}
    if not columns:
        raise InvalidTable(
            f"the schema {path} declares no column; add a table [columns] with name = kind."
        )
    if "missing" in content:
        if not isinstance(content["missing"], list):
            raise InvalidTable(
                f"missing must be a list in the schema {path}, got {content['missing']!r}; "
                'write, for example, missing = ["?", "-9"].'
            )
        return Schema(columns=columns, missing=tuple(map(str, content["missing"])))
    return Schema(columns=columns)


def table_from_frame(
    frame: pd.DataFrame,
    *,
    target: str | ArrayLike,
    group: str | ArrayLike | None = None,
    unit: str | ArrayLike | None = None,
    part: str | ArrayLike | None = None,
    schema: Schema | None = None,
    name: str = "the table",
    quantity: bool = False,
) -> Table:
    """Return a table made from a data frame; columns may be named or passed as arrays.

    With ``quantity`` the target is a number that regression models predict: the table has no
    classes, and its target is in double precision.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30, 40], "sex": ["f", None], "ill": ["no", "yes"]})
    >>> table = table_from_frame(frame, target="ill")
    >>> table.classes, table.target.tolist()
    (('no', 'yes'), [0, 1])
    >>> table_from_frame(frame, target="age", quantity=True).target
    array([30., 40.])
    """
    frame = frame.reset_index(drop=True)
    # Numbers as names would not match what a command line or a schema says.
    frame.columns = frame.columns.map(str)
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InvalidTable(
            f"{name} has two columns called {twice!r}, which cannot be told apart; rename one."
        )
    labels = _column(frame, target, "target", name)
    group_labels = None if group is None else _column(frame, group, "group", name)
    unit_labels = None if unit is None else _column(frame, unit, "unit", name)
    part_labels = None if part is None else _column(frame, part, "part", name)
    used = [
        column for column in (target, unit, part) if isinstance(column, str)
    ]  # the group stays a feature
    frame = frame.drop(columns=used)
    if frame.shape[1] == 0:
        raise InvalidTable(
            f"{name} has no column besides {', '.join(used)}, so there is nothing to predict from; add features."
        )

    known = ~labels.isna().to_numpy()
    if not known.any() or known.mean() < 1 - MOST_MISSING_TARGETS:
        raise InvalidTable(
            f"the target {_called(target)} is missing in {(~known).sum()} of {len(known)} rows of {name}, "
            "so most records have no answer to learn; choose another target or fill it in."
        )
    frame, labels = frame[known].reset_index(drop=True), labels[known]
    classes: tuple[str, ...] = ()
    if quantity:
        values: NDArray[Any] = _quantity(labels, _called(target), name)
    else:
        classes, values = _classes(labels, _called(target), name)
    if schema is not None:  # a schema may also declare columns that are not features
        of_features = {c: kind for c, kind in schema.columns.items() if c not in used}
        schema = replace(schema, columns=of_features)
    features, schema = _features(frame, schema, name)
    rows = np.flatnonzero(known)
    return Table(
        features=features,
        target=values,
        classes=classes,
        units=(
            np.arange(len(values))
            if unit_labels is None
            else _unit_codes(unit_labels[known], _called(unit))
        ),
        ids=rows.astype(np.int64),
        schema=schema,
        groups=None if group_labels is None else _as_text(group_labels[known]),
        parts=None if part_labels is None else _as_text(part_labels[known]),
        dropped=int((~known).sum()),
    )


def _read_frame(path: Path, missing: tuple[str, ...]) -> pd.DataFrame:
    if not path.is_file():
        raise InvalidTable(
            f"there is no file {path}, so there is nothing to audit; check the path."
        )
    if path.stat().st_size == 0:
        raise InvalidTable(
            f"the file {path} is empty, so it holds no record; write the table again."
        )
    name = path.name.lower()
    try:
        if name.endswith((".parquet", ".pq")):
            frame = _without_missing(pd.read_parquet(path), missing)
        elif name.endswith((".csv", ".csv.gz")):
            with warnings.catch_warnings():
                # In a row longer than the header it is unknown which value belongs to which column.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                frame = pd.read_csv(
                    path,
                    # Otherwise pandas takes the first column for an index where rows end with a comma.
                    index_col=False,
                    # Its own list would turn a country or a name such as "NA" into a missing value.
                    keep_default_na=False,
                    na_values=list(missing),
                    # Files such as Adult's have a space behind each comma.
                    skipinitialspace=True,
                    # In pieces, one column may become text in one piece and numbers in the next.
                    low_memory=False,
                    float_precision=_PRECISION,
                )
        else:
            raise InvalidTable(
                f"the file {path} is none of .csv, .csv.gz and .parquet, the formats that can be read; "
                "convert it to one of them."
            )
    except InvalidTable:
        raise
    except Exception as error:
        # An error of the command line is one sentence, and the first line names the reason.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else ""
        raise InvalidTable(
            f"the file {path} is not a table ({reason or type(error).__name__}); "
            "save it as CSV with a header line, or as Parquet."
        ) from error
    # One column is what a file with another separator looks like.
    if frame.shape[1] < 2 or len(frame) == 0:
        raise InvalidTable(
            f"the file {path} has {len(frame)} rows and {frame.shape[1]} column(s), which is not a "
            "table of records with a target; save it as CSV with a header line and commas."
        )
    return frame


def _without_missing(frame: pd.DataFrame, missing: tuple[str, ...]) -> pd.DataFrame:
    """Return a frame in which texts that mean "missing" are missing, as in text files."""
    columns = {}
    for column, values in frame.items():
        # A number such as -9 may be a marker in one column and a value in another, so only texts are compared.
        is_text = pd.api.types.is_string_dtype(values)
        columns[column] = values.mask(values.isin(missing)) if is_text else values
    return pd.DataFrame(columns)


def _column(
    frame: pd.DataFrame, column: str | ArrayLike, role: str, name: str
) -> pd.Series:
    if isinstance(column, str):
        if column not in frame.columns:
            raise InvalidTable(
                f"{name} has no column {column!r} to use as {role}; {nearest(column, frame.columns)}."
            )
        return frame[column]
    values = pd.Series(np.asarray(column))
    if len(values) != len(frame):
        raise InvalidTable(
            f"there are {len(frame)} records but {len(values)} values of the {role}; "
            "pass one per record."
        )
    return values


def _called(column: object) -> str:
    return repr(column) if isinstance(column, str) else "y"


def _classes(
    labels: pd.Series, called: str, name: str
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if (
        pd.api.types.is_float_dtype(labels) and (labels % 1 != 0).any()
    ) or labels.nunique() > MOST_CLASSES:
        raise InvalidTable(
            f"the target {called} of {name} has {labels.nunique()} different values, which is a "
            "quantity and not a class; name a regression model to audit one, or choose or make a target with few values."
        )
    # Numbers before texts, because the two cannot be compared with each other.
    values = sorted(labels.unique(), key=lambda v: (isinstance(v, str), v))
    if len(values) < 2:
        raise InvalidTable(
            f"the target {called} of {name} has the single value {values[0]!r}, so there is nothing "
            "to predict; choose a target with at least two classes."
        )
    codes = pd.Categorical(labels, categories=values).codes.astype(np.int64)
    return tuple(_name_of(value) for value in values), codes


def _quantity(labels: pd.Series, called: str, name: str) -> NDArray[np.float64]:
    numbers = pd.to_numeric(labels, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.isnan(numbers)
    if wrong.any() or pd.api.types.is_datetime64_any_dtype(labels):
        first = labels.to_numpy()[int(wrong.argmax())]
        raise InvalidTable(
            f"the target {called} of {name} holds {first!r}, which is not a number, but regression models predict a "
            "quantity; repair the column, or name a classifier to audit a class."
        )
    infinite = int(np.isinf(numbers).sum())
    if infinite:
        raise InvalidTable(
            f"the target {called} of {name} is infinite in {infinite} rows, which no model can learn; "
            "replace those values or mark them as missing."
        )
    if (numbers == numbers[0]).all():
        raise InvalidTable(
            f"the target {called} of {name} has the single value {numbers[0]:g}, so there is nothing "
            "to predict; choose a target that varies."
        )
    # Adding zero turns minus zero into zero, so that equal values have equal hashes.
    return np.asarray(numbers + 0.0)


def _name_of(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        # A column of whole numbers with a gap is read as floats: 1.0 and 1 are the same class.
        return str(int(value))
    return str(value)


def _unit_codes(labels: pd.Series, called: str) -> NDArray[np.int64]:
    absent = int(labels.isna().sum())
    if absent:
        raise InvalidTable(
            f"the unit {called} is missing in {absent} rows, so nobody knows whose records they "
            "are; fill it in or leave those rows out."
        )
    return pd.factorize(labels)[0].astype(np.int64)


def _as_text(labels: pd.Series) -> NDArray[np.object_]:
    named = ["(missing)" if pd.isna(value) else _name_of(value) for value in labels]
    return np.asarray(named, dtype=object)


def _features(
    frame: pd.DataFrame, schema: Schema | None, name: str
) -> tuple[pd.DataFrame, Schema]:
    if schema is not None:
        for column in schema.columns:
            if column not in frame.columns:
                raise InvalidTable(
                    f"{name} lacks the column {column!r}, which the schema declares; "
                    f"{nearest(column, frame.columns)}."
                )
        for column in frame.columns:
            if column not in schema.columns:
                raise InvalidTable(
                    f"{name} has the column {column!r}, which the schema does not declare; "
                    f"{nearest(column, schema.columns)}."
                )
        frame = frame[list(schema.columns)]
        kinds = dict(schema.columns)
    else:
        kinds = {column: _kind(frame[column]) for column in frame.columns}
    columns = {
        column: _values(frame[column], kinds[column]) for column in frame.columns
    }
    missing = schema.missing if schema else ()
    inferred = (
        Schema(columns=kinds, missing=missing) if missing else Schema(columns=kinds)
    )
    return pd.DataFrame(columns), inferred


def _kind(values: pd.Series) -> ColumnKind:
    if pd.api.types.is_bool_dtype(values):
        return ColumnKind.BOOLEAN
    if pd.api.types.is_numeric_dtype(values):
        return ColumnKind.NUMERIC
    if isinstance(values.dtype, pd.CategoricalDtype):
        return ColumnKind.CATEGORICAL
    try:
        # Ten distinct values are enough to see that there are more than two.
        present = {str(v).lower() for v in values.dropna().unique()[:10]}
    except TypeError as error:
        raise InvalidTable(
            f"column {values.name!r} holds lists or other nested values, which do not fit into one cell; "
            "give each of their parts a column."
        ) from error
    if present and present <= {"true", "false"}:
        return ColumnKind.BOOLEAN
    if pd.api.types.is_datetime64_any_dtype(values):
        return ColumnKind.NUMERIC
    return ColumnKind.CATEGORICAL


def _values(values: pd.Series, kind: ColumnKind) -> pd.Series:
    if kind == ColumnKind.CATEGORICAL:
        text = np.asarray(
            [np.nan if pd.isna(v) else _name_of(v) for v in values], dtype=object
        )
        return pd.Series(text, dtype=object)
    if kind == ColumnKind.BOOLEAN and not pd.api.types.is_numeric_dtype(values):
        return pd.Series(
            [np.nan if pd.isna(v) else _truth(v, values.name) for v in values],
            dtype=np.float64,
        )
    if pd.api.types.is_datetime64_any_dtype(values):
        # Days since 1970, of the size of other numbers; nanoseconds would lose digits as doubles.
        days = (values - pd.Timestamp(0, tz=values.dt.tz)).dt.total_seconds() / 86_400
        return days.astype(np.float64).reset_index(drop=True)
    numbers = pd.to_numeric(values, errors="coerce").astype(np.float64)
    wrong = int((numbers.isna() & ~values.isna()).sum())
    if wrong:
        raise InvalidTable(
            f"column {values.name!r} is declared {kind.value} but {wrong} of its values are not "
            "numbers; declare it categorical or repair them."
        )
    if np.isinf(numbers).any():
        raise InvalidTable(
            f"column {values.name!r} holds infinite values, which no model can use; "
            "replace them or mark them as missing."
        )
    return pd.Series(numbers.to_numpy())


def _truth(value: object, column: object) -> float:
    text = str(value).strip().lower()
    if text in _TRUE or text == "1":
        return 1.0
    if text in _FALSE or text == "0":
        return 0.0
    raise InvalidTable(
        f"column {column!r} is declared boolean but holds {value!r}; declare it categorical or repair it."
    )
