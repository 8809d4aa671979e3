"""Read, validate and divide a table by unit (person), not by row."""

from reticent.data._alike import OTHER, Alike, in_columns_of
from reticent.data._builtin import BUILTIN_NAME, BUILTIN_TARGET, builtin_table
from reticent.data._coded import UNKNOWN, Coded, Coder
from reticent.data._file import read_frame
from reticent.data._finding import Finding, Severity
from reticent.data._findings import (
    check_columns,
    check_groups,
    check_overlap,
    check_split,
)
from reticent.data._frames import as_frame, as_values
from reticent.data._numbers import (
    as_numbers,
    telling_columns,
    without_empty_columns,
)
from reticent.data._original import Original
from reticent.data._read import read_table, table_from_frame
from reticent.data._schema import read_schema
from reticent.data._split import PARTS, SMALLEST_PART, Split
from reticent.data._table import (
    MISSING,
    ColumnKind,
    Schema,
    Table,
    number_of_people,
)

__all__ = [
    "BUILTIN_NAME",
    "BUILTIN_TARGET",
    "MISSING",
    "OTHER",
    "PARTS",
    "SMALLEST_PART",
    "UNKNOWN",
    "Alike",
    "Coded",
    "Coder",
    "ColumnKind",
    "Finding",
    "Original",
    "Schema",
    "Severity",
    "Split",
    "Table",
    "as_frame",
    "as_numbers",
    "as_values",
    "builtin_table",
    "check_columns",
    "check_groups",
    "check_overlap",
    "check_split",
    "in_columns_of",
    "number_of_people",
    "read_frame",
    "read_schema",
    "read_table",
    "table_from_frame",
    "telling_columns",
    "without_empty_columns",
]
