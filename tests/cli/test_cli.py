"""The command as it is typed: statuses, one-sentence refusals, JSON, resuming after a kill."""

import json
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import in_process
import jsonschema
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.dummy import DummyClassifier

from reticent.report import Dossier, dossier_schema

SHORT = ["--rounds", "1", "--workers", "1", "--pool", "0"]
LOGISTIC = ["--trainer", "sklearn.linear_model.LogisticRegression()"]
MODULE = """
import os
import time
import numpy as np
from sklearn.linear_model import LogisticRegression

class Raising(LogisticRegression):
    def fit(self, X, y):
        raise RuntimeError("the ward is closed\\nfor good")

class NotANumber(LogisticRegression):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)

class Mute(LogisticRegression):
    def predict_proba(self, X):
        raise KeyError("no such ward")

class Slow(LogisticRegression):
    def fit(self, X, y):
        if os.path.exists("slowly"):
            time.sleep(0.05)
        with open("fits", "a") as log:
            log.write("x")
        return super().fit(X, y)

def without_licence():
    raise OSError("no licence")
"""

ALL_TREES = True  # some audits are compared with those of another process


def command(*arguments):
    return [sys.executable, "-m", "reticent", *map(str, arguments)]


def run(*arguments, cwd):
    """Run the command in this process, which saves loading everything anew."""
    return in_process.run(*arguments, folder=cwd)


def run_apart(*arguments, cwd):
    """Run the command as a user would, in a process of its own and away from any terminal."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def frame(n=120):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    y = np.where(x[:, 0] + rng.normal(size=n) > 0, "ill", "well")
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(outcome=y)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the folder of every test is a copy of."""
    path = tmp_path_factory.mktemp("made")
    good = frame()
    tables = {
        "good": good,
        "one": good.assign(outcome="ill"),
        "mostly": good.assign(outcome=good["outcome"].where(good.index < 40)),
        "few": good[:30],
        "parts": good.assign(part=np.resize(["train", "test"], 120)),
    }
    for name, table in tables.items():
        table.to_csv(path / f"{name}.csv", index=False)
    (path / "empty.csv").touch()
    (path / "prose.csv").write_text("Dear all\nsee the table below\n")
    (path / "mine.py").write_text(MODULE)
    (path / "policy.toml").write_text("name = 'mine'\nprivacy = 0.9\n")
    product = DummyClassifier().fit(good[["a", "b", "c"]], good["outcome"])
    (path / "model.pkl").write_bytes(pickle.dumps(product))
    skops.io.dump(product, path / "model.skops")
    return path


@pytest.fixture
def folder(made, tmp_path):
    """A folder with a good table, a module of the user, and ways to go wrong."""
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


GOOD = {
    "table": "good.csv",
    "--target": "outcome",
    "--trainer": "sklearn.linear_model.LogisticRegression()",
    "--out": "report",
}
# What is changed in a good command (None: left out), and what the sentence must say.
BAD = {
    "no such file": ({"table": "none.csv"}, "there is no file none.csv"),
    "a strange name": ({"table": "no\nsuch.csv"}, "there is no file no such.csv"),
    "an empty file": ({"table": "empty.csv"}, "empty.csv is empty"),
    "not a table": ({"table": "prose.csv"}, "not a table"),
    "target misspelt": ({"--target": "outcom"}, "the nearest match is 'outcome'"),
    "target not said": (
        {"--target": None},
        "name the column that the model predicts with --target",
    ),
    "target without table": ({"table": None}, "no table is"),
    "one class": ({"table": "one.csv"}, "the single value 'ill'"),
    "target mostly missing": ({"table": "mostly.csv"}, "missing in 80 of 120 rows"),
    "few records": ({"table": "few.csv"}, "at least 20 are needed"),
    "unknown part": ({"table": "parts.csv", "--part": "part"}, "part column holds"),
    "trainer is code": (
        {"--trainer": "__import__('os').system('touch executed')"},
        "is not a name",
    ),
    "trainer raises": ({"--trainer": "mine:Raising"}, "the ward is closed"),
    "trainer cannot be made": ({"--trainer": "mine:without_licence"}, "no licence"),
    "trainer without probabilities": (
        {"--trainer": "sklearn.cluster.KMeans(n_clusters=2)"},
        "neither predict_proba nor decision_function",
    ),
    "regression on classes": (
        {"--trainer": "sklearn.linear_model.LinearRegression()"},
        "which is not a number",
    ),
    "NaN predictions": ({"--trainer": "mine:NotANumber"}, "NaN or infinite"),
    "product raises": ({"--trainer": "mine:Mute"}, "no such ward"),
    "policy with unknown keys": ({"--policy": "policy.toml"}, "unknown key 'privacy'"),
    "out cannot be written": ({"--out": "good.csv/below"}, "cannot be written"),
    "product is a pickle": (
        {"--trainer": None, "--product": "model.pkl"},
        "can execute any code",
    ),
    "product of unknown rows": (
        {"--trainer": None, "--product": "model.skops"},
        "name it with --part",
    ),
}


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize(("changes", "says"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_sentence_and_status_2(folder, changes, says):
    options = {k: v for k, v in {**GOOD, **changes}.items() if v is not None}
    arguments = [options.pop("table")] if "table" in options else []
    arguments += [word for option in options.items() for word in option]
    done = in_process.run("audit", *arguments, *SHORT, folder=folder)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    # Stages that were begun are told of before it.
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr
    assert says in line
    assert line.endswith(".")
    written = {path.name for path in folder.glob("report/*")}
    assert written <= {".unfinished"}
    assert not (folder / "executed").exists()


def test_simple_mistake_leaves_no_folder_behind(folder):
    run("audit", "none.csv", "--target", "y", "--out", "report", cwd=folder)
    assert not (folder / "report").exists()


@pytest.mark.parametrize("arguments", [["audit", "--rounds", "many"], ["audti"]])
def test_wrong_usage_has_status_2_too(tmp_path, arguments):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""


def test_command_line_imports_nothing_heavy():
    code = (
        "import sys, reticent.cli\n"
        "heavy = {'torch', 'pandas', 'sklearn', 'scipy', 'xgboost', 'skops', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_help_names_the_commands_and_the_statuses(tmp_path):
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("audit", "report", "policy"))
    done = run("audit", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "0 release, 1 refuse, 2 wrong usage or bad input, 3" in done.stdout


def test_policy_that_ships_can_be_copied_and_used(folder):
    text = run("policy", "default", cwd=folder).stdout
    (folder / "copy.toml").write_text(text)
    again = run("policy", "copy.toml", cwd=folder)
    assert (again.returncode, again.stdout) == (0, text)


@pytest.mark.usefixtures("few_trees")
def test_builtin_table_is_refused_and_the_report_can_be_shown_again(tmp_path):
    done = run("audit", *SHORT, "--out", "o", cwd=tmp_path)
    assert done.returncode == 1
    assert "\x1b" not in done.stderr  # lines and no bars when nobody watches
    assert "attacking: " in done.stderr
    assert done.stdout.lstrip().startswith("REFUSE")
    assert "o/report.html" in done.stdout
    assert "The audit drew the members at random" in " ".join(done.stdout.split())
    assert {p.name for p in (tmp_path / "o").iterdir()} == {
        "dossier.json",
        "report.html",
        "report.txt",
    }
    shown = run("report", "o", cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (1, "")
    assert shown.stdout.strip() in done.stdout
    assert run("report", "o/dossier.json", cwd=tmp_path).stdout == shown.stdout


def test_report_without_a_dossier_is_refused(tmp_path):
    (tmp_path / "dossier.json").write_text('{"verdict": "RELEASE"}')
    for path in (".", "nowhere"):
        done = run("report", path, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("error: ")


@pytest.mark.usefixtures("few_trees")
def test_json_is_all_there_is_and_obeys_the_schema(folder):
    arguments = ["good.csv", "--target", "outcome", *LOGISTIC, "--seed", "5"]
    done = run("audit", *arguments, *SHORT, "--json", cwd=folder)
    assert done.returncode == 3  # 60 members settle nothing
    assert done.stderr == ""
    content = json.loads(done.stdout)
    jsonschema.validate(content, dossier_schema())
    assert content["verdict"] == "INCONCLUSIVE"
    assert content["seed"] == 5
    for key in ("utility", "privacy"):
        estimate = content[key]
        assert estimate["low"] <= estimate["value"] <= estimate["high"]
    for attack in content["attacks"]:
        assert {"name", "auc", "privacy", "tpr_at_fpr"} <= attack.keys()
    assert "good.csv" in content["repeat"]
    kept = (folder / "reticent-audit" / "dossier.json").read_text()
    assert kept == done.stdout
    assert Dossier.from_json(done.stdout).to_json() == done.stdout


@pytest.mark.usefixtures("few_trees")
def test_risk_of_single_people_is_marked_and_closed_to_others(folder):
    old = folder / "risk.csv"
    old.write_text("an older file, open to all")
    old.chmod(0o644)
    arguments = ["good.csv", "--target", "outcome", *LOGISTIC, *SHORT]
    run("audit", *arguments, "--per-record", "risk.csv", cwd=folder)
    first, words, *rest = old.read_text().splitlines()
    assert first.startswith("# SENSITIVE")
    # The file says what its probabilities are worth: no forest leaks enough here, or the test's result.
    assert words.startswith("# ")
    assert "cannot be told from chance" in words or "Spiegelhalter's test" in words
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    risk = pd.read_csv(old, comment="#")
    assert list(risk.columns) == ["row", "member", "score", "privacy", "posterior"]
    assert len(risk) == len(rest) - 1 == 120
    assert risk["member"].sum() == 60
    assert risk["row"].is_unique
    assert risk["privacy"].between(0, 1).all()


@pytest.mark.usefixtures("few_trees")
def test_product_saved_by_an_audit_is_audited_with_the_same_result(folder):
    arguments = ["audit", "good.csv", "--target", "outcome", *SHORT, "--json"]
    first = json.loads(
        run(*arguments, *LOGISTIC, "--save-product", "p", cwd=folder).stdout
    )
    done = run(*arguments, "--product", "p", cwd=folder)
    again = json.loads(done.stdout)
    assert done.stderr == ""
    assert again["privacy"] == first["privacy"]
    assert again["utility"] == first["utility"]
    assert again["provenance"] == first["provenance"]
    assert again["evidence"]["insider"] is None  # there is no trainer to play it


@pytest.mark.usefixtures("few_trees")
def test_product_made_elsewhere_is_audited_by_part(folder):
    table = frame(200)
    part = np.repeat(["defender", "reserved"], 100)
    table.assign(part=part).to_csv(folder / "divided.csv", index=False)
    members = table[part == "defender"]
    product = DummyClassifier(strategy="stratified", random_state=0)
    product.fit(members[["a", "b", "c"]], members["outcome"])
    skops.io.dump(product, folder / "elsewhere.skops")
    arguments = ["divided.csv", "--target", "outcome", "--part", "part"]
    done = run(
        "audit", *arguments, "--product", "elsewhere.skops", "--json", cwd=folder
    )
    content = json.loads(done.stdout)
    assert done.returncode in (1, 3)
    assert content["records"]["defender"] == content["records"]["reserved"] == 100
    assert content["provenance"]["recipe"] == ""
    assert not content["evidence"]["blind"]["at_random"]


SLOW = [
    *("audit", "good.csv", "--target", "outcome", "--trainer", "mine:Slow"),
    *("--rounds", "8", "--workers", "1", "--minutes", "5", "--pool", "0", "--out", "o"),
]


def stop_when(folder, stage, sign):
    """Start the audit, slowly, and send it a signal once it has kept a stage."""
    (folder / "slowly").touch()
    process = subprocess.Popen(
        command(*SLOW),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that started the tests in the background made its children deaf to SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    limit = time.monotonic() + 120
    while not list((folder / "o" / ".unfinished").glob(f"{stage}*.stage")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.02)
    os.kill(process.pid, sign)
    _, error = process.communicate(timeout=60)
    (folder / "slowly").unlink()
    return process.returncode, error


@pytest.fixture(scope="module")
def killed(made, tmp_path_factory):
    """A folder whose audit was killed after the first stages of the insider; tests go on in a copy of it."""
    folder = Path(
        shutil.copytree(made, tmp_path_factory.mktemp("killed"), dirs_exist_ok=True)
    )
    status, error = stop_when(folder, "insider-replica", signal.SIGKILL)
    assert status == -signal.SIGKILL, error
    return folder


@pytest.fixture
def unfinished(killed, tmp_path):
    return Path(shutil.copytree(killed, tmp_path, dirs_exist_ok=True))


# The product, and once more for the insider; then eight rounds of three regimes. Two regimes have two trainings in each round. In the first one, two rounds check that training
# again gives the product, and the other six share that model.
ALL_TRAININGS = 2 + (2 * 2 + 6) + 2 * 8 * 2


def fits(folder):
    log = folder / "fits"
    return len(log.read_text()) if log.exists() else 0


def test_killed_audit_goes_on_where_it_was_to_the_same_digit(folder, tmp_path_factory):
    calm = tmp_path_factory.mktemp("calm")
    for name in ("good.csv", "mine.py"):
        (calm / name).write_bytes((folder / name).read_bytes())
    assert run(*SLOW, cwd=calm).returncode == 3

    unfinished = folder / "o" / ".unfinished"
    assert stop_when(folder, "blind", signal.SIGKILL)[0] == -signal.SIGKILL
    # The first round of the last regime: two rounds of the first one stand before it, and eight of the second.
    assert stop_when(folder, "retraining-10", signal.SIGKILL)[0] < 0
    assert not (folder / "o" / "dossier.json").exists()
    assert stat.S_IMODE(unfinished.stat().st_mode) == 0o700
    assert "SENSITIVE" in (unfinished / "README").read_text()
    before = fits(folder)
    assert run(*SLOW, cwd=folder).returncode == 3
    assert not unfinished.exists()
    for name in ("dossier.json", "report.html", "report.txt"):
        kept = Path("o") / name
        assert (folder / kept).read_bytes() == (calm / kept).read_bytes()
    # Of the last regime at most seven rounds were still to be played, two trainings each, and six of the first, which share a model; and the product was trained once more, because it is asked
    # about changed records.
    assert 0 < fits(folder) - before <= 21 < fits(calm)


def test_interrupted_audit_says_so_and_does_not_look_like_a_verdict(folder):
    status, error = stop_when(folder, "answers", signal.SIGINT)
    assert status == 130
    line = error.splitlines()[-1]  # after the stages
    assert "run the same command to go on" in line


@pytest.mark.usefixtures("few_trees")
@pytest.mark.slow
def test_change_of_the_users_code_is_not_answered_from_kept_stages(unfinished):
    with (unfinished / "mine.py").open("a") as module:
        module.write("\n# changed\n")
    before = fits(unfinished)
    assert run(*SLOW, cwd=unfinished).returncode == 3
    assert fits(unfinished) - before == ALL_TRAININGS  # everything anew


HELPED_SLOW = """
import helper

class Slow(Unused):
    def __init__(self, C=helper.STRENGTH):
        super().__init__(C=C)
"""


@pytest.mark.usefixtures("few_trees")
def test_change_of_a_module_that_the_users_code_imports_is_not_answered_from_kept_stages(
    folder,
):
    """A helper of the trainer's module changes between two audits of one folder, the first of them interrupted."""
    (folder / "mine.py").write_text(MODULE.replace("Slow(", "Unused(") + HELPED_SLOW)
    (folder / "helper.py").write_text("STRENGTH = 1.0\n")
    stop_when(folder, "insider-replica", signal.SIGKILL)
    before = fits(folder)
    (folder / "helper.py").write_text("STRENGTH = 1e-6\n")
    status = run(*SLOW, cwd=folder).returncode
    assert fits(folder) - before == ALL_TRAININGS  # everything anew
    other = json.loads((folder / "o" / "dossier.json").read_text())
    fresh = folder / "fresh"
    fresh.mkdir()
    for name in ("good.csv", "mine.py", "helper.py"):
        (fresh / name).write_bytes((folder / name).read_bytes())
    assert run(*SLOW, cwd=fresh).returncode == status
    again = json.loads((fresh / "o" / "dossier.json").read_text())
    assert other["privacy"] == again["privacy"]


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize(
    "damage",
    ["empty", *(pytest.param(d, marks=pytest.mark.slow) for d in ("cut", "flipped"))],
)
def test_damaged_stage_is_made_again_with_a_warning(unfinished, damage):
    (kept,) = (unfinished / "o" / ".unfinished").glob("answers*.stage")
    content = bytearray(kept.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    kept.write_bytes({"empty": b"", "cut": content[:100], "flipped": content}[damage])
    before = fits(unfinished)
    done = run(*SLOW, cwd=unfinished)
    assert done.returncode == 3, done.stderr
    warned = [line for line in done.stderr.splitlines() if kept.name in line]
    assert len(warned) == 1
    assert warned[0].startswith("warning: ")
    # The others are not: what the insider had retrained was found in the copy as well.
    assert fits(unfinished) - before < ALL_TRAININGS
