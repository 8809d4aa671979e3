"""`reticent synthesize` from the file to the file, and what it refuses."""

import json
import shlex
import stat
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from in_process import run

from reticent import verify
from reticent.pipeline import SynthesisPlan, must_be_writable
from reticent.product import load_synthetic
from reticent.report import Dossier
from reticent.train import load_critic
from reticent.train.wgan.noise import Source


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    n = 1_500
    age = rng.integers(18, 90, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "city": rng.choice(["Bonn", "Ulm"], n),
            "smokes": rng.random(n) < 0.3,
            "who": np.arange(n) // 2,
            "ill": np.where(rng.random(n) < age / 120, "yes", "no"),
        }
    )  # fmt: skip
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.toml").write_text(
        '[columns]\nage = "numeric"\nsince = "date"\ncity = "categorical"\nsmokes = "boolean"\nill = "categorical"\n'
    )
    (tmp_path / "partial.toml").write_text("[numbers]\nage = [0, 120]\n")
    return tmp_path


def test_a_table_is_made_with_its_guarantee_beside_it(folder):
    done = run(
        "synthesize", "people.csv", "--target", "ill", "--drop", "who", "--schema", "schema.toml", "--epsilon", "3", "--out", "made.csv", "--no-audit", "--json",
        folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    made = load_synthetic(folder / "made.csv")
    assert len(made) == said["rows"]
    assert list(made.frame.columns) == ["age", "since", "city", "smokes", "ill"]
    assert pd.api.types.is_integer_dtype(made.frame["age"])
    assert pd.to_datetime(made.frame["since"]).dt.year.between(2018, 2025).all()
    assert set(made.frame["smokes"].dropna().map(str)) <= {"True", "False"}
    stated = made.provenance.guarantee
    assert stated is not None
    assert stated.holds
    assert 2.9 < stated.epsilon <= 3
    assert not stated.witnessed
    assert made.provenance.recipe.startswith("reticent.MarginalGenerator(")
    assert said["audit"] is None
    assert not (folder / "made.csv.unfinished").exists()
    # The exact number of rows stands nowhere.
    assert "1,500" not in (folder / "made.csv.provenance.json").read_text()


def test_a_generator_with_a_critic_is_a_method_like_the_others(folder, monkeypatch):
    recipe = SynthesisPlan.generator
    monkeypatch.setattr(SynthesisPlan, "generator", lambda plan: replace(recipe(plan), steps=50))  # fmt: skip
    done = run(
        "synthesize", "people.csv", "--method", "wgan", "--unit", "who", "--rows-per-person", "2", "--schema", "schema.toml", "--epsilon", "8",
        "--rows", "60", "--out", "made.csv", "--no-audit", "--constraint", "age >= 30", "--json",
        folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = load_synthetic(folder / "made.csv")
    assert list(made.frame.columns) == ["age", "since", "city", "smokes", "ill"]
    assert len(made) == 60
    assert (made.frame["age"].dropna() >= 30).all()
    stated = made.provenance.guarantee
    assert stated is not None
    assert stated.holds
    assert 7.9 < stated.epsilon <= 8
    assert "up to 2 rows" in stated.mechanism
    assert made.provenance.recipe.startswith("reticent.WassersteinGenerator(")


def test_the_critic_is_released_with_the_table_and_attacked_with_it(
    folder, monkeypatch
):
    """Epsilon covers both together, and the audit says so; of a critic that says nothing of the table it says the opposite."""
    recipe = SynthesisPlan.generator
    monkeypatch.setattr(SynthesisPlan, "generator", lambda plan: replace(recipe(plan), steps=20))  # fmt: skip
    people = pd.read_csv(folder / "people.csv")[["age", "smokes", "ill"]][:600]
    people["part"] = np.resize(["defender", "reserved", "auxiliary"], len(people))
    people.to_csv(folder / "parts.csv", index=False)
    command = ["synthesize", "parts.csv", "--part", "part", "--epsilon", "8", "--no-audit", "--out", "made.csv"]  # fmt: skip
    refused = run(*command, "--critic", "critic", folder=folder)
    assert refused.returncode == 2
    assert "the method 'auto' trains none" in refused.stderr
    done = run(*command, "--method", "wgan", "--critic", "critic", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "--critic critic" in done.stdout
    load_critic(folder / "critic").save(folder / "of_nothing")
    for file, severity, words in (
        ("critic", "note", "if that is so, the epsilon of the table covers both"),
        ("of_nothing", "warning", "the epsilon of the table does not cover it"),
    ):
        audit = ["audit", "parts.csv", "--part", "part", "--synthetic", "made.csv", "--critic", file, "--pool", "0", "--watch", "0", "--json"]  # fmt: skip
        done = run(*audit, "--workers", "1", folder=folder)
        assert done.returncode in (0, 1, 3), done.stderr
        dossier = json.loads(done.stdout)
        finding = next(f for f in dossier["findings"] if f["name"] == "critic_released")
        assert finding["severity"] == severity
        assert words in finding["text"]
        assert "critic" in {attack["name"] for attack in dossier["attacks"]}


def test_an_interrupted_training_goes_on(folder, monkeypatch):
    """The same command again makes only the steps that are left, and ends in a table."""
    recipe, release, released = SynthesisPlan.generator, Source.release, []
    monkeypatch.setattr(SynthesisPlan, "generator", lambda plan: replace(recipe(plan), steps=70))  # fmt: skip

    def interrupted(source, sums, allotment):
        if len(released) == 60:
            released.clear()
            raise KeyboardInterrupt
        released.append(sums)
        return release(source, sums, allotment)

    monkeypatch.setattr(Source, "release", interrupted)
    command = ["synthesize", "people.csv", "--method", "wgan", "--drop", "who", "--schema", "schema.toml", "--epsilon", "8", "--out", "made.csv", "--no-audit"]  # fmt: skip
    assert run(*command, folder=folder).returncode == 130
    assert not (folder / "made.csv").exists()
    left = folder / "made.csv.unfinished"
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    done = run(*command, folder=folder)
    assert done.returncode == 0, done.stderr
    assert len(released) == 20
    assert len(load_synthetic(folder / "made.csv")) > 500
    assert not left.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "exactly one target"),
        (["--epsilon", "0"], "epsilon"),
        (["--epsilon", "-1"], "epsilon must be positive"),
        (["--epsilon", "nan"], "epsilon must be positive and finite"),
        (["--epsilon", "inf"], "epsilon must be positive and finite"),
        (["--epsilon", "1000"], "at most 100"),
        (["--epsilon", "1e-9", "--drop", "who"], "but noise"),
        (["--epsilon", "3", "--delta", "0"], "delta"),
        (["--epsilon", "3", "--delta", "2"], "delta"),
        (["--epsilon", "3", "--belief", "0.9"], "exactly one target"),
        (["--belief", "0.5"], "even without a release"),
        (["--advantage", "1e-7", "--drop", "who"], "leaves nothing of a table"),
        (["--epsilon", "3", "--part", "city"], "calls nobody 'defender'"),
        (["--epsilon", "3", "--unit", "nobody"], "no column 'nobody'"),
        (["--epsilon", "3", "--domain", "none.toml"], "none.toml"),
        (["--epsilon", "3", "--domain", "partial.toml", "--no-audit"], "does not declare the column 'since'"),
        (["--epsilon", "3", "--out", "none/made.csv"], "cannot be written"),
        (["--epsilon", "3", "--unit", "who"], "--rows-per-person"),
        (["--epsilon", "3", "--method", "gan"], "not known"),
        (["--epsilon", "3", "--out", "made.xlsx"], "end it in .csv"),
        (["--epsilon", "3", "--target", "x"], "no column 'x'"),
        (["--epsilon", "0.0001", "--drop", "who"], "--drop"),
        (["--epsilon", "3", "--held-out", "1"], "--no-audit"),
        (["--epsilon", "3", "--held-out", "0.01"], "--no-audit"),
        (["--epsilon", "3", "--policy", "none.toml"], "none.toml"),
        (["--epsilon", "3", "--memory", "0.01", "--rows", "900000"], "--memory"),
        (["--epsilon", "3", "--method", "wgan", "--memory", "0.5", "--rows", "9000000"], "fewer --rows"),
        (["--epsilon", "3", "--method", "wgan", "--memory", "0.01"], "more --memory"),
        (["--epsilon", "3", "--constraint", "age <= size"], "no such column"),
        (["--epsilon", "3", "--constraint", "age > 90", "--constraint", "age < 80"], "cannot hold together"),
        (["--epsilon", "3", "--constraint", "city < age"], "holds categories"),
        (["--epsilon", "3", "--constraint", "age"], "cannot be read"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_one_sentence(folder, arguments, words):
    done = run("synthesize", "people.csv", *arguments, folder=folder)
    assert done.returncode == 2
    *_, error = done.stderr.strip().splitlines()
    assert error.startswith("error: ")
    assert words in error
    assert not (folder / "synthetic.csv").exists()


@pytest.mark.parametrize("command", [["synthesize", "people.csv", "--epsilon", "3", "--report"], ["audit", "people.csv", "--out"]], ids=lambda c: c[0])  # fmt: skip
def test_input_that_is_refused_leaves_no_folder(folder, command):
    done = run(*command, "some/where", "--target", "nobody", folder=folder)
    assert done.returncode == 2
    assert "no column 'nobody'" in done.stderr
    assert not (folder / "some").exists()


def test_a_folder_that_was_there_stays(tmp_path):
    (tmp_path / "here").mkdir()
    for folder in (tmp_path / "here", tmp_path / "new" / "deep"):
        must_be_writable(folder)
    assert [f.name for f in tmp_path.iterdir()] == ["here"]
    assert not list((tmp_path / "here").iterdir())
    must_be_writable(tmp_path / "own", private=True)
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700


BAD_COLUMNS = {
    "a million categories": (lambda n: [f"{k * 7919 % 999_983:06d}x" for k in range(n)], "frequent enough"),
    "free text": (lambda n: [f"The patient, number {k}, came in with a cough." for k in range(n)], "free text"),
    "all missing": (lambda n: [""] * n, "empty"),
}  # fmt: skip


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "as it is"])
@pytest.mark.parametrize("method", ["auto", "wgan"])
@pytest.mark.parametrize(("column", "words"), BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_a_column_that_cannot_be_imitated_is_one_sentence(
    folder, column, words, method, declared
):
    n = 1_500
    frame = pd.DataFrame({"age": np.arange(n) % 70 + 18, "note": column(n)})
    frame.to_csv(folder / "people.csv", index=False)
    (folder / "notes.toml").write_text(
        '[columns]\nage = "numeric"\nnote = "categorical"\n'
    )
    # Secret noise hears something in an empty column once in sixty times.
    arguments = ["--epsilon", "3", "--method", method, "--no-audit", "--seeded"]
    if declared:
        arguments += ["--schema", "notes.toml"]
    done = run("synthesize", "people.csv", *arguments, folder=folder)
    assert done.returncode == 2
    *_, error = done.stderr.strip().splitlines()
    assert error.startswith("error: ")
    assert words in error
    assert not (folder / "synthetic.csv").exists()


def test_a_million_categories_are_one_sentence(folder):
    """As many as there are people; quickly, because nobody should wait for a refusal."""
    n = 1_000_000
    frame = pd.DataFrame({"age": np.arange(n) % 70, "code": np.arange(n)})
    frame["code"] = "x" + frame["code"].astype(str)
    frame.to_parquet(folder / "codes.parquet")
    done = run("synthesize", "codes.parquet", "--epsilon", "3", folder=folder)
    assert done.returncode == 2
    *_, error = done.stderr.strip().splitlines()
    assert error.startswith("error: no value of the column 'code' is frequent enough")
    assert not (folder / "synthetic.csv").exists()


def test_an_empty_file_and_a_table_of_nothing_are_one_sentence(folder):
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("age,ill\n")
    (folder / "missing.csv").write_text("age,ill\n" + ",\n" * 300)
    for name, words in (
        ("empty.csv", "is empty"),
        ("header.csv", "has 0 rows"),
        ("missing.csv", "is empty or the budget is too small"),
    ):
        done = run("synthesize", name, "--epsilon", "3", "--no-audit", "--seeded", folder=folder)  # fmt: skip
        assert done.returncode == 2
        *_, error = done.stderr.strip().splitlines()
        assert error.startswith("error: ")
        assert words in error


@pytest.mark.parametrize(
    ("rows", "arguments", "words"),
    [
        (1, ["--no-audit"], "fewer than 100 rows"),
        (60, ["--no-audit"], "fewer than 100 rows"),
        (60, ["--no-audit", "--method", "wgan"], "fewer than 100 rows"),
        (120, [], "too few to audit"),
        (150, ["--no-audit", "--epsilon", "0.05", "--method", "wgan"], "budget"),
        (150, ["--no-audit", "--epsilon", "0.05"], "budget"),
    ],
)
def test_too_few_rows_are_one_sentence(folder, rows, arguments, words):
    frame = pd.read_csv(folder / "people.csv")[["age", "city"]]
    frame[:rows].to_csv(folder / "few.csv", index=False)
    risk = [] if "--epsilon" in arguments else ["--epsilon", "3"]
    done = run("synthesize", "few.csv", *risk, *arguments, folder=folder)
    assert done.returncode == 2
    *_, error = done.stderr.strip().splitlines()
    assert error.startswith("error: ")
    assert words in error


def test_a_table_is_judged_by_people_who_were_held_out(folder, monkeypatch):  # fmt: skip
    """One command from the file to the verdict, whose status is that of the verdict."""
    for room in ("pipeline._held_out", "cli._synthesize"):
        monkeypatch.setattr(f"reticent.{room}.SHADOWS", 4)
    monkeypatch.setattr("reticent.pipeline._reruns.MOST_RUNS", 20)
    people = pd.read_csv(folder / "people.csv")[["age", "smokes", "ill"]][:1000]
    people.to_csv(folder / "small.csv", index=False)
    done = run(
        "synthesize", "small.csv", "--target", "ill", "--epsilon", "3", "--constraint", "age >= 18", "--workers", "1", "--held-out", "0.3",
        "--report", "judged", "--json",
        folder=folder,
    )  # fmt: skip
    said = json.loads(done.stdout)
    dossier = Dossier.from_json((folder / "judged" / "dossier.json").read_text())
    assert done.returncode == dossier.decision.exit_status
    assert said["audit"]["verdict"] == str(dossier.verdict)
    made = load_synthetic(folder / "synthetic.csv")
    assert (made.frame["age"] >= 18).all()
    # About 70 % of the people were used, and the noisy number says no more than that.
    assert 600 < len(made) < 800
    spends = [f for f in dossier.findings if f.name == "choosing_spends"]
    assert "spends privacy" in spends[0].text
    price = dossier.evidence.utility
    (real,) = price.beside.values()
    assert real.low <= real.value <= real.high
    assert said["audit"]["utility"]["value"] == price.gain.value
    assert made.provenance.split["by"] == "held out"
    assert not (folder / "judged" / ".unfinished").exists()
    about = verify(folder / "judged", folder / "synthetic.csv", table=folder / "small.csv")  # fmt: skip
    assert about.holds, about.sentence
    # Audited again later, by the command that the report states: the owner's key finds the same people, and everything comes out the same.
    assert dossier.repeat == "reticent audit small.csv --target ill --synthetic synthetic.csv --policy default --pool 4 --seed 0"  # fmt: skip
    again = run(*shlex.split(dossier.repeat)[1:], "--workers", "1", "--out", "again", folder=folder)  # fmt: skip
    assert again.returncode == done.returncode, again.stderr
    later = Dossier.from_json((folder / "again" / "dossier.json").read_text())
    assert later.decision == dossier.decision
    assert later.evidence == dossier.evidence
    assert "held_out_again" in [finding.name for finding in later.findings]
    with (folder / "small.csv").open("a") as table:
        table.write("30,True,yes\n")
    changed = run(*shlex.split(dossier.repeat)[1:], folder=folder)
    assert changed.returncode == 2
    assert changed.stderr.startswith("error: the real table is not the one that")
    assert len(changed.stderr.strip().splitlines()) == 1
