"""Checks of a divided table: each result is a named finding with a severity."""

import math

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from reticent.data._finding import Finding, Severity
from reticent.data._split import Split
from reticent.data._table import ColumnKind, Table, number_of_people

__all__ = [
    "check_columns",
    "check_groups",
    "check_overlap",
    "check_split",
]


# A staircase of 64 steps explains 1 - 1/64^2 of a straight line, more than LEAST_EXPLAINED.
MOST_STEPS = 64
# With fewer than five records per step, the staircase would explain noise.
RECORDS_PER_STEP = 5
# Share of the variance; as strict as LEAST_RIGHT is for classes.
LEAST_EXPLAINED = 0.999
# Share of correct predictions that makes a column a copy of the class: at most one error in a thousand.
LEAST_RIGHT = 0.999
# A table with so large a majority class would make almost any column look like a copy of the target.
LARGEST_MAJORITY = 0.99
# A category with more values than this (or than two per class) can match the target by chance.
MOST_CATEGORIES = 20
# Identifiers are rarely all different, because a person may come twice: a few repetitions are allowed.
IDENTIFIER_SHARE = 0.95
# In a smaller table, ages or ordinary codes may all be different as well.
IDENTIFIER_RECORDS = 50


def check_split(split: Split, *, smallest_group: int) -> list[Finding]:
    """Run every check that needs no model and no randomness.

    The blind baseline, which needs both, is :func:`reticent.attack.blind_baseline`.

    Parameters
    ----------
    split : Split
        The divided table.
    smallest_group : int
        Fewest people of a group that are shown by themselves.
    """
    findings = list(split.defender.findings)
    dropped = split.defender.dropped
    if dropped:
        findings.append(
            Finding(
                name="missing_target",
                severity=Severity.NOTE,
                text=f"{dropped} rows have no target and were left out.",
            )
        )
    whole = split.defender.join(split.reserved)
    findings += check_overlap(split)
    findings += check_columns(whole)
    findings += check_groups(split, smallest_group=smallest_group)
    return findings


def check_overlap(split: Split) -> list[Finding]:
    """Find records of the defender that have an identical copy in the reserved part."""
    shared = int(np.isin(split.defender.row_hashes, split.reserved.row_hashes).sum())
    if not shared:
        return []
    total = len(split.defender)
    return [
        Finding(
            name="identical_records",
            severity=Severity.WARNING,
            text=(
                f"{shared} of {total} defender records ({shared / total:.1%}) have an identical copy in the "
                "reserved part: their membership cannot be told, which makes the leak look smaller; "
                "if they are the same people, split by person with --unit."
            ),
        )
    ]


def check_columns(table: Table) -> list[Finding]:
    """Find columns that are constant, look like an identifier, or copy the target."""
    findings = []
    for column, kind in table.schema.columns.items():
        values = table.features[column]
        present = values.dropna()
        different = present.nunique()
        if different <= 1:
            findings.append(
                Finding(
                    name="constant_column",
                    severity=Severity.NOTE,
                    text=f"column {column!r} has {'only one value' if different else 'no value at all'}; it tells nothing and can be left out with --drop.",
                )
            )
            continue
        # Measurements with decimals are often all different without naming anybody.
        whole_numbers = kind == ColumnKind.NUMERIC and bool((present % 1 == 0).all())
        if (
            different > IDENTIFIER_SHARE * len(present)
            and len(present) > IDENTIFIER_RECORDS
            and (kind == ColumnKind.CATEGORICAL or whole_numbers)
        ):
            findings.append(
                Finding(
                    name="identifier_column",
                    severity=Severity.WARNING,
                    text=(
                        f"column {column!r} has {different} different values in {len(present)} records and looks "
                        "like an identifier: a product can memorise people by it; leave it out with --drop, or name it with --unit."
                    ),
                )
            )
        elif _copies_target(table, column, kind):
            findings.append(
                Finding(
                    name="target_copy",
                    severity=Severity.WARNING,
                    text=(
                        f"column {column!r} alone predicts the target almost without error: it may be a copy or a "
                        "consequence of it, and the utility would be an illusion; leave it out with --drop if so."
                    ),
                )
            )
    return findings


def check_groups(split: Split, *, smallest_group: int) -> list[Finding]:
    """Find groups with too few members or non-members for a statement about them."""
    if split.defender.groups is None or split.reserved.groups is None:
        return []
    names = sorted(set(split.defender.groups) | set(split.reserved.groups))
    small = sum(
        min(_people(part, name) for part in (split.defender, split.reserved))
        < smallest_group
        for name in names
    )
    if not small:
        return []
    return [
        Finding(
            name="small_group",
            severity=Severity.WARNING,
            text=(
                f"{small} of {len(names)} groups {'has' if small == 1 else 'have'} fewer than {smallest_group} people among members or "
                f"non-members and {'is' if small == 1 else 'are'} not shown by {'itself' if small == 1 else 'themselves'}: nothing is known "
                f"about {'its' if small == 1 else 'their'} risk; merge groups or bring more records."
            ),
        )
    ]


def _people(part: Table, group: str) -> int:
    assert part.groups is not None
    # People and not rows: a group of one person with many rows would show that person (decision 0003).
    return number_of_people(part.units[part.groups == group])


def _copies_target(table: Table, column: str, kind: ColumnKind) -> bool:
    """Whether one column predicts the target almost without error."""
    if table.is_quantity:
        return _copies_quantity(table, column, kind)
    return _copies_class(table, column, kind)


def _copies_quantity(table: Table, column: str, kind: ColumnKind) -> bool:
    """Whether one column explains all but a thousandth of the quantity's variance.

    A shallow tree finds any function of the column. In a small table it has too few leaves
    to follow even a straight line, so a straight line is tried as well.
    """
    values = table.features[column]
    if kind == ColumnKind.CATEGORICAL:
        if values.nunique() > MOST_STEPS:
            return False
        # The codes have no order, but a leaf for every value needs none.
        numbers = values.astype("category").cat.codes.to_numpy().astype(np.float64)
    else:
        numbers = values.fillna(values.median()).to_numpy()
        if np.corrcoef(numbers, table.target)[0, 1] ** 2 >= LEAST_EXPLAINED:
            return True
    leaves = min(MOST_STEPS, len(table) // RECORDS_PER_STEP)
    if leaves < 2:
        return False
    tree = DecisionTreeRegressor(
        max_leaf_nodes=leaves, min_samples_leaf=RECORDS_PER_STEP, random_state=0
    )
    tree.fit(numbers[:, None], table.target)
    return bool(tree.score(numbers[:, None], table.target) >= LEAST_EXPLAINED)


def _copies_class(table: Table, column: str, kind: ColumnKind) -> bool:
    """Whether one column predicts the class with at most one error in a thousand."""
    majority = np.bincount(table.target).max() / len(table)
    if majority > LARGEST_MAJORITY:
        return False
    values = table.features[column]
    if kind == ColumnKind.CATEGORICAL:
        if values.nunique() > max(MOST_CATEGORIES, 2 * len(table.classes)):
            return False
        # Missing values have the code -1, so that they become a category of their own.
        codes = values.astype("category").cat.codes.to_numpy().astype(np.int64) + 1
        counts = np.zeros((codes.max() + 1, len(table.classes)))
        np.add.at(counts, (codes, table.target), 1)
        right = counts.max(axis=1).sum() / len(table)
    else:
        numbers = values.fillna(values.median()).to_numpy()
        # Two intervals per class: a copy of the target needs one, and more could fit noise.
        leaves = 2 * len(table.classes)
        if not _could_be_cut(numbers, table.target, leaves):
            return False
        tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
        right = tree.fit(numbers[:, None], table.target).score(
            numbers[:, None], table.target
        )
    return bool(right >= LEAST_RIGHT)


def _could_be_cut(
    numbers: NDArray[np.float64], classes: NDArray[np.int64], intervals: int
) -> bool:
    """Whether any cut into so many intervals could predict the class almost without error.

    In the order of the numbers the class changes at most once between two intervals, and at most twice around each wrong record. This
    spares most columns a tree, of which a wide table would need thousands.
    """
    order = np.lexsort((classes, numbers))
    changes = np.count_nonzero(np.diff(classes[order]))
    wrong = (1 - LEAST_RIGHT) * len(classes)
    return bool(changes <= intervals - 1 + 2 * math.ceil(wrong))
