"""Tables whose target is a quantity, as regression models predict."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.data import (
    PARTS,
    Split,
    Table,
    as_numbers,
    check_columns,
    read_table,
    table_from_frame,
)
from reticent.errors import InvalidSplit, InvalidTable
from reticent.run import stream


def frame(n: int = 200, seed: int = 42) -> pd.DataFrame:
    rng = stream(seed, "quantity")
    age = rng.uniform(20, 80, n).round(1)
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "income": 100 * age + rng.normal(0, 500, n),
        }
    )


def table(**changes: object) -> Table:
    return table_from_frame(frame(), target="income", quantity=True, **changes)


def test_a_quantity_has_no_classes_and_keeps_its_values():
    content = frame()
    made = table_from_frame(content, target="income", quantity=True)
    assert made.is_quantity
    assert made.classes == ()
    assert made.target.dtype == np.float64
    assert np.array_equal(made.target, content["income"])
    assert list(made.features.columns) == ["age", "sex"]


def test_a_class_is_no_quantity():
    assert not table_from_frame(frame(), target="sex").is_quantity


def test_rows_without_a_target_are_dropped_and_counted():
    content = frame()
    content.loc[[3, 7], "income"] = np.nan
    made = table_from_frame(content, target="income", quantity=True)
    assert made.dropped == 2
    assert 3 not in made.ids
    assert np.isfinite(made.target).all()


def test_a_quantity_is_read_from_a_file(tmp_path):
    file = tmp_path / "people.csv"
    frame().to_csv(file, index=False)
    made = read_table(file, target="income", quantity=True)
    assert made.fingerprint == table().fingerprint


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1", "two", "3"] * 20, "'two', which is not a number"),
        (pd.date_range("2020", periods=60), "which is not a number"),
        ([1.0, np.inf, 2.0] * 20, "infinite in 20 rows"),
        ([7.0] * 60, "single value 7"),
    ],
)
def test_targets_that_are_no_quantity_are_refused(values, message):
    content = pd.DataFrame({"x": np.arange(60.0), "y": values})
    with pytest.raises(InvalidTable, match=message):
        table_from_frame(content, target="y", quantity=True)


def test_a_quantity_taken_for_a_class_points_to_regression_models():
    with pytest.raises(InvalidTable, match="name a regression model to audit one"):
        table_from_frame(frame(), target="income")


def test_take_join_and_hashes_follow_the_quantity():
    whole = table()
    first, second = whole.take(np.arange(120)), whole.take(np.arange(120, 200))
    assert first.join(second).fingerprint == whole.fingerprint
    assert np.array_equal(first.row_hashes, whole.row_hashes[:120])
    changed = frame()
    changed.loc[0, "income"] += 1e-9
    other = table_from_frame(changed, target="income", quantity=True)
    assert other.row_hashes[0] != whole.row_hashes[0]
    assert np.array_equal(other.row_hashes[1:], whole.row_hashes[1:])


def test_minus_zero_and_zero_are_one_value():
    content = pd.DataFrame({"x": [1.0, 1.0, 2.0], "y": [0.0, -0.0, 1.0]})
    hashes = table_from_frame(content, target="y", quantity=True).row_hashes
    assert hashes[0] == hashes[1]


def test_numbers_hold_the_quantity_last_and_not_as_a_category():
    matrix, categorical = as_numbers(table())
    assert np.array_equal(matrix[:, -1], table().target)
    assert categorical.tolist() == [False, True, False]


@given(seed=st.integers(0, 2**32 - 1))
def test_every_part_gets_its_share_of_every_decile(seed):
    whole = table()
    split = Split.by_unit(whole, rng=np.random.default_rng(seed))
    assert split.auxiliary is not None
    decile = np.argsort(np.argsort(whole.target)) // 20  # no ties, 20 records each
    of_id = dict(zip(whole.ids.tolist(), decile.tolist(), strict=True))
    for part, share in zip(
        (split.defender, split.reserved, split.auxiliary), (8, 8, 4), strict=True
    ):
        counts = np.bincount([of_id[i] for i in part.ids.tolist()], minlength=10)
        assert (abs(counts - share) <= 1).all()


def test_units_with_several_records_go_by_their_mean():
    units = np.repeat(np.arange(100), 2)
    split = Split.by_unit(table(unit=units), rng=stream(42, "split"))
    parts = [split.defender, split.reserved]
    assert not set(parts[0].units) & set(parts[1].units)


def test_a_quantity_with_many_ties_is_divided():
    content = frame().assign(income=(frame()["income"] > 5000) * 1.0)
    made = table_from_frame(content, target="income", quantity=True)
    split = Split.by_unit(made, rng=stream(42, "ties"))
    shares = [part.target.mean() for part in (split.defender, split.reserved)]
    assert abs(shares[0] - shares[1]) < 0.03  # one record per stratum at most


def test_a_part_in_which_the_target_does_not_vary_is_refused():
    content = frame()
    parts = np.array(PARTS, dtype=object)[np.arange(200) % 2]
    content.loc[parts == "defender", "income"] = 1.0
    made = table_from_frame(content, target="income", part=parts, quantity=True)
    with pytest.raises(InvalidSplit, match="has the target 1, so no product"):
        Split.by_part(made)


@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize(
    ("copy", "caught"),
    [
        (lambda y, _: 3 * y - 2, True),
        (lambda y, rng: y + rng.normal(0, 0.5 * y.std(), len(y)), False),
        (lambda y, rng: rng.normal(size=len(y)), False),
    ],
)
def test_a_column_that_copies_the_quantity_is_told(n, copy, caught):
    content = frame(n)
    twin = copy(content["income"], stream(42, "copy"))
    made = table_from_frame(content.assign(twin=twin), target="income", quantity=True)
    named = [f.text for f in check_columns(made) if f.name == "target_copy"]
    assert any("'twin'" in text for text in named) == caught


def test_a_bent_copy_and_a_category_that_fixes_the_target_are_told():
    rng = stream(42, "bent")
    level = rng.integers(6, size=600)
    content = pd.DataFrame(
        {
            "bent": np.where(level % 2 == 0, level, -level) * 1.0,
            "named": np.array(list("abcdef"), dtype=object)[level],
            "noise": rng.normal(size=600),
            "y": level.astype(float),
        }
    )
    made = table_from_frame(content, target="y", quantity=True)
    named = [f.text for f in check_columns(made) if f.name == "target_copy"]
    assert len(named) == 2
