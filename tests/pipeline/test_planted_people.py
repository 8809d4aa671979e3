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

from reticent.product import clean_product, contents_of

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
    """One file in a thousand is accused falsely; of these none was with any seed that was tried."""
    found = planted(name, tmp_path, seed, about="others")
    assert not found.is_broken, found.sentence
    assert bool(found.file.unread) == (name in PICKLES)
    assert found.file.held_out is None or not found.file.held_out.seen


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
