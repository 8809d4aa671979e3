"""`reticent synthesize` from the file to the file, and what it refuses."""

import json

import numpy as np
import pandas as pd
import pytest
from in_process import run

from reticent.product import load_synthetic


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
    return tmp_path


def test_a_table_is_made_with_its_guarantee_beside_it(folder):
    done = run(
        "synthesize", "people.csv", "--target", "ill", "--drop", "who", "--schema", "schema.toml", "--epsilon", "3", "--out", "made.csv", "--json",
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
    # The exact number of rows stands nowhere.
    assert "1,500" not in (folder / "made.csv.provenance.json").read_text()


def test_a_generator_with_a_critic_is_a_method_like_the_others(folder):
    done = run(
        "synthesize", "people.csv", "--method", "wgan", "--unit", "who", "--rows-per-person", "2", "--schema", "schema.toml", "--epsilon", "8",
        "--rows", "60", "--out", "made.csv", "--json",
        folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = load_synthetic(folder / "made.csv")
    assert list(made.frame.columns) == ["age", "since", "city", "smokes", "ill"]
    assert len(made) == 60
    stated = made.provenance.guarantee
    assert stated is not None
    assert stated.holds
    assert 7.9 < stated.epsilon <= 8
    assert "up to 2 rows" in stated.mechanism
    assert made.provenance.recipe.startswith("reticent.WassersteinGenerator(")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "exactly one target"),
        (["--epsilon", "0"], "epsilon"),
        (["--epsilon", "3", "--unit", "who"], "--rows-per-person"),
        (["--epsilon", "3", "--method", "gan"], "not known"),
        (["--epsilon", "3", "--out", "made.xlsx"], "end it in .csv"),
        (["--epsilon", "3", "--target", "x"], "no column 'x'"),
        (["--epsilon", "0.0001", "--drop", "who"], "--drop"),
    ],
)
def test_what_cannot_work_is_one_sentence(folder, arguments, words):
    done = run("synthesize", "people.csv", *arguments, folder=folder)
    assert done.returncode == 2
    *_, error = done.stderr.strip().splitlines()
    assert error.startswith("error: ")
    assert words in error
    assert not (folder / "synthetic.csv").exists()
