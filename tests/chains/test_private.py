"""Private training, and the commands that it prints, one after another: what one of them says of a product, the next one says, too."""

import json
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="the extra `torch` is not installed")

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from in_process import run

ROWS = 1500
SHORT = ["--minutes", "0.3", "--pool", "4", "--rounds", "1", "--workers", "1"]


def falling(rng, name, count, share=0.75):
    """Return categories of which the rarest are learned or not, as the noise has it."""
    weights = share ** np.arange(count)
    return [f"{name} {k}" for k in rng.choice(count, ROWS, p=weights / weights.sum())]


def towns(rng):
    return {"town": falling(rng, "town", 30), "job": falling(rng, "job", 20)}


def skewed(rng):
    return {
        "income": rng.lognormal(10, 1.5, ROWS).round(),
        "debt": rng.pareto(1.1, ROWS) * rng.choice([-1, 0, 1], ROWS),
        "visits": rng.geometric(0.3, ROWS),
        "town": falling(rng, "town", 25),
    }


def missing(rng):
    codes = pd.Series(falling(rng, "code", 40, 0.85)).where(rng.random(ROWS) < 0.8)
    weight = pd.Series(rng.normal(70, 15, ROWS)).where(rng.random(ROWS) < 0.9)
    return {"code": codes, "weight": weight, "smoker": rng.random(ROWS) < 0.2}


def many_categories(rng):
    return {f"answer {k}": falling(rng, "answer", 15, 0.6) for k in range(10)}


def spike(rng):
    gain = np.where(rng.random(ROWS) < 0.93, 0, rng.lognormal(8, 1, ROWS).round())
    return {"gain": gain, "age": rng.integers(17, 90, ROWS), **towns(rng)}


def failed_checks(evidence):
    """Return names of the statements found false, of so many trainings, after making sure that some were tested."""
    checks = evidence["checks"]
    assert len(checks) == 17
    return [c["name"] for c in checks if not c["p_value"] or c["p_value"] < c["alarm"]]


@pytest.mark.parametrize(
    "columns",
    [
        towns,
        *(
            pytest.param(made, marks=pytest.mark.slow)
            for made in (skewed, missing, many_categories, spike)
        ),
    ],
)
def test_audit_and_identify_call_a_training_what_it_is(columns, tmp_path, seed):
    """Each of the two calls a correct training another one with a probability of 0.1 %; before, all five failed."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(columns(rng))
    first = pd.factorize(frame.iloc[:, 0])[0]
    scores = first / first.std() + rng.normal(size=ROWS)
    frame["ill"] = np.where(scores > np.median(scores), "yes", "no")
    frame.to_csv(tmp_path / "people.csv", index=False)
    trained = run(
        *("train", "people.csv", "--target", "ill", "--epsilon", "3"),
        *("--out", "private", "--epochs", "5", "--hidden", "16"),
        folder=tmp_path,
    )
    assert trained.returncode == 0, trained.stderr
    (printed,) = [line for line in trained.stdout.splitlines() if "reticent audit" in line]  # fmt: skip
    audit = shlex.split(printed.partition("reticent ")[2])
    audited = run(*audit, *SHORT, folder=tmp_path)
    assert audited.returncode in (0, 1, 3), audited.stderr
    assert "not the one that its guarantee" not in " ".join(audited.stdout.split())
    dossier = json.loads((tmp_path / "reticent-audit" / "dossier.json").read_text())
    watched = dossier["watched"]["evidence"]
    assert watched["runs"] > 10, "one chunk shows nothing of the others"
    assert failed_checks(watched) == []
    # More trainings than one chunk of this command, too.
    command = ["--target", "ill", "--product", "private", "--runs", "60", "--json"]
    identified = run("identify", "people.csv", *command, folder=tmp_path)
    assert identified.returncode == 0, identified.stderr
    found = json.loads(identified.stdout)
    assert failed_checks(found["evidence"]) == []
    assert found["evidence"]["size"] > 0
    both = [e["checks"] for e in (watched, found["evidence"])]
    assert [c["asked"] for c in both[0]] == [c["asked"] for c in both[1]]
    # Both work out what is proven of the same file, and neither shows more than that.
    epsilons = dossier["watched"]["epsilons"], found["epsilons"]
    assert all(e["audited"]["low"] <= e["proven"] for e in epsilons)
