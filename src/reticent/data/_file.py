"""Read a file as a frame, and refuse or tell of what reading would silently change."""

import csv
import gzip
import io
import re
import warnings
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any, Literal

import pandas as pd

from reticent.data._finding import Finding, Severity, quoted
from reticent.errors import InvalidTable

__all__ = ["read_frame"]

# Before 3.1, pandas misses the nearest number of about every fourth long decimal unless it is asked to be exact, so that the
# same file had another fingerprint there (seen in 2.2.2, 2.3.3 and 3.0.0). 3.1.1 is exact, and the question is deprecated.
_PRECISION: Literal["round_trip"] | None = (
    "round_trip" if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else None
)
# A cell that begins with a zero and another digit: a code, not a number. Checked on the bytes, which is quick.
_LEADING_ZERO = re.compile(rb'(?:^|[,\n\r"])[ ]*-?0\d')
_BLOCK = 1 << 20  # bytes that are looked at together
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_frame(
    path: Path, *, missing: tuple[str, ...], exact: Collection[str] = ()
) -> tuple[pd.DataFrame, list[Finding]]:
    """Return the content of a CSV or Parquet file, and what was found while it was read.

    Parameters
    ----------
    path : Path
        File ending in ``.csv``, ``.csv.gz``, ``.parquet`` or ``.pq``.
    missing : tuple of str
        Cell contents that mean "missing".
    exact : collection of str
        Columns that name something, whose codes keep their leading zeros.

    Raises
    ------
    InvalidTable
        If the file is missing, empty, damaged, or not a table.
    """
    if not path.is_file():
        raise InvalidTable(
            f"there is no file {path}, so there is nothing to audit; check the path."
        )
    if path.stat().st_size == 0:
        raise InvalidTable(
            f"the file {path} is empty, so it holds no record; write the table again."
        )
    name = path.name.lower()
    findings: list[Finding] = []
    try:
        if name.endswith((".parquet", ".pq")):
            frame = _without_missing(pd.read_parquet(path), missing)
        elif name.endswith((".csv", ".csv.gz")):
            frame, findings = _read_csv(path, missing, exact)
        else:
            raise InvalidTable(
                f"the file {path} is none of .csv, .csv.gz and .parquet, the formats that can be read; "
                "convert it to one of them."
            )
    except InvalidTable:
        raise
    except UnicodeDecodeError as error:
        raise InvalidTable(
            f"the file {path} is not a table in UTF-8 (the byte {error.object[error.start]:#04x} has no meaning there); save it as CSV in "
            "UTF-8."
        ) from error
    except Exception as error:
        # An error of the command line is one sentence, and the first line names the reason.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else ""
        raise InvalidTable(
            f"the file {path} is not a table ({reason or type(error).__name__}); "
            "save it as CSV with a header line, or as Parquet."
        ) from error
    if frame.shape[1] < 2 or len(frame) == 0:
        raise InvalidTable(
            f"the file {path} has {len(frame)} rows and {frame.shape[1]} column(s), which is not a "
            "table of records with a target; save it as CSV with a header line and commas."
        )
    return frame, findings


def _read_csv(
    path: Path, missing: tuple[str, ...], exact: Collection[str]
) -> tuple[pd.DataFrame, list[Finding]]:
    has_codes = _look_at_bytes(path)
    header = _must_be_rectangular(path)
    settings: dict[str, Any] = {
        # Otherwise pandas takes the first column for an index where rows end with a comma.
        "index_col": False,
        # Its own list would turn a country or a name such as "NA" into a missing value.
        "keep_default_na": False,
        "na_values": list(missing),
        # Files such as Adult's have a space behind each comma.
        "skipinitialspace": True,
        # In pieces, one column may become text in one piece and numbers in the next.
        "low_memory": False,
        "float_precision": _PRECISION,
    }
    codes: dict[str, pd.Series] = {}
    with warnings.catch_warnings():
        # In a row longer than the header it is unknown which value belongs to which column.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(path, **settings)
        if has_codes:
            whole = [
                column
                for column in frame.columns
                if pd.api.types.is_numeric_dtype(frame[column]) and column in header
            ]
            texts = pd.read_csv(path, usecols=whole, dtype=str, **settings)
            codes = {
                column: texts[column]
                for column in whole
                if texts[column].str.match(r"-?0\d").any()
            }
    kept = {column: codes.pop(column) for column in [*codes] if column in exact}
    frame = frame.assign(**kept) if kept else frame
    return frame, _told_of_codes(list(codes))


def _told_of_codes(columns: list[str]) -> list[Finding]:
    if not columns:
        return []
    return [
        Finding(
            name="leading_zeros",
            severity=Severity.WARNING,
            text=f"{'column' if len(columns) == 1 else 'columns'} {quoted(columns)}: there are codes with leading zeros, which were read as "
            "numbers, so that 007 and 7 are the same; declare what is a code as categorical in a schema.",
        )
    ]


def _look_at_bytes(path: Path) -> bool:
    """Refuse a damaged file or another encoding; return whether some cell may begin with a zero and a digit."""
    has_codes = False
    with _opened(path) as file:
        last = b"\n"
        start = True
        while block := file.read(_BLOCK):
            if start and block[:2] in _UTF_16:
                raise InvalidTable(
                    f"the file {path} is written in UTF-16, which is not read; save it as CSV in UTF-8."
                )
            start = False
            if b"\0" in block:
                raise InvalidTable(
                    f"the file {path} holds NUL bytes, which no text has, so it is damaged or in another format; export the table again as "
                    "CSV in UTF-8."
                )
            has_codes = has_codes or _LEADING_ZERO.search(last + block) is not None
            last = block[-32:]  # a cell may begin in one block and end in the next
    return has_codes


def _must_be_rectangular(path: Path) -> list[str]:
    """Return the header of a CSV file in which every row has as many values.

    pandas fills short rows with missing values, and renames the second of two columns with the same name.
    """
    # With newline="" the reader itself tells line breaks inside quotation marks from others, as pandas does.
    with (
        _opened(path) as raw,
        io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as lines,
    ):
        rows = csv.reader(lines, skipinitialspace=True)
        header = next((row for row in rows if any(row)), [])
        twice = next(
            (name for name, count in Counter(header).items() if name and count > 1),
            None,
        )
        if twice is not None:
            raise InvalidTable(
                f"{path.name} has two columns called {twice!r}, which cannot be told apart; rename one."
            )
        if len(header) < 2:
            _must_use_commas(path, header)
            return header
        for row in rows:
            if len(row) != len(header) and any(row):
                raise InvalidTable(
                    f"line {rows.line_num} of {path.name} has {len(row)} values where the header names {len(header)} columns, so nobody knows "
                    "which value belongs where; repair that line, or put values that contain commas in quotation marks."
                )
    return header


def _must_use_commas(path: Path, header: list[str]) -> None:
    for mark, called in _OTHER_SEPARATORS.items():
        if header and mark in header[0]:
            raise InvalidTable(
                f"{path.name} has {called} between its values, which are read as one column; save it with commas, not {called}, and with "
                "decimal points."
            )


def _opened(path: Path) -> IO[bytes]:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return path.open("rb")


def _without_missing(frame: pd.DataFrame, missing: tuple[str, ...]) -> pd.DataFrame:
    """Return a frame in which texts that mean "missing" are missing, as in text files."""
    columns = {}
    for column, values in frame.items():
        # A number such as -9 may be a marker in one column and a value in another, so only texts are compared.
        is_text = pd.api.types.is_string_dtype(values)
        columns[column] = values.mask(values.isin(missing)) if is_text else values
    return pd.DataFrame(columns, index=frame.index)
