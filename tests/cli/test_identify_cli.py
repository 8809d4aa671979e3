"""`reticent identify`, and audits that show claimed, proven and audited epsilon side by side."""

import contextlib
import io
import json
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="the extra `torch` is not installed")

from in_process import run

# What is asked here is what is said, written and refused.

EXAMPLES = Path(__file__).parents[2] / "examples"
TABLE = ["people.csv", "--target", "ill"]
NOISY = 'reticent.PrivateNetwork(hidden=[], epochs=20, batch=100, noise_multiplier=6.0, noise="seeded")'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("identify")
    rng = np.random.default_rng(0)
    age = rng.normal(45, 12, 600).round()
    ill = rng.random(600) < 1 / (1 + np.exp(-(age - 45) / 6))
    pd.DataFrame(
        {
            "age": age,
            "city": rng.choice(["Oslo", "Bergen"], 600),
            "ill": np.where(ill, "yes", "no"),
        }
    ).to_csv(made / "people.csv", index=False)
    return made


def test_a_training_is_watched_and_the_report_shows_it(folder):
    how = ["--trainer", NOISY, "--rows", "100", "--runs", "20", "--workers", "1"]
    done = run("identify", *TABLE, *how, "--out", "seen", folder=folder)
    assert done.returncode == 0, done.stderr
    for words in ("NOT REFUTED", "claimed", "proven", "audited", "could have shown"):
        assert words in done.stdout
    page = (folder / "seen" / "identification.html").read_text()
    assert "Three epsilons" in page
    found = json.loads((folder / "seen" / "identification.json").read_text())
    epsilons = found["epsilons"]
    assert 0 < epsilons["audited"]["low"] < epsilons["proven"] == epsilons["claimed"]
    assert not (folder / "seen" / ".unfinished").exists()


def test_a_false_claim_ends_with_status_1(folder):
    how = ["--trainer", NOISY, "--rows", "100", "--runs", "20", "--workers", "1"]
    done = run(
        "identify", *TABLE, *how, "--claimed-epsilon", "0.1", "--json", folder=folder
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["epsilons"]["claimed"] == 0.1


@pytest.fixture(scope="module")
def product(folder):
    """A private network that `reticent train` made."""
    trained = run(
        "train", *TABLE, "--belief", "0.9", "--epochs", "2", "--hidden", "4",
        "--out", "product", folder=folder,
    )  # fmt: skip
    assert trained.returncode == 0, trained.stderr
    return folder / "product"


def test_a_private_network_is_audited_with_three_epsilons(folder, product):
    done = run(
        "audit", *TABLE, "--product", "product", "--pool", "0", "--rounds", "1", "--minutes", "0.1", "--watch", "10",
        "--workers", "1", "--out", "audit", "--json", folder=folder,
    )  # fmt: skip
    assert done.returncode in (0, 1, 3), done.stderr
    dossier = json.loads(done.stdout)
    epsilons = dossier["epsilons"]
    assert epsilons["proven"] == pytest.approx(epsilons["claimed"], rel=1e-3)
    assert 0 < epsilons["audited"]["low"] < epsilons["claimed"]
    assert dossier["watched"]["evidence"]["runs"] == 10
    checks = {limit["measure"]: limit["outcome"] for limit in dossier["limits"]}
    assert checks["training_refuted"] == "kept"
    page = (folder / "audit" / "report.html").read_text()
    assert "Three epsilons" in page
    assert "watches every step" in page
    # The product's own claim, put to the test by itself.
    alone = run(
        "identify", *TABLE, "--product", "product", "--runs", "6", "--workers", "1",
        "--out", "alone", "--json", folder=folder,
    )  # fmt: skip
    assert alone.returncode == 0, alone.stderr
    assert json.loads(alone.stdout)["epsilons"]["claimed"] == pytest.approx(
        epsilons["claimed"]
    )


def test_a_promise_that_its_recipe_does_not_keep_is_refused(folder, product):
    """Somebody wrote a smaller epsilon into the folder: the proven one says so, and the audited one refutes it."""
    shutil.copytree(product, folder / "boast")
    file = folder / "boast" / "provenance.json"
    content = json.loads(file.read_text())
    content["claimed_epsilon"] = content["guarantee"]["epsilon"] = 0.05
    file.write_text(json.dumps(content))
    done = run(
        "audit", *TABLE, "--product", "boast", "--pool", "0", "--rounds", "1", "--minutes", "0.1", "--watch", "30",
        "--workers", "1", "--out", "boasted", "--json", folder=folder,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    dossier = json.loads(done.stdout)
    assert dossier["epsilons"]["claimed"] == 0.05 < dossier["epsilons"]["proven"]
    assert any("refutes the claimed 0.05" in reason for reason in dossier["reasons"])
    # What is claimed is less than what follows from the recipe: a reason by itself, and never called guaranteed.
    assert any("does not follow from it" in reason for reason in dossier["reasons"])
    proven = dossier["epsilons"]["proven"]
    assert dossier["provenance"]["guarantee"]["epsilon"] == pytest.approx(proven)
    page = (folder / "boasted" / "report.html").read_text()
    assert "What is guaranteed" not in page
    # It was worked out, so that it has no interval.
    (limit,) = [one for one in dossier["limits"] if one["measure"] == "claim_unproven"]
    assert limit["estimate"]["covers"] == "nothing"
    assert f"{proven:.3f} [" not in page


def test_a_model_trained_by_opacus_is_audited_with_three_epsilons(tmp_path):
    pytest.importorskip("opacus", reason="Opacus is not installed")
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(tmp_path):
        patch.setattr(sys, "argv", ["opacus_model.py", "product"])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            import warnings

            with warnings.catch_warnings():
                runpy.run_path(str(EXAMPLES / "opacus_model.py"))
    assert "Opacus claims epsilon" in said.getvalue()
    done = run("audit", "--product", "product", "--json", folder=tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    dossier = json.loads(done.stdout)
    epsilons = dossier["epsilons"]
    assert epsilons["claimed_by"] == "the accountant rdp of Opacus"
    assert epsilons["proven"] is None
    assert "secure mode" in epsilons["proven_by"]
    assert epsilons["audited"]["low"] > 0
    assert dossier["watched"]["evidence"]["runs"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--trainer", "sklearn.tree.DecisionTreeClassifier()"], "no noisy steps"),
        (["--neighbour", "friend"], "gradient, mislabelled, gower"),
        (["--neighbour", "ssim"], "--image 28x28"),
        (["--local", "near"], "use pair"),
        (["--belief", "0.3"], "above 0.5 and below 1"),
        (["--product", "nowhere"], "nothing is known about its training"),
        (["--relation", "cousin"], "the relation 'cousin' is not known"),
        (
            ["--trainer", NOISY, "--rows", "50"],
            "batch",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(folder, arguments, words):
    done = run("identify", *TABLE, *arguments, "--runs", "4", folder=folder)
    assert done.returncode == 2
    assert words in done.stderr.splitlines()[-1]
    assert done.stderr.count("error: ") == 1
