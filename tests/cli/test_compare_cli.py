"""`reticent compare` prints its answer, saves it, and refuses contradictions."""

import shlex

import pytest

from reticent.cli import _compare
from reticent.cli._options import CompareOptions, TableOptions, WorkerOptions
from reticent.errors import InvalidInput
from reticent.report import read_comparison

TREE = "sklearn.tree.DecisionTreeClassifier({})"
PAIR = (TREE.format("max_depth=12"), TREE.format("max_depth=2, min_samples_leaf=40"))


def test_what_is_printed_and_saved(tmp_path, capsys):
    def options(**changes):
        usual = {
            "subject": TableOptions(),
            "trainer": list(PAIR),
            "models": 4,
            "effort": WorkerOptions(workers=1),
            "out": tmp_path / "c",
        }
        return CompareOptions(**{**usual, **changes})

    status = _compare.run(options())
    printed = capsys.readouterr().out
    assert status in (0, 1, 3)
    assert "Differences from DecisionTreeClassifier(max_depth=12)" in printed
    saved = read_comparison((tmp_path / "c" / "comparison.json").read_text())
    assert saved.status == status
    assert (tmp_path / "c" / "comparison.html").is_file()
    assert not (tmp_path / "c" / ".unfinished").exists()
    if saved.command:
        assert shlex.split(saved.command)[:2] == ["reticent", "audit"]
    with pytest.raises(InvalidInput, match="one of the two"):
        _compare.run(options(around=PAIR[0]))
