"""The README's examples run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language):
    found = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert len(found) == 1
    return found[0]


def test_the_python_example_is_five_lines_and_prints_what_it_says():
    code = block("python")
    assert sum(bool(line.strip()) for line in code.splitlines()) == 5
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    shown = re.search(r"```\n(REFUSE.*?)\n  \.\.\.", README, re.DOTALL).group(1)
    assert done.stdout.startswith(shown)


def test_the_command_line_example_is_five_lines_and_runs(tmp_path):
    frame = load_breast_cancer(as_frame=True).frame.rename(columns={"target": "ill"})
    frame.to_csv(tmp_path / "people.csv", index=False)
    lines = block("sh").strip().splitlines()
    assert len(lines) == 5
    for line in lines:
        command = re.sub(
            r"^reticent", f"{sys.executable} -m reticent", line.split(" #")[0].strip()
        )
        if " audit" in command:  # as it stands, but in less time
            command += " --minutes 0.2"
        done = subprocess.run(
            command,
            shell=True,
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode in (0, 1, 3), done.stderr
        said = done.stderr.splitlines()
        assert not [s for s in said if s.startswith(("error", "warning"))]
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
