"""Fixtures that more than one test uses."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def seed() -> int:
    """Seed of statistical tests; another one with RETICENT_TEST_SEED."""
    return int(os.environ.get("RETICENT_TEST_SEED", "42"))


@pytest.fixture
def adult_path() -> Path:
    """The Adult table, if the shared data stand beside the project."""
    path = ROOT.parent / "shared/data/adult/adult.csv.gz"
    if not path.is_file():
        pytest.skip("the shared data are not beside the project")
    return path


LONG = ("test_readme.py", "test_examples.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest, so that no process waits for another at the end."""
    items.sort(key=lambda item: item.path.name not in LONG)
