"""Fixtures that more than one test uses."""

import os

# One thread per process, set before any library reads it: `make test` keeps every core busy with a process, and threads of OpenMP that wait for
# each other on busy cores take five times the time of one alone.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]

# No test asserts a time: a busy machine is no fault of the code.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def owner(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path, None, None]:
    """A folder for the owner's key, so that tests neither read nor write that of whoever runs them; and a clock that stands still."""
    folder = tmp_path_factory.mktemp("owner")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RETICENT_HOME", str(folder))
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        yield folder


@pytest.fixture(scope="session", autouse=True)
def one_core() -> Generator[None, None, None]:
    """One process per audit unless a test asks for more: `make test` keeps every core busy, and each process takes seconds to start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        yield


# Rooms whose tests ask what an audit says, writes and refuses, not how much its attacks find.
ABOUT_WORDS = ("cli", "docs", "extension", "pipeline", "report", "test_examples.py")  # fmt: skip


@cache
def _learners() -> tuple[tuple[ModuleType, str, Any], ...]:
    """Return everything that attacks and judges learn with, as it is meant to be."""
    from reticent.attack import _games, learned, quantile
    from reticent.attack.blind import _baseline as blind
    from reticent.attack.reader import _attack as reader
    from reticent.train import judges

    where = [(quantile, "TREES"), (judges, "TREES"), (blind, "TREES"), (learned, "SMALL"), (reader, "SMALL"), (_games, "STEPS")]  # fmt: skip
    return tuple((module, name, getattr(module, name)) for module, name in where)


@contextmanager
def _trees(divisor: int) -> Generator[None, None, None]:
    """Let attacks and judges learn with a part of their trees."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, all_of_it in _learners():
            if isinstance(all_of_it, int):
                fewer: Any = all_of_it // divisor
            else:
                fewer = replace(all_of_it, steps=all_of_it.steps // divisor)
            patch.setattr(module, name, fewer)
        yield


@pytest.fixture(scope="module", autouse=True)
def trees_of_the_room(request: pytest.FixtureRequest) -> Generator[None, None, None]:
    """A tenth of the trees for tests about words: they are most of the time of an audit of a small table.

    Other processes keep all of theirs; a module that compares with them says ``ALL_TREES = True``.
    """
    about_words = set(request.path.relative_to(ROOT).parts) & set(ABOUT_WORDS)
    keeps_all = getattr(request.module, "ALL_TREES", False)
    with _trees(10 if about_words and not keeps_all else 1):
        yield


@pytest.fixture
def few_trees() -> Generator[None, None, None]:
    """The same for a test of another room, or of a module that keeps all."""
    with _trees(10):
        yield


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
# Whole audits first. Processes take a module at a time, so that what its tests share is made once, and short modules at the end leave nobody waiting.
LONG_FOLDERS = ("pipeline", "cli", "extension", "product", "attack", "report", "train")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest, so that no process waits for another at the end."""

    def turn(item: pytest.Item) -> tuple[bool, int]:
        folders = [LONG_FOLDERS.index(f) for f in item.path.parts if f in LONG_FOLDERS]
        is_test = item.path.name.startswith("test_")
        last = len(LONG_FOLDERS)
        return item.path.name not in LONG, folders[0] if folders and is_test else last

    items.sort(key=turn)
