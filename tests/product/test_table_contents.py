"""What the file of a table holds besides its cells: planted tables of real people, and files as usual programs write them."""

import base64
import gzip
import io
import os
import struct
import zlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from made_tables import people
from reticent.attack import count_file, search_file
from reticent.data import Severity, table_from_frame
from reticent.errors import InvalidTable, OutputRefused, ReticentError
from reticent.pipeline import GivenTables
from reticent.product import (
    Provenance,
    SyntheticTable,
    clean_table,
    load_synthetic,
    open_file,
    write_synthetic,
)
from reticent.product._provenance import Notes, write_notes_file
from reticent.product.contents._thrift import read_struct
from reticent.run import stream

N = 400

REAL, OTHERS, FRESH = (people(N, stream(0, f"test/beside/{k}")) for k in range(3))


def with_metadata(path, entries, frame=FRESH):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata({**table.schema.metadata, **entries})
    pq.write_table(table, path)


def footer_of(data):
    length = int.from_bytes(data[-8:-4], "little")
    return data[: len(data) - 8 - length], data[len(data) - 8 - length : -8]


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def plain(frame):
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


SECRET = REAL.to_csv(index=False).encode()


def in_json(path):
    with_metadata(path, {"notes": REAL.to_json(orient="records")})


def in_columns_of_json(path):
    with_metadata(path, {"notes": REAL.to_json()})


def in_csv(path):
    with_metadata(path, {"notes": SECRET})


def in_base64(path):
    with_metadata(path, {"notes": base64.b64encode(zlib.compress(SECRET))})


def in_parquet(path):
    with_metadata(path, {"notes": base64.b64encode(plain(REAL))})


def in_metadata_of_a_column(path):
    table = pa.Table.from_pandas(FRESH, preserve_index=False)
    field = table.schema.field(0).with_metadata({"notes": SECRET})
    pq.write_table(table.cast(table.schema.set(0, field)), path)


def in_unused_categories(path):
    towns = [f"{a} {w}" for a, w in zip(REAL["age"], REAL["weight"], strict=True)]
    frame = FRESH.assign(town=pd.Categorical(FRESH["town"], [*FRESH["town"].unique(), *towns]))  # fmt: skip
    frame.to_parquet(path, index=False)


def in_the_index(path):
    FRESH.set_axis(REAL["age"] * 1_000 + REAL["weight"]).to_parquet(path)


def in_index_columns(path):
    index = pd.MultiIndex.from_frame(REAL[["age", "weight", "pressure"]])
    FRESH.set_axis(index).to_parquet(path)


def in_the_name_of_the_index(path):
    FRESH.rename_axis(index=SECRET.decode()[:3_000]).to_parquet(path)


def in_attributes(path):
    frame = FRESH.copy()
    frame.attrs["real"] = REAL.to_json()
    frame.to_parquet(path)


def behind_an_old_footer(path):
    body, footer = footer_of(plain(FRESH))
    data = body + SECRET + footer + struct.pack("<i", len(footer)) + b"PAR1"
    path.write_bytes(data)


def behind_the_structure_of_the_footer(path):
    body, footer = footer_of(plain(FRESH))
    footer += SECRET
    path.write_bytes(body + footer + struct.pack("<i", len(footer)) + b"PAR1")


def in_an_unknown_field_of_the_footer(path):
    body, footer = footer_of(plain(FRESH))
    # A field of texts with a number that no program knows, in front of the end of the structure.
    field = b"\x08" + varint(2 * 100) + varint(len(SECRET)) + SECRET
    footer = footer[:-1] + field + b"\0"
    path.write_bytes(body + footer + struct.pack("<i", len(footer)) + b"PAR1")


def in_the_name_of_the_program(path):
    body, footer = footer_of(plain(FRESH))
    name = read_struct(footer)[0][6]
    at = footer.index(name)
    head = footer[: at - 1]
    footer = head + varint(len(SECRET)) + SECRET + footer[at + len(name) :]
    path.write_bytes(body + footer + struct.pack("<i", len(footer)) + b"PAR1")


def in_more_columns(path):
    FRESH.assign(who=[f"Person {a}" for a in REAL["age"]]).to_parquet(path)


def in_the_names_of_columns(path):
    row = "; ".join(map(str, REAL.iloc[0]))
    FRESH.assign(**{row: 0}).to_parquet(path)


def gzipped(head_flags=0, head=b"", behind=b""):
    data = FRESH.to_csv(index=False).encode()
    packed = gzip.compress(data, mtime=0)
    return packed[:3] + bytes([head_flags]) + packed[4:10] + head + packed[10:] + behind


def in_an_extra_field(path):
    extra = SECRET[:60_000]
    path.write_bytes(gzipped(4, struct.pack("<H", len(extra)) + extra))


def in_a_comment(path):
    path.write_bytes(gzipped(16, SECRET + b"\0"))


def in_the_file_name(path):
    path.write_bytes(gzipped(8, SECRET + b"\0"))


def in_the_head_of_a_second_member(path):
    empty = gzip.compress(b"", mtime=0)
    second = empty[:3] + bytes([16]) + empty[4:10] + SECRET + b"\0" + empty[10:]
    path.write_bytes(gzipped(behind=second))


def in_white_space(path):
    digits = [int(d) for byte in SECRET for d in f"{byte:03o}"]
    head, *lines = FRESH.to_csv(index=False).splitlines()
    coded = [",".join(" " * digits.pop(0) + cell for cell in line.split(",")) for line in lines]  # fmt: skip
    path.write_text("\n".join([head, *coded]) + "\n")


def in_digits(path):
    frame = FRESH.astype({"weight": str})
    digits = [f"{w}{0:030d}{a}" for w, a in zip(FRESH["weight"], REAL["age"], strict=True)]  # fmt: skip
    frame.assign(weight=digits).to_csv(path, index=False)


PLANTED = [
    (in_json, ".parquet", True),
    (in_columns_of_json, ".parquet", True),
    (in_csv, ".parquet", True),
    (in_base64, ".parquet", True),
    (in_parquet, ".parquet", True),
    (in_metadata_of_a_column, ".parquet", False),
    (in_unused_categories, ".parquet", False),
    (in_the_index, ".parquet", False),
    (in_index_columns, ".parquet", True),
    (in_the_name_of_the_index, ".parquet", False),
    (in_attributes, ".parquet", False),
    (behind_an_old_footer, ".parquet", True),
    (behind_the_structure_of_the_footer, ".parquet", True),
    (in_an_unknown_field_of_the_footer, ".parquet", True),
    (in_the_name_of_the_program, ".parquet", True),
    (in_an_extra_field, ".csv.gz", True),
    (in_a_comment, ".csv.gz", True),
    (in_the_file_name, ".csv.gz", True),
    (in_the_head_of_a_second_member, ".csv.gz", True),
    (in_white_space, ".csv", False),
    (in_digits, ".csv", False),
]


def findings_of(synthetic):
    given = GivenTables(synthetic=synthetic, real=REAL, holdout=OTHERS)
    return given.prepared(seed=0).table.findings


def open_names(synthetic):
    return {f.name for f in findings_of(synthetic) if f.severity == Severity.OPEN}


@pytest.mark.parametrize(
    ("plant", "ending", "is_seen"), PLANTED, ids=[p[0].__name__ for p in PLANTED]
)
def test_a_real_table_besides_the_cells_keeps_a_table_from_release(
    tmp_path, plant, ending, is_seen
):
    path = tmp_path / f"made{ending}"
    plant(path)
    synthetic = load_synthetic(path)
    assert synthetic.beside.parts
    assert "besides_cells" in open_names(synthetic)
    # Nothing that stands there is quoted.
    assert not any(str(age) in " ".join(synthetic.beside.parts) for age in REAL["age"] if age > 9_999)  # fmt: skip
    # Where it can be read as rows, the members are counted in it, and nobody else.
    if is_seen:
        both = pd.concat([REAL, OTHERS], ignore_index=True)
        table = table_from_frame(both, target=None)
        opened = open_file(synthetic, table, contents=synthetic.beside.contents)
        counts = count_file(opened, search_file(opened), np.arange(2 * N) < N)
        assert counts.rows is not None
        assert counts.rows.members > 0.9 * N
        assert counts.rows.nonmembers < 0.1 * N
    # The remedy: the cells alone.
    for end in (".parquet", ".csv", ".csv.gz"):
        out = tmp_path / f"clean{end}"
        assert clean_table(path, out) == synthetic.beside.parts
        again = load_synthetic(out)
        assert again.beside.parts == ()
        assert not again.beside.contents.texts
        assert again.outputs(synthetic.frame).mean() > 0.99 or plant is in_digits


def test_columns_that_the_real_table_lacks_keep_a_table_from_release(tmp_path):
    for plant in (in_more_columns, in_the_names_of_columns):
        plant(tmp_path / "made.parquet")
        assert "not_judged" in open_names(load_synthetic(tmp_path / "made.parquet"))


def test_a_page_behind_the_last_cell_is_found(tmp_path):
    """The chunk of the last column is made longer by a page that no reader of cells reaches."""
    path = tmp_path / "made.parquet"
    table = pa.Table.from_pandas(FRESH[["age", "weight"]], preserve_index=False)
    pq.write_table(table, path, compression=None, use_dictionary=False, write_statistics=False, store_schema=False)  # fmt: skip
    body, footer = footer_of(path.read_bytes())
    fields = read_struct(footer)[0]
    size = fields[4][0][1][-1][3][7]
    page = b"\x15\x00" + b"\x15" + varint(2 * len(SECRET)) + b"\x15" + varint(2 * len(SECRET)) + b"\0"  # fmt: skip
    longer = varint(2 * (size + len(page) + len(SECRET)))
    at = footer.rindex(varint(2 * size))
    footer = footer[:at] + longer + footer[at + len(varint(2 * size)) :]
    path.write_bytes(body + page + SECRET + footer + struct.pack("<i", len(footer)) + b"PAR1")  # fmt: skip
    assert len(pd.read_parquet(path)) == N
    assert any("behind the last cell" in part for part in load_synthetic(path).beside.parts)  # fmt: skip


@pytest.mark.parametrize("optional", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        {"use_dictionary": False},
        {"use_dictionary": True},
        {"use_dictionary": False, "data_page_version": "2.0"},
        {"use_dictionary": True, "data_page_version": "2.0"},
    ],
)
@pytest.mark.parametrize("name", ["weight", "town", "smoker"])
def test_bytes_behind_the_last_cell_of_a_page_are_found(
    tmp_path, settings, optional, name
):
    """The last page of the last column is made longer, in its head and in the footer."""
    last = FRESH[name].where(FRESH["age"] % 7 > 0) if optional else FRESH[name]
    table = pa.Table.from_pandas(pd.DataFrame({"age": FRESH["age"], "last": last}), preserve_index=False)  # fmt: skip
    fields = [pa.field(f.name, f.type, nullable=optional) for f in table.schema]
    table = table.cast(pa.schema(fields))
    path = tmp_path / "made.parquet"
    pq.write_table(table, path, compression=None, write_statistics=False, store_schema=False, **settings)  # fmt: skip
    assert load_synthetic(path).beside.parts == ()
    body, footer = footer_of(path.read_bytes())
    column = read_struct(footer)[0][4][0][1][-1][3]
    at = column.get(11, column[9])
    while at < len(body):
        start = at
        header, inside = read_struct(body, at)
        at = inside + header[3]
    old, new = (b"\x15" + varint(2 * size) + b"\x15" + varint(2 * size) for size in (header[3], header[3] + len(SECRET)))  # fmt: skip
    page = body[start:inside].replace(old, new) + body[inside:] + SECRET
    grown = len(page) - len(body[start:])
    size = b"\x16" + varint(2 * column[6]) + b"\x16" + varint(2 * column[7])
    longer = b"\x16" + varint(2 * (column[6] + grown)) + b"\x16" + varint(2 * (column[7] + grown))  # fmt: skip
    at = footer.rindex(size)
    footer = footer[:at] + longer + footer[at + len(size) :]
    path.write_bytes(body[:start] + page + footer + struct.pack("<i", len(footer)) + b"PAR1")  # fmt: skip
    assert pq.read_table(path).to_pylist() == table.to_pylist()
    assert any(part.startswith("bytes in a page behind its cells") for part in load_synthetic(path).beside.parts)  # fmt: skip


def test_every_file_of_a_folder_is_read(tmp_path):
    write = SyntheticTable(FRESH).save
    write(tmp_path / "synthetic.parquet")
    write_notes_file(tmp_path / "provenance.json", Notes(provenance=Provenance(recipe="tree", seed=3)))  # fmt: skip
    assert load_synthetic(tmp_path).beside.parts == ()
    write_notes_file(tmp_path / "provenance.json", Notes(provenance=Provenance(recipe=SECRET.decode())))  # fmt: skip
    assert load_synthetic(tmp_path).beside.parts
    write_notes_file(tmp_path / "provenance.json", Notes(provenance=Provenance()))
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "notes.txt").write_bytes(SECRET)
    (part,) = load_synthetic(tmp_path).beside.parts
    assert part == f"a further file in the folder, {len(SECRET):,} bytes"


CELLS = FRESH.assign(
    when=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N), "h"),
    count=pd.array([None if k % 7 == 0 else k % 50 for k in range(N)], dtype="Int64"),
    group=FRESH["town"].astype("category"),
)
ARROW = pa.Table.from_pandas(CELLS, preserve_index=False)
TOWN = ARROW.schema.get_field_index("town")
LARGE = ARROW.set_column(TOWN, "town", ARROW.column(TOWN).cast(pa.large_string()))
CLEAN = {
    **{f"pandas {c}": lambda p, c=c: CELLS.to_parquet(p, compression=c) for c in ("snappy", "gzip", "zstd", "brotli", "lz4", None)},
    "pandas nullable": lambda p: CELLS.convert_dtypes().to_parquet(p, index=False),
    "pandas on arrow": lambda p: CELLS.convert_dtypes(dtype_backend="pyarrow").to_parquet(p),
    **{
        f"pyarrow {settings}": lambda p, settings=settings: pq.write_table(ARROW, p, **settings)
        for settings in (
            {"data_page_version": "2.0"},
            {"use_dictionary": False},
            {"write_statistics": False},
            {"row_group_size": 90},
            {"version": "1.0"},
            {"use_deprecated_int96_timestamps": True},
            {"data_page_size": 300},
            {"store_schema": False},
            {"write_page_index": True},
            {"write_page_checksum": True},
            {"use_dictionary": False, "column_encoding": {"age": "DELTA_BINARY_PACKED"}},
        )
    },
    "pyarrow large strings": lambda p: pq.write_table(LARGE, p),
    **{f"polars {c}": lambda p, c=c: pl.from_pandas(CELLS).write_parquet(p, compression=c) for c in ("zstd", "snappy", "lz4", "uncompressed")},
    "polars statistics": lambda p: pl.from_pandas(CELLS).write_parquet(p, statistics="full"),
    "polars row groups": lambda p: pl.from_pandas(CELLS).write_parquet(p, row_group_size=90),
}  # fmt: skip
CLEAN_TEXTS = {
    "pandas.csv": lambda p: CELLS.to_csv(p, index=False),
    "pandas.csv.gz": lambda p: CELLS.to_csv(p, index=False),
    "quoted.csv": lambda p: CELLS.to_csv(p, index=False, quoting=1, lineterminator="\r\n"),
    "marked.csv": lambda p: CELLS.to_csv(p, index=False, encoding="utf-8-sig"),
    "spaced.csv": lambda p: p.write_text(CELLS.to_csv(index=False).replace(",", ", ")),
    "polars.csv": lambda p: pl.from_pandas(CELLS).write_csv(p),
    "twice.csv.gz": lambda p: p.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 30) + gzip.compress(b"3,4\n" * 30)),
}  # fmt: skip


@pytest.mark.parametrize("name", [*CLEAN, *CLEAN_TEXTS])
def test_what_usual_programs_write_is_no_finding(tmp_path, name):
    path = tmp_path / (name if name in CLEAN_TEXTS else "made.parquet")
    (CLEAN | CLEAN_TEXTS)[name](path)
    beside = load_synthetic(path).beside
    assert beside.parts == ()
    contents = beside.contents
    assert (contents.arrays, contents.texts, contents.unread) == ((), (), ())


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
def test_what_is_written_here_is_the_cells_and_nothing_else(tmp_path, ending):
    frame = CELLS.set_index(REAL["age"].astype(str))
    frame["group"] = frame["group"].cat.add_categories(["nobody"])
    frame.attrs["real"] = "Smith"
    files = [tmp_path / f"{name}{ending}" for name in ("one", "two")]
    for file in files:
        write_synthetic(SyntheticTable(frame), file)
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert load_synthetic(files[0]).beside.parts == ()
    read = pd.read_parquet(files[0]) if ending == ".parquet" else pd.read_csv(files[0])
    assert read["age"].tolist() == CELLS["age"].tolist()
    assert read["group"].tolist() == CELLS["group"].tolist()
    if ending == ".parquet":
        for word in (b"nobody", b"Smith", b"pandas", b"ARROW"):
            assert word not in first


def test_a_cleaned_table_never_replaces_itself(tmp_path):
    path = tmp_path / "made.parquet"
    in_attributes(path)
    before = path.read_bytes()
    os.link(path, tmp_path / "same.parquet")
    for out in (path, tmp_path / "same.parquet"):
        with pytest.raises(OutputRefused, match="would replace"):
            clean_table(path, out)
    with pytest.raises(OutputRefused, match=r"none of \.csv"):
        clean_table(path, tmp_path / "out.xlsx")
    with pytest.raises(OutputRefused, match="no place for a file"):
        clean_table(path, tmp_path / "nowhere" / "out.csv")
    assert path.read_bytes() == before


def test_codes_keep_their_zeros_where_a_table_is_cleaned(tmp_path):
    path = tmp_path / "made.csv"
    path.write_text("code,n\n" + "".join(f"{k:03d},{k}\n" for k in range(40)))
    clean_table(path, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == path.read_text()


def claiming(path, number, of):
    """Write a table whose footer claims another number."""
    table = pa.Table.from_pandas(FRESH[["age", "weight"]], preserve_index=False)
    pq.write_table(table, path, compression=None, use_dictionary=False, write_statistics=False, store_schema=False)  # fmt: skip
    body, footer = footer_of(path.read_bytes())
    footer = footer.replace(varint(2 * of), varint(2 * number))
    path.write_bytes(body + footer + struct.pack("<i", len(footer)) + b"PAR1")


def test_what_would_fill_memory_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "made.parquet"
    claiming(path, 2**40, N)
    with pytest.raises(InvalidTable, match="more than can be looked at"):
        load_synthetic(path)
    page = read_struct(plain(FRESH), 4)[0]
    data = plain(FRESH).replace(b"\x15" + varint(2 * page[2]), b"\x15" + varint(2 * (2**31 - 1)), 1)  # fmt: skip
    path.write_bytes(data)
    with pytest.raises(ReticentError, match=r"page of a column claims|is not a table"):
        load_synthetic(path)
    once = pa.DictionaryArray.from_arrays(np.zeros(20_000, np.int32), ["x" * 10**6])
    pq.write_table(pa.table({"a": once, "b": range(20_000)}), path)
    with pytest.raises(InvalidTable, match="may unpack to"):
        load_synthetic(path)
    with gzip.open(tmp_path / "made.csv.gz", "wb") as bomb:
        for _ in range(200):
            bomb.write(b"0,0\n" * 2**18)
    with pytest.raises(InvalidTable, match="unpacks to more than"):
        load_synthetic(tmp_path / "made.csv.gz")


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "made.csv")
    for place in (tmp_path / "made.csv", "/dev/zero", tmp_path / "none.parquet"):
        with pytest.raises(InvalidTable, match="there is no file"):
            load_synthetic(place)
    folder = tmp_path / "folder"
    folder.mkdir()
    SyntheticTable(FRESH).save(folder / "synthetic.parquet")
    (folder / "out").symlink_to("/etc")
    with pytest.raises(InvalidTable, match="is a link or no file"):
        load_synthetic(folder)


def test_no_damage_ends_in_a_traceback(tmp_path):
    """Every byte of the footer is changed in turn, and random bytes of the pages."""
    path = tmp_path / "made.parquet"
    data = plain(FRESH.head(40))
    rng = stream(0, "test/damage")
    places = np.r_[len(footer_of(data)[0]) : len(data), rng.integers(4, len(data), 100)]
    refused = 0
    for at in rng.permutation(places)[:400]:
        changed = bytearray(data)
        changed[at] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(changed))
        try:
            load_synthetic(path)
        except ReticentError:
            refused += 1
    assert refused > 50
