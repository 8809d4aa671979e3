"""`reticent audit --synthetic`: what it writes, what it refuses, and what a stranger's file may do."""

import json
import os
import pickle

import numpy as np
import pandas as pd
import pytest
from in_process import run

from made_tables import copied, people

QUICK = ["--workers", "1", "--out", "out"]
AUDIT = ["audit", "real.csv", "--synthetic", "made.csv", "--holdout", "others.csv"]
GENERATOR = """
import pathlib
import numpy as np
import pandas as pd

pathlib.Path("imported").touch()


def make(frame, rows, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({c: rng.choice(frame[c].to_numpy(), rows) for c in frame})


def broken(frame, rows, seed):
    raise KeyError(frame.iloc[0].to_dict())
"""


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    real = people(200, rng)
    real.to_csv(folder / "real.csv", index=False)
    people(400, rng).to_csv(folder / "others.csv", index=False)
    copied(real, rng).to_csv(folder / "made.csv", index=False)
    (folder / "generators.py").write_text(GENERATOR)
    return folder


@pytest.fixture
def folder(good, tmp_path):
    for file in good.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_a_copied_table_ends_with_status_1_and_a_report(folder):
    done = run(*AUDIT, "--json", *QUICK, folder=folder)
    assert done.returncode == 1, done.stderr
    dossier = json.loads(done.stdout)
    assert (dossier["verdict"], dossier["kind"]) == ("REFUSE", "synthetic_table")
    page = (folder / "out" / "report.html").read_text()
    assert "May this synthetic table be released?" in page
    # Nothing of the user's is imported unasked.
    assert not (folder / "imported").exists()
    checked = run("verify", "out", "made.csv", folder=folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    again = run("report", "out", folder=folder)
    assert again.returncode == 1
    assert "Who is exposed, and by what" in again.stdout


def test_without_a_holdout_it_is_inconclusive(folder):
    done = run("audit", "real.csv", "--synthetic", "made.csv", folder=folder)
    assert done.returncode == 3
    assert "there is nobody to compare with" in done.stderr
    assert "--holdout" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["audit", "--synthetic", "made.csv"], "not the real one"),
        (["audit", "real.csv", "--target", "ill", "--holdout", "others.csv"], "belongs to the audit of a synthetic table"),
        (["audit", "real.csv", "--target", "ill", "--generator", "generators:make"], "belongs to the audit of a synthetic table"),
        ([*AUDIT, "--trainer", "GaussianNB()"], "belongs to the audit of a model"),
        ([*AUDIT, "--product", "made.csv"], "belongs to the audit of a model"),
        ([*AUDIT, "--repair"], "belongs to the audit of a model"),
        ([*AUDIT, "--pool", "4"], "no generator to make it"),
        ([*AUDIT, "--generator", "generators:absent"], "has no function 'absent'"),
        ([*AUDIT, "--generator", "absent:make"], "cannot be imported"),
        ([*AUDIT, "--generator", "make()"], "as module:function"),
        ([*AUDIT, "--target", "income"], "no column 'income'"),
        ([*AUDIT, "--unit", "who"], "no column 'who'"),
        ([*AUDIT, "--part", "sex"], "given twice"),
        ([*AUDIT[:3], "absent.csv", *AUDIT[4:]], "absent.csv"),
        ([*AUDIT[:5], "absent.csv"], "absent.csv"),
        ([*AUDIT, "--auxiliary", "absent.csv"], "absent.csv"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else "",
)  # fmt: skip
def test_wrong_usage_is_one_sentence(folder, arguments, words):
    done = run(*arguments, *QUICK, folder=folder)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr


class _Evil:
    def __reduce__(self):
        return os.system, ("touch marker",)


@pytest.mark.parametrize("option", ["--synthetic", "--holdout", "--auxiliary"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("evil.csv", b""),
        ("evil.csv", pickle.dumps(_Evil())),
        ("evil.csv", b"age,age\n1,2\n" * 30),
        ("evil.csv", b"\xff\xfea\x00,\x00"),
        ("evil.csv", b"a;b\n1;2\n" * 30),
        ("evil.parquet", b"PAR1" + b"\0" * 40 + b"PAR1"),
        ("evil.parquet", pickle.dumps(_Evil())),
        ("evil.pkl", pickle.dumps(_Evil())),
    ],
)
def test_a_strangers_table_is_parsed_and_never_run(folder, option, name, content):
    (folder / name).write_bytes(content)
    arguments = [*AUDIT, "--auxiliary", "others.csv"]
    arguments[arguments.index(option) + 1] = name
    done = run(*arguments, *QUICK, folder=folder)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("error:") == 1
    assert not (folder / "marker").exists()
    assert "Traceback" not in done.stderr


def test_names_in_a_table_steer_nothing(folder):
    escapes = "\x1b]0;owned\x07<script>alert(1)</script>\u202eevil"
    for name in ("real.csv", "made.csv", "others.csv"):
        frame = pd.read_csv(folder / name).rename(columns={"town": escapes})
        frame.to_csv(folder / name, index=False)
    done = run(*AUDIT, *QUICK, folder=folder)
    assert done.returncode == 1, done.stderr
    page = (folder / "out" / "report.html").read_text()
    assert "<script>alert" not in page
    assert "\u202e" not in page + done.stdout
    assert "\x1b]0" not in done.stdout + done.stderr


def test_a_generator_that_fails_tells_no_cell(folder):
    command = [*AUDIT, "--generator", "generators:broken", "--pool", "4", *QUICK]
    done = run(*command, folder=folder)
    assert done.returncode == 2
    assert "failed with KeyError" in done.stderr
    assert "town " not in done.stderr


CRITIC = """
import pandas as pd


def by_heart(frame):
    known = set(pd.read_csv("real.csv")["age"])
    return frame["age"].isin(known).to_numpy(float)
"""


def test_a_critic_is_named_and_asked(folder):
    (folder / "critics.py").write_text(CRITIC)
    done = run(*AUDIT, "--critic", "critics:by_heart", "--json", *QUICK, folder=folder)
    assert done.returncode == 1, done.stderr
    attacks = {a["name"]: a for a in json.loads(done.stdout)["attacks"]}
    assert attacks["critic"]["family"] == "looks inside"
    assert attacks["critic"]["auc"]["low"] > 0.9
