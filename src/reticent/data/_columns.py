"""Decide what the columns of a frame hold, turn them into features, and say what may have been meant otherwise."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent._check import nearest
from reticent.data._finding import Finding, Severity, quoted
from reticent.data._table import MISSING, ColumnKind, Schema
from reticent.errors import InvalidTable

__all__ = ["Features", "alike_but_for_spelling", "features_of", "name_of"]

_TRUE = {"true", "t", "yes"}
_FALSE = {"false", "f", "no"}
# Trees and networks compute in single precision, whose largest number is 3.4e38; differences of two must fit as well.
LARGEST = 1e38
# If so large a share of the values has a form, the others are exceptions and the form is what was meant.
MOST = 0.8
# Different values whose form is looked at: enough to tell, and quick in columns of free text.
LOOKED_AT = 2_000
# Texts that usually mean "missing" but are categories unless the schema declares them.
_ABSENT = frozenset(
    {"na", "n/a", "#n/a", "none", "null", "nan", "<na>", "nil", "?", "-", "--", ""}
)
_SEPARATED = re.compile(
    r"[+-]?[$€£]?\s?\d{1,3}([,.'\u00a0\u202f ]\d{3})*([.,]\d+)?\s?[%€$£]?"
)
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}.*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
)
SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class Features:
    """The features of a table: numbers and texts, what they are, and what to say about them."""

    frame: pd.DataFrame
    schema: Schema
    findings: tuple[Finding, ...]


def features_of(frame: pd.DataFrame, declared: Schema | None, name: str) -> Features:
    """Return the columns of a frame as features.

    Parameters
    ----------
    frame : pandas.DataFrame
        Feature columns alone.
    declared : Schema or None
        What the columns hold; None, or a schema without columns, to let their values decide. One that infers others lets the values of columns decide that it does not name.
    name : str
        The table, for errors.

    Raises
    ------
    InvalidTable
        If the columns are not those declared, or hold what no model can use.
    """
    known = {} if declared is None else dict(declared.columns)
    dates = set() if declared is None else set(declared.dates)
    if declared is not None and known:
        _must_agree(frame, declared, name)
        if not declared.infers_others:
            frame = frame[list(known)]
    rest = [column for column in frame.columns if column not in known]
    undeclared = frame[rest] if known else frame  # which is no copy
    inferred = {
        column: ColumnKind.NUMERIC if _is_plain(dtype) else _kind(frame[column])
        for column, dtype in zip(undeclared.columns, undeclared.dtypes, strict=True)
    }
    kinds = {column: (known | inferred)[column] for column in frame.columns}
    numeric = [name for name, kind in kinds.items() if kind == ColumnKind.NUMERIC]
    plain = [
        column
        for column in numeric
        if _is_plain(frame.dtypes[column]) and column not in dates
    ]
    # Together, because a table may have thousands of such columns.
    numbers = frame[plain].astype(np.float64).reset_index(drop=True)
    _must_be_usable(numbers)
    dates |= {
        column
        for column in set(numeric) - set(plain)
        if column in dates or _is_time(frame[column])
    }
    columns = {
        column: numbers[column]
        if column in numbers
        else _days(frame[column])
        if column in dates
        else _values(frame[column], kinds[column])
        for column in frame.columns
    }
    schema = Schema(
        columns=kinds,
        missing=declared.missing if declared and declared.missing else MISSING,
        dates=tuple(column for column in kinds if column in dates),
    )
    findings = [_overview(schema)]
    findings += _doubts(undeclared, replace(schema, columns=inferred))
    return Features(
        frame=pd.DataFrame(columns), schema=schema, findings=tuple(findings)
    )


def _must_agree(frame: pd.DataFrame, declared: Schema, name: str) -> None:
    for column in declared.columns:
        if column not in frame.columns:
            raise InvalidTable(
                f"{name} lacks the column {column!r}, which the schema declares; "
                f"{nearest(column, frame.columns)}."
            )
    for column in frame.columns:
        if column not in declared.columns and not declared.infers_others:
            raise InvalidTable(
                f"{name} has the column {column!r}, which the schema does not declare; declare it ({nearest(column, declared.columns)}), or let the values of such columns decide "
                'what they hold, with others = "inferred" above [columns].'
            )


def _kind(values: pd.Series) -> ColumnKind:
    if pd.api.types.is_complex_dtype(values):
        raise InvalidTable(
            f"column {values.name!r} holds complex numbers, which models do not take; give real and imaginary part a column each."
        )
    if pd.api.types.is_bool_dtype(values):
        return ColumnKind.BOOLEAN
    if pd.api.types.is_numeric_dtype(values) or _is_time(values):
        return ColumnKind.NUMERIC
    if isinstance(values.dtype, pd.CategoricalDtype):
        return ColumnKind.CATEGORICAL
    if values.dtype == object:
        inside = pd.api.types.infer_dtype(values, skipna=True)
        if inside in ("integer", "floating", "mixed-integer-float", "decimal", "empty"):
            return ColumnKind.NUMERIC
        if inside == "boolean":
            return ColumnKind.BOOLEAN
        if inside == "bytes":
            raise InvalidTable(
                f"column {values.name!r} holds bytes, not texts; decode it, or leave it out with --drop."
            )
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
    return ColumnKind.CATEGORICAL


def _is_time(values: pd.Series) -> bool:
    """Whether a column holds dates or durations, as such and not as text."""
    if pd.api.types.is_datetime64_any_dtype(values) or isinstance(
        values.dtype, pd.PeriodDtype
    ):
        return True
    if pd.api.types.is_timedelta64_dtype(values):
        return True
    return values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) in (
        "date",
        "datetime",
        "datetime64",
        "timedelta",
        "period",
    )


def _values(values: pd.Series, kind: ColumnKind) -> pd.Series:
    if kind == ColumnKind.CATEGORICAL:
        return _names(values)
    if kind == ColumnKind.BOOLEAN and not pd.api.types.is_numeric_dtype(values):
        return pd.Series(
            [np.nan if pd.isna(v) else _truth(v, values.name) for v in values],
            dtype=np.float64,
        )
    numbers = pd.to_numeric(values, errors="coerce").astype(np.float64)
    wrong = int((numbers.isna() & ~values.isna()).sum())
    if wrong:
        raise InvalidTable(
            f"column {values.name!r} is declared {kind.value} but {wrong} of its values are not "
            "numbers; declare it categorical or repair them."
        )
    column = pd.Series(numbers.to_numpy(), name=values.name)
    _must_be_usable(column.to_frame())
    return column


def _is_plain(dtype: Any) -> bool:
    """Whether a column holds numbers as NumPy knows them."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def _must_be_usable(numbers: pd.DataFrame) -> None:
    """Refuse numbers that no model can compute with."""
    sizes = np.abs(numbers.to_numpy())
    largest = sizes.max(axis=0, initial=0.0, where=~np.isnan(sizes))
    too_large = np.flatnonzero(largest > LARGEST)
    if not len(too_large):
        return
    name, size = numbers.columns[too_large[0]], largest[too_large[0]]
    if np.isinf(size):
        raise InvalidTable(
            f"column {name!r} holds infinite values, which no model can use; "
            "replace them or mark them as missing."
        )
    raise InvalidTable(
        f"column {name!r} holds numbers as large as {size:.1g}, but models compute in single precision, which ends at "
        f"{LARGEST:.0g}; rescale the column, for example by its logarithm, or leave it out with --drop."
    )


def _days(values: pd.Series) -> pd.Series:
    """Return dates as days since 1970, and durations as days: of the size of other numbers, where nanoseconds would lose digits."""
    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    is_duration = pd.api.types.is_timedelta64_dtype(values) or (
        values.dtype == object and pd.api.types.infer_dtype(values) == "timedelta"
    )
    if is_duration:
        seconds = pd.to_timedelta(values).dt.total_seconds()
    else:
        if not pd.api.types.is_datetime64_any_dtype(values):
            values = _parsed_dates(values)
        seconds = (values - pd.Timestamp(0, tz=values.dt.tz)).dt.total_seconds()
    return (seconds / SECONDS_PER_DAY).astype(np.float64).reset_index(drop=True)


def _parsed_dates(values: pd.Series) -> pd.Series:
    """Return dates that were written as text, or are objects; only year-month-day is unambiguous."""
    try:
        parsed = pd.to_datetime(values.astype("string"), format="ISO8601", utc=True)
    except (ValueError, TypeError, OverflowError):
        raise InvalidTable(
            f"column {values.name!r} is declared date but not all of its values are; write dates as year-month-day, such as 2026-01-31, "
            "or declare it categorical."
        ) from None
    return parsed


def _truth(value: object, column: object) -> float:
    text = str(value).strip().lower()
    if text in _TRUE or text == "1":
        return 1.0
    if text in _FALSE or text == "0":
        return 0.0
    raise InvalidTable(
        f"column {column!r} is declared boolean but holds {value!r}; declare it categorical or repair it."
    )


def _names(values: pd.Series) -> pd.Series:
    """Return the name of each category; missing values are NaN."""
    if pd.api.types.infer_dtype(values, skipna=True) != "string":
        named = [np.nan if pd.isna(v) else name_of(v) for v in values]
        return pd.Series(np.asarray(named, dtype=object), dtype=object)
    # Each text is its own name. One object per distinct text, because a million texts of their own would be most of a table's memory.
    codes, texts = pd.factorize(values)
    distinct = np.asarray([*(str(text) for text in texts), np.nan], dtype=object)
    return pd.Series(distinct[codes], dtype=object)  # -1, a gap, is the last one


def name_of(value: object) -> str:
    """Return the name of a category or class; whole numbers have the same name with and without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        # A column of whole numbers with a gap is read as floats: 1.0 and 1 are the same class.
        return str(int(value))
    return str(value)


def _overview(schema: Schema) -> Finding:
    """Say what each column is taken for, which decides how it reaches a model."""
    groups = {
        "numeric": [
            name
            for name in schema.names(ColumnKind.NUMERIC)
            if name not in schema.dates
        ],
        "boolean": schema.names(ColumnKind.BOOLEAN),
        "categorical": schema.names(ColumnKind.CATEGORICAL),
        "dates, counted in days": list(schema.dates),
    }
    listed = "; ".join(
        f"{len(names):,} {kind} ({quoted(names)})"
        for kind, names in groups.items()
        if names
    )
    return Finding(
        name="columns",
        severity=Severity.NOTE,
        text=f"the features are {listed}; if a column is taken for what it is not, declare it with --schema, or leave it out with --drop.",
    )


def _doubts(frame: pd.DataFrame, schema: Schema) -> list[Finding]:
    """Return what in the values may have been meant otherwise than it was understood."""
    nearly: list[str] = []
    as_text: list[str] = []
    separated: list[str] = []
    dates: list[str] = []
    absent: dict[str, None] = {}
    with_absent: list[str] = []
    spelled: list[str] = []
    for column in schema.names(ColumnKind.CATEGORICAL):
        counts = frame[column].value_counts()
        texts = [str(value) for value in counts.index]
        weight = counts.to_numpy()
        marks = {
            t: None
            for t in texts
            if t.strip().lower() in _ABSENT and t not in schema.missing
        }
        # Declared categories that no record has are not in the data.
        marks = {t: None for t in marks if counts.iloc[texts.index(t)] > 0}
        if marks:
            absent.update(marks)
            with_absent.append(column)
        meant = np.array([t not in marks for t in texts], dtype=bool)
        if not meant.any() or isinstance(frame[column].dtype, pd.CategoricalDtype):
            continue
        numbers = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
        numeric = numbers.notna().to_numpy()
        if _share(numeric[meant], weight[meant]) >= MOST:
            (as_text if numeric.all() else nearly).append(column)
        elif _mostly(_SEPARATED.fullmatch, texts, weight, meant) >= MOST:
            separated.append(column)
        elif _mostly(_DATE.fullmatch, texts, weight, meant) >= MOST:
            dates.append(column)
        elif alike_but_for_spelling(texts):
            spelled.append(column)
    findings = [
        _doubt(
            "not_quite_numeric",
            Severity.WARNING,
            nearly,
            "mostly numbers, with some texts among them, so that every number is a category of its own; repair the texts, declare those that "
            "mean missing with missing = [...] in a schema, or declare the column categorical",
        ),
        _doubt(
            "numbers_as_text",
            Severity.WARNING,
            as_text,
            "numbers stored as text, so that every number is a category of its own; convert the column to numbers, or declare it categorical",
        ),
        _doubt(
            "numbers_with_separators",
            Severity.WARNING,
            separated,
            "numbers written with separators or signs, such as 1,234 or 5 %, so that every number is a category of its own; write plain "
            "numbers with a decimal point, or declare the column categorical",
        ),
        _doubt(
            "dates_as_text",
            Severity.WARNING,
            dates,
            'dates written as text, so that every day is a category of its own; declare the column as "date" in a schema, with days written '
            "like 2026-01-31",
        ),
        _doubt(
            "spelling",
            Severity.NOTE,
            spelled,
            "texts that differ only in spaces or capital letters and are different categories; write equal things equally",
        ),
    ]
    if with_absent:
        findings.append(
            _doubt(
                "missing_words",
                Severity.NOTE,
                with_absent,
                f"the text {quoted(list(absent))} as a category; if it means that a value is missing, declare it with missing = [...] in a "
                "schema",
            )
        )
    findings.append(
        _doubt(
            "large_integers",
            Severity.WARNING,
            [
                column
                for column, dtype in zip(frame.columns, frame.dtypes, strict=True)
                if pd.api.types.is_integer_dtype(dtype) and _is_rounded(frame[column])
            ],
            "whole numbers beyond 2^53, which are rounded, so that different ones may become equal; if they name something, declare the column "
            "categorical or leave it out with --drop",
        )
    )
    return [finding for finding in findings if finding is not None]


def _is_rounded(values: pd.Series) -> bool:
    """Whether some of these whole numbers is too large for double precision."""
    present = values.dropna()
    return len(present) > 0 and max(-int(present.min()), int(present.max())) > 2**53


def _doubt(
    name: str, severity: Severity, columns: list[str], what: str
) -> Finding | None:
    if not columns:
        return None
    verb = "column {} holds" if len(columns) == 1 else "columns {} hold"
    return Finding(
        name=name,
        severity=severity,
        text=f"{verb.format(quoted(columns))} {what}.",
    )


def _share(chosen: NDArray[np.bool_], weight: NDArray[Any]) -> float:
    total = weight.sum()
    return float(weight[chosen].sum() / total) if total else 0.0


def _mostly(
    has_form: Callable[[str], object],
    texts: list[str],
    weight: NDArray[Any],
    meant: NDArray[np.bool_],
) -> float:
    """Return the share of values that have a form, by the most frequent of them."""
    rows = np.flatnonzero(meant)[:LOOKED_AT]
    shaped = np.array([has_form(texts[k].strip()) is not None for k in rows])
    return _share(shaped, weight[rows])


def alike_but_for_spelling(texts: Iterable[str]) -> bool:
    """Whether two different texts are equal but for spaces around them and capital letters.

    Examples
    --------
    >>> alike_but_for_spelling(["yes", "no", "Yes "])
    True
    """
    texts = list(texts)
    return len({text.strip().casefold() for text in texts}) < len(set(texts))
