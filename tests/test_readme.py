"""The README's examples run as they stand there."""

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

sys.path.insert(0, str(Path(__file__).parent / "cli"))
import in_process

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language):
    found = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert len(found) == 1
    return found[0]


def test_the_python_example_is_five_lines_and_prints_what_it_says(monkeypatch):
    # One round of the insider in place of all that the time allows: it stands behind what the README shows.
    monkeypatch.setattr(
        "reticent.pipeline._insider.plan_rounds", lambda *_, **__: np.ones(3, dtype=int)
    )
    code = block("python")
    assert sum(bool(line.strip()) for line in code.splitlines()) == 5
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(code, "README.md", "exec"), {})
    shown = re.search(r"```\n(REFUSE.*?)\n  \.\.\.", README, re.DOTALL).group(1)
    assert said.getvalue().startswith(shown)


@pytest.mark.usefixtures("few_trees")
def test_the_command_line_example_is_five_lines_and_runs(tmp_path):
    frame = load_breast_cancer(as_frame=True).frame.rename(columns={"target": "ill"})
    frame.to_csv(tmp_path / "people.csv", index=False)
    lines = block("sh").strip().splitlines()
    assert len(lines) == 5
    for line in lines:
        command, _, file = line.split(" #")[0].partition(" > ")
        name, *words = shlex.split(command)
        assert name == "reticent"
        if words[0] == "audit":  # as it stands, but in less time
            words += ["--minutes", "0.02"]
        done = in_process.run(*words, folder=tmp_path)
        assert done.returncode in (0, 1, 3), done.stderr
        said = done.stderr.splitlines()
        assert not [s for s in said if s.startswith(("error", "warning"))]
        if file:
            (tmp_path / file.strip()).write_text(done.stdout)
    assert (tmp_path / "first" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "second" / "dossier.json").is_file()


@pytest.mark.parametrize(
    "target", ["demo", "test", "test-all", "check", "bench", "docs"]
)
def test_the_makefile_has_the_words_people_use(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_file_the_readme_points_at_exists():
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link).exists(), link
