"""Fixtures that more than one test uses."""

import os

# One thread per process, set before any library reads it: `make test` keeps every core busy with a process, and threads of OpenMP that wait for
# each other on busy cores take five times the time of one alone.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

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


@contextmanager
def _few_trees() -> Generator[None, None, None]:
    from reticent.attack import _games, learned, quantile
    from reticent.attack.reader import _attack as reader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantile, "TREES", quantile.TREES // 10)
        for module, name in ((learned, "SMALL"), (reader, "SMALL"), (_games, "STEPS")):
            booster = getattr(module, name)
            patch.setattr(module, name, replace(booster, steps=booster.steps // 10))
        yield


@pytest.fixture
def few_trees() -> Generator[None, None, None]:
    """Attacks that learn with a tenth of their trees, which are most of the time of an audit of a small table.

    For tests that ask what an audit says, writes and refuses, not how much its attacks find. Other processes
    keep all of theirs.
    """
    with _few_trees():
        yield


@pytest.fixture(scope="module")
def few_trees_throughout() -> Generator[None, None, None]:
    """The same for a whole module, the audits included that several of its tests look at."""
    with _few_trees():
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


# Whether a test is the first case of its function.
IS_FIRST = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest, so that no process waits for another at the end."""

    def turn(item: pytest.Item) -> tuple[bool, int]:
        folders = [LONG_FOLDERS.index(f) for f in item.path.parts if f in LONG_FOLDERS]
        is_test = item.path.name.startswith("test_")
        last = len(LONG_FOLDERS)
        return item.path.name not in LONG, folders[0] if folders and is_test else last

    items.sort(key=turn)
    seen: set[tuple[Path, str]] = set()
    for item in items:
        function = item.path, item.nodeid.partition("[")[0]
        item.stash[IS_FIRST] = function not in seen
        seen.add(function)


# On Python 3.11 a traced test takes up to twice its time. `make test` therefore counts lines only in the tests named here, which reach
# most of them within a tenth of its time; `make coverage` counts in all. Statistical tests (those
# that take a seed) run the same lines thousands of times and are left out, and of the cases of one test only the first is counted.
MEASURED = (
    "account/test_account.py",
    "account/test_choice.py",
    "attack/synthetic",
    "attack/test_attacks.py",
    "attack/test_blind.py",
    "attack/test_dissimilar.py",
    "attack/test_distances.py",
    "attack/test_population.py",
    "attack/test_quantile.py",
    "attack/test_shadow.py",
    "attack/test_targets_attack.py",
    "attack/test_watching.py",
    "attack/test_whitebox.py",
    "cli/test_clean_cli.py",
    "cli/test_plan_cli.py",
    "cli/test_synthesize.py",
    "cli/test_table_cli.py",
    "cli/test_train_cli.py",
    "data",
    "evidence",
    "pipeline/test_advice.py",
    "pipeline/test_compare.py",
    "pipeline/test_deadline.py",
    "pipeline/test_given.py",
    "pipeline/test_held_out.py",
    "pipeline/test_verify.py",
    "policy",
    "product",
    "report",
    "train/marginals",
    "train/private/test_clipping.py",
    "train/private/test_domain.py",
    "train/private/test_release.py",
    "train/test_constraints.py",
    "train/test_engine.py",
    "train/test_losses.py",
    "train/test_retaught.py",
    "train/test_models.py",
    "train/test_spec.py",
    "train/wgan",
)


def is_measured(item: pytest.Item) -> bool:
    """Whether the lines that a test runs count as covered."""
    if os.environ.get("RETICENT_COVERAGE") == "all":
        return True
    if "seed" in getattr(item, "fixturenames", ()) or not item.stash[IS_FIRST]:
        return False
    return any(item.path.is_relative_to(ROOT / "tests" / name) for name in MEASURED)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Stop counting lines during tests that are not measured, their fixtures included."""
    coverage = sys.modules.get(
        "coverage"
    )  # not installed, or not asked for: nothing to stop
    tracing = coverage.Coverage.current() if coverage else None
    if tracing is None or is_measured(item):
        return (yield)
    tracing.stop()
    try:
        return (yield)
    finally:
        tracing.start()
