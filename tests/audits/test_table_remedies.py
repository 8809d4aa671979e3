"""What could help a table that tells who was in it, by column."""

from types import SimpleNamespace

import pytest

from reticent.audits._table_remedies import remedies_of_table
from reticent.evidence import ColumnLeak, Estimate


def accuracy(low):
    return Estimate(value=low + 0.1, low=low, high=low + 0.2, level=0.95, method="exact")  # fmt: skip


@pytest.mark.parametrize(
    ("is_number", "rounded", "words"),
    [
        (True, 0.45, "Round 'x' before the generator is trained"),
        (False, 0.45, "Merge the rare categories of 'x' before"),
        (True, 0.55, "leave out or add noise to 'x'"),
        (False, None, "leave out or merge categories of 'x'"),
    ],
)
def test_a_column_that_tells_is_named_with_what_would_help_it(is_number, rounded, words):  # fmt: skip
    leak = ColumnLeak(
        name="x",
        is_number=is_number,
        accuracy=accuracy(0.6),
        rounded=None if rounded is None else accuracy(rounded),
    )
    evidence = SimpleNamespace(
        synthetic=SimpleNamespace(leaking=(leak,)), attacks=(), file=None
    )
    first, last = remedies_of_table(evidence)
    assert words in first
    assert "differential privacy" in last
