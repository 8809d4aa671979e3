"""Read and validate a table from a file or a data frame."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from reticent._check import nearest
from reticent.data._columns import alike_but_for_spelling, features_of, name_of
from reticent.data._file import read_frame
from reticent.data._finding import Finding, Severity, quoted
from reticent.data._frames import as_frame, as_values
from reticent.data._table import ColumnKind, Schema, Table
from reticent.errors import InvalidTable

__all__ = ["read_table", "table_from_frame"]

# A target with more different values is taken for a quantity, or for an identifier, that was named by mistake.
MOST_CLASSES = 100
# If more targets than this are missing, the column was probably named by mistake.
MOST_MISSING_TARGETS = 0.5
NO_CLASS = "record"  # the one class of a table without a target


def read_table(
    path: Path | str,
    *,
    target: str,
    group: str | None = None,
    unit: str | None = None,
    part: str | None = None,
    schema: Schema | None = None,
    quantity: bool = False,
    drop: Sequence[str] = (),
) -> Table:
    """Read a table from CSV, CSV.gz or Parquet.

    Missing values are ``?``, empty cells and NaN (or what the schema says). Columns are
    numeric, boolean, categorical or dates, as the schema declares or as their values show.

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
    drop : sequence of str
        Columns that are left out, beside those that the schema drops.

    Returns
    -------
    Table
        Its ``findings`` say what each column was taken for, and what in it may have been meant otherwise.

    Raises
    ------
    InvalidTable
        If the file is missing, empty, not a table, or a named column is not in it.
    """
    path = Path(path)
    declared = schema or Schema(columns={})
    codes = [
        c for c, kind in declared.columns.items() if kind == ColumnKind.CATEGORICAL
    ]
    frame, findings = read_frame(
        path,
        missing=declared.missing,
        exact=[*codes, *(name for name in (unit, part) if name is not None)],
    )
    table = table_from_frame(
        frame,
        target=target,
        group=group,
        unit=unit,
        part=part,
        schema=schema,
        name=path.name,
        quantity=quantity,
        drop=drop,
    )
    return replace(table, findings=(*table.findings, *findings))


def table_from_frame(
    frame: Any,
    *,
    target: str | ArrayLike | None,
    group: str | ArrayLike | None = None,
    unit: str | ArrayLike | None = None,
    part: str | ArrayLike | None = None,
    schema: Schema | None = None,
    name: str = "the table",
    quantity: bool = False,
    drop: Sequence[str] = (),
) -> Table:
    """Return a table made from a data frame of any library; columns may be named or passed as arrays.

    Without a target all records have one and the same class: synthetic tables are compared column by column, and none of the columns is special.
    With ``quantity`` the target is a number that regression models predict: the table has no
    classes, and its target is in double precision. The index of a pandas frame is no feature, but may be named as
    target, group, unit or part.

    Raises
    ------
    InvalidTable
        If the frame is not a usable table, or a named column is not in it.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30, 40], "sex": ["f", None], "ill": ["no", "yes"]})
    >>> table = table_from_frame(frame, target="ill")
    >>> table.classes, table.target.tolist()
    (('no', 'yes'), [0, 1])
    >>> table_from_frame(frame, target="age", quantity=True).target
    array([30., 40.])
    """
    frame = as_frame(frame, name=name)
    frame, index = _without_index(frame)
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InvalidTable(
            f"{name} has two columns called {twice!r}, which cannot be told apart; rename one."
        )
    roles = {"target": target, "group": group, "unit": unit, "part": part}
    values_of = {
        role: None if column is None else _column(frame, index, column, role, name)
        for role, column in roles.items()
    }
    labels = values_of["target"]
    if labels is None:
        labels = pd.Series(np.zeros(len(frame)))
    used = [
        column for column in (target, unit, part) if isinstance(column, str)
    ]  # the group stays a feature
    dropped = _dropped([*drop, *(schema.drop if schema else ())], frame, roles, name)
    frame = frame.drop(columns=[c for c in (*used, *dropped) if c in frame.columns])
    if frame.shape[1] == 0:
        raise InvalidTable(
            f"{name} has no column besides {', '.join([*used, *dropped])}, so there is nothing to predict from; add features."
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
    elif target is None:
        classes, values = (NO_CLASS,), np.zeros(len(labels), dtype=np.int64)
    else:
        classes, values = _classes(labels, _called(target), name)
    if schema is not None:  # a schema may also declare columns that are not features
        others = {*used, *dropped}
        of_features = {c: kind for c, kind in schema.columns.items() if c not in others}
        schema = replace(schema, columns=of_features)
    features = features_of(frame, schema, name)
    rows = np.flatnonzero(known)
    unit_labels = values_of["unit"]
    return Table(
        features=features.frame,
        target=values,
        classes=classes,
        units=(
            np.arange(len(values))
            if unit_labels is None
            else _unit_codes(unit_labels[known], _called(unit))
        ),
        ids=rows.astype(np.int64),
        schema=features.schema,
        groups=_as_text(values_of["group"], known),
        parts=_as_text(values_of["part"], known),
        dropped=int((~known).sum()),
        findings=(
            *features.findings,
            *_about_the_rest(dropped, index, used, classes, _called(target)),
        ),
    )


def _without_index(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a frame with its rows numbered and its columns named by texts, and what was in its index under a name."""
    index = pd.DataFrame(
        {
            str(name): frame.index.get_level_values(level)
            for level, name in enumerate(frame.index.names)
            if name is not None
        }
    )
    frame = frame.reset_index(drop=True)
    # Numbers as names would not match what a command line or a schema says.
    frame.columns = frame.columns.map(str)
    return frame, index


def _column(
    frame: pd.DataFrame,
    index: pd.DataFrame,
    column: str | ArrayLike,
    role: str,
    name: str,
) -> pd.Series:
    if isinstance(column, str):
        if column in frame.columns:
            return frame[column]
        if column in index.columns:
            return index[column]
        raise InvalidTable(
            f"{name} has no column {column!r} to use as {role}; {nearest(column, [*frame.columns, *index.columns])}."
        )
    values = as_values(column, role=role)
    if len(values) != len(frame):
        raise InvalidTable(
            f"there are {len(frame)} records but {len(values)} values of the {role}; "
            "pass one per record."
        )
    return values


def _dropped(
    asked: Iterable[str], frame: pd.DataFrame, roles: dict[str, Any], name: str
) -> list[str]:
    """Return the columns to leave out, each of which must exist and have no other task."""
    columns = list(dict.fromkeys(asked))
    for column in columns:
        if column not in frame.columns:
            raise InvalidTable(
                f"{name} has no column {column!r} to leave out; {nearest(column, frame.columns)}."
            )
        for role, named in roles.items():
            if isinstance(named, str) and named == column and role != "group":
                raise InvalidTable(
                    f"column {column!r} of {name} is the {role} and cannot be left out as well; name another column."
                )
    return columns


def _about_the_rest(
    dropped: list[str],
    index: pd.DataFrame,
    used: list[str],
    classes: tuple[str, ...],
    called: str,
) -> list[Finding]:
    """Say what is no feature, and whether classes may be the same in two spellings."""
    findings = []
    if dropped:
        findings.append(
            Finding(
                name="left_out",
                severity=Severity.NOTE,
                text=f"left out as asked: {quoted(dropped)}.",
            )
        )
    ignored = [name for name in index.columns if name not in used]
    if ignored:
        findings.append(
            Finding(
                name="index",
                severity=Severity.NOTE,
                text=f"the index {quoted(ignored)} is no feature; make it a column if it should be one.",
            )
        )
    if alike_but_for_spelling(classes):
        findings.append(
            Finding(
                name="classes_alike",
                severity=Severity.WARNING,
                text=f"the target {called} has classes that differ only in spaces or capital letters ({quoted(list(classes))}); write equal "
                "classes equally.",
            )
        )
    return findings


def _called(column: object) -> str:
    return repr(column) if isinstance(column, str) else "y"


def _classes(
    labels: pd.Series, called: str, name: str
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    try:
        different = labels.nunique()
    except TypeError:
        raise InvalidTable(
            f"the target {called} of {name} holds lists or other nested values, which are no classes; give each of their parts a column."
        ) from None
    if (
        pd.api.types.is_float_dtype(labels) and (labels % 1 != 0).any()
    ) or different > MOST_CLASSES:
        raise InvalidTable(
            f"the target {called} of {name} has {different} different values, which is a "
            "quantity and not a class; name a regression model to audit one, or choose or make a target with few values."
        )
    # Numbers before texts, because the two cannot be compared with each other.
    try:
        values = sorted(labels.unique(), key=lambda v: (isinstance(v, str), v))
    except TypeError:
        raise InvalidTable(
            f"the target {called} of {name} holds values of several types that have no order, so its classes have none; write it as text or "
            "as numbers."
        ) from None
    if len(values) < 2:
        raise InvalidTable(
            f"the target {called} of {name} has the single value {values[0]!r}, so there is nothing "
            "to predict; choose a target with at least two classes."
        )
    codes = pd.Categorical(labels, categories=values).codes.astype(np.int64)
    names = tuple(name_of(value) for value in values)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidTable(
            f"the target {called} of {name} holds {twice} both as a number and as a text, which would be two classes of one name; write it "
            "in one way."
        )
    return names, codes


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


def _unit_codes(labels: pd.Series, called: str) -> NDArray[np.int64]:
    absent = int(labels.isna().sum())
    if absent:
        raise InvalidTable(
            f"the unit {called} is missing in {absent} rows, so nobody knows whose records they "
            "are; fill it in or leave those rows out."
        )
    return pd.factorize(labels)[0].astype(np.int64)


def _as_text(
    labels: pd.Series | None, known: NDArray[np.bool_]
) -> NDArray[np.object_] | None:
    if labels is None:
        return None
    named = [
        "(missing)" if pd.isna(value) else name_of(value) for value in labels[known]
    ]
    return np.asarray(named, dtype=object)
