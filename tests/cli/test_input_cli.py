"""The command line on ordinary and odd tables: an audit, or one sentence and exit status 2."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from in_process import run

import reticent
from reticent.run import stream

# What is asked here is what is said, written and refused.

N = 120
QUICK = ("--rounds", "1", "--pool", "0", "--workers", "1")


def frame(**columns):
    rng = stream(0, "input")
    y = rng.integers(2, size=N)
    return pd.DataFrame(
        {"a": rng.normal(size=N) + y, **columns, "ill": np.where(y, "yes", "no")}
    )


def audit(folder, table, *options):
    table.to_csv(folder / "t.csv", index=False)
    command = ("audit", "t.csv", "--target", "ill", "--out", "out", *QUICK, *options)
    return run(*command, folder=folder)


def test_the_version_is_printed(tmp_path):
    done = run("--version", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"reticent {reticent.__version__}\n")


def test_columns_are_left_out_and_listed_before_training(tmp_path):
    table = frame(name=[f"n{k}" for k in range(N)], copy=np.arange(N) % 7)
    options = ("--trainer", "LogisticRegression()", "--drop", "name", "--drop", "copy")
    done = audit(tmp_path, table, *options)
    assert done.returncode == 3
    lines = done.stderr.splitlines()
    listed = next(k for k, line in enumerate(lines) if "1 numeric ('a');" in line)
    trained = next(k for k, line in enumerate(lines) if line.startswith("training"))
    assert listed < trained
    assert "note: left out as asked: 'name', 'copy'." in lines
    dossier = json.loads((tmp_path / "out/dossier.json").read_text())
    names = [finding["name"] for finding in dossier["findings"]]
    assert names[:2] == ["columns", "left_out"]
    assert "1 numeric ('a')" in (tmp_path / "out/report.txt").read_text().replace(
        "\n", " "
    )
    wrong = audit(tmp_path, table, "--drop", "nam")
    assert wrong.returncode == 2
    assert "no column 'nam' to leave out; the nearest match is 'name'" in wrong.stderr


def test_a_piped_run_prints_its_stages_and_json_prints_nothing_else(tmp_path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    command = [sys.executable, "-m", "reticent", "audit", "t.csv", "--target", "ill"]
    command += ["--trainer", "GaussianNB()", "--out", "out", *QUICK]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1, 3)
    stages = [line.partition(":")[0] for line in done.stderr.splitlines()]
    order = [
        stages.index(s)
        for s in ("checking the data", "training the product", "attacking")
    ]
    assert order == sorted(order)
    assert "\x1b" not in done.stderr  # no bars in a log
    quiet = run(*command[3:], "--json", folder=tmp_path)
    assert quiet.stderr == ""
    json.loads(quiet.stdout)


POOR = {
    "missing": np.full(N, np.nan),
    "constant": np.full(N, 3.5),
    "one": np.r_[7.0, np.full(N - 1, np.nan)],
    "huge": np.resize([1e37, -1e37], N),
    "text": np.full(N, "always"),
    "absent": np.resize(["", "NA"], N),
    "large": np.arange(N) + 2**62,
}


# All in one table; and each alone, because the others might hide that one cannot be audited.
@pytest.mark.parametrize(
    "columns",
    [POOR, *(pytest.param({n: c}, marks=pytest.mark.slow) for n, c in POOR.items())],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "trainer",
    [
        "RandomForestClassifier(n_estimators=5)",
        pytest.param("LogisticRegression()", marks=pytest.mark.slow),
    ],
)
def test_poor_columns_are_audited(tmp_path, columns, trainer):
    done = audit(tmp_path, frame(**columns), "--trainer", trainer, "--json")
    assert done.returncode in (0, 1, 3), done.stderr
    assert not json.loads(done.stdout)["evidence"]["failed"]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (np.resize([1e39, 1.0], N), "'b' holds numbers as large as 1e+39"),
        (np.resize([np.inf, 1.0], N), "'b' holds infinite values"),
        (np.resize([-1e300, 1.0], N), "'b' holds numbers as large as 1e+300"),
    ],
)
def test_unusable_numbers_are_refused_in_one_sentence(tmp_path, column, sentence):
    done = audit(tmp_path, frame(b=column))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_copied_target_under_its_own_name_is_no_feature(tmp_path):
    table = frame(b=frame()["ill"]).rename(columns={"b": "ill"})
    done = audit(tmp_path, table)
    assert done.returncode == 2
    assert "two columns called 'ill'" in done.stderr


@pytest.mark.slow
def test_a_wide_table_is_audited_in_minutes(tmp_path):
    wide = pd.DataFrame(stream(0, "wide").normal(size=(N, 5_000)).round(3)).add_prefix(
        "c"
    )
    done = audit(
        tmp_path, wide.assign(ill=frame()["ill"]), "--minutes", "0.5", "--json"
    )
    assert done.returncode in (0, 1, 3), done.stderr


def test_the_line_that_audits_a_trained_product_drops_the_same_columns(tmp_path):
    pytest.importorskip("torch")
    table = frame(name=[f"n{k}" for k in range(N)])
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run(
        *("train", "t.csv", "--target", "ill", "--drop", "name", "--belief", "0.9"),
        *("--epochs", "1", "--out", "product"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "1 numeric ('a')" in done.stderr
    assert "--drop name" in done.stdout.replace("\n", " ")
