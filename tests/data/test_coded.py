"""One coding for all tables: equal values have equal codes, whatever table they stand in."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_tables import people
from reticent.data import UNKNOWN, Coder, in_columns_of, table_from_frame
from reticent.errors import InvalidTable


@pytest.fixture(scope="module")
def table():
    return table_from_frame(people(120, np.random.default_rng(0)), target=None)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_codes_are_equal_just_where_values_are(table, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(table), size=2)
    coded = Coder(table.features, table.schema).code(table.features.iloc[rows])
    first, second = (table.features.iloc[row] for row in rows)
    for j, name in enumerate(table.features):
        same = first[name] == second[name] or (
            pd.isna(first[name]) and pd.isna(second[name])
        )
        assert (coded.codes[0, j] == coded.codes[1, j]) == same


def test_ranks_follow_the_numbers_and_missing_ones_are_far_from_all(table):
    coded = Coder(table.features, table.schema).code(table.features)
    numbers = [n for n, is_number in zip(table.features, coded.numeric, strict=True) if is_number]  # fmt: skip
    for j, name in enumerate(numbers):
        values = table.features[name].to_numpy()
        known = ~np.isnan(values)
        order = np.argsort(values[known], kind="stable")
        for scale in (coded.ranks, coded.scaled):
            assert (np.diff(scale[known, j][order]) >= 0).all()
            assert (scale[~known, j] - scale[known, j].max(initial=0) >= 1).all()


def test_values_that_no_reference_has_are_unknown_and_never_equal(table):
    coder = Coder(table.features, table.schema)
    strange = table.features.head(2).assign(age=[0.5, 1.5], town="nowhere")
    coded = coder.code(strange)
    places = [coder.names.index(name) for name in ("age", "town")]
    assert (coded.codes[:, places] == UNKNOWN).all()
    with pytest.raises(InvalidTable, match="'ill' is missing"):
        coder.code(table.features.drop(columns="ill"))


def test_the_coding_does_not_depend_on_the_order_of_the_references(table):
    shuffled = table.features.sample(frac=1, random_state=1)
    codes = [Coder(f, table.schema).code(table.features).codes for f in (table.features, shuffled)]  # fmt: skip
    np.testing.assert_array_equal(*codes)


def test_two_tables_of_one_source_have_no_finding(table):
    other = people(120, np.random.default_rng(1))
    known = other["town"].isin(set(table.features["town"]))
    alike = in_columns_of(
        other[known].reset_index(drop=True), table.features, table.schema
    )
    assert alike.findings == ()
    assert list(alike.frame) == list(table.features)


def one_finer(made):
    return made.assign(pressure=made["pressure"] + 0.25)


def one_coarser(made):
    return made.assign(weight=made["weight"].round(-1))


def one_invented(made):
    return made.assign(town=made["town"].where(made.index != 3, "nowhere"))


def one_pooled(made):
    return made.assign(town=made["town"].where(made.index != 3, "(other)"))


def one_of_another_type(made):
    return made.assign(age=made["age"].astype(object).where(made.index != 3, "old"))


@pytest.mark.parametrize(
    ("change", "name", "column"),
    [
        (one_finer, "finer_numbers", "pressure"),
        (one_coarser, "coarser_numbers", "weight"),
        (one_invented, "new_categories", "town"),
        (one_pooled, "pooled_categories", "town"),
        (one_of_another_type, "other_type", "age"),
    ],
)
def test_each_way_to_differ_is_a_finding_that_names_the_column_and_no_value(table, change, name, column):  # fmt: skip
    made = change(people(120, np.random.default_rng(0)))
    (finding,) = in_columns_of(made, table.features, table.schema).findings
    assert finding.name == name
    assert f"'{column}'" in finding.text
    assert "nowhere" not in finding.text
    assert "old" not in finding.text.split()


def test_a_table_with_its_own_word_for_rare_categories_and_an_invented_one_is_warned_about(table):  # fmt: skip
    made = one_pooled(one_invented(people(120, np.random.default_rng(0))))
    made.loc[5, "town"] = "nowhere"
    (finding,) = in_columns_of(made, table.features, table.schema).findings
    assert finding.name == "new_categories"
