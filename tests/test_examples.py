"""Every example runs."""

import contextlib
import io
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
# Run by tests/cli/test_identify_cli.py, which also audits the model that it saves.
ELSEWHERE = {"opacus_model"}


def test_there_are_examples():
    assert len(EXAMPLES) >= 3
    assert {example.stem for example in EXAMPLES} > ELSEWHERE


@pytest.mark.parametrize(
    "example",
    [example for example in EXAMPLES if example.stem not in ELSEWHERE],
    ids=lambda path: path.stem,
)
def test_it_runs_and_says_something(example, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(example)])
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        runpy.run_path(str(example), run_name="__main__")
    assert said.getvalue().strip()
