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


def status_and_reasons(folder, made, *more):
    done = run("audit", "real.csv", "--synthetic", made, "--holdout", "others.csv", "--json", *more, *QUICK, folder=folder)  # fmt: skip
    assert done.stdout, done.stderr
    dossier = json.loads(done.stdout)
    return done.returncode, " ".join(dossier["reasons"]), dossier


def fresh(folder, seed=5):
    return people(200, np.random.default_rng(seed))


@pytest.mark.parametrize("policy", ["default", "strict"])
def test_a_table_of_real_and_held_out_people_is_refused_for_both(folder, policy):
    both = [pd.read_csv(folder / f"{name}.csv") for name in ("real", "others")]
    pd.concat(both).to_csv(folder / "made.csv", index=False)
    status, reasons, dossier = status_and_reasons(folder, "made.csv", "--policy", policy)  # fmt: skip
    assert status == 1
    assert "People said to be held out stand" in reasons
    assert dossier["evidence"]["file"]["held_out"]["seen"]


def test_a_fresh_table_with_the_real_one_in_its_metadata_is_not_released(folder):
    real, made = pd.read_csv(folder / "real.csv"), fresh(folder)
    made.attrs["made from"] = real.to_dict(orient="list")
    made.to_parquet(folder / "made.parquet")
    status, reasons, dossier = status_and_reasons(folder, "made.parquet")
    assert status == 1
    assert "the whole rows of 200 members" in reasons
    assert "holds more than its cells" in reasons
    assert dossier["evidence"]["file"]["besides"]
    # The twin: the same cells and nothing else.
    cleaned = run("clean", "made.parquet", "out.parquet", folder=folder)
    assert cleaned.returncode == 0, cleaned.stderr
    assert "an entry of the metadata" in cleaned.stdout
    status, reasons, dossier = status_and_reasons(folder, "out.parquet")
    assert status == 3
    assert "more than its cells" not in reasons
    assert not dossier["evidence"]["file"]["besides"]
    assert not dossier["evidence"]["file"]["held_out"]["seen"]


def test_a_member_alone_is_shown_by_place_and_further_files_are_named(folder):
    real, made = pd.read_csv(folder / "real.csv"), fresh(folder)
    (folder / "product").mkdir()
    both = pd.concat([made, real.iloc[:1]], ignore_index=True)
    both.to_parquet(folder / "product" / "synthetic.parquet", index=False)
    (folder / "product" / "notes.txt").write_text("Smith was here.\n")
    people(900, np.random.default_rng(9)).to_csv(folder / "more.csv", index=False)
    status, reasons, dossier = status_and_reasons(folder, "product", "--auxiliary", "more.csv")  # fmt: skip
    assert status == 3
    assert "a further file in the folder, 16 bytes" in reasons
    assert "Smith" not in json.dumps(dossier)
    assert any("whom nobody else resembles" in words for words in dossier["warnings"])
    page = " ".join((folder / "out" / "report.txt").read_text().split())
    assert "The whole record of a member whom nobody else resembles" in page
    assert "The file holds more than its cells: a further file" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["clean", "made.csv"], "reticent clean TABLE OUT"),
        (["clean", "made.csv", "made.csv"], "would replace"),
        (["clean", "made.csv", "out.txt"], "none of .csv"),
        (["clean", "made.csv", "out.csv", "--target", "ill"], "means nothing for a table"),
        (["clean", "generators.py", "out.csv"], "is no table"),
        (["clean", "none.csv", "out.csv"], "there is no file"),
    ],
)  # fmt: skip
def test_cleaning_a_table_refuses_in_one_sentence(folder, arguments, words):
    before = (folder / "made.csv").read_bytes()
    done = run(*arguments, folder=folder)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert (folder / "made.csv").read_bytes() == before


def test_cleaning_a_table_says_as_json_what_was_left_out(folder):
    made = fresh(folder).assign(town=lambda f: f["town"].astype("category").cat.add_categories(["Smith"]))  # fmt: skip
    made.to_parquet(folder / "made.parquet")
    done = run("clean", "made.parquet", "out.csv.gz", "--json", folder=folder)
    said = json.loads(done.stdout)
    assert said["table"] == "out.csv.gz"
    assert any("dictionary" in part for part in said["left_out"])
    assert "Smith" not in done.stdout
