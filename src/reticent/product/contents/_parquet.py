"""Read the structure of a Parquet file: which of its bytes are cells, and what all others are."""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reticent.errors import InvalidInput, InvalidTable
from reticent.product.contents._pages import behind_cells
from reticent.product.contents._thrift import read_struct
from reticent.product.contents._walk import Walk

__all__ = ["parquet_parts"]

MAGIC = b"PAR1"
MOST_CELLS = 200_000_000  # 1.6 gigabytes as doubles
LARGEST_PAGE = 2**29  # bytes; writers aim at one megabyte
LONGEST_LIST = 64  # of numbers in the footer; levels of nesting and encodings are fewer
# How much longer than the bytes it packs a compressed page may be.
SLACK_SHARE, SLACK = 64, 64
CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTES, FIXED = range(8)  # physical types
WIDTHS = {INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8}
DICTIONARY_PAGE = 2
JULIAN_1970 = 2_440_588  # day number of 1970-01-01, in timestamps of 96 bits
# Fields of the footer and of page headers that hold numbers (None), texts that are checked by themselves ("text"), or others. What has no
# entry is nothing that a reader of the table needs.
_TIME: dict[int, Any] = {1: None, 2: {1: {}, 2: {}, 3: {}}}
_TYPE = {1: {}, 2: {}, 3: {}, 4: {}, 5: {1: None, 2: None}, 6: {}, 7: _TIME, 8: _TIME, 10: {1: None, 2: None}, 11: {}, 12: {}, 13: {}, 14: {}, 15: {}}  # fmt: skip
_STATISTICS = {1: "text", 2: "text", 3: None, 4: None, 5: "text", 6: "text", 7: None, 8: None}  # fmt: skip
_ELEMENT = {**dict.fromkeys((1, 2, 3, 5, 6, 7, 8, 9)), 4: "text", 10: _TYPE}
_COLUMN = {**dict.fromkeys((1, 2, 4, 5, 6, 7, 9, 10, 11)), 3: "text", 12: _STATISTICS, 13: {1: None, 2: None, 3: None}, 16: {1: None, 2: None, 3: None}}  # fmt: skip
_GROUP = {1: {**dict.fromkeys((2, 4, 5, 6, 7)), 3: _COLUMN}, 2: None, 3: None, 4: {1: None, 2: None, 3: None}, 5: None, 6: None, 7: None}  # fmt: skip
_FOOTER: dict[int, Any] = {
    1: None,
    2: _ELEMENT,
    3: None,
    4: _GROUP,
    5: "text",
    6: "text",
    7: {1: {}},
}
_PAGE = {1: None, 2: None, 3: None, 4: None, 5: {1: None, 2: None, 3: None, 4: None, 5: _STATISTICS}, 7: {1: None, 2: None, 3: None}, 8: {**dict.fromkeys(range(1, 8)), 8: _STATISTICS}}  # fmt: skip
_COLUMN_INDEX = {1: None, 2: "text", 3: "text", 4: None, 5: None, 6: None, 7: None}
_OFFSET_INDEX = {1: {1: None, 2: None, 3: None}, 2: None}
_WRITER = re.compile(
    rb"(?:parquet-(?:cpp|rs|mr|cpp-arrow)|Polars|polars|DuckDB|fastparquet|fastparquet-python|Arrow2|arrow2|impala|cudf)[\w .\-+()/:]{0,80}"
)
_PANDAS_TYPE = re.compile(
    r"unicode|string|bytes|u?int(?:8|16|32|64)|float(?:16|32|64)|bool|boolean|categorical|datetime|datetimetz|date|time|timedelta|decimal|object|empty|mixed(?:-integer(?:-float)?)?"
)
_NUMPY_TYPE = re.compile(
    r"u?int(?:8|16|32|64)|U?Int(?:8|16|32|64)|[fF]loat(?:16|32|64)|bool|boolean|object|str|string(?:\[\w{1,16}\])?|category|(?:datetime|timedelta)64\[(?:s|ms|us|ns)(?:, [\w/+\-:]{1,32})?\]|(?:double|float|large_string|u?int(?:8|16|32|64)|bool|timestamp\[(?:s|ms|us|ns)\])\[pyarrow\]"
)
_VERSION = re.compile(r"[\w.+\-]{1,40}")
_CODES = re.compile(rb"\d{0,4};\d{0,4};u(?:8|16|32);?")
_WORDS = re.compile(rb"[\x20-\x7e]{4,}")

Part = Callable[[str, bytes], None]


def parquet_parts(
    path: Path,
    data: bytes,
    part: Part,
    frame: Callable[[str, pd.DataFrame], None],
    walk: Walk,
    *,
    most: int,
) -> None:
    """Name everything in a Parquet file that is no cell of its table.

    Raises
    ------
    InvalidTable
        If it is damaged, or claims more than a table has.
    """
    length = int.from_bytes(data[-8:-4], "little")
    if len(data) < 12 or data[:4] != MAGIC or data[-4:] != MAGIC or length + 12 > len(data):  # fmt: skip
        raise InvalidTable(
            f"the file {path} is not a table (it does not begin and end as Parquet does); write it again."
        )
    start = len(data) - 8 - length
    try:
        footer, end = read_struct(data[: len(data) - 8], start)
    except InvalidInput as error:
        raise InvalidTable(f"the file {path} is not a table: {error}") from error
    part("bytes behind the footer", data[end : len(data) - 8])
    _unknown("the footer", footer, _FOOTER, part)
    _must_fit(path, footer, most)
    names = _names(footer, part)
    if not _WRITER.fullmatch(footer.get(6, b"DuckDB")):
        part("the name of the program that wrote it", footer.get(6, b""))
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        shown = _metadata(footer.get(5, []), names, file, part)
        spans, body = [(0, 4), (start, len(data))], data[:start]
        for k, group in enumerate(footer.get(4, [])):
            chunks = []
            for chunk in group.get(1, []):
                column = chunk.get(3, {})
                span, pages = _pages(body, column, part)
                indexed, found = _indexes(body, chunk, span[1], len(pages), part)
                spans += [span, *found]
                chunks.append((column, indexed, pages))
                _must_not_expand(path, column, pages, most)
            if len(chunks) == len(names):
                table = file.read_row_group(k)
                for j, (column, indexed, pages) in enumerate(chunks):
                    cells = table.column(j), partial(_column, file, names[j])
                    _check_values(
                        column, indexed, pages, cells, footer[2][j + 1], part, walk
                    )
        if any(len(group.get(1, [])) != len(names) for group in footer.get(4, [])):
            part("columns in columns, whose pages were not looked into", b"\0")
        hidden = [name for name in names if name not in shown]
        if hidden:
            frame(
                "an index beside the columns",
                file.read(columns=hidden, use_pandas_metadata=False).to_pandas(
                    ignore_metadata=True
                ),
            )
    last = 0
    for first, after in sorted(spans):
        if first > last:
            part("bytes between the columns", data[last:first])
        if first < last and after > first:
            part("bytes that two columns share", data[first : min(last, after)])
        last = max(last, after)


def _must_fit(path: Path, footer: Mapping[int, Any], most: int) -> None:
    """Refuse a file that claims more than memory holds, before anything is unpacked."""
    columns = [
        chunk.get(3, {}) for group in footer.get(4, []) for chunk in group.get(1, [])
    ]
    cells = sum(max(0, int(column.get(5, 0))) for column in columns)
    unpacked = sum(max(0, int(column.get(6, 0))) for column in columns)
    rows = int(footer.get(3, 0))
    widths = len(footer.get(2, [0])) - 1
    if max(cells, rows * widths) > MOST_CELLS or unpacked > most or rows < 0:
        raise InvalidTable(
            f"the file {path} claims {rows:,} rows, {cells:,} cells and {unpacked:,} bytes, more than can be looked at; bring fewer rows."
        )


def _must_not_expand(
    path: Path,
    column: Mapping[int, Any],
    pages: Sequence[tuple[Mapping[int, Any], bytes]],
    most: int,
) -> None:
    """Refuse a column in which a long text stands once and is repeated without end."""
    for header, body in pages:
        if header.get(1) != DICTIONARY_PAGE or column.get(1) != BYTES:
            continue
        plain = _unpacked(body, column.get(4, 0), header.get(2, 0)) or b""
        entries, _ = _plain_values(plain, header.get(7, {}).get(1, 0), BYTES, 0)
        longest = max(map(len, entries), default=0)
        if longest * column.get(5, 0) > 4 * most:
            raise InvalidTable(
                f"a column of {path} may unpack to {longest * column[5]:,} bytes, more than can be looked at; bring shorter texts or fewer rows."
            )


def _names(footer: Mapping[int, Any], part: Part) -> list[str]:
    """Return the names of the columns, each of which is a cell of the head of the table."""
    elements = footer.get(2, [])
    root = elements[0].get(4, b"") if elements else b""
    if root not in (b"schema", b"root", b"duckdb_schema", b"arrow_schema", b"spark_schema", b"hive_schema", b"m", b""):  # fmt: skip
        part("the name of the schema", root)
    return [element.get(4, b"").decode() for element in elements[1:]]


def _unknown(
    place: str, value: Any, known: Any, part: Part, *, most: int = LONGEST_LIST
) -> None:
    """Name fields that no reader of a table needs, and numbers and texts that are more than one."""
    if isinstance(value, dict) and isinstance(known, Mapping):
        for field, inner in value.items():
            if field in known:
                _unknown(place, inner, known[field], part, most=most)
            else:
                for text in _bytes_in(inner):
                    part(f"a field of {place} that tables do not have", text)
    elif isinstance(value, list) and known != "text":
        if known is None and len(value) > max(most, LONGEST_LIST):
            part(f"a long list in {place}", b"".join(_bytes_in(value)))
        for inner in value:
            _unknown(place, inner, known, part, most=most)
    elif known is None and isinstance(value, bytes | dict):
        for text in _bytes_in(value):
            part(f"a text in {place} where a number belongs", text)


def _bytes_in(value: Any) -> Iterator[bytes]:
    """Yield every text and number in a value."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _bytes_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _bytes_in(inner)
    else:
        yield str(value).encode()


def _metadata(
    entries: Sequence[Mapping[int, Any]],
    names: Sequence[str],
    file: pq.ParquetFile,
    part: Part,
) -> list[str]:
    """Name metadata besides the schema, and return the columns that a data frame shows."""
    shown = list(names)
    seen: set[bytes] = set()
    for entry in entries:
        key, value = entry.get(1, b""), entry.get(2, b"")
        usual = False
        if key not in seen and set(entry) <= {1, 2}:
            seen.add(key)
            if key == b"ARROW:schema":
                usual = _is_schema(value, names, file)
            elif key == b"pandas":
                usual, index = _is_of_pandas(value, names)
                shown = [name for name in shown if name not in index]
        if not usual:
            # Two calls, because a key is read as a text, and a value may be anything.
            part("the name of an entry of the metadata", key)
            part("an entry of the metadata", b"".join(_bytes_in({k: v for k, v in entry.items() if k != 1})))  # fmt: skip
    return shown


def _is_schema(value: bytes, names: Sequence[str], file: pq.ParquetFile) -> bool:
    """Return whether a schema of Arrow says nothing but the names and types of the columns."""
    try:
        packed = base64.b64decode(value, validate=True)
        schema = pa.ipc.read_schema(pa.py_buffer(packed))
    except (ValueError, pa.ArrowException):
        return False
    if list(schema.names) != list(names) or set(schema.metadata or {}) - {b"pandas"}:
        return False
    for field in schema:
        for key, note in (field.metadata or {}).items():
            # Polars says how many bits the codes of categories have.
            if not (key.startswith(b"_PL_CATEGORICAL") and _CODES.fullmatch(note)):
                return False
    kept = (file.schema_arrow.metadata or {}).get(b"pandas")
    if (schema.metadata or {}).get(b"pandas", kept) != kept:
        return False
    usual = schema.serialize().to_pybytes()
    # Programs lay the same schema out differently, so it may have more bytes, but no word more.
    return len(packed) <= 1.25 * len(usual) + 64 * (len(names) + 2) and all(
        word in usual for word in _WORDS.findall(packed)
    )


def _is_of_pandas(value: bytes, names: Sequence[str]) -> tuple[bool, set[str]]:
    """Return whether what pandas notes is only about types, and which columns it takes for an index."""
    try:
        notes = json.loads(value)
        index = {name for name in notes["index_columns"] if isinstance(name, str)}
        ranges = [r for r in notes["index_columns"] if not isinstance(r, str)]
        usual = set(notes) <= {"index_columns", "column_indexes", "columns", "creator", "pandas_version", "partition_columns", "attributes"}  # fmt: skip
        usual &= not notes.get("partition_columns") and not notes.get("attributes")
        for numbers in ranges:
            usual &= set(numbers) == {"kind", "name", "start", "stop", "step"}
            usual &= numbers["kind"] == "range" and numbers["name"] is None
            usual &= all(isinstance(numbers[k], int) for k in ("start", "stop", "step"))
        for column in (*notes["columns"], *notes.get("column_indexes", [])):
            usual &= _is_usual_column(column, names)
        creator = notes.get("creator", {"library": "pyarrow", "version": "1"})
        usual &= set(creator) == {"library", "version"}
        usual &= creator["library"] in ("pyarrow", "fastparquet", "polars", "cudf")
        usual &= all(
            v is None or _VERSION.fullmatch(v)
            for v in (creator["version"], notes.get("pandas_version"))
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False, set()
    return bool(usual), index


def _is_usual_column(column: Mapping[str, Any], names: Sequence[str]) -> bool:
    known = {None, *names}
    about = column.get("metadata") or {}
    return (
        set(column) <= {"name", "field_name", "pandas_type", "numpy_type", "metadata"}
        and column.get("name") in known
        and column.get("field_name") in known
        and _PANDAS_TYPE.fullmatch(column["pandas_type"]) is not None
        and _NUMPY_TYPE.fullmatch(column["numpy_type"]) is not None
        and set(about)
        <= {
            "num_categories",
            "ordered",
            "timezone",
            "encoding",
            "unit",
            "precision",
            "scale",
        }
        and all(
            isinstance(v, int | bool)
            or (
                isinstance(v, str)
                and len(v) <= 32
                and (k != "encoding" or v == "UTF-8")
            )
            for k, v in about.items()
            if v is not None
        )
    )


def _pages(
    data: bytes, column: Mapping[int, Any], part: Part
) -> tuple[tuple[int, int], list[tuple[dict[int, Any], bytes]]]:
    """Return where a column's pages stand, and each with its header; what is not a page is named."""
    starts = [column[k] for k in (9, 11) if column.get(k)]
    first = min(starts, default=0)
    after = min(max(first + column.get(7, 0), first), len(data))
    pages: list[tuple[dict[int, Any], bytes]] = []
    at, values = first, 0
    while at < after:
        if values >= column.get(5, 0):
            part("pages or bytes behind the last cell of a column", data[at:after])
            break
        try:
            header, body = read_struct(memoryview(data)[:after], at)
        except InvalidInput:
            part("bytes in a column that are no page", data[at:after])
            break
        _unknown("a page", header, _PAGE, part)
        packed, unpacked = header.get(3, 0), header.get(2, 0)
        if unpacked > LARGEST_PAGE or packed < 0 or body + packed > after:
            raise InvalidTable(
                f"a page of a column claims {packed:,} bytes that unpack to {unpacked:,}, so the file is damaged, or no table; write it again."
            )
        plain = unpacked if column.get(4, 0) else packed
        if packed > plain + plain // SLACK_SHARE + SLACK or packed > max(plain, unpacked) + plain // SLACK_SHARE + SLACK:  # fmt: skip
            part("bytes in a page beside what it packs", data[body : body + packed])
        if header.get(1) not in (0, DICTIONARY_PAGE, 3):
            part("a page that holds no cells", data[at : body + packed])
        pages.append((header, data[body : body + packed]))
        values += max(header.get(5, {}).get(1, 0), header.get(8, {}).get(1, 0), 0)
        at = body + packed
    return (first, after), pages


def _indexes(
    data: bytes, chunk: Mapping[int, Any], behind: int, pages: int, part: Part
) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Return the smallest and largest values in the index of a column's pages, and where the indexes stand."""
    stated: list[bytes] = []
    spans = []
    try:
        # Some programs write what the footer says of a column behind its pages as well.
        again, end = read_struct(data, behind)
    except InvalidInput:
        again, end = {}, behind
    if again and again == chunk.get(3):
        spans.append((behind, end))
    for at, length, known in ((6, 7, _COLUMN_INDEX), (4, 5, _OFFSET_INDEX)):
        first, after = chunk.get(at, 0), chunk.get(at, 0) + chunk.get(length, 0)
        if not 0 < first < after <= len(data):
            continue
        spans.append((first, after))
        try:
            index, end = read_struct(memoryview(data)[:after], first)
        except InvalidInput:
            end, index = first, {}
        part("bytes behind an index of pages", data[end:after])
        _unknown("an index of pages", index, known, part, most=max(pages, 1))
        texts = [v for k in (2, 3) for v in index.get(k, []) if known[k] == "text" and v] if known is _COLUMN_INDEX else []  # fmt: skip
        stated += texts if len(texts) <= 2 * pages else []
        part("an index of more pages than there are", b"".join(texts) if len(texts) > 2 * pages else b"")  # fmt: skip
    return stated, spans


def _column(file: pq.ParquetFile, name: str) -> pa.ChunkedArray:
    return file.read(columns=[name], use_pandas_metadata=False).column(0)


def _check_values(
    column: Mapping[int, Any],
    indexed: Sequence[bytes],
    pages: Sequence[tuple[Mapping[int, Any], bytes]],
    cells: tuple[pa.ChunkedArray, Callable[[], pa.ChunkedArray]],
    element: Mapping[int, Any],
    part: Part,
    walk: Walk,
) -> None:
    """Name values of a column's dictionary and statistics that none of its cells has, given those of the row group and how to read all."""
    physical, width = column.get(1, -1), element.get(2, 0)
    statistics = [column.get(12, {})]
    statistics += [h.get(k, {}).get(f, {}) for h, _ in pages for k, f in ((5, 5), (8, 8))]  # fmt: skip
    stated = [s[k] for s in statistics for k in (1, 2, 5, 6) if k in s]
    stated += indexed
    values: list[bytes] = []
    for header, body in pages:
        if header.get(1) != DICTIONARY_PAGE:
            part("bytes in a page behind its cells", _behind(header, body, column, element))  # fmt: skip
            continue
        plain = _unpacked(body, column.get(4, 0), header.get(2, 0))
        if plain is None:
            part("a dictionary whose compression is not known", body)
            continue
        entries, rest = _plain_values(plain, header[7].get(1, 0), physical, width)
        part("bytes behind the entries of a dictionary", rest)
        values += entries
    if not values and not stated:
        return
    known = None if physical == BOOLEAN else _stored(cells[0], physical, width, element)
    if known is None:
        stated = [s for s in stated if not (physical == BOOLEAN and len(s) == 1)]
        part("values of a column's dictionary and statistics that could not be compared with its cells", b"".join([*values, *stated]))  # fmt: skip
        return
    unused = [value for value in values if value not in known]
    if unused:
        # Every row group may have the categories of all.
        everywhere = _stored(cells[1](), physical, width, element) or set()
        unused = [value for value in unused if value not in everywhere]
    if unused:
        place = "values of a column's dictionary that no cell has"
        part(place, b"\n".join(unused) if physical == BYTES else b"".join(unused))
        if physical in WIDTHS and physical != INT96:
            kind = {INT32: "<i4", INT64: "<i8", FLOAT: "<f4", DOUBLE: "<f8"}[physical]
            walk.array(place, np.frombuffer(b"".join(unused), dtype=kind))
    strange = [s for s in dict.fromkeys(stated) if not _is_stated(s, known, physical)]
    part("statistics of a column that are values of no cell", b"\n".join(strange))


def _behind(
    header: Mapping[int, Any],
    body: bytes,
    column: Mapping[int, Any],
    element: Mapping[int, Any],
) -> bytes:
    """Return what stands in a page of cells behind the last one; all of a page whose compression is not known."""
    second = header.get(8, {})
    apart = max(0, second.get(5, 0)) + max(0, second.get(6, 0))
    codec = column.get(4, 0) if second.get(7, True) else 0
    physical = column.get(1, -1)
    # Where nothing is left to pack, nothing is packed.
    packed, size = body[apart:], header.get(2, 0) - apart
    values = _unpacked(packed, codec, size) if packed and size > 0 else packed
    if values is None:
        return body
    return behind_cells(
        header,
        body[:apart],
        values,
        physical=physical,
        width=WIDTHS.get(physical, element.get(2, 0)),
        is_optional=element.get(3, 0) == 1,
    )


def _is_stated(value: bytes, known: set[bytes], physical: int) -> bool:
    """Return whether a smallest or largest value is that of a cell, or the beginning of one, or its zero with another sign."""
    if value in known:
        return True
    if physical in (FLOAT, DOUBLE):
        negative = b"\0" * (WIDTHS[physical] - 1) + b"\x80"
        zero = b"\0" * WIDTHS[physical]
        return value in (negative, zero) and (negative in known or zero in known)
    # Long texts are cut, and the last character of the largest is raised.
    return (
        physical == BYTES
        and len(value) >= 16
        and any(cell.startswith(value[:-1]) for cell in known)
    )


def _unpacked(body: bytes, codec: int, size: int) -> bytes | None:
    if codec == 0:
        return body
    if codec not in CODECS:
        return None
    return pa.Codec(CODECS[codec]).decompress(body, size).to_pybytes()  # type: ignore[no-any-return]


def _plain_values(
    plain: bytes, count: int, physical: int, width: int
) -> tuple[list[bytes], bytes]:
    """Return the values of a page one below the other, and what is left."""
    if physical == BYTES:
        texts, at = [], 0
        for _ in range(min(count, len(plain) // 4)):
            size = int.from_bytes(plain[at : at + 4], "little")
            texts.append(plain[at + 4 : at + 4 + size])
            at += 4 + size
        return texts, plain[at:]
    size = WIDTHS.get(physical, width) or 1
    end = min(count * size, len(plain))
    whole = end - end % size
    entries = np.frombuffer(plain[:whole], dtype=f"V{size}").tolist()
    return entries, plain[whole:]


def _stored(
    cells: pa.ChunkedArray, physical: int, width: int, element: Mapping[int, Any]
) -> set[bytes] | None:
    """Return the different values of a column as Parquet stores them; None for a type that is not known."""
    column = pc.unique(cells)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = column.drop_null()
    try:
        if physical in (BYTES, FIXED) or pa.types.is_decimal(column.type):
            return _stored_bytes(column, physical, width)
        return _stored_numbers(column, physical, element)
    except (pa.ArrowException, ValueError, OverflowError):
        return None


def _stored_bytes(column: pa.Array, physical: int, width: int) -> set[bytes] | None:
    kind = column.type
    if pa.types.is_decimal(kind):
        size = WIDTHS.get(physical, width)
        order: Literal["big", "little"] = "big" if physical == FIXED else "little"
        whole = (int(v.scaleb(kind.scale)) for v in column.to_pylist())
        return {v.to_bytes(size, order, signed=True) for v in whole}
    if pa.types.is_float16(kind):
        return _as_bytes(column.to_numpy(zero_copy_only=False), "<f2")
    if physical == BYTES:
        return set(column.cast(pa.large_binary()).to_pylist())
    return set(column.to_pylist()) if pa.types.is_fixed_size_binary(kind) else None


def _stored_numbers(
    column: pa.Array, physical: int, element: Mapping[int, Any]
) -> set[bytes] | None:
    if pa.types.is_timestamp(column.type):
        column = _in_unit(column, physical, element)
    elif pa.types.is_date64(column.type):
        column = column.cast(pa.date32())
    if physical == INT96:
        return _of_96_bits(column.cast(pa.int64()).to_numpy())
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    numbers = column.to_numpy(zero_copy_only=False)
    if physical in (FLOAT, DOUBLE):
        return _as_bytes(numbers, "<f4" if physical == FLOAT else "<f8")
    if not pa.types.is_integer(column.type):
        return None
    # Numbers without a sign are stored by their bits.
    numbers = numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64)
    return _as_bytes(numbers, "<u4" if physical == INT32 else "<u8")


def _in_unit(column: pa.Array, physical: int, element: Mapping[int, Any]) -> pa.Array:
    """Return moments in the unit in which they are stored."""
    logical = element.get(10, {}).get(8, {}).get(2, {})
    unit = next(({1: "ms", 2: "us", 3: "ns"}[k] for k in logical), None)
    unit = unit or {9: "ms", 10: "us"}.get(element.get(6, -1), column.type.unit)
    unit = "ns" if physical == INT96 else unit
    return column.cast(pa.timestamp(unit, column.type.tz), safe=False)


def _of_96_bits(moments: NDArray[np.int64]) -> set[bytes]:
    days, rest = np.divmod(moments, 86_400 * 10**9)
    return {
        int(r).to_bytes(8, "little") + int(d + JULIAN_1970).to_bytes(4, "little")
        for d, r in zip(days, rest, strict=True)
    }


def _as_bytes(numbers: NDArray[Any], kind: str) -> set[bytes]:
    packed = np.ascontiguousarray(numbers.astype(kind))
    return set(packed.view(f"V{packed.itemsize}").tolist())
