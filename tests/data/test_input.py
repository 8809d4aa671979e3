"""Whatever library the records come in, and however they are written: the same table, or a word about it."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.data import (
    ColumnKind,
    Severity,
    as_frame,
    as_values,
    read_schema,
    read_table,
    table_from_frame,
)
from reticent.errors import InvalidInput, InvalidTable
from reticent.run import stream

N = 60


def records():
    """Return a frame with a column of every kind, some values missing."""
    rng = stream(0, "records")
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(900, size=N), "D")
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, size=N),
            "weight": rng.normal(70, 9, size=N),
            "town": rng.choice(["Oslo", "Bergen"], size=N).astype(object),
            "smoker": rng.random(N) < 0.3,
            "since": days.as_unit("us"),
        }
    )
    frame.loc[3, "weight"] = np.nan
    frame.loc[5, "town"] = None
    return frame


def target():
    return np.arange(N) % 2


def same(a, b):
    pd.testing.assert_frame_equal(a.features, b.features)
    assert np.array_equal(a.target, b.target)
    assert a.schema == b.schema
    assert a.fingerprint == b.fingerprint


def names(table):
    return [finding.name for finding in table.findings]


def found(table, name):
    (finding,) = [f for f in table.findings if f.name == name]
    return finding


def test_polars_and_arrow_frames_give_the_table_of_the_pandas_frame():
    pl = pytest.importorskip("polars")
    frame = records()
    expected = table_from_frame(frame, target=target())
    assert expected.schema.columns == {
        "age": ColumnKind.NUMERIC,
        "weight": ColumnKind.NUMERIC,
        "town": ColumnKind.CATEGORICAL,
        "smoker": ColumnKind.BOOLEAN,
        "since": ColumnKind.NUMERIC,
    }
    assert expected.schema.dates == ("since",)
    # A Polars column has nulls, not NaN.
    polars = pl.DataFrame(
        {name: [None if pd.isna(v) else v for v in frame[name]] for name in frame}
    )
    assert polars.schema["age"] == pl.Int64
    same(expected, table_from_frame(polars, target=pl.Series(target())))
    same(expected, table_from_frame(polars.lazy(), target=target()))
    same(expected, table_from_frame(pa.Table.from_pandas(frame), target=target()))


def test_polars_types_keep_their_meaning():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "whole": pl.Series([1, None, 3] * 20),
            "truth": pl.Series([True, None, False] * 20),
            "price": pl.Series([Decimal("1.25"), None, Decimal("2.5")] * 20),
            "day": pl.Series([dt.date(2026, 1, 1), None, dt.date(1970, 1, 2)] * 20),
            "kind": pl.Series(["a", None, "b"] * 20, dtype=pl.Categorical),
            "none": pl.Series([None] * 60),
        }
    )
    table = table_from_frame(frame, target=target())
    assert [kind.value for kind in table.schema.columns.values()] == [
        *("numeric", "boolean", "numeric", "numeric", "categorical", "numeric")
    ]
    assert table.features["price"].tolist()[:1] == [1.25]
    assert table.features["day"].tolist()[2] == 1.0
    assert table.features["whole"].isna().sum() == 20
    assert table.features["truth"].tolist()[0] == 1.0


def test_numbers_stored_as_objects_are_numbers():
    plain = records()[["age", "weight", "smoker"]]
    boxed = plain.astype(object)
    same(
        table_from_frame(plain, target=target()),
        table_from_frame(boxed, target=target()),
    )
    numbers = plain[["age", "weight"]].to_numpy()
    same(
        table_from_frame(as_frame(numbers), target=target()),
        table_from_frame(as_frame(numbers.astype(object)), target=target()),
    )


def test_an_object_array_with_a_text_column_keeps_its_numbers():
    array = np.empty((N, 2), dtype=object)
    array[:, 0] = np.arange(N) / 7
    array[:, 1] = np.resize(["a", "b"], N)
    kinds = table_from_frame(as_frame(array), target=target()).schema.columns
    assert list(kinds.values()) == [ColumnKind.NUMERIC, ColumnKind.CATEGORICAL]


def test_an_array_of_texts_is_read_like_a_text_file():
    array = np.array([[k / 7, "a" if k % 3 else "b"] for k in range(N)]).astype(str)
    assert array.dtype.kind == "U"  # a single text makes texts of all numbers
    table = table_from_frame(as_frame(array), target=target())
    assert list(table.schema.columns.values()) == [
        ColumnKind.NUMERIC,
        ColumnKind.CATEGORICAL,
    ]
    # Older versions of pandas read the last digit less exactly.
    assert table.features["x0"].tolist() == pytest.approx(
        [k / 7 for k in range(N)], rel=1e-15
    )


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.one_of(st.none(), st.floats(-1e9, 1e9), st.integers(-(10**6), 10**6)),
        min_size=4,
        max_size=12,
    ).filter(lambda values: any(v is not None for v in values))
)
def test_numbers_in_objects_are_the_numbers_outside_them(values):
    """Property: boxing numbers, with None for what is missing, changes nothing."""
    y = np.arange(len(values)) % 2
    boxed = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    plain = pd.DataFrame({"x": pd.Series(values, dtype=np.float64)})
    same(table_from_frame(plain, target=y), table_from_frame(boxed, target=y))


def test_durations_are_counted_in_days():
    frame = records().assign(stay=pd.to_timedelta(np.arange(N) * 12, "h"))
    table = table_from_frame(frame, target=target())
    assert table.features["stay"].tolist()[:3] == [0.0, 0.5, 1.0]
    assert table.schema.dates == ("since", "stay")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": [1, 2]}, "is a dictionary"),
        (np.zeros(4), r"shape \(4,\)"),
        (np.zeros((4, 2, 2)), r"shape \(4, 2, 2\)"),
        (np.array([[b"a", b"b"]]), "holds bytes"),
    ],
)
def test_what_is_no_table_is_refused(values, message):
    with pytest.raises(InvalidInput, match=message):
        as_frame(values)


def test_a_sparse_matrix_is_refused():
    from scipy.sparse import csr_matrix

    with pytest.raises(InvalidInput, match=r"sparse.*toarray\(\)"):
        as_frame(csr_matrix(np.eye(4)))


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_several_targets_per_record_are_refused_and_one_is_taken(kind):
    both = kind(np.arange(8).reshape(4, 2))
    with pytest.raises(InvalidInput, match="one target per record"):
        as_values(both, role="target")
    one = kind(np.arange(4).reshape(4, 1))
    assert as_values(one, role="target").tolist() == [0, 1, 2, 3]


def test_complex_numbers_and_bytes_are_refused():
    for values, message in [
        (np.arange(N) * 1j, "complex"),
        (np.resize(np.array([b"a", b"b"], dtype=object), N), "bytes"),
    ]:
        with pytest.raises(InvalidTable, match=message):
            table_from_frame(pd.DataFrame({"x": values}), target=target())


def test_columns_are_listed_by_what_they_are_taken_for():
    table = table_from_frame(records(), target=target())
    finding = found(table, "columns")
    assert finding.severity == Severity.NOTE
    assert finding.text.startswith(
        "the features are 2 numeric ('age', 'weight'); 1 boolean ('smoker'); 1 categorical ('town'); "
        "1 dates, counted in days ('since');"
    )
    wide = pd.DataFrame(np.zeros((N, 500))).add_prefix("c")
    assert "480 more" in found(table_from_frame(wide, target=target()), "columns").text


@pytest.mark.parametrize(
    ("cells", "name", "severity"),
    [
        (["1", "2", "3", "4", "5", "unknown"], "not_quite_numeric", Severity.WARNING),
        (["1.5", "NA", "2.5"], "not_quite_numeric", Severity.WARNING),
        (['"1,234"', '"2,345.5"', "17"], "numbers_with_separators", Severity.WARNING),
        (['"3,14"', '"2,71"', '"1,41"'], "numbers_with_separators", Severity.WARNING),
        (["12 %", "13 %", "9 %"], "numbers_with_separators", Severity.WARNING),
        (["2026-01-31", "2025-12-01"], "dates_as_text", Severity.WARNING),
        (["31.01.2026", "01.12.2025"], "dates_as_text", Severity.WARNING),
        (["NA", "a", "b", "c"], "missing_words", Severity.NOTE),
        (["None", "a", "b", "c"], "missing_words", Severity.NOTE),
        (["F", "M", "f"], "spelling", Severity.NOTE),
        (["007", "008", "12"], "leading_zeros", Severity.WARNING),
        ([str(2**60), str(2**60 + 1)], "large_integers", Severity.WARNING),
    ],
)
def test_what_may_have_been_meant_otherwise_is_told(tmp_path, cells, name, severity):
    rows = [f"{k % 2},{cells[k % len(cells)]}" for k in range(N)]
    file = tmp_path / "t.csv"
    file.write_text("ill,odd\n" + "\n".join(rows) + "\n")
    finding = found(read_table(file, target="ill"), name)
    assert finding.severity == severity
    assert "column 'odd'" in finding.text


@pytest.mark.parametrize(
    "cells",
    [
        ["a", "b"],
        ["1", "2"],
        ["1.5", ""],
        ["0.5", "0"],
        ["12-3", "high"],
        ["True", "False"],
    ],
)
def test_ordinary_columns_raise_no_doubt(tmp_path, cells):
    rows = [f"{k % 2},{cells[k % len(cells)]}" for k in range(N)]
    file = tmp_path / "t.csv"
    file.write_text("ill,odd\n" + "\n".join(rows) + "\n")
    assert names(read_table(file, target="ill")) == ["columns"]


def test_codes_keep_their_zeros_where_they_name_something(tmp_path):
    file = tmp_path / "t.csv"
    rows = [f"{k % 2},{'07' if k % 3 else '7'},{k}" for k in range(N)]
    file.write_text("ill,code,x\n" + "\n".join(rows) + "\n")
    by_unit = read_table(file, target="ill", unit="code")
    assert len(np.unique(by_unit.units)) == 2  # 07 and 7 are two people
    schema = tmp_path / "s.toml"
    schema.write_text("[columns]\ncode = 'categorical'\nx = 'numeric'\n")
    table = read_table(file, target="ill", schema=read_schema(schema))
    assert set(table.features["code"]) == {"07", "7"}


def test_a_schema_may_declare_dates_and_leave_out_columns(tmp_path):
    file, schema = tmp_path / "t.csv", tmp_path / "s.toml"
    rows = [f"{k % 2},1970-01-{1 + k % 20:02d},{k},n{k}" for k in range(N)]
    file.write_text("ill,since,x,name\n" + "\n".join(rows) + "\n")
    schema.write_text("drop = ['name']\n[columns]\nsince = 'date'\nx = 'numeric'\n")
    table = read_table(file, target="ill", schema=read_schema(schema))
    assert table.features["since"].tolist()[:3] == [0.0, 1.0, 2.0]
    assert table.schema.dates == ("since",)
    assert list(table.features) == ["since", "x"]
    schema.write_text("[columns]\nsince = 'date'\nx = 'numeric'\nname = 'date'\n")
    with pytest.raises(InvalidTable, match="'name' is declared date but not all"):
        read_table(file, target="ill", schema=read_schema(schema))


def test_a_schema_without_columns_lets_the_values_decide(tmp_path):
    file, schema = tmp_path / "t.csv", tmp_path / "s.toml"
    rows = [f"{k % 2},{'NA' if k % 5 == 0 else k}" for k in range(N)]
    file.write_text("ill,x\n" + "\n".join(rows) + "\n")
    schema.write_text("missing = ['NA']\n")
    table = read_table(file, target="ill", schema=read_schema(schema))
    assert table.schema.columns == {"x": ColumnKind.NUMERIC}
    assert table.features["x"].isna().sum() == N / 5


def test_columns_are_left_out_when_asked():
    table = table_from_frame(records(), target=target(), drop=["town", "age"])
    assert list(table.features) == ["weight", "smoker", "since"]
    assert found(table, "left_out").text == "left out as asked: 'town', 'age'."
    with pytest.raises(InvalidTable, match=r"no column 'twn' to leave out.*'town'"):
        table_from_frame(records(), target=target(), drop=["twn"])
    with pytest.raises(InvalidTable, match=r"'town' of .* is the target"):
        table_from_frame(records(), target="town", drop=["town"])


def test_an_index_with_a_name_can_be_the_unit_and_is_told_of(tmp_path):
    frame = records().assign(ill=target())
    frame.index = pd.Index(np.arange(N) // 2, name="person")
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", target="ill", unit="person")
    assert len(np.unique(table.units)) == N / 2
    assert "index" not in names(table)
    assert (
        "'person'"
        in found(read_table(tmp_path / "t.parquet", target="ill"), "index").text
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8"])
def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path, encoding):
    file = tmp_path / "t.csv"
    file.write_text(
        "age,ill\n" + "".join(f"{k},{k % 2}\n" for k in range(N)), encoding=encoding
    )
    assert list(read_table(file, target="ill").features) == ["age"]


@pytest.mark.parametrize(
    ("encoding", "message"), [("latin-1", "not a table in UTF-8"), ("utf-16", "UTF-16")]
)
def test_another_encoding_is_refused(tmp_path, encoding, message):
    file = tmp_path / "t.csv"
    file.write_text("ålder,ill\n1,0\n2,1\n", encoding=encoding)
    with pytest.raises(InvalidTable, match=message):
        read_table(file, target="ill")


def test_line_breaks_and_commas_in_quotation_marks_are_no_rows(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text('note,ill\r\n"a,\nb",0\r\n c,1\r\n\r\n"d ""e""",0\r\n')
    assert read_table(file, target="ill").features["note"].tolist() == [
        "a,\nb",
        "c",
        'd "e"',
    ]


def test_classes_in_two_spellings_are_told_of():
    labels = np.resize(["yes", "no", "Yes"], N)
    table = table_from_frame(records(), target=labels)
    assert table.classes == ("Yes", "no", "yes")
    assert found(table, "classes_alike").severity == Severity.WARNING


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, "1"], "both as a number and as a text"),
        ([1, (2,)], "no order"),
        ([[1], [2]], "nested"),
    ],
)
def test_targets_without_clear_classes_are_refused(labels, message):
    column = pd.Series([labels[k % 2] for k in range(N)], dtype=object)
    with pytest.raises(InvalidTable, match=message):
        table_from_frame(records().assign(ill=column), target="ill")


def test_an_all_missing_column_is_numeric_wherever_it_comes_from(tmp_path):
    frame = records()[["age"]].assign(
        none=pd.Series([None] * N, dtype=object), ill=target()
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    tables = [
        table_from_frame(frame, target="ill"),
        read_table(tmp_path / "t.csv", target="ill"),
        read_table(tmp_path / "t.parquet", target="ill"),
    ]
    for table in tables:
        assert table.schema.columns["none"] == ColumnKind.NUMERIC
        same(table, tables[0])
