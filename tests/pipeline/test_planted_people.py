"""People are planted in the files of products in all ways that came to mind: each is found, and the same files about others are not accused."""

import re
from pathlib import Path

import numpy as np
import pytest
from planting import (
    CLEAN,
    EVERY,
    MAKERS,
    MEMBERS,
    PICKLES,
    REGRESSORS,
    fitted,
    people,
    planted,
)
from scipy.stats import binom

from reticent.evidence import found_beyond_chance
from reticent.evidence.file import READABLE_LEVEL
from reticent.product import clean_product, contents_of

FALSE_ALARM = 1e-6  # chance that correct code fails one statistical test
PAGE = Path(__file__).parents[2] / "docs/reference/planted.md"
# Of these, cleaning takes out every array with an entry for each member.
LISTS = (
    "bagging with answers out of the bag",
    "labels of clusters",
    "mask of inliers",
    "mask of outliers",
    "partial least squares",
    "residuals of every fold",
)


@pytest.mark.parametrize("name", EVERY)
def test_people_who_are_planted_are_found(name, seed, tmp_path):
    """No such file could end in RELEASE, and the sentence names the place where the people stand."""
    found = planted(name, tmp_path, seed, about="members")
    assert found.is_broken
    assert re.search(r"\d members.* \(.+\)", found.sentence)
    # Whoever loads a pickle runs it, so that one is told of whatever stands in it.
    assert bool(found.file.unread) == (name in PICKLES)


@pytest.mark.parametrize("name", [*EVERY, *CLEAN])
def test_the_same_files_about_others_are_not_accused(name, seed, tmp_path):
    """One audit in two hundred accuses such a file falsely, so that the test asks for a chance below one in a million."""
    file = planted(name, tmp_path, seed, about="others").file
    assert not file.long_axes
    for at in (file.rows, file.values):
        if at is not None:
            beyond = found_beyond_chance(at, members=MEMBERS, nonmembers=MEMBERS, level=1 - FALSE_ALARM)  # fmt: skip
            assert beyond.low == 0, at
    assert bool(file.unread) == (name in PICKLES)
    assert file.held_out is None or not file.held_out.seen


def test_few_of_them_are_accused(seed, tmp_path):
    """As many as one audit in two hundred may accuse falsely."""
    accused = [
        name
        for name in (*EVERY, *CLEAN)
        if planted(name, tmp_path / name, seed, about="others").is_broken
    ]
    most = binom.ppf(1 - FALSE_ALARM, len(EVERY) + len(CLEAN), 2 * (1 - READABLE_LEVEL))
    assert len(accused) <= most, accused


def test_the_page_names_every_one_of_them():
    page = PAGE.read_text()
    assert [name for name in (*EVERY, *CLEAN) if f"| {name} |" not in page] == []
    assert len(EVERY) >= 60


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_members_are_dropped_where_no_answer_needs_them(name, seed):
    members = people(seed, "members", MEMBERS, quantity=name in REGRESSORS)
    product = fitted((MAKERS | REGRESSORS)[name](), members)
    cleaned = clean_product(product, members, rng=np.random.default_rng())
    assert contents_of(product).with_axis(MEMBERS)
    assert not contents_of(cleaned.product).with_axis(MEMBERS)
    assert cleaned.changed.changed == 0
    assert any("dropped" in str(done) for done in cleaned.done)
    assert not cleaned.kept
