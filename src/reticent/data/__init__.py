"""Read, validate and divide a table by unit (person), not by row."""

from reticent.data._blind import BlindBaseline, as_numbers, blind_baseline
from reticent.data._builtin import BUILTIN_NAME, BUILTIN_TARGET, builtin_table
from reticent.data._dissimilar import (
    Chosen,
    ChosenPair,
    most_dissimilar_pair,
    most_dissimilar_record,
)
from reticent.data._distances import (
    Dissimilarity,
    Euclidean,
    Gower,
    Records,
    StructuralSimilarity,
)
from reticent.data._findings import (
    Finding,
    Severity,
    check_columns,
    check_groups,
    check_overlap,
    check_split,
)
from reticent.data._read import read_schema, read_table, table_from_frame
from reticent.data._split import PARTS, SMALLEST_PART, Split
from reticent.data._table import ColumnKind, Schema, Table

__all__ = [
    "BUILTIN_NAME",
    "BUILTIN_TARGET",
    "PARTS",
    "SMALLEST_PART",
    "BlindBaseline",
    "Chosen",
    "ChosenPair",
    "ColumnKind",
    "Dissimilarity",
    "Euclidean",
    "Finding",
    "Gower",
    "Records",
    "Schema",
    "Severity",
    "Split",
    "StructuralSimilarity",
    "Table",
    "as_numbers",
    "blind_baseline",
    "builtin_table",
    "check_columns",
    "check_groups",
    "check_overlap",
    "check_split",
    "most_dissimilar_pair",
    "most_dissimilar_record",
    "read_schema",
    "read_table",
    "table_from_frame",
]
