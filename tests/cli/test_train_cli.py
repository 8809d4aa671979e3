"""`reticent train`: a guarantee that is kept, saved with its product, and audited beside the evidence."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="the extra `torch` is not installed")

from in_process import run

# What is asked here is what is said, written and refused.

FAST = ["--epochs", "3", "--hidden", "8"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of 2,400 people, some with two rows."""
    made = tmp_path_factory.mktemp("train")
    rng = np.random.default_rng(0)
    n = 2400
    age = rng.normal(45, 12, n).round()
    city = rng.choice(["Oslo", "Bergen"], n)
    ill = rng.random(n) < 1 / (1 + np.exp(-(age - 45) / 6 - (city == "Oslo")))
    pd.DataFrame(
        {
            "person": np.arange(n) // 2,
            "age": age,
            "city": city,
            "ill": np.where(ill, "yes", "no"),
        }
    ).to_csv(made / "people.csv", index=False)
    return made


TABLE = ["people.csv", "--target", "ill", "--unit", "person"]
# A person's own guarantee takes seconds to compute, for tests that do not look at it.
ROWS = ["people.csv", "--target", "ill", "--drop", "person"]


@pytest.mark.parametrize(
    ("asked", "key", "limit"),
    [
        (["--belief", "0.9"], "belief", 0.9),
        (["--advantage", "0.2"], "advantage", 0.2),
        (["--tpr", "0.01", "--fpr", "0.001"], "tpr", 0.01),
        (["--epsilon", "3", "--delta", "1e-5"], "epsilon", 3.0),
    ],
)
def test_every_target_is_met(folder, asked, key, limit):
    done = run(
        "train", *ROWS, *asked, *FAST, "--out", f"to-{key}", "--json", folder=folder
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["guarantee"]["holds"]
    assert 0.9 * limit < made["guarantee"][key] <= limit
    saved = json.loads((folder / f"to-{key}" / "provenance.json").read_text())
    assert saved["guarantee"] == made["guarantee"]
    assert saved["claimed_epsilon"] == made["guarantee"]["epsilon"]
    assert not any("a person has" in words for words in made["guarantee"]["caveats"])


def test_two_rows_of_a_person_are_told(folder):
    """The guarantee is about one row, and says so."""
    given = [*TABLE, "--belief", "0.9", *FAST, "--out", "persons", "--json"]
    made = json.loads(run("train", *given, folder=folder).stdout)
    assert made["guarantee"]["belief"] <= 0.9
    assert "a person has up to 2" in made["guarantee"]["caveats"][0]


def test_guarantee_and_evidence_stand_side_by_side_in_the_audit(folder):
    trained = run("train", *TABLE, "--epsilon", "4", "--out", "product", folder=folder)
    assert trained.returncode == 0, trained.stderr
    assert "Trained with a guarantee" in trained.stdout
    line = trained.stdout.split("Put it to the test: ")[1].splitlines()[0]
    assert (
        line == "reticent audit people.csv --target ill --unit person --product product"
    )
    audited = run(
        *line.split()[1:],
        "--out",
        "audit",
        "--minutes",
        "0.05",
        "--pool",
        "4",
        folder=folder,
    )
    assert audited.returncode in (0, 1, 3), audited.stderr
    dossier = json.loads((folder / "audit/dossier.json").read_text())
    guarantee = dossier["provenance"]["guarantee"]
    assert (
        guarantee
        == json.loads((folder / "product/provenance.json").read_text())["guarantee"]
    )
    assert dossier["provenance"]["claimed_epsilon"] == guarantee["epsilon"]
    assert dossier["evidence"]["vulnerability_bound"] == guarantee["advantage"]
    # The recipe is known, so that the attacks that retrain were run.
    assert dossier["evidence"]["pool"]["models"] == 4
    assert "What the training would guarantee, if it was as stated" in audited.stdout
    assert "What is guaranteed" not in audited.stdout
    assert "shown by attacks" in audited.stdout
    page = (folder / "audit/report.html").read_text()
    assert "What the training would guarantee, if it was as stated" in page
    assert "attacks can refute a guarantee but not confirm it" in page


def test_seeded_noise_carries_no_guarantee_and_says_so(folder):
    given = [*ROWS, "--epsilon", "3", *FAST, "--seeded", "--out", "seeded"]
    twice = [run("train", *given, "--json", folder=folder) for _ in range(2)]
    assert twice[0].stdout == twice[1].stdout
    made = json.loads(twice[0].stdout)
    assert made["guarantee"]["holds"] is False
    assert (
        json.loads((folder / "seeded/provenance.json").read_text())["claimed_epsilon"]
        is None
    )
    told = run("train", *given, folder=folder).stdout
    assert "Trained without a guarantee" in told
    assert "This product carries no guarantee." in told


def test_a_declared_domain_spends_nothing(folder):
    (folder / "domain.toml").write_text(
        '[numbers]\nage = [0, 100]\n[categories]\ncity = ["Bergen", "Oslo"]\n'
    )
    given = [*ROWS, "--epsilon", "3", *FAST, "--json"]
    learned, declared = (
        json.loads(run("train", *given, *more, folder=folder).stdout)
        for more in (["--out", "a"], ["--domain", "domain.toml", "--out", "b"])
    )
    assert (
        declared["guarantee"]["noise_multiplier"]
        < learned["guarantee"]["noise_multiplier"]
    )
    assert "learned with noise" in learned["guarantee"]["mechanism"]
    assert "learned with noise" not in declared["guarantee"]["mechanism"]


def test_everything_leaves_nobody_for_an_audit(folder):
    given = [*ROWS, "--epsilon", "3", *FAST, "--everything", "--out", "all"]
    done = run("train", *given, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "cannot be audited on this table" in done.stdout
    audited = run("audit", *ROWS, "--product", "all", folder=folder)
    assert audited.returncode == 2
    assert "it is not known which rows" in audited.stderr


def test_without_a_table_the_built_in_one_is_used(folder):
    done = run(
        "train", "--epsilon", "8", *FAST, "--out", "built-in", "--json", folder=folder
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["guarantee"]["epsilon"] <= 8


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ([], "a plan has exactly one target"),
        (["--epsilon", "3", "--belief", "0.9"], "a plan has exactly one target"),
        (
            ["--epsilon", "3", "--delta", "0"],
            "delta is 0, but Gaussian noise has no pure epsilon",
        ),
        (["--belief", "0.4"], "the highest belief is 0.4"),
        (["--epsilon", "3", "--batch", "5000"], "larger than the table"),
        (["--epsilon", "0.0001", "--delta", "1e-12"], "no amount of noise"),
        (["--epsilon", "3", "--hidden", "many"], "the hidden layers are 'many'"),
        (["--epsilon", "3", "--clipping", "reticent.SGD()"], "bounds no gradient"),
        (["--epsilon", "3", "--clipping", "os.system('ls')"], "is not a class of"),
        (["--epsilon", "3", "--domain", "nowhere.toml"], "cannot be read"),
        (["--epsilon", "3", "--relation", "cousins"], "the relation 'cousins'"),
    ],
)
def test_bad_input_gets_one_sentence_and_nothing_is_written(folder, asked, words):
    done = run("train", *TABLE, *asked, "--out", "never", folder=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr.splitlines()[-1]
    assert done.stderr.count("error: ") == 1
    assert not (folder / "never" / "product.safetensors").exists()


def test_a_module_with_batch_norm_is_refused(folder):
    (folder / "nets.py").write_text(
        "from torch import nn\n"
        "def make(inputs, classes):\n"
        "    return nn.Sequential(nn.Linear(inputs, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, classes))\n"
    )
    spec = 'reticent.PrivateModule("nets:make", epochs=1, batch=64)'
    done = run("audit", *TABLE, "--trainer", spec, "--minutes", "0.1", folder=folder)
    assert done.returncode == 2
    assert "BatchNorm1d, which mixes the records of a batch" in done.stderr
    assert "use nn.GroupNorm or nn.LayerNorm" in done.stderr


SOFT = "reticent.SoftLabels(reticent.{}(hidden=[4], epochs=1, batch=256), folds=2, repeats=2)"


def test_soft_labels_are_trained_without_a_guarantee(folder):
    trainer = SOFT.format("Network")
    done = run(
        "train", *TABLE, "--trainer", trainer, "--out", "soft", "--json", folder=folder
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["guarantee"] is None
    assert made["accuracy"]["low"] < made["accuracy"]["value"]
    saved = json.loads((folder / "soft" / "provenance.json").read_text())
    assert saved["recipe"] == trainer
    assert saved["claimed_epsilon"] is None
    shown = run("train", *TABLE, "--trainer", trainer, "--out", "soft", folder=folder)
    assert "Nothing is guaranteed" in shown.stdout


def test_a_risk_sets_the_noise_of_teachers_and_student_together(folder):
    trainer = SOFT.format("PrivateNetwork")
    done = run(
        *("train", *TABLE, "--trainer", trainer, "--epsilon", "4"),
        *("--out", "soft-private", "--json"),
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["guarantee"]["holds"]
    assert 3.6 < made["guarantee"]["epsilon"] <= 4
    assert "4 teachers, 2 of which" in made["guarantee"]["mechanism"]
    assert "a person has up to 2" in made["guarantee"]["caveats"][0]
    # One training with the same risk needs less noise than three of them.
    alone = run(
        *("train", *TABLE, "--trainer", "reticent.PrivateNetwork(hidden=[4], epochs=1, batch=256)"),
        *("--epsilon", "4", "--out", "alone", "--json"),
        folder=folder,
    )  # fmt: skip
    noise = [made["guarantee"]["noise_multiplier"] for made in (made, json.loads(alone.stdout))]  # fmt: skip
    assert noise[0] > 1.2 * noise[1]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--trainer", SOFT.format("Network"), "--belief", "0.9"], "add noise"),
        (["--trainer", "LogisticRegression()", "--belief", "0.9"], "adds no noise"),
        (["--trainer", SOFT.format("Network"), "--hidden", "8"], "--hidden shapes"),
        (["--trainer", "reticent.SoftLabels(KNeighborsClassifier())"], "hard labels"),
    ],
)
def test_a_trainer_that_cannot_do_what_is_asked_is_refused(folder, asked, message):
    done = run("train", *TABLE, *asked, "--out", "refused", folder=folder)
    assert done.returncode == 2
    assert message in done.stderr
