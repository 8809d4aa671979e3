"""Experiments are written as users would write them: they import documented names only."""

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "experiments").glob("*/*.py"))


def _reference():
    place = ROOT / "docs" / "make_reference.py"
    spec = importlib.util.spec_from_file_location("make_reference", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def undocumented(source, documented):
    """Return what a script imports from the package that no page of the reference lists."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("reticent"):
            names = documented.get(node.module, set())
            found += [
                f"{node.module}.{a.name}" for a in node.names if a.name not in names
            ]
        if isinstance(node, ast.Import):
            found += [
                a.name
                for a in node.names
                if a.name.startswith("reticent.") and a.name not in documented
            ]
    return found


@pytest.fixture(scope="module")
def documented():
    reference = _reference()
    return {module: set(reference._public(module)) for module in reference.MODULES}


@pytest.mark.parametrize(
    "script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_experiments_import_documented_names(script, documented):
    assert undocumented(script.read_text(encoding="utf-8"), documented) == []


def test_a_name_that_is_not_documented_is_found(documented):
    script = "from reticent.train.stacking import Cohort\nfrom reticent.train import SGD, batch_order\nimport reticent.train.engine\n"
    assert undocumented(script, documented) == [
        "reticent.train.stacking.Cohort",
        "reticent.train.batch_order",
        "reticent.train.engine",
    ]
