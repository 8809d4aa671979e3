"""Read, validate and divide a table by unit (person), not by row."""

from reticent.data._builtin import BUILTIN_NAME, BUILTIN_TARGET, builtin_table
from reticent.data._findings import (
    Finding,
    Severity,
    check_columns,
    check_groups,
    check_overlap,
    check_split,
)
from reticent.data._numbers import as_numbers
from reticent.data._read import read_schema, read_table, table_from_frame
from reticent.data._split import PARTS, SMALLEST_PART, Split
from reticent.data._table import ColumnKind, Schema, Table

__all__ = [
    "BUILTIN_NAME",
    "BUILTIN_TARGET",
    "PARTS",
    "SMALLEST_PART",
    "ColumnKind",
    "Finding",
    "Schema",
    "Severity",
    "Split",
    "Table",
    "as_numbers",
    "builtin_table",
    "check_columns",
    "check_groups",
    "check_overlap",
    "check_split",
    "read_schema",
    "read_table",
    "table_from_frame",
]
