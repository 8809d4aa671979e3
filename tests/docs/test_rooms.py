"""A test may open its own room: private names of a package are imported by the tests of that package alone."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# What pytest shares between rooms stands in conftest.py.
FILES = sorted(set(TESTS.rglob("*.py")) - set(TESTS.rglob("conftest.py")))


def foreign(source: str, room: str) -> list[str]:
    """Return the private names of other packages that the source of a test imports."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    own = f"reticent.{room}."
    return [
        name
        for name in names
        if name.startswith("reticent.")
        and any(part.startswith("_") for part in name.split("."))
        # Tests beside the rooms are of modules beside the rooms, such as reticent._codec.
        and not (name.startswith(own) if room else name.split(".")[1].startswith("_"))
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_tests_open_no_room_but_their_own(path):
    room = "" if path.parent == TESTS else path.relative_to(TESTS).parts[0]
    assert foreign(path.read_text(encoding="utf-8"), room) == []


def test_a_door_that_was_opened_is_noticed():
    source = "from reticent.train._plain import PlainTrainer\nfrom reticent.train import SGD\nfrom reticent.cli import _compare\nimport reticent._codec\n"
    assert foreign(source, "cli") == [
        "reticent.train._plain.PlainTrainer",
        "reticent._codec",
    ]
    assert foreign(source, "")[-1] == "reticent.cli._compare"
